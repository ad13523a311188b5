"""An operation: name, request, response, rights and handler in one declaration."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, get_args, get_type_hints

from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer, WriteAttempt
from optimizer.operations.access.rights import Rights
from optimizer.operations.examples import Examples
from optimizer.wire.request_problem import RequestProblem

P = ParamSpec("P")
R = TypeVar("R")

Handler = Callable[Concatenate[AuthorizedOptimizer, P], Awaitable[R]]


@dataclass(frozen=True, slots=True)
class Route:
    """Where the HTTP API has an operation. `problems`: the statuses of its own refusals.

    `progress`: a caller may ask for events that tell how far it is; then it writes nothing.
    """

    method: Literal["GET", "POST"]
    path: str
    summary: str
    problems: tuple[int, ...] = (404, 422)
    tag: str = "optimize"
    examples: Examples | None = None
    progress: bool = False


class Operation(Generic[P, R]):
    """What callers may ask: a handler that runs if the caller has the rights, else a problem.

    Its name, description, request and response are the name, docstring, parameters and return type
    of the handler. `rights` and `write` take those parameters of the handler that they name. With
    `rights` None, the handler only asks other operations, each of which checks its own. `write`
    returns what the audit log says of the attempt; None: this call is no step of a write. `audited`
    is its outcome, or only its refusal where it prepares a write, or nothing.

    Parameters after `*` are for callers in this process: no route has them.
    """

    def __init__(
        self,
        handler: Handler[P, R],
        rights: Callable[..., Rights] | None,
        write: Callable[..., WriteAttempt | None] | None,
        audited: Literal["outcome", "refusal"] | None,
        route: Route | None,
    ) -> None:
        update_wrapper(self, handler)
        self.name = handler.__name__
        self.route = route
        self._handler = handler
        self._signature = inspect.signature(handler)
        self._rights = rights and self._of_request(rights)
        self._write = write and self._of_request(write)
        self._audited = audited

    async def __call__(
        self, optimizer: AuthorizedOptimizer, *args: P.args, **kwargs: P.kwargs
    ) -> R | RequestProblem:
        """Return what the handler returns; a problem if the caller lacks a right.

        Raises what the handler raises, such as KubeError.
        """
        given = self._signature.bind(optimizer, *args, **kwargs)
        given.apply_defaults()
        attempt = self._write(given.arguments) if self._write else None

        async def refused() -> RequestProblem | None:
            if self._rights is None:
                return None
            return await optimizer.refusal(
                self._rights(given.arguments), to_write=attempt is not None
            )

        async def whole() -> R | RequestProblem:
            return await refused() or await self._handler(optimizer, *args, **kwargs)

        if attempt is None or self._audited is None:
            return await whole()
        if self._audited == "outcome":
            return await optimizer.audited(attempt, whole)
        refusal = await optimizer.audited(attempt, refused)
        return refusal or await self._handler(optimizer, *args, **kwargs)

    @cached_property
    def parameters(self) -> dict[str, tuple[Any, Any]]:
        """Return the type, with its annotations, and the default of each part of the request."""
        hints = get_type_hints(self._handler, include_extras=True)
        _, *parameters = self._signature.parameters.values()
        published = (item for item in parameters if item.kind is not item.KEYWORD_ONLY)
        return {item.name: (hints[item.name], item.default) for item in published}

    @cached_property
    def response(self) -> Any:
        """Return the type of the response."""
        returned = get_args(get_type_hints(self._handler)["return"])
        (response,) = (item for item in returned if item is not RequestProblem)
        return response

    def _of_request(self, function: Callable[..., Any]) -> Callable[[Mapping[str, Any]], Any]:
        """Return the function of a request that takes the parts that it names."""
        names = tuple(inspect.signature(function).parameters)
        if not self._signature.parameters.keys() >= set(names):
            raise TypeError(f"{self.name}: its rights name a parameter that it has not: {names}")
        return lambda given: function(**{name: given[name] for name in names})


def operation(
    *,
    rights: Callable[..., Rights] | None,
    write: Callable[..., WriteAttempt | None] | None = None,
    audited: Literal["outcome", "refusal"] | None = "outcome",
    route: Route | None = None,
) -> Callable[[Handler[P, R]], Operation[P, R]]:
    """Make an operation of a handler; see Operation."""
    return lambda handler: Operation(handler, rights, write, audited, route)

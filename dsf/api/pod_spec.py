"""What of a Pod's spec decides on which node it runs: its requests, selectors and tolerations.

Requests are summed up as kube-scheduler does it.

Sources: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/;
`PodRequests` in resource/helpers.go of k8s.io/component-helpers v0.34; the defaults of requests in
pkg/apis/core/v1/defaults.go of Kubernetes v1.34.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, ValidationError

from dsf.api.scoring.quantity import parse_quantity
from dsf.api.untrusted_text import InvalidInput, UntrustedName, quoted
from dsf.api.wire_model import WireModel

MAX_QUANTITY = 1e18
"""The largest amount of a resource that is taken for one; sums of many are finite."""

PODS = "pods"
"""The resource of which each Pod takes one on its node."""


@lru_cache(4096)
def read_amount(text: str) -> float:
    """Return a quantity of a resource as a number. Raises ValueError if it can't be one."""
    amount = parse_quantity(text)
    if amount is None:
        raise ValueError(f"{quoted(text, 40)} is no quantity of 0 or more, such as 500m or 16Gi")
    if amount > MAX_QUANTITY:
        raise ValueError(f"{quoted(text, 40)} is more than any node has")
    return amount


def _amounts(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {str(name): read_amount(str(text)) for name, text in value.items()}


Quantities = Annotated[dict[str, float], BeforeValidator(_amounts)]


class Resources(WireModel):
    """What a container or a Pod requests; a limit without a request is requested too."""

    requests: Quantities | None = None
    limits: Quantities | None = None

    @property
    def requested(self) -> dict[str, float]:
        """The requests that the API server makes of both."""
        return {**(self.limits or {}), **(self.requests or {})}


class Container(WireModel):
    """A container; one of initContainers with restartPolicy Always runs on beside the others."""

    resources: Resources | None = None
    restart_policy: str | None = None

    @property
    def requested(self) -> dict[str, float]:
        """What it requests."""
        return self.resources.requested if self.resources else {}


class NodeRequirement(WireModel):
    """A condition on a label of nodes, or with matchFields on their name."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] | None = None


class NodeTerm(WireModel):
    """Conditions that all have to hold; without any, no node meets the term."""

    match_expressions: tuple[NodeRequirement, ...] | None = None
    match_fields: tuple[NodeRequirement, ...] | None = None

    @property
    def requirements(self) -> tuple[NodeRequirement, ...]:
        """All its conditions."""
        return (*(self.match_expressions or ()), *(self.match_fields or ()))


class RequiredNodes(WireModel):
    """The terms of which a node has to meet one."""

    node_selector_terms: tuple[NodeTerm, ...] = Field(min_length=1)


class NodeAffinity(WireModel):
    """What a Pod requires of its node; preferences decide nothing here."""

    required: RequiredNodes | None = Field(
        None, alias="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(WireModel):
    """Affinity to nodes."""

    node_affinity: NodeAffinity | None = None


class TolerationOfNode(WireModel):
    """Which taints of nodes a Pod tolerates."""

    key: str | None = None
    operator: Literal["Equal", "Exists", ""] | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] | None = None


class PodResourceClaim(WireModel):
    """A ResourceClaim of the Pod, or the template by which it gets one of its own."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(WireModel):
    """The spec of a Pod, as far as it decides on which node the Pod runs."""

    containers: tuple[Container, ...] = Field(min_length=1)
    init_containers: tuple[Container, ...] | None = None
    resources: Resources | None = None
    overhead: Quantities | None = None
    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[TolerationOfNode, ...] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None

    def requested(self) -> dict[str, float]:
        """Return what the Pod requests of its node, itself as one of `pods` included.

        That is the larger of what its containers request together, those of initContainers that
        run on included, and of what each other one of initContainers requests beside those that
        run already; instead of it what the Pod states for all its containers; plus its overhead.
        """
        stated = self.resources or Resources()
        found = summed_requests(
            [one.requested for one in self.containers],
            [(one.restart_policy == "Always", one.requested) for one in self.init_containers or ()],
            limits=stated.limits or {},
            requests=stated.requests or {},
            overhead=self.overhead or {},
        )
        return {**found, PODS: 1.0}


Amount = TypeVar("Amount", int, float)


def summed_requests(
    containers: Iterable[Mapping[str, Amount]],
    init_containers: Iterable[tuple[bool, Mapping[str, Amount]]],
    *,
    limits: Mapping[str, Amount],
    requests: Mapping[str, Amount],
    overhead: Mapping[str, Amount],
) -> dict[str, Amount]:
    """Return what a Pod requests by what its containers do; `init_containers` say if they run on.

    `limits` and `requests` are what the Pod states for all its containers.
    """
    found, before = dict[str, Amount](), dict[str, Amount]()
    for runs_on, asked in init_containers:
        if runs_on:
            before = _sum(before, asked)
            found = _most(found, before)
        else:
            found = _most(found, _sum(before, asked))
    together = before
    for asked in containers:
        together = _sum(together, asked)
    found = _most(found, together)
    stated = {**limits, **found, **requests}
    found |= {name: stated[name] for name in (*limits, *requests) if _of_pods(name)}
    return _sum(found, overhead)


Model = TypeVar("Model", bound=WireModel)


def read_part(model: type[Model], value: Any, path: str) -> Model | InvalidInput:
    """Return a part of an object as a value, or what is wrong with it first, and where."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        # What follows may come of the first: a list whose item is wrong counts as empty.
        first = error.errors(include_input=False, include_url=False)[0]
        why = first["msg"].removeprefix("Value error, ")
        steps = (f"[{i}]" if isinstance(i, int) else f".{UntrustedName(i)}" for i in first["loc"])
        return InvalidInput("Unreadable", f"{path}{''.join(steps)}: {why}")


def _of_pods(resource: str) -> bool:
    """Return whether a Pod can request a resource for all its containers together."""
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def _sum(one: Mapping[str, Amount], other: Mapping[str, Amount]) -> dict[str, Amount]:
    found = dict(one)
    for name, amount in other.items():
        found[name] = found[name] + amount if name in found else amount
    return found


def _most(one: Mapping[str, Amount], other: Mapping[str, Amount]) -> dict[str, Amount]:
    return {**one, **{name: max(one.get(name, amount), amount) for name, amount in other.items()}}

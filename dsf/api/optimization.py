"""The optimization that owns generated objects."""

from collections.abc import Mapping
from typing import NamedTuple

from dsf.api.names import DEFAULT_OPTIMIZATION, GENERATED_LABEL, OPTIMIZATION_LABEL
from dsf.api.untrusted_text import UntrustedName


class Optimization(NamedTuple):
    """A namespace and the name of one of its optimizations; each owns what was generated for it.

    Objects of the optimization `default` have no label of their optimization, and their names do
    not depend on it, as the wire contract demands.
    """

    namespace: str
    name: str = DEFAULT_OPTIMIZATION

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its generated objects."""
        named = {OPTIMIZATION_LABEL: self.name} if self.name != DEFAULT_OPTIMIZATION else {}
        return {GENERATED_LABEL: "true", **named}

    @property
    def name_parts(self) -> tuple[str, ...]:
        """What the digits of a generated name depend on besides the object itself."""
        return (self.namespace,) if self.name == DEFAULT_OPTIMIZATION else tuple(self)

    @property
    def without_prune(self) -> str:
        """Itself as the owner of what it generated before and a request does not name."""
        return f"{self} (not in the request, and kept without `prune`)"

    def __str__(self) -> str:
        return f"optimization {UntrustedName(self.name)} of namespace {self.namespace}"


def generating_optimization(labels: Mapping[str, str]) -> str | None:
    """Return the name of the optimization that generated an object; None if none did."""
    if labels.get(GENERATED_LABEL) != "true":
        return None
    return labels.get(OPTIMIZATION_LABEL) or DEFAULT_OPTIMIZATION

"""What a hub serves, what is installed on it, and what its user may do, as it was read at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from dsf.kube import kinds
from dsf.kube.access_reviews import ResourceAttributes
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from optimizer.wire.placement_optimization import KeptOptimization

OCM = "1.2.1"
KUBERNETES = "1.34.3"
OLDEST_KUBERNETES = (1, 28)
"""The oldest that the charts accept (`kubeVersion`)."""


def minor(version: str) -> str:
    """Return a version without its patch, as people speak of it: `v1.34` of `1.34.3`."""
    return f"v{version.rpartition('.')[0]}"


OWN_KINDS = (
    kinds.DYNAMIC_SCORER,
    kinds.DYNAMIC_SCORING_CONFIG,
    kinds.NODE_INVENTORY,
    kinds.PLACEMENT_PLAN,
    kinds.PLACEMENT_OPTIMIZATION,
)
"""The kinds whose CRDs this framework ships."""

OCM_KINDS = (
    kinds.MANAGED_CLUSTER,
    kinds.ADD_ON_PLACEMENT_SCORE,
    kinds.PLACEMENT,
    kinds.PLACEMENT_DECISION,
    kinds.MANAGED_CLUSTER_ADD_ON,
)
"""The kinds that each hub of OCM serves."""

OPTIMIZER_KINDS = (kinds.MANIFEST_WORK_REPLICA_SET, kinds.POLICY, kinds.PLACEMENT_BINDING)
"""The kinds of OCM's optional parts that the optimizer needs."""

Serving = Literal["served", "forbidden", "missing"]


class ClockReading(NamedTuple):
    """The hub's time, and our own before and after it was asked; `hub` is None if it does not say.

    The hub's time has whole seconds.
    """

    before: datetime
    hub: datetime | None
    after: datetime


class SourceFailure(NamedTuple):
    """A score whose agent can't read its source, and why."""

    score: str
    cluster: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class HubInstallation:
    """What one look at a hub found.

    `served`: each kind and whether its objects may be listed. `definitions`: installed CRDs by
    name. `config`: the DynamicScoringConfig. `rights`: whether the user has each. `prometheus`: how
    the Prometheus of the user answered, empty for well, None if none was named.
    """

    server: str = ""
    user: str = ""
    clock: ClockReading | None = None
    served: Mapping[Kind, Serving] = field(default_factory=dict)
    definitions: Mapping[str, Object] = field(default_factory=dict)
    shipped: Mapping[str, Object] = field(default_factory=dict)
    cluster_managers: tuple[Object, ...] = ()
    clusters: tuple[Object, ...] = ()
    add_ons: tuple[Object, ...] = ()
    config: Object | None = None
    scorers: tuple[Object, ...] = ()
    kept: tuple[KeptOptimization, ...] = ()
    source_failures: tuple[SourceFailure, ...] = ()
    sources_read: int = 0
    rights: Mapping[ResourceAttributes, bool] = field(default_factory=dict)
    prometheus: str | None = None

"""The fleet as the optimizer sees it: frozen values, no Kubernetes objects."""

from collections.abc import Mapping
from dataclasses import dataclass

from optimizer.results import Gap


@dataclass(frozen=True, slots=True)
class Selector:
    """How a Placement selects one managed cluster: by a label, or by name where `key` is empty."""

    cluster: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class Supply:
    """What a policy supplies once it is enforced: `amount` devices of a kind."""

    policy: str
    kind: str
    device: str
    amount: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """A managed cluster and its candidate policies, in the order of the request."""

    name: str
    selector: Selector
    supplies: tuple[Supply, ...]


@dataclass(frozen=True, slots=True)
class Workload:
    """A ManifestWorkReplicaSet: what it asks for, and the Placement that says where it runs."""

    name: str
    app: str
    kind: str
    amount: int
    placement: str


@dataclass(frozen=True, slots=True)
class Fleet:
    """What can be placed where; `scores` is keyed by cluster, app and device.

    `gaps` names what the hub holds but could not be used, and pairs without a usable score.
    """

    namespace: str
    clusters: tuple[Cluster, ...]
    workloads: tuple[Workload, ...]
    scores: Mapping[tuple[str, str, str], float]
    gaps: tuple[Gap, ...] = ()

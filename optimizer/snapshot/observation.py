"""The objects that a plan for one namespace depends on, as the hub returned them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dsf.kube.port import Object


@dataclass(frozen=True, slots=True)
class Observation:
    """Objects as the API server returned them, one list per kind.

    Policies, workloads, Placements, PlacementBindings and ManagedClusterSetBindings are those of
    the request's namespace; managed clusters, cluster sets and AddOnPlacementScores are the whole
    hub's. Scores are left out where they are read page by page. `decisions` are the namespace's
    PlacementDecisions. `elsewhere`: by namespace, the policies, workloads, Placements, bindings and
    decisions of the others; `unread`: the kinds that could not be listed there. `named`: whether
    a plan may name them. `works`: the ManifestWorks of the namespace's ManifestWorkReplicaSets on
    all clusters, or of all namespaces' if `elsewhere` was read; without manifests; None if they may
    not be listed. `usage_scores`: OCM's resource usage scores. `scorers`: DynamicScorers;
    None if they may not be listed. `observed_at` is aware.
    """

    managed_clusters: tuple[Object, ...] = ()
    policies: tuple[Object, ...] = ()
    workloads: tuple[Object, ...] = ()
    placements: tuple[Object, ...] = ()
    bindings: tuple[Object, ...] = ()
    scores: tuple[Object, ...] = ()
    cluster_sets: tuple[Object, ...] = ()
    set_bindings: tuple[Object, ...] = ()
    observed_at: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    decisions: tuple[Object, ...] = ()
    elsewhere: Mapping[str, "Observation"] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    named: bool = True
    works: tuple[Object, ...] | None = ()
    usage_scores: tuple[Object, ...] = ()
    scorers: tuple[Object, ...] | None = ()

"""The objects that a plan for one namespace depends on, as the hub returned them."""

from dataclasses import dataclass

from dsf.kube.port import Object


@dataclass(frozen=True, slots=True)
class Observation:
    """Objects as the API server returned them, one list per kind.

    Policies, workloads, Placements and PlacementBindings are those of the request's namespace;
    managed clusters and AddOnPlacementScores are the whole hub's. Scores are left out where they
    are read page by page.
    """

    managed_clusters: tuple[Object, ...] = ()
    policies: tuple[Object, ...] = ()
    workloads: tuple[Object, ...] = ()
    placements: tuple[Object, ...] = ()
    bindings: tuple[Object, ...] = ()
    scores: tuple[Object, ...] = ()

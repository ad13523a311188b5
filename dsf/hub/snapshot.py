"""What the controller observes: everything that a plan is made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dsf.hub.observed import AddOn, Cluster, Key, Probe, Score, Target, Work
from dsf.hub.registration import Registration
from dsf.hub.rules import ScoringConfig


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The hub at one moment, and the last answers of the scoring APIs.

    `clusters`, `add_ons` and `works` are by managed cluster, `scores` by managed cluster and name.
    `refusals` tells, by managed cluster, why the API server refused our last write there; those
    `held` are not written to for now.
    """

    scorers: tuple[Registration, ...] = ()
    config: ScoringConfig | None = None
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    add_ons: Mapping[str, AddOn] = field(default_factory=dict)
    works: Mapping[str, Work] = field(default_factory=dict)
    scores: Mapping[Key, Score] = field(default_factory=dict)
    probes: Mapping[Target, Probe] = field(default_factory=dict)
    refusals: Mapping[str, str] = field(default_factory=dict)
    held: frozenset[str] = frozenset()

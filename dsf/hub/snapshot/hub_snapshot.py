"""Everything that a plan is made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dsf.hub.snapshot.distribution_rules import ScoringConfig
from dsf.hub.snapshot.managed_cluster import AddOn, ManagedCluster, NamespacedName
from dsf.hub.snapshot.manifests import NamespaceManifests
from dsf.hub.snapshot.published_score import PublishedScore
from dsf.hub.snapshot.registered_scorer import ProbeResult, ProbeTarget, RegisteredScorer
from dsf.hub.snapshot.summaries_work import SummariesWork
from dsf.kube.port import Object


@dataclass(frozen=True, slots=True)
class HubSnapshot:
    """The objects on the hub at one moment, and what the scoring APIs answered.

    `clusters`, `add_ons` and `works` are by managed cluster, `scores` by managed cluster and name.
    `manifests` are by the namespaces that the controller may read for scorers, none by default.
    `misplaced` are the DynamicScorers of other namespaces that no controller uses.
    `refusals` says by managed cluster why the API server refused our last write there. The clusters
    in `held` are not written to for now.
    """

    scorers: tuple[RegisteredScorer, ...] = ()
    config: ScoringConfig | None = None
    clusters: Mapping[str, ManagedCluster] = field(default_factory=dict)
    add_ons: Mapping[str, AddOn] = field(default_factory=dict)
    works: Mapping[str, SummariesWork] = field(default_factory=dict)
    scores: Mapping[NamespacedName, PublishedScore] = field(default_factory=dict)
    probes: Mapping[ProbeTarget, ProbeResult] = field(default_factory=dict)
    manifests: Mapping[str, NamespaceManifests] = field(default_factory=dict)
    refusals: Mapping[str, str] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    misplaced: tuple[Object, ...] = ()

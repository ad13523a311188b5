"""Which managed clusters get summaries, and which of them each one gets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.hub.snapshot.distribution_rules import DistributionRules, Hosts
from dsf.hub.snapshot.managed_cluster import AddOn, ManagedCluster

ClusterValues = tuple[tuple[str, str], ...]
"""Labels or claims of a managed cluster, sorted by key."""


@dataclass(frozen=True, slots=True)
class AskedKeys:
    """The keys of labels and the names of claims for which at least one scorer asks."""

    labels: frozenset[str] = frozenset()
    claims: frozenset[str] = frozenset()


def asked_keys(summaries: Iterable[ScorerSummary]) -> AskedKeys:
    """Return what the contexts of scorers ask for."""
    contexts = [summary.context for summary in summaries if summary.context]
    return AskedKeys(
        frozenset(key for context in contexts for key in context.labels),
        frozenset(name for context in contexts for name in context.claims),
    )


@dataclass(frozen=True, slots=True)
class ClusterShare:
    """What a managed cluster gets: every summary except the `masked` ones, with its own `hosts`.

    `masked` are score names, `hosts` replace the hosts of sources. `labels` and `claims` are those
    that scorers ask for and the cluster has. Clusters with equal shares get the same bytes.
    """

    masked: frozenset[str] = frozenset()
    hosts: Hosts = ()
    labels: ClusterValues = ()
    claims: ClusterValues = ()


@dataclass(frozen=True, slots=True)
class Audience:
    """The managed clusters that get summaries, each with its share.

    `accepted` counts the clusters that the hub accepts and that are not being deleted, `equipped`
    those of them that have the add-on.
    """

    shares: Mapping[str, ClusterShare]
    accepted: int = 0
    equipped: int = 0

    @property
    def empty_because(self) -> str:
        """Why no managed cluster gets summaries, and what to do; empty if one does."""
        if self.shares:
            return ""
        if not self.accepted:
            return "no managed cluster is accepted by the hub: accept one"
        if not self.equipped:
            return (
                f"none of {self.accepted} managed clusters has the add-on"
                " dynamic-scoring-framework: create a ManagedClusterAddOn of that name"
            )
        return (
            f"spec.clusterSelector and spec.clusterSets choose none of {self.equipped} managed"
            " clusters that have the add-on"
        )


def audience(
    rules: DistributionRules,
    clusters: Mapping[str, ManagedCluster],
    add_ons: Mapping[str, AddOn],
    score_names: Iterable[str],
    asked: AskedKeys = AskedKeys(),
) -> Audience:
    """Return who gets summaries: the accepted clusters with the add-on that the rules choose."""
    known = frozenset(score_names)
    accepted = [each for each in clusters.values() if each.accepted and not each.being_deleted]
    equipped = [
        each for each in accepted if (add_on := add_ons.get(each.name)) and not add_on.being_deleted
    ]
    shares = {
        each.name: ClusterShare(
            rules.masked.get(each.name, frozenset()) & known,
            rules.overrides.hosts(each, known),
            _values(each.labels, asked.labels),
            _values(each.claims, asked.claims),
        )
        for each in sorted(equipped, key=lambda each: each.name)
        if rules.chooses(each)
    }
    return Audience(shares, len(accepted), len(equipped))


def _values(present: Mapping[str, str], asked: frozenset[str]) -> ClusterValues:
    return tuple(sorted((key, present[key]) for key in asked & present.keys()))

"""Which managed clusters OCM can select for the Placements of a namespace, and why not the others.

OCM's placement controller looks at cluster sets, deletion and taints. A cluster that the hub does
not accept, or that never joined, gets no work either, so nothing is planned there.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from dsf.api.untrusted_text import listed
from dsf.kube.port import Object
from dsf.placement.cluster_sets import bound_sets, sets_of
from dsf.placement.taints import (
    UNAVAILABLE,
    UNREACHABLE,
    Taint,
    Toleration,
    read_taints,
    tolerates,
    untolerated,
)
from optimizer.domain.issue import Issue
from optimizer.domain.settings import OptimizerSettings
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.observation import Observation
from optimizer.wire.request import OptimizeRequest

_LOST = {
    UNAVAILABLE: "the cluster reports that it is not available: look at its klusterlet",
    UNREACHABLE: "its agent does not renew its lease: look at its klusterlet and its network",
}


@dataclass(slots=True)
class EligibleClusters:
    """The clusters of a hub as OCM's placement controller sees them from one namespace.

    `blocked`: those that no Placement of the namespace can select, each with an issue. `taints`:
    those of the other clusters. `defaults`: tolerations that hold where something runs already.
    """

    blocked: Mapping[str, Issue]
    taints: Mapping[str, tuple[Taint, ...]]
    defaults: tuple[Toleration, ...]
    now: datetime
    _hit: dict[str, Taint] = field(default_factory=dict)
    _cached: dict[tuple[Toleration, ...], tuple[str, ...]] = field(default_factory=dict)

    def unselectable(
        self, tolerations: tuple[Toleration, ...], current: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Return the clusters that a Placement with these tolerations can't select.

        `current`: the clusters that it selects now.
        """
        found = self._cached.get(tolerations)
        if found is None:
            tainted = (name for name in self.taints if self._taint(name, tolerations))
            found = self._cached[tolerations] = (*self.blocked, *tainted)
        staying = frozenset(
            name
            for name in current
            if name in self.taints and not self._taint(name, tolerations + self.defaults, True)
        )
        return tuple(name for name in found if name not in staying) if staying else found

    def avoided(self, tolerations: tuple[Toleration, ...]) -> tuple[str, ...]:
        """Return the clusters with a taint PreferNoSelect that is not tolerated."""
        return tuple(
            name
            for name, taints in self.taints.items()
            if any(
                taint.effect == "PreferNoSelect" and not tolerates(tolerations, taint, now=self.now)
                for taint in taints
            )
        )

    def issues(self, clusters: Iterable[str]) -> Iterator[Issue]:
        """Yield an issue of each cluster that something could not be planned on."""
        for name in clusters:
            if name in self.blocked:
                yield self.blocked[name]
            elif name in self._hit:
                yield _tainted(name, self._hit[name])

    def _taint(
        self, name: str, tolerations: tuple[Toleration, ...], selected: bool = False
    ) -> Taint | None:
        found = untolerated(self.taints[name], tolerations, selected=selected, now=self.now)
        if found and not selected:
            self._hit[name] = found
        return found


def default_tolerations(settings: OptimizerSettings) -> tuple[Toleration, ...]:
    """Return what every generated Placement tolerates: a short loss of contact with a cluster.

    As in Kubernetes, where Pods tolerate not-ready and unreachable nodes for 300 seconds.
    """
    seconds = settings.default_toleration_seconds
    keys = (UNAVAILABLE, UNREACHABLE) if seconds else ()
    return tuple(Toleration(key, "Exists", seconds=seconds) for key in keys)


def eligible_clusters(
    observation: Observation, request: OptimizeRequest, defaults: tuple[Toleration, ...]
) -> EligibleClusters:
    """Return which clusters of a request OCM can select.

    A hub without any cluster set, such as a folder of files, is not asked about sets: OCM always
    has some.
    """
    bound = bound_sets(observation.set_bindings, observation.cluster_sets)
    blocked, taints = dict[str, Issue](), dict[str, tuple[Taint, ...]]()
    for cluster in observation.managed_clusters:
        name = name_of(cluster)
        if name not in request.cluster_names:
            continue
        issue = _blocked(cluster, observation, bound, request)
        if issue:
            blocked[name] = issue
        else:
            taints[name] = read_taints(cluster)
    return EligibleClusters(
        blocked,
        {name: found for name, found in taints.items() if found},
        defaults,
        observation.observed_at,
    )


def _blocked(
    cluster: Object, observation: Observation, bound: Collection[str], request: OptimizeRequest
) -> Issue | None:
    """Return why no Placement of the namespace can select a cluster; None if some can."""
    name = name_of(cluster)
    found = _state(cluster, name)
    if found is None and observation.cluster_sets:
        # Binding the set of all clusters is the last thing that an administrator wants.
        member = sorted(
            sets_of(cluster, observation.cluster_sets), key=lambda x: (x == "global", x)
        )
        found = _sets(member, bound, request)
    if found is None:
        return None
    reason, message = found
    return Issue(reason, f"cluster {name} {message}", cluster=name)


def _state(cluster: Object, name: str) -> tuple[str, str] | None:
    if cluster["metadata"].get("deletionTimestamp"):
        return "ClusterBeingDeleted", "is being deleted"
    if (cluster.get("spec") or {}).get("hubAcceptsClient") is False:
        remedy = f"run `clusteradm accept --clusters {name}`"
        return "ClusterNotAccepted", f"is not accepted by the hub: {remedy}"
    if _says_no(cluster, "ManagedClusterJoined"):
        return "ClusterNotJoined", "has not joined the hub: look at its klusterlet"
    return None


def _sets(
    member: Sequence[str], bound: Collection[str], request: OptimizeRequest
) -> tuple[str, str] | None:
    eligible, namespace = set(member) & set(bound), request.namespace
    if not eligible:
        named = (
            f"cluster set {' or '.join(map(str, member))}"
            if member
            else "a cluster set that has it"
        )
        command = f"clusteradm clusterset bind {member[0] if member else 'SET'}"
        return "ClusterSetNotBound", (
            f"is in no cluster set that is bound to namespace {namespace}: bind {named},"
            f" `{command} --namespace {namespace}`"
        )
    asked = request.cluster_sets
    if asked and not eligible & set(asked):
        return "ClusterSetNotAsked", (
            f"is in cluster set {' and '.join(map(str, sorted(eligible)))}, and the request's"
            f" clusterSets names only {listed(sorted(asked))}"
        )
    return None


def _says_no(cluster: Object, condition: str) -> bool:
    return any(
        item.get("type") == condition and item.get("status") != "True"
        for item in (cluster.get("status") or {}).get("conditions") or ()
    )


def _tainted(cluster: str, taint: Taint) -> Issue:
    since = f" since {taint.added:%Y-%m-%dT%H:%M:%SZ}" if taint.added else ""
    remedy = _LOST.get(taint.key, "remove the taint, or tolerate it in the request's tolerations")
    return Issue(
        "ClusterTainted",
        f"cluster {cluster} has the taint {taint}{since}: {remedy}",
        cluster=cluster,
    )

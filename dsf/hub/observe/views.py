"""Watches everything that the controller observes, and takes the snapshots for its plans."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from dsf.api import names
from dsf.api.scoring.scoring_api import ScoredWorkload, SuppliedDevice
from dsf.hub.snapshot import managed_cluster, registered_scorer
from dsf.hub.snapshot.distribution_rules import ScoringConfig, read_scoring_config
from dsf.hub.snapshot.hub_snapshot import HubSnapshot, PublishedScore, read_score
from dsf.hub.snapshot.manifests import NamespaceManifests, read_device, read_workload
from dsf.hub.snapshot.summaries_work import SummariesWork, read_work
from dsf.kube import kinds
from dsf.kube.port import Kube, Object
from dsf.runtime.backoff import Backoff
from dsf.runtime.reconcile.reflector import Key, View

T = TypeVar("T")

_RIGHT_MISSING = Backoff(1.0, 300.0)
"""Seconds between attempts to watch other namespaces; the right to may be missing for good."""

MANIFESTS_SECONDS = 10.0
"""How long the first plan of a leader waits for manifests.

A plan without them withdraws the scorers that ask for them. Longer than a list takes, and short
enough for all other scorers to wait where the right to list is missing.
"""


class Views:
    """Local copies of the observed objects, reduced to what the controller needs of them.

    Workloads and policies are observed only in `manifest_namespaces`. Nothing else waits long for
    them, because the right to list them, or their CRDs, may be missing. Nothing waits for the
    DynamicScorers of other namespaces.
    """

    def __init__(
        self,
        kube: Kube,
        namespace: str,
        agent_namespace: str,
        manifest_namespaces: Iterable[str] = (),
    ) -> None:
        self._namespace = namespace
        self.scorers = View[registered_scorer.RegisteredScorer](
            kube, kinds.DYNAMIC_SCORER, namespace, read=registered_scorer.read_scorer
        )
        self._configs = View[ScoringConfig](
            kube,
            kinds.DYNAMIC_SCORING_CONFIG,
            namespace,
            fields=f"metadata.name={names.SCORING_CONFIG}",
            read=read_scoring_config,
        )
        self._clusters = View[managed_cluster.ManagedCluster](
            kube, kinds.MANAGED_CLUSTER, read=managed_cluster.read_managed_cluster
        )
        self._add_ons = View[managed_cluster.AddOn](
            kube,
            kinds.MANAGED_CLUSTER_ADD_ON,
            fields=f"metadata.name={names.ADDON}",
            read=managed_cluster.read_add_on,
        )
        self._works = View[SummariesWork](
            kube,
            kinds.MANIFEST_WORK,
            fields=f"metadata.name={names.MANIFEST_WORK}",
            read=read_work(agent_namespace),
        )
        self._scores = View[PublishedScore](
            kube,
            kinds.ADD_ON_PLACEMENT_SCORE,
            labels=f"{names.MANAGED_BY_LABEL}={names.ADDON}",
            read=read_score,
        )
        self._urgent: dict[str, View[Any]] = {
            "DynamicScorers": self.scorers,
            "DynamicScoringConfigs": self._configs,
            "ManagedClusters": self._clusters,
            "ManagedClusterAddOns": self._add_ons,
            "ManifestWorks": self._works,
        }
        self._all: dict[str, View[Any]] = {**self._urgent, "AddOnPlacementScores": self._scores}
        self._misplaced = View[Object | None](
            kube,
            kinds.DYNAMIC_SCORER,
            fields=f"metadata.namespace!={namespace}",
            read=registered_scorer.read_misplaced,
            backoff=_RIGHT_MISSING,
        )
        self._workloads = {
            each: View[ScoredWorkload | None](
                kube, kinds.MANIFEST_WORK_REPLICA_SET, each, labels=names.APP, read=read_workload
            )
            for each in manifest_namespaces
        }
        self._devices = {
            each: View[SuppliedDevice | None](
                kube, kinds.POLICY, each, labels=names.SUPPLY_KIND, read=read_device
            )
            for each in manifest_namespaces
        }

    def missing(self) -> list[str]:
        """Return the plural kinds that have not been listed yet."""
        return [name for name, view in self._all.items() if not view.synced.is_set()]

    def on_change(self, urgent: Callable[[], None], often: Callable[[], None]) -> None:
        """Call `often` when something changes that changes often, and `urgent` for anything else.

        Scores do, and manifests: a change of one is a write to every managed cluster.
        """
        changing: list[View[Any]] = [self._scores, self._misplaced, *self._manifests()]
        for view in self._urgent.values():
            view.on_change(lambda _: urgent())
        for view in changing:
            view.on_change(lambda _: often())

    def start(self, group: asyncio.TaskGroup) -> None:
        """List and watch in tasks of the group."""
        for view in (*self._all.values(), *self._manifests(), self._misplaced):
            group.create_task(view.run())

    async def synced(self) -> None:
        """Wait until everything has been listed once, for manifests only some seconds."""
        for view in self._all.values():
            await view.synced.wait()
        await _within_seconds(view.synced.wait() for view in self._manifests())

    def _manifests(self) -> list[View[Any]]:
        return [*self._workloads.values(), *self._devices.values()]

    async def refresh(self) -> None:
        """List again everything from which works are planned, except the works themselves.

        Patches of works carry the resource version observed, so an old copy of them does no harm.
        """
        decisive = (self.scorers, self._configs, self._clusters, self._add_ons)
        await asyncio.gather(*(view.refresh() for view in decisive))
        await _within_seconds(view.refresh() for view in self._manifests())

    def works(self) -> dict[str, SummariesWork]:
        """Return the works with the summaries, by managed cluster."""
        return _by_namespace(self._works.items)

    def snapshot(
        self,
        probes: Mapping[registered_scorer.ProbeTarget, registered_scorer.ProbeResult],
        refusals: Mapping[str, str],
        held: frozenset[str],
    ) -> HubSnapshot:
        """Return a snapshot; its `scores` are the live mapping, which may be too large to copy."""
        return HubSnapshot(
            scorers=tuple(self.scorers.items.values()),
            config=self._configs.items.get((self._namespace, names.SCORING_CONFIG)),
            clusters={name: item for (_, name), item in self._clusters.items.items()},
            add_ons=_by_namespace(self._add_ons.items),
            works=self.works(),
            scores=self._scores.items,
            probes=probes,
            manifests={
                each: NamespaceManifests(
                    _listed(self._workloads[each]), _listed(self._devices[each])
                )
                for each in self._workloads
            },
            refusals=refusals,
            held=held,
            misplaced=_listed(self._misplaced) or (),
        )


async def _within_seconds(waits: Iterable[Awaitable[object]]) -> None:
    """Wait for all, but at most MANIFESTS_SECONDS."""
    with suppress(TimeoutError):
        async with asyncio.timeout(MANIFESTS_SECONDS):
            await asyncio.gather(*waits)


def _listed(view: View[T | None]) -> tuple[T, ...] | None:
    """Return the items by name; None before the first list."""
    if not view.synced.is_set():
        return None
    return tuple(item for _, item in sorted(view.items.items()) if item is not None)


def _by_namespace(items: Mapping[Key, T]) -> dict[str, T]:
    return {namespace: item for (namespace, _), item in items.items()}

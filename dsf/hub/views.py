"""What the controller watches, and the snapshot that its plans are made from."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dsf.api import names
from dsf.hub import observe
from dsf.hub.observed import AddOn, Cluster, Probe, Score, Target, Work
from dsf.hub.registration import Registration, register
from dsf.hub.rules import ScoringConfig, scoring_config
from dsf.hub.snapshot import Snapshot
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    DYNAMIC_SCORER,
    DYNAMIC_SCORING_CONFIG,
    MANAGED_CLUSTER,
    MANAGED_CLUSTER_ADD_ON,
    MANIFEST_WORK,
)
from dsf.kube.port import Kube
from dsf.runtime.reflector import Key, View

T = TypeVar("T")


class Views:
    """Local copies of what is observed; of managed clusters only what the controller needs."""

    def __init__(self, kube: Kube, namespace: str, agent_namespace: str) -> None:
        self._namespace = namespace
        self.scorers = View[Registration](kube, DYNAMIC_SCORER, namespace, read=register)
        self._configs = View[ScoringConfig](
            kube, DYNAMIC_SCORING_CONFIG, namespace, read=scoring_config
        )
        self._clusters = View[Cluster](kube, MANAGED_CLUSTER, read=observe.cluster)
        self._add_ons = View[AddOn](
            kube,
            MANAGED_CLUSTER_ADD_ON,
            fields=f"metadata.name={names.ADDON}",
            read=observe.add_on,
        )
        self._works = View[Work](
            kube,
            MANIFEST_WORK,
            fields=f"metadata.name={names.MANIFEST_WORK}",
            read=observe.work(agent_namespace),
        )
        self._scores = View[Score](
            kube,
            ADD_ON_PLACEMENT_SCORE,
            labels=f"{names.MANAGED_BY_LABEL}={names.ADDON}",
            read=observe.score,
        )
        self._urgent: dict[str, View[Any]] = {
            "DynamicScorers": self.scorers,
            "DynamicScoringConfigs": self._configs,
            "ManagedClusters": self._clusters,
            "ManagedClusterAddOns": self._add_ons,
            "ManifestWorks": self._works,
        }
        self._all: dict[str, View[Any]] = {**self._urgent, "AddOnPlacementScores": self._scores}

    def missing(self) -> list[str]:
        """Return what has not been listed yet."""
        return [name for name, view in self._all.items() if not view.synced.is_set()]

    def on_change(self, urgent: Callable[[], None], score: Callable[[], None]) -> None:
        """Have `urgent` called when anything changes, but `score` for what agents publish."""
        for view in self._urgent.values():
            view.on_change(lambda _: urgent())
        self._scores.on_change(lambda _: score())

    def start(self, group: asyncio.TaskGroup) -> None:
        """Keep everything fresh until the group ends."""
        for view in self._all.values():
            group.create_task(view.run())

    async def synced(self) -> None:
        """Wait until everything has been listed once."""
        for view in self._all.values():
            await view.synced.wait()

    def works(self) -> dict[str, Work]:
        """Return the works with the summaries, by managed cluster."""
        return _by_namespace(self._works.items)

    def snapshot(
        self, probes: Mapping[Target, Probe], refusals: Mapping[str, str], held: frozenset[str]
    ) -> Snapshot:
        """Return the hub as it is known now; the scores are the view's own, not a copy."""
        return Snapshot(
            scorers=tuple(self.scorers.items.values()),
            config=self._configs.items.get((self._namespace, names.SCORING_CONFIG)),
            clusters=_by_name(self._clusters.items),
            add_ons=_by_namespace(self._add_ons.items),
            works=self.works(),
            scores=self._scores.items,
            probes=probes,
            refusals=refusals,
            held=held,
        )


def _by_name(items: Mapping[Key, Cluster]) -> dict[str, Cluster]:
    return {name: item for (_, name), item in items.items()}


def _by_namespace(items: Mapping[Key, T]) -> dict[str, T]:
    return {namespace: item for (namespace, _), item in items.items()}

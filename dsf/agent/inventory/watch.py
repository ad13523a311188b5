"""Keeps the nodes and Pods of the managed cluster up to date, and whose the Pods are."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dsf.agent.inventory.applied_works import WorkIndex, read_work
from dsf.agent.inventory.device_classes import read_class
from dsf.agent.inventory.device_pools import read_slice
from dsf.agent.inventory.devices import read_claim
from dsf.agent.inventory.inventory_status import (
    COMPLETE,
    ClusterDevices,
    ClusterState,
    Summary,
    summarize,
    unread,
)
from dsf.agent.inventory.node_capacity import NodeReader
from dsf.agent.inventory.pod_use import NOT_ENDED, PodReader
from dsf.api.conditions import Condition
from dsf.api.untrusted_text import listed
from dsf.kube.errors import Forbidden, KubeError, NotFound
from dsf.kube.kinds import (
    APPLIED_MANIFEST_WORK,
    DEVICE_CLASS,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    Kind,
)
from dsf.kube.port import Kube, Object
from dsf.runtime.reconcile.reflector import Key, View

log = logging.getLogger(__name__)

PAGE = 100
"""Objects of a page: decoded it takes ten times its bytes, and a node may have 30 kB."""

RETRY_SECONDS = 30.0
"""How soon a kind is asked for again that may not be listed, or is not served."""

_ADVICE = "the chart's spokeSetting.agent.inventory.enabled grants it"

_DEVICES: dict[Kind, Callable[[Object], Any]] = {
    RESOURCE_SLICE: read_slice,
    RESOURCE_CLAIM: read_claim,
    DEVICE_CLASS: read_class,
}
"""What dynamic resource allocation consists of, and its readers."""


@dataclass(eq=False)
class InventoryWatch:
    """Watches what an inventory is made of; `changed` is set whenever something is different.

    A kind that is refused or not served is asked for again after RETRY_SECONDS.
    """

    kube: Kube
    node_labels: tuple[str, ...] = ()
    state: ClusterState = field(default_factory=ClusterState)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _refused: dict[Kind, KubeError] = field(default_factory=dict)
    _outdated: bool = True
    _works_changed: bool = False
    _summary: Summary | None = None
    _told: str = ""
    _lacking: set[Kind] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._nodes = self._view(NODE, NodeReader(self.node_labels), self._put_node)
        self._pods = self._view(POD, PodReader(), self._put_pod, fields=NOT_ENDED)
        self._works = self._view(APPLIED_MANIFEST_WORK, read_work, self._put_work)
        self._views: dict[Kind, View[Any]] = {
            NODE: self._nodes,
            POD: self._pods,
            APPLIED_MANIFEST_WORK: self._works,
            **{kind: self._view(kind, read, self._put_device) for kind, read in _DEVICES.items()},
        }

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for kind, view in self._views.items():
                tasks.create_task(self._keep(kind, view))
                tasks.create_task(self._note_first_list(view))

    @property
    def confirmed(self) -> float:
        """When the API server last said what nodes and Pods there are, on the loop's clock."""
        return min(self._nodes.heard, self._pods.heard)

    async def first_summary(self) -> Summary:
        """Return the first summary, while `run` lists what there is."""
        while (summary := await self.summary()) is None:
            await self.changed.wait()
            self.changed.clear()
        return summary

    async def summary(self) -> Summary | None:
        """Return what the inventory says now; None before all has been listed once."""
        lacking = {kind for kind in self._refused if not self._views[kind].synced.is_set()}
        if missing := [kind for kind in (NODE, POD) if kind in lacking]:
            return unread(self._unread(missing))
        if not all(view.synced.is_set() or kind in lacking for kind, view in self._views.items()):
            return None
        unattributed = self._unattributed() if APPLIED_MANIFEST_WORK in lacking else ""
        if self._outdated or unattributed != self._told or lacking != self._lacking:
            self._outdated = False
            if self._works_changed:
                self._works_changed = False
                self.state.pods.set_works(WorkIndex(self._works.items.values()))
            self._told, self._lacking = unattributed, lacking
            snapshot = self.state.snapshot(unattributed, self._devices(lacking))
            self._summary = await asyncio.to_thread(summarize, snapshot)
        return self._summary

    def _unread(self, kinds: list[Kind]) -> Condition:
        named = listed(kind.plural for kind in kinds)
        reason = type(self._refused[kinds[0]]).__name__
        message = f"The agent may not list and watch {named} of the cluster: {_ADVICE}."
        return Condition(COMPLETE, "False", reason, message)

    def _unattributed(self) -> str:
        why = (
            "the cluster does not serve AppliedManifestWorks: OCM's work agent is not installed"
            if isinstance(self._refused[APPLIED_MANIFEST_WORK], NotFound)
            else f"the agent may not list and watch AppliedManifestWorks: {_ADVICE}"
        )
        return f"no Pod counts as a ManifestWork's, because {why}"

    def _devices(self, lacking: set[Kind]) -> ClusterDevices:
        """Return devices; none of them count unless all kinds can be read."""
        missing = [kind for kind in _DEVICES if kind in lacking]
        if not missing:
            slices, claims, classes = (list(self._views[kind].items.values()) for kind in _DEVICES)
            return ClusterDevices(slices, claims, classes)
        if all(isinstance(self._refused[kind], NotFound) for kind in missing):
            return ClusterDevices()  # Kubernetes before 1.34
        named = listed(kind.plural for kind in missing)
        why = f"no device of DRA counts, because the agent may not list and watch {named}"
        return ClusterDevices(unknown=f"{why}: {_ADVICE}")

    def _view(
        self, kind: Kind, read: Callable[..., Any], put: Callable[[Key], None], fields: str = ""
    ) -> View[Any]:
        refusals = (Forbidden, NotFound)
        view = View(self.kube, kind, fields=fields, read=read, ends_on=refusals, page=PAGE)
        view.on_change(put)
        return view

    async def _keep(self, kind: Kind, view: View[Any]) -> None:
        """Watch a kind; where it is refused, say so once and ask again later."""
        while True:
            try:
                await view.run()
            except (Forbidden, NotFound) as error:
                if type(self._refused.get(kind)) is not type(error):
                    unserved = isinstance(error, NotFound)
                    hint = "it is not served" if unserved else _ADVICE
                    extra = {"resource": kind.resource, "error": str(error), "hint": hint}
                    normal = unserved and kind in _DEVICES  # Kubernetes before 1.34
                    level = logging.INFO if normal else logging.WARNING
                    log.log(level, "inventory lacks a kind", extra=extra)
                self._refused[kind] = error
                self.changed.set()
            await asyncio.sleep(RETRY_SECONDS)

    async def _note_first_list(self, view: View[Any]) -> None:
        await view.synced.wait()
        self.changed.set()

    def _put_node(self, key: Key) -> None:
        self.state.put_node(key[1], self._nodes.items.get(key))
        self._outdate()

    def _put_pod(self, key: Key) -> None:
        self.state.pods.put(key, self._pods.items.get(key))
        self._outdate()

    def _put_device(self, _: Key) -> None:
        self._outdate()

    def _put_work(self, _: Key) -> None:
        self._works_changed = True
        self._outdate()

    def _outdate(self) -> None:
        self._outdated = True
        self.changed.set()

"""An embedded hub that holds the development guide's fleet."""

from collections.abc import Iterable

from dsf.api.names import HUB_NAMESPACE
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Object
from optimizer.domain.settings import OptimizerSettings
from optimizer.service.record_keys import RecordKeys
from optimizer.snapshot.observation import Observation
from tests.kube_wrappers.reviewing_hub import AccessTable, ReviewingHub
from tests.objects_with_status import create_with_status
from tests.optimizer.build import NOW, guide, obj


async def hub_of(
    observation: Observation | None = None, access: AccessTable | None = None
) -> EmbeddedHub:
    observation = observation or guide()
    hub = ReviewingHub(now=lambda: NOW, access=access or AccessTable())
    await hub.create(kinds.NAMESPACE, obj(kinds.NAMESPACE, HUB_NAMESPACE))
    for cluster in observation.managed_clusters:
        await hub.create(kinds.NAMESPACE, obj(kinds.NAMESPACE, cluster["metadata"]["name"]))
    await _create(hub, kinds.MANAGED_CLUSTER, observation.managed_clusters)
    await _create(hub, kinds.POLICY, observation.policies)
    await _create(hub, kinds.MANIFEST_WORK_REPLICA_SET, observation.workloads)
    await _create(hub, kinds.ADD_ON_PLACEMENT_SCORE, observation.scores)
    await _create(hub, kinds.NODE_INVENTORY, observation.inventories or ())
    return hub


def record_keys(kube: Kube) -> RecordKeys:
    """The key that signs records, as every optimizer finds it."""
    return RecordKeys(kube, OptimizerSettings().record_key_secret)


async def names(hub: EmbeddedHub, kind: Kind) -> list[str]:
    return [item["metadata"]["name"] for item in (await hub.list(kind, "default")).items]


async def bound(hub: EmbeddedHub) -> set[str]:
    """The policies that are bound to some Placement."""
    bindings = (await hub.list(kinds.PLACEMENT_BINDING, "default")).items
    return {subject["name"] for binding in bindings for subject in binding["subjects"]}


async def _create(hub: EmbeddedHub, kind: Kind, objects: Iterable[Object]) -> None:
    for item in objects:
        await create_with_status(hub, kind, item)

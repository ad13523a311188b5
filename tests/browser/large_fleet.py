"""A fleet of any size on an embedded hub: each managed cluster has one score of one entry."""

from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from tests.optimizer.build import obj


async def large_fleet(clusters: int) -> EmbeddedHub:
    """Return a hub with cluster-0000 and so on; their values repeat from 0 to 99."""
    hub = EmbeddedHub()
    for number in range(clusters):
        name = f"cluster-{number:04}"
        await hub.create(kinds.NAMESPACE, obj(kinds.NAMESPACE, name))
        await hub.create(kinds.MANAGED_CLUSTER, obj(kinds.MANAGED_CLUSTER, name))
        score = obj(kinds.ADD_ON_PLACEMENT_SCORE, "power", namespace=name)
        await hub.create(kinds.ADD_ON_PLACEMENT_SCORE, score)
        entries = {"status": {"scores": [{"name": "app;gpu", "value": number % 100}]}}
        await hub.patch(kinds.ADD_ON_PLACEMENT_SCORE, "power", entries, name, subresource="status")
    return hub

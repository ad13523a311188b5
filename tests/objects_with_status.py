"""Objects that have a status, which an API server drops when it creates them."""

from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Object


async def create_with_status(kube: Kube, kind: Kind, obj: Object) -> None:
    """Create an object, and then write its status if it has one."""
    await kube.create(kind, obj)
    if "status" in obj:
        name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace")
        status = {"status": obj["status"]}
        await kube.patch(kind, name, status, namespace, subresource="status")

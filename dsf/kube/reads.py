"""Reads that several callers need: an object that may be missing, and all objects of a kind."""

from dsf.kube.errors import NotFound
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Lister, Object

PAGE = 500
"""Objects per page of a list, as in client-go and kubectl."""


async def find_object(
    kube: Kube, kind: Kind, name: str, namespace: str | None = None
) -> Object | None:
    """Return an object, or None if it does not exist."""
    try:
        return await kube.get(kind, name, namespace)
    except NotFound:
        return None


async def list_objects(
    kube: Lister, kind: Kind, namespace: str | None = None, *, labels: str = "", fields: str = ""
) -> list[Object]:
    """Return all objects of a kind, read page by page; raises Gone if a page comes too late."""
    objects, token = list[Object](), ""
    while True:
        page = await kube.list(
            kind, namespace, labels=labels, fields=fields, limit=PAGE, continue_token=token
        )
        objects += page.items
        token = page.continue_token
        if not token:
            return objects

"""Reads that several callers need: an object that may be missing, and all objects of a kind."""

import asyncio

from dsf.kube.errors import NotFound, Unreachable
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Lister, Object

PAGE = 500
"""Objects per page of a list, as in client-go and kubectl."""


ANSWER_SECONDS = 5.0
"""Time limit of an answer that only tells whether the API server is there; a probe waits 10 s."""


async def require_answer(kube: Lister, kind: Kind, namespace: str | None = None) -> None:
    """Raise KubeError unless the API server lists a kind within ANSWER_SECONDS."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await kube.list(kind, namespace, limit=1)
    except TimeoutError as error:
        raise Unreachable(f"no answer within {ANSWER_SECONDS:g} s") from error


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

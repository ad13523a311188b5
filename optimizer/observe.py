"""Reading the hub: every kind listed once."""

import asyncio

from dsf.kube.errors import Gone, NotFound
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    PLACEMENT,
    PLACEMENT_BINDING,
    POLICY,
    Kind,
)
from dsf.kube.port import Kube, Object
from optimizer.observation import Observation

_PAGE = 500
_ATTEMPTS = 3


async def observe(kube: Kube, namespace: str) -> Observation:
    """Read what a request in a namespace may rest on; KubeError where the hub can't be read."""
    return Observation(
        *await asyncio.gather(
            every(kube, MANAGED_CLUSTER),
            every(kube, POLICY, namespace),
            every(kube, MANIFEST_WORK_REPLICA_SET, namespace),
            every(kube, ADD_ON_PLACEMENT_SCORE),
            every(kube, PLACEMENT, namespace),
            every(kube, PLACEMENT_BINDING, namespace),
        )
    )


async def every(
    kube: Kube, kind: Kind, namespace: str | None = None, *, labels: str = ""
) -> tuple[Object, ...]:
    """List all pages of a kind; none where the hub does not serve it."""
    for attempt in range(_ATTEMPTS):
        try:
            return tuple(await _pages(kube, kind, namespace, labels))
        except NotFound:
            return ()
        except Gone:
            if attempt == _ATTEMPTS - 1:
                raise
    return ()


async def _pages(kube: Kube, kind: Kind, namespace: str | None, labels: str) -> list[Object]:
    objects, token = list[Object](), ""
    while True:
        page = await kube.list(kind, namespace, labels=labels, limit=_PAGE, continue_token=token)
        objects += page.items
        token = page.continue_token
        if not token:
            return objects

"""The add-on's Lease, by which OCM's registration agent tells whether the add-on is available.

OCM looks for a Lease of the add-on's name in the add-on's namespace, and counts the add-on as
available while it was renewed within the last five minutes. Where OCM's add-on manager deploys the
agent from a template, it asks for the Deployment's availability instead.

Source: registration/spoke/addon/lease_controller.go of OCM 1.2.1.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from dsf.api import names
from dsf.kube.errors import KubeError, NotFound
from dsf.kube.kinds import LEASE
from dsf.kube.port import Kube

log = logging.getLogger(__name__)

SECONDS = 60


async def keep(
    kube: Kube,
    namespace: str,
    *,
    ready: Callable[[], bool],
    now: Callable[[], datetime],
    seconds: float = SECONDS,
) -> None:
    """Renew the Lease every `seconds` while the agent is ready, until cancelled."""
    refused = ""
    while True:
        if ready():
            error = await renew(kube, namespace, now())
            if error and error != refused:
                log.warning("lease not renewed", extra={"lease": names.ADDON, "error": error})
            refused = error
        await asyncio.sleep(seconds if ready() else 1.0)


async def renew(kube: Kube, namespace: str, now: datetime) -> str:
    """Renew the Lease, or create it; return the error, empty where there was none."""
    spec = {"leaseDurationSeconds": SECONDS, "renewTime": micro_time(now)}
    try:
        try:
            await kube.patch(LEASE, names.ADDON, {"spec": spec}, namespace)
        except NotFound:
            metadata = {"name": names.ADDON, "namespace": namespace}
            await kube.create(LEASE, {"metadata": metadata, "spec": spec})
    except KubeError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def micro_time(moment: datetime) -> str:
    """Return an aware time as `meta/v1` MicroTime."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

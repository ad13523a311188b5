"""The optimizers that write in other namespaces now: two of them never write at the same time."""

import asyncio
from collections.abc import Mapping

from dsf.kube.kinds import LEASE
from dsf.kube.port import Kube, Object
from dsf.kube.reads import list_objects
from dsf.runtime.leader_election.lease import ObservedLease

LEASE_NAME = "dynamic-scoring-optimizer"
"""The Lease of each namespace; its holder is the optimizer that writes there."""

_LEASE_SECONDS = 15.0
"""Duration of a Lease that states none."""


class WritersElsewhere:
    """Reads which optimizers hold the Leases of other namespaces.

    As in client-go, a Lease that did not change for its duration, measured by our own clock, is
    held no more: its process died.
    """

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._seen: dict[str, ObservedLease] = {}

    async def held(self, namespace: str) -> Mapping[str, Object]:
        """Return the held Leases of other namespaces, by namespace.

        Raises KubeError where Leases can't be listed in all namespaces.
        """
        leases = await list_objects(self._kube, LEASE, fields=f"metadata.name={LEASE_NAME}")
        by_namespace = {str(item["metadata"]["namespace"]): item for item in leases}
        at = asyncio.get_running_loop().time()
        return {
            name: lease
            for name, lease in by_namespace.items()
            if name != namespace and self._is_held(name, lease, at)
        }

    def _is_held(self, namespace: str, lease: Object, at: float) -> bool:
        spec, version = lease.get("spec") or {}, str(lease["metadata"].get("resourceVersion", ""))
        seen = self._seen.get(namespace)
        if seen is None or seen.version != version:
            seen = self._seen[namespace] = ObservedLease(version, at)
        seconds = float(spec.get("leaseDurationSeconds") or _LEASE_SECONDS)
        return bool(spec.get("holderIdentity")) and at < seen.at + seconds

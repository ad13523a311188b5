"""Signs a record as the optimizer does: for tests of what follows where the signature is right."""

import base64
from typing import Any

from dsf.api.crd.placement_plan import RecordedProgress
from dsf.api.names import HUB_NAMESPACE, RECORD_KEY_SECRET
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import PLACEMENT_PLAN, SECRET
from optimizer.follow.record.recorded_plan import RecordKey, progress_digest, record_digest


async def copy_key(source: EmbeddedHub, hub: EmbeddedHub) -> None:
    """Give another hub the key."""
    secret = await source.get(SECRET, RECORD_KEY_SECRET, HUB_NAMESPACE)
    metadata = {"name": RECORD_KEY_SECRET, "namespace": HUB_NAMESPACE}
    await hub.create(SECRET, {**secret, "metadata": metadata})


async def sign(hub: EmbeddedHub, name: str) -> None:
    secret = await hub.get(SECRET, RECORD_KEY_SECRET, HUB_NAMESPACE)
    key = RecordKey(base64.b64decode(secret["data"]["key"]))
    found = await hub.get(PLACEMENT_PLAN, name, "default")
    uid, rollout = found["metadata"]["uid"], found["status"].get("rollout")
    status: dict[str, Any] = {"signature": key.signature(uid, "spec", record_digest(found["spec"]))}
    if rollout:
        progress = RecordedProgress.model_validate(rollout)
        signature = key.signature(uid, "progress", progress_digest(progress))
        status["rollout"] = {"signature": signature}
    body = {"status": status}
    await hub.patch(PLACEMENT_PLAN, name, body, "default", subresource="status")

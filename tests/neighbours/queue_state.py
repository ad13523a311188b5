"""What Kueue's objects say on all clusters, for the report of a test that failed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dsf.api.conditions import conditions_of

from .kueue_manager import KUEUE, WORKER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real_hub.harness.api import Object
    from tests.real_hub.harness.control_plane import ControlPlane
    from tests.real_hub.harness.processes import Processes

LINES = 80


def described(hub: ControlPlane, workers: list[ControlPlane]) -> str:
    """The state of Workloads, Jobs and MultiKueue's objects, and the ends of the logs."""
    lines = list[str]()
    for plane in (hub, *workers):
        try:
            lines += _queue(plane)
        except Exception as error:  # noqa: BLE001 - one that is down must not hide the others
            lines.append(f"{plane.name}: {error!r}")
    lines += [f"MultiKueueCluster {_told(obj)}" for obj in hub.api.list(*WORKER)]
    for obj in hub.api.list(KUEUE, "MultiKueueConfig"):
        lines.append(f"MultiKueueConfig {obj['metadata']['name']}: {obj['spec']}")
    return "\n".join([*lines, *_logs(hub.processes)])


def _queue(plane: ControlPlane) -> Iterator[str]:
    for kind in ((KUEUE, "Workload"), ("batch/v1", "Job")):
        for obj in plane.api.list(*kind, "default"):
            yield f"{plane.name}: {kind[1]} {_told(obj)}"


def _told(obj: Object) -> str:
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, dict(obj.get("status") or {})
    status.pop("conditions", None)
    gone = f" deleted {metadata['deletionTimestamp']}" if "deletionTimestamp" in metadata else ""
    flags: dict[str, Any] = {name: spec[name] for name in ("suspend", "active") if name in spec}
    conditions = "".join(
        f"\n    {item['type']}={item['status']} {item.get('lastTransitionTime')}"
        f" {item.get('reason')}: {item.get('message')}"
        for item in conditions_of(obj)
    )
    return f"{metadata['name']}{gone} {json.dumps({**flags, **status})}{conditions}"


def _logs(processes: Processes) -> Iterator[str]:
    for log in sorted(processes.logs.glob("*.log")):
        if log.stem == "dispatcher" or log.stem.endswith("-kueue"):
            yield f"the end of {log.name}:\n{processes.tail(log.stem, LINES)}"

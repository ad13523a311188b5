"""The ManifestWork that carries the scorer summaries to one managed cluster.

Source: https://open-cluster-management.io/docs/concepts/work-distribution/manifestwork/
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsf.api import names
from dsf.api.conditions import conditions_of, find
from dsf.hub.snapshot.managed_cluster import ClusterFailure, failed, is_being_deleted
from dsf.kube.changes import merge_patch
from dsf.kube.kinds import CONFIG_MAP, MANIFEST_WORK, NAMESPACE
from dsf.kube.port import Object

LIMIT_BYTES = 500 * 1024
"""OCM's admission webhook refuses larger works: `ManifestLimit` in pkg/work/webhook/common."""
WARNING_BYTES = 400 * 1024
"""From this size on the DynamicScoringConfig warns: 80 % of OCM's limit."""
ROOM_BYTES = 1024
"""Upper bound on what the manifests take besides the summaries and the names of Secrets."""


def is_too_large(size: int) -> bool:
    """Tell whether OCM refuses a work of so many bytes."""
    return size > LIMIT_BYTES


def summaries_work(
    cluster: str, text: str, agent_namespace: str, secrets: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the ManifestWork of a cluster; `text` is the value of `data.summaries`.

    It includes a Role for the Secrets named in `secrets`, which the add-on binds to the agent, and
    the agent's namespace, so that OCM can apply both before the add-on is installed. Deleting the
    work leaves the namespace, because the agent and its Secrets live there. It sets no field that
    an API server of another OCM version would default or drop.
    """
    namespace = NAMESPACE.object(metadata={"name": agent_namespace})
    config_map = CONFIG_MAP.object(
        metadata={"name": names.CONFIG_MAP, "namespace": agent_namespace},
        data={names.SUMMARIES_KEY: text},
    )
    # In RBAC an empty list of names means all names, so no names means no Role.
    roles = [_secrets_role(secrets, agent_namespace)] if secrets else []
    kept = {"resource": "namespaces", "name": agent_namespace}
    return MANIFEST_WORK.object(
        metadata={
            "name": names.MANIFEST_WORK,
            "namespace": cluster,
            "labels": {names.MANAGED_BY_LABEL: names.ADDON},
        },
        spec={
            "workload": {"manifests": [namespace, *roles, config_map]},
            "deleteOption": {
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphans": {"orphaningRules": [kept]},
            },
        },
    )


def _secrets_role(secrets: Sequence[str], agent_namespace: str) -> dict[str, Any]:
    rule = {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": list(secrets),
        "verbs": ["get"],
    }
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": names.AGENT_SECRETS_ROLE, "namespace": agent_namespace},
        "rules": [rule],
    }


def summaries_text(work: Object) -> str:
    """Return the `data.summaries` that a work carries; empty if it carries none."""
    for manifest in _manifests(work):
        data = manifest.get("data") or {}
        if manifest.get("kind") == "ConfigMap" and names.SUMMARIES_KEY in data:
            return str(data[names.SUMMARIES_KEY])
    return ""


def _secrets_of(work: Object) -> tuple[str, ...]:
    """Return the names in the Role that a work carries; empty if it carries none."""
    for manifest in _manifests(work):
        match manifest:
            case {"kind": "Role", "rules": [{"resourceNames": [*found]}]}:
                return tuple(map(str, found))
    return ()


def _manifests(work: Object) -> list[Object]:
    return ((work.get("spec") or {}).get("workload") or {}).get("manifests") or []


@dataclass(frozen=True, slots=True)
class SummariesWork:
    """Our ManifestWork on one managed cluster.

    `text` is the `data.summaries` that it carries, `secrets` the names in its Role. `drifted` is
    the whole object if it differs from the work that we would write with these, else None.
    """

    text: str
    secrets: tuple[str, ...] = ()
    uid: str = ""
    version: str = field(default="", compare=False)
    being_deleted: bool = False
    drifted: Object | None = None
    failure: ClusterFailure | None = None


def read_work(agent_namespace: str) -> Callable[[Object], SummariesWork]:
    """Return the reader of our ManifestWorks: work.open-cluster-management.io/v1."""

    def read(obj: Object) -> SummariesWork:
        text = sys.intern(summaries_text(obj))
        secrets = _secrets_of(obj)
        metadata = obj["metadata"]
        desired = summaries_work(str(metadata["namespace"]), text, agent_namespace, secrets)
        return SummariesWork(
            text=text,
            secrets=secrets,
            uid=str(metadata.get("uid") or ""),
            version=str(metadata.get("resourceVersion") or ""),
            being_deleted=is_being_deleted(obj),
            drifted=obj if merge_patch(obj, desired) else None,
            failure=failed(find(conditions_of(obj), "Applied"), "WorkNotApplied"),
        )

    return read

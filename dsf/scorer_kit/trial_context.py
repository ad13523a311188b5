"""The context of the kit's calls: invented, or that of the objects in a file.

Objects are read by the hub's own functions, so an author sees what an agent would send.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from dsf.api import names
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import ScoredWorkload, SuppliedDevice
from dsf.api.untrusted_text import InvalidInput
from dsf.hub.assess.context_completion import with_manifests
from dsf.hub.snapshot.managed_cluster import read_managed_cluster
from dsf.hub.snapshot.manifests import NamespaceManifests, read_device, read_workload
from dsf.kube.kinds import MANAGED_CLUSTER, MANIFEST_WORK_REPLICA_SET, POLICY, Kind, find
from dsf.kube.port import Object
from dsf.kube.yaml_documents import YamlFileError, documents
from dsf.scorer_kit.series_file import UnusableFile

NAMESPACE = "default"
"""The namespace of invented workloads and policies, and of objects that name none."""

_APPS = ("app01", "app02")
_DEVICES = ("all", "3g.48gb", "2g.24gb")
"""What the development guide's scenario scores."""

_VALUE = "1"
"""Value of each invented label and claim: a text for some scorers, a number for others."""

_CONTAINER = {
    "name": "main",
    "image": "registry.example/app:1",
    "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
}

T = TypeVar("T")


def with_invented_context(summary: ScorerSummary) -> ScorerSummary:
    """Return a summary with a value for each label and claim, two workloads and three devices."""
    asked = summary.context
    if asked is None:
        return summary
    first, *others = asked.namespaces or [NAMESPACE]
    invented = NamespaceManifests(
        tuple(filter(None, (_workload(first, app) for app in _APPS))),
        tuple(_device(first, name) for name in _DEVICES),
    )
    nothing = dict.fromkeys(others, NamespaceManifests((), ()))
    completed = with_manifests(summary, {**nothing, first: invented})
    return (summary if isinstance(completed, InvalidInput) else completed).model_copy(
        update={
            "context_labels": dict.fromkeys(asked.labels, _VALUE),
            "context_claims": dict.fromkeys(asked.claims, _VALUE),
        }
    )


def _workload(namespace: str, app: str) -> ScoredWorkload | None:
    deployment = {
        "kind": "Deployment",
        "metadata": {"name": app},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [_CONTAINER]}}},
    }
    labels = {names.APP: app, names.REQUEST_KIND: "gpu", names.REQUEST_AMOUNT: "2"}
    return read_workload(
        {
            "metadata": {"name": f"mwrs-{app}", "namespace": namespace, "labels": labels},
            "spec": {"manifestWorkTemplate": {"workload": {"manifests": [deployment]}}},
        }
    )


def _device(namespace: str, name: str) -> SuppliedDevice:
    return SuppliedDevice(
        namespace=namespace, policy=f"policy-{name}", kind="gpu", device=name, amount="2"
    )


def with_context_of(path: Path, summary: ScorerSummary, cluster: str) -> ScorerSummary:
    """Return a summary with the context that the objects of a file give it.

    Labels and claims are those of the ManagedCluster with the name `cluster`. Raises UnusableFile.
    """
    asked = summary.context
    if asked is None:
        return summary
    objects = _objects(path)
    workloads = _read(path, objects, MANIFEST_WORK_REPLICA_SET, read_workload)
    devices = _read(path, objects, POLICY, read_device)
    clusters = _read(path, objects, MANAGED_CLUSTER, read_managed_cluster)
    namespaces = {NAMESPACE, *asked.namespaces, *(each.namespace for each in workloads)}
    namespaces |= {each.namespace for each in devices}
    completed = with_manifests(
        summary,
        {
            name: NamespaceManifests(
                tuple(each for each in workloads if each.namespace == name),
                tuple(each for each in devices if each.namespace == name),
            )
            for name in sorted(namespaces)
        },
    )
    if isinstance(completed, InvalidInput):
        raise UnusableFile(f"{path}: {completed.reason}: {completed.message}")
    mine = [each for each in clusters if each.name == cluster]
    return completed.model_copy(
        update={
            "context_labels": _chosen(asked.labels, *(each.labels for each in mine)),
            "context_claims": _chosen(asked.claims, *(each.claims for each in mine)),
        }
    )


def _chosen(keys: Iterable[str], *present: Mapping[str, str]) -> dict[str, str]:
    return {key: values[key] for values in present for key in keys if key in values}


def _objects(path: Path) -> list[Object]:
    """Return the objects in a file, each with a name and a namespace."""
    try:
        values = [each.value for each in documents(path)]
    except YamlFileError as error:
        raise UnusableFile(str(error)) from error
    found = [each for each in values if isinstance(each, dict) and find(each)]
    return [
        {**each, "metadata": {"namespace": NAMESPACE, **metadata}}
        for each in found
        if isinstance(metadata := each.get("metadata"), dict) and metadata.get("name")
    ]


def _read(
    path: Path, objects: Iterable[Object], kind: Kind, read: Callable[[Object], T | None]
) -> list[T]:
    """Return the objects of a kind that are usable. Raises UnusableFile."""
    try:
        found = [read(obj) for obj in objects if find(obj) == kind]
    except (AttributeError, TypeError) as error:
        raise UnusableFile(f"{path}: a {kind.kind} has fields of another type") from error
    return [each for each in found if each is not None]

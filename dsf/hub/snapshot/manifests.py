"""What the controller keeps of workloads and policies for scorers that score from manifests.

Only the fields that a scorer may be sent are read, so nothing else is in memory: no Secret, no
environment, arguments or annotations of a container. Anything may be in a template; what has
another type than Kubernetes gives it is left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dsf.api import names
from dsf.api.scoring import scoring_api
from dsf.api.scoring.quantity import parse_pairs
from dsf.kube.port import Object

PRIORITY_ANNOTATION = f"{names.GROUP}/priority"
REQUESTS_ANNOTATION = f"{names.GROUP}/requests"
"""Annotations of a workload that the optimizer reads too."""

_POD_TEMPLATES = {
    "Pod": ("spec",),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    **dict.fromkeys(
        ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"),
        ("spec", "template", "spec"),
    ),
}
"""Where the kinds that make pods have the spec of the pod."""


@dataclass(frozen=True, slots=True)
class NamespaceManifests:
    """The workloads and the devices of policies of one namespace; None if they can't be listed."""

    workloads: tuple[scoring_api.ScoredWorkload, ...] | None = None
    devices: tuple[scoring_api.SuppliedDevice, ...] | None = None


def read_workload(obj: Object) -> scoring_api.ScoredWorkload | None:
    """Read a ManifestWorkReplicaSet; None if it has no label `app`."""
    metadata = obj["metadata"]
    labels = _texts(metadata.get("labels"))
    if not labels.get(names.APP):
        return None
    annotations = _texts(metadata.get("annotations"))
    manifests = _inner(obj, "spec", "manifestWorkTemplate", "workload").get("manifests")
    return scoring_api.ScoredWorkload(
        namespace=str(metadata["namespace"]),
        name=str(metadata["name"]),
        app=labels[names.APP],
        requests=_requests(labels, annotations),
        priority=_priority(annotations.get(PRIORITY_ANNOTATION, "")),
        templates=[template for each in _objects(manifests) for template in _templates(each)],
    )


def read_device(obj: Object) -> scoring_api.SuppliedDevice | None:
    """Read a Policy; None if it supplies no device, or is a copy for one managed cluster."""
    metadata = obj["metadata"]
    labels = _texts(metadata.get("labels"))
    supply = (names.SUPPLY_KIND, names.SUPPLY_DEVICE, names.SUPPLY_AMOUNT)
    kind, device, amount = (labels.get(key, "") for key in supply)
    if names.ROOT_POLICY_LABEL in labels or not (kind and device and amount):
        return None
    return scoring_api.SuppliedDevice(
        namespace=str(metadata["namespace"]),
        policy=str(metadata["name"]),
        kind=kind,
        device=device,
        amount=amount,
    )


def _requests(labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, str]:
    further = parse_pairs(annotations.get(REQUESTS_ANNOTATION, "")) or ()
    kind, amount = labels.get(names.REQUEST_KIND), labels.get(names.REQUEST_AMOUNT)
    return dict(further) | ({kind: amount} if kind and amount else {})


def _priority(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0


def _templates(manifest: Mapping[str, Any]) -> Iterator[scoring_api.WorkloadTemplate]:
    kind = manifest.get("kind")
    if not isinstance(kind, str) or kind not in _POD_TEMPLATES:
        return
    pod = _inner(manifest, *_POD_TEMPLATES[kind])
    replicas = _inner(manifest, "spec").get("replicas")
    yield scoring_api.WorkloadTemplate(
        kind=kind,
        name=_text(_inner(manifest, "metadata").get("name")) or "",
        replicas=replicas if type(replicas) is int else None,
        node_selector=_texts(pod.get("nodeSelector")) or None,
        runtime_class_name=_text(pod.get("runtimeClassName")),
        containers=[_container(each) for each in _objects(pod.get("containers"))],
    )


def _container(container: Mapping[str, Any]) -> scoring_api.TemplateContainer:
    return scoring_api.TemplateContainer(
        name=_text(container.get("name")) or "",
        image=_text(container.get("image")),
        requests=_texts(_inner(container, "resources").get("requests")) or None,
        limits=_texts(_inner(container, "resources").get("limits")) or None,
    )


def _inner(obj: Any, *path: str) -> Mapping[str, Any]:
    """Return the object at a path; empty if there is none."""
    for key in path:
        obj = obj.get(key) if isinstance(obj, Mapping) else None
    return obj if isinstance(obj, Mapping) else {}


def _objects(items: Any) -> Iterable[Mapping[str, Any]]:
    return [each for each in items if isinstance(each, Mapping)] if isinstance(items, list) else ()


def _texts(pairs: Any) -> dict[str, str]:
    """Return the texts and numbers of an object, as texts: a quantity may be a number."""
    read = {key: _text(value) for key, value in _inner({"": pairs}, "").items()}
    return {key: value for key, value in read.items() if value is not None}


def _text(value: Any) -> str | None:
    usable = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if usable else None

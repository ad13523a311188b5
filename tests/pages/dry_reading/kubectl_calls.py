"""What kubectl needs, and what it makes."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml

from tests.repository import ROOT

from .call_options import cluster_of, pinned, value, values
from .clusters import OF_KUBERNETES, PARTS, Cluster, Reader, kind_of
from .typed_calls import Call

IMAGE = re.compile(r"^\s*(?:- )?image: ['\"]?([^\s'\"]+)", re.MULTILINE)
NO_VALUE = re.compile(r"<no value of (\w+)>")


def kubectl(call: Call, reader: Reader) -> Iterator[str]:
    """Yield what is missing for a call of kubectl."""
    name, cluster, wrong = cluster_of(call, reader, "--context")
    yield from wrong
    namespace = value(call, "-n", "--namespace")
    if cluster and namespace and namespace not in cluster.namespaces:
        yield f"{name} has no namespace {namespace}"
    if cluster and call.words[1] in VERBS:
        yield from VERBS[call.words[1]](call, Target(name, namespace, cluster), reader)


class Target(NamedTuple):
    """Where kubectl acts."""

    name: str
    namespace: str
    cluster: Cluster

    def lacks(self, kind: str, name: str) -> Iterator[str]:
        """Yield that an object is missing, if nothing has made it."""
        if (kind.lower(), self.namespace, name) not in self.cluster.objects:
            yield f"{self.name} has no {kind} {name} in {self.namespace}"


def _apply(call: Call, target: Target, reader: Reader) -> Iterator[str]:
    for text in _applied(call):
        yield from _apply_text(text, target, reader)


def _patch(call: Call, _: Target, __: Reader) -> Iterator[str]:
    if kind_of(call.words[2]) == "clustermanager":
        yield "this replaces the feature gates that are set; add to them"


def _create(call: Call, target: Target, _: Reader) -> Iterator[str]:
    kind, name = call.words[2:4]
    if kind == "token":
        yield from target.lacks("ServiceAccount", name)
    target.cluster.objects.add((kind, target.namespace, name))


def _exec(call: Call, target: Target, reader: Reader) -> Iterator[str]:
    pod = call.words[2]
    missing = list(target.lacks("Pod", pod))
    yield from missing
    if not missing and pod not in reader.ready:
        yield f"Pod {pod} may not be ready: kubectl wait"


def _port_forward(call: Call, target: Target, reader: Reader) -> Iterator[str]:
    service = next(word for word in call.words if word.startswith("service/"))
    yield from target.lacks("Service", service.partition("/")[2])
    reader.ports |= set(re.findall(r"(?m)^(\d+):\d+$", "\n".join(call.words)))


def _read(call: Call, target: Target, reader: Reader) -> Iterator[str]:
    """Judge what is got or waited for: kinds with names behind a slash, or a kind and a name."""
    words = call.words[2:]
    named = [word for word in words if "/" in word and word[0] != "-"] or [words[0]]
    for one in ",".join(named).split(","):
        kind, _, name = one.partition("/")
        if not any(kind_of(kind) in kinds for kinds in (OF_KUBERNETES, *PARTS.values())):
            yield f"nothing brings the kind {kind}"
        if by := target.cluster.lacks(kind_of(kind)):
            yield f"{target.name} does not know {kind_of(kind)}, which {by} brings"
        if kind == "pod" and name and "--for=condition=Ready" in words:
            yield from target.lacks("Pod", name)
            reader.ready.add(name)


VERBS: dict[str, Callable[[Call, Target, Reader], Iterator[str]]] = {
    "apply": _apply,
    "replace": _apply,
    "patch": _patch,
    "create": _create,
    "exec": _exec,
    "port-forward": _port_forward,
    "get": _read,
    "describe": _read,
    "wait": _read,
    "label": _read,
}


def _applied(call: Call) -> Iterator[str]:
    for file in values(call, "-f", "--filename"):
        path = ROOT / file
        if file == "-":
            yield call.stdin
        elif path.is_dir():
            yield from (item.read_text() for item in sorted(path.glob("*.yaml")))
        elif path.is_file():
            yield path.read_text()


def _apply_text(text: str, target: Target, reader: Reader) -> Iterator[str]:
    for missing in sorted(set(NO_VALUE.findall(text))):
        yield f"envsubst finds no variable {missing}: export it, or name those to replace"
    for left in sorted(set(re.findall(r"\$\{[A-Z_]+\}", text))):
        yield f"nothing replaces {left}"
    if not NO_VALUE.search(text):
        for item in yaml.safe_load_all(text):
            if item and "kind" in item:
                yield from _apply_object(item, target, reader)


def _apply_object(item: dict[str, Any], target: Target, reader: Reader) -> Iterator[str]:
    kind, name, metadata = item["kind"], target.name, item["metadata"]
    namespace = metadata.get("namespace") or target.namespace or "default"
    if by := target.cluster.lacks(kind.lower()):
        yield f"{name} does not know {kind}, which {by} brings"
    if namespace not in target.cluster.namespaces:
        yield f"{name} has no namespace {namespace}"
    if kind == "ManifestWorkReplicaSet" and not reader.gates:
        yield "the feature gate ManifestWorkReplicaSet is not enabled"
    if kind == "DynamicScorer":
        yield from _secrets(item, reader)
    on = namespace if kind == "ManifestWork" else name
    if on in reader.clusters:
        yield from _images(yaml.safe_dump(item), on, reader.clusters[on])
    target.cluster.objects.add((kind.lower(), namespace, metadata["name"]))


def _images(text: str, name: str, cluster: Cluster) -> Iterator[str]:
    for image in IMAGE.findall(text):
        if image.startswith(("quay.io/dynamic-scoring/", "quay.io/open-cluster-management/")):
            if image not in cluster.images:
                yield f"{image} was not loaded into {name}"
        elif not pinned(image):
            yield f"pin the version of {image}"


def _secrets(scorer: dict[str, Any], reader: Reader) -> Iterator[str]:
    auth = scorer["spec"].get("scoring", {}).get("auth")
    secret = auth and auth["tokenSecretRef"]["name"]
    for name in reader.joined if secret else ():
        if ("secret", "dynamic-scoring", secret) not in reader.clusters[name].objects:
            yield f"{name} has no Secret {secret} in dynamic-scoring"

"""Follows the calls of a guide, and says where one needs what no call before has made."""

import re
from collections.abc import Callable, Iterable, Iterator

from tests.repository import ROOT

from .call_options import cluster_of, pinned, value, values
from .clusters import CHARTS, FRAMEWORK, HUB, IMAGES, Cluster, Reader
from .kubectl_calls import kubectl
from .typed_calls import Call

PLACEHOLDER = re.compile(r"<[\w -]+>|\$\{[A-Z_]+\}")
WORD_TO_REPLACE = re.compile(r"(?!(?:GET|POST|PUT|DELETE)$)[A-Z][A-Z_]{3,}")


def findings(calls: Iterable[Call], reader: Reader) -> Iterator[tuple[str, str]]:
    """Yield the place and the message of each call that would fail; `reader` gets what is made."""
    for call in calls:
        for said in _of_words(call):
            yield call.place, said
        judge = JUDGES.get(call.words[0])
        for said in judge(call, reader) if judge else ():
            yield call.place, said


def _of_words(call: Call) -> Iterator[str]:
    passed_on = values(call, "--env")
    for word in (word for word in call.words[1:] if word not in passed_on):
        if call.words[0] != "jq" and (PLACEHOLDER.search(word) or WORD_TO_REPLACE.fullmatch(word)):
            yield f"a placeholder was left in place: {word}"
    for option in ("-f", "--file", "-d", "--request", "--summaries-file"):
        for file in values(call, option):
            path = file.removeprefix("@")
            is_file = option != "-d" or file.startswith("@")
            if is_file and path != "-" and "://" not in path and not (ROOT / path).exists():
                yield f"there is no file {path}"


def _kind(call: Call, reader: Reader) -> Iterator[str]:
    name = value(call, "--name")
    match call.words[1:3]:
        case ("create", "cluster"):
            reader.clusters[name] = Cluster()
            if not pinned(value(call, "--image")):
                yield "pin the version of the nodes: --image kindest/node:v..."
        case ("load", _):
            yield "make kind-load works with both engines, kind load docker-image with docker only"


def _make(call: Call, reader: Reader) -> Iterator[str]:
    named = (value(call, "IMAGES") or " ".join(IMAGES)).split()
    images = {IMAGES.get(name, name) for name in named}
    if unknown := images - {*IMAGES.values()}:
        yield f"there is no image {', '.join(sorted(unknown))}"
    if call.words[1] == "images":
        reader.built |= images
    if call.words[1] == "kind-load":
        for image in sorted(images - reader.built):
            yield f"{image} was not built"
        for name in (value(call, "CLUSTERS") or "hub01 worker01 worker02").split():
            if name in reader.clusters:
                reader.clusters[name].images |= images
            else:
                yield f"there is no cluster {name}"


def _engine(call: Call, reader: Reader) -> Iterator[str]:
    for word in call.words:
        name = word.partition(":")[0]
        if call.words[1] == "run" and any(name == own.partition(":")[0] for own in IMAGES.values()):
            if word not in reader.built:
                yield f"{word} was not built"
            reader.containers.add(value(call, "--name"))
    if call.words[1] == "inspect" and call.words[2] not in reader.containers:
        yield f"there is no container {call.words[2]}"


def _clusteradm(call: Call, reader: Reader) -> Iterator[str]:
    name, cluster, wrong = cluster_of(call, reader, "--context")
    yield from wrong
    does = " ".join(call.words[1 : 2 if call.words[1] in ("init", "join", "accept") else 3])
    if cluster and does != "init" and "OCM on the hub" not in reader.clusters[HUB].parts:
        yield "clusteradm init has not run"
    elif cluster and does in CLUSTERADM:
        yield from CLUSTERADM[does](call, name, reader)


def _pins_ocm(call: Call) -> Iterator[str]:
    if value(call, "--bundle-version") in ("", "latest", "default"):
        yield "pin the version of OCM: --bundle-version"


def _init(call: Call, name: str, reader: Reader) -> Iterator[str]:
    yield from _pins_ocm(call)
    reader.clusters[name].parts.add("OCM on the hub")
    reader.clusters[name].namespaces |= {"open-cluster-management", "open-cluster-management-hub"}


def _join(call: Call, name: str, reader: Reader) -> Iterator[str]:
    yield from _pins_ocm(call)
    reader.asked.append(name)


def _accept(call: Call, name: str, reader: Reader) -> Iterator[str]:
    names = value(call, "--clusters").split(",")
    yield from (f"{item} has not joined {name}" for item in names if item not in reader.asked)
    reader.accept([item for item in names if item in reader.clusters])


def _install_hub_addon(call: Call, name: str, reader: Reader) -> Iterator[str]:
    yield from _pins_ocm(call)
    reader.clusters[name].parts.add("the policy framework")


def _enable_addon(_: Call, name: str, reader: Reader) -> Iterator[str]:
    if "the policy framework" not in reader.clusters[name].parts:
        yield "clusteradm install hub-addon has not run"


def _bind_cluster_set(call: Call, name: str, reader: Reader) -> Iterator[str]:
    if (namespace := value(call, "--namespace")) not in reader.clusters[name].namespaces:
        yield f"{name} has no namespace {namespace}"


CLUSTERADM: dict[str, Callable[[Call, str, Reader], Iterator[str]]] = {
    "init": _init,
    "join": _join,
    "accept": _accept,
    "install hub-addon": _install_hub_addon,
    "addon enable": _enable_addon,
    "clusterset bind": _bind_cluster_set,
}


def _helm(call: Call, reader: Reader) -> Iterator[str]:
    if call.words[1:3] == ("repo", "add"):
        reader.repositories.add(call.words[3])
    if call.words[1] == "upgrade":
        release, chart = [word for word in call.words[2:] if not word.startswith("-")][:2]
        yield from _chart(call, chart, reader)
        yield from _release(call, release, chart, reader)


def _chart(call: Call, chart: str, reader: Reader) -> Iterator[str]:
    if (ROOT / chart).is_dir():
        yield from _images_of_a_chart(chart, reader)
        return
    if chart.partition("/")[0] not in reader.repositories:
        yield f"helm repo add {chart.partition('/')[0]} has not run"
    if not value(call, "--version"):
        yield f"pin the version of {chart}: --version"


def _release(call: Call, release: str, chart: str, reader: Reader) -> Iterator[str]:
    name, cluster, wrong = cluster_of(call, reader, "--kube-context")
    yield from wrong
    if cluster is None:
        return
    namespace = value(call, "--namespace", "-n") or "default"
    if "--create-namespace" in call.words:
        cluster.namespaces.add(namespace)
    elif namespace not in cluster.namespaces:
        yield f"{name} has no namespace {namespace}; add --create-namespace"
    short = chart.rpartition("/")[2]
    if short in CHARTS:
        cluster.parts.add(CHARTS[short])
    if short == "dynamic-scoring-framework":
        for joined in reader.joined:
            reader.clusters[joined].namespaces.add("dynamic-scoring")
    cluster.objects.add(("service", namespace, release))


def _images_of_a_chart(chart: str, reader: Reader) -> Iterator[str]:
    """Each chart of ours but the optimizer's runs on managed clusters, too."""
    on = [HUB] if chart.endswith("optimizer") else [HUB, *reader.joined]
    for name in on:
        if FRAMEWORK not in reader.clusters[name].images:
            yield f"{FRAMEWORK} was not loaded into {name}"


def _jq(call: Call, reader: Reader) -> Iterator[str]:
    if "ManifestWorkReplicaSet" in " ".join(call.words):
        reader.gates = True
    yield from ()


def _dsf(call: Call, reader: Reader) -> Iterator[str]:
    if value(call, "--context"):
        yield from cluster_of(call, reader, "--context")[2]
    if call.words[1] == "optimizer":
        reader.ports.add(value(call, "--port") or "8338")


def _curl(call: Call, reader: Reader) -> Iterator[str]:
    for address in (word for word in call.words if word.startswith("http")):
        host, _, port = address.partition("//")[2].partition("/")[0].partition(":")
        if host not in ("localhost", "127.0.0.1"):
            yield f"{address} is perhaps out of reach of the reader's machine: ask from a Pod"
        elif port not in reader.ports:
            yield f"nothing answers on port {port} yet"


JUDGES: dict[str, Callable[[Call, Reader], Iterator[str]]] = {
    "kind": _kind,
    "make": _make,
    "podman": _engine,
    "docker": _engine,
    "clusteradm": _clusteradm,
    "helm": _helm,
    "kubectl": kubectl,
    "jq": _jq,
    "dsf": _dsf,
    "curl": _curl,
}

"""The link scripts of docs/how-to/skupper.md, run by kubectl against three real API servers.

Skupper's controllers do not run: the test writes what they would report. Skupper's CRDs are in no
module that can be had, so kinds without a schema stand in for them, unless DSF_SKUPPER_CRDS names a
folder with Skupper's own (``api/types/crds``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.eventually import until
from tests.repository import ROOT

from .harness.api import ApiError, parse
from .harness.certificates import write_secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .harness.api import Object
    from .harness.cluster import ManagedCluster
    from .harness.control_plane import ControlPlane
    from .harness.hub import Hub

FILES = ROOT / "docs/examples/skupper"
NEEDED = ("kubectl", "jq", "envsubst")
DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
VERSION = "skupper.io/v2alpha1"
KINDS = ("AccessGrant", "AccessToken", "Connector", "Link", "Listener", "Site")
ADDRESS = "192.0.2.7"
CODE = {"url": f"https://{ADDRESS}:31111/grant", "code": "one-time", "ca": "-----BEGIN\n-----END\n"}

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, NEEDED)), reason=f"needs {', '.join(NEEDED)}"
)


def stand_in(kind: str) -> Object:
    """A CRD that accepts anything."""
    plural = f"{kind.lower()}s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": VERSION.split("/")[1],
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
        "subresources": {"status": {}},
    }
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    spec = {"group": "skupper.io", "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": f"{plural}.skupper.io"}
    return {"apiVersion": DEFINITION[0], "kind": DEFINITION[1], "metadata": metadata, "spec": spec}


def crds() -> list[Object]:
    """Skupper's CRDs, or stand-ins."""
    if not (folder := os.environ.get("DSF_SKUPPER_CRDS")):
        return [stand_in(kind) for kind in KINDS]
    found = [obj for path in Path(folder).glob("*_crd.yaml") for obj in parse(path.read_text())]
    return [obj for obj in found if obj["spec"]["names"]["kind"] in KINDS]


@pytest.fixture(scope="module")
def sites(hub: Hub, east: ManagedCluster, west: ManagedCluster) -> Iterator[list[ControlPlane]]:
    """The three clusters with Skupper's kinds, which are deleted afterwards."""
    planes: list[ControlPlane] = [hub, east, west]
    names = [crd["metadata"]["name"] for crd in crds()]
    for plane in planes:
        for crd in crds():
            plane.apply(crd)
        for name in names:
            plane.api.wait_condition(*DEFINITION, name, "Established")
    yield planes
    for plane in planes:
        for name in names:
            plane.api.delete(*DEFINITION, name)


def kubeconfig(path: Path, planes: list[ControlPlane]) -> Path:
    """One kubeconfig with a context for each cluster, named after it."""
    merged: dict[str, Any] = {"apiVersion": "v1", "kind": "Config"}
    for plane in planes:
        own = yaml.safe_load(plane.admin_kubeconfig.read_text())
        context = {"cluster": plane.name, "user": plane.name}
        for section, key, value in (
            ("clusters", "cluster", own["clusters"][0]["cluster"]),
            ("users", "user", own["users"][0]["user"]),
            ("contexts", "context", context),
        ):
            merged.setdefault(section, []).append({"name": plane.name, key: value})
    write_secret(path, yaml.safe_dump(merged).encode())
    return path


def start(
    version: str, path: Path, planes: list[ControlPlane], namespace: str
) -> subprocess.Popen[str]:
    """Start a version's link script for the hub and both clusters."""
    return subprocess.Popen(
        [FILES / version / "link.sh"],
        env={
            **os.environ,
            "KUBECONFIG": str(kubeconfig(path / "kubeconfig", planes)),
            "HUB": "hub",
            "WORKERS": "east west",
            "CONTEXT_PREFIX": "",
            "NAMESPACE": namespace,
            "HUB_NODE_IP": ADDRESS,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(script: subprocess.Popen[str]) -> str:
    """What a script printed; fails unless it succeeded."""
    printed, _ = script.communicate(timeout=120)
    assert script.returncode == 0, printed
    return printed


def report(plane: ControlPlane, obj: Object, condition: str, **status: str) -> None:
    """Write the status of an object as Skupper's controller would."""
    true = {
        "type": condition,
        "status": "True",
        "reason": "Ready",
        "message": "OK",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    meta = obj["metadata"]
    body = {"status": {**status, "conditions": [true]}}
    key = (obj["apiVersion"], obj["kind"], meta["name"])
    plane.api.patch(*key, body, meta["namespace"], subresource="status")


def found(plane: ControlPlane, kind: str, name: str, namespace: str) -> Object:
    """An object of Skupper's, once it exists."""
    what = f"{kind} {name} on {plane.name}"
    return until(what, lambda: plane.api.find(VERSION, kind, name, namespace))


def test_skupper_2_links_each_cluster_once(sites: list[ControlPlane], tmp_path: Path) -> None:
    hub, *clusters = sites
    namespace = "skupper-two"
    script = start("v2", tmp_path, sites, namespace)
    site = found(hub, "Site", "hub", namespace)
    assert site["spec"] == {"linkAccess": "default"}
    report(hub, site, "Ready")
    report(hub, found(hub, "AccessGrant", "managed-clusters", namespace), "Ready", **CODE)
    for cluster in clusters:
        token = found(cluster, "AccessToken", "hub", namespace)
        assert token["spec"] == CODE
        assert found(cluster, "Site", cluster.name, namespace)
        metadata = {"name": "hub", "namespace": namespace}
        spec = {"endpoints": [{"name": "inter-router", "host": ADDRESS, "port": "31112"}]}
        link = {"apiVersion": VERSION, "kind": "Link", "metadata": metadata, "spec": spec}
        report(cluster, cluster.api.apply(link), "Ready")
        report(cluster, token, "Redeemed")
    printed = ended(script)
    assert CODE["code"] not in printed
    assert hub.api.find(VERSION, "AccessGrant", "managed-clusters", namespace) is None

    again = start("v2", tmp_path, sites, namespace)
    report(hub, found(hub, "AccessGrant", "managed-clusters", namespace), "Ready", **CODE)
    assert ended(again).count("has a link already") == 2


def test_skupper_1_links_each_cluster_once(sites: list[ControlPlane], tmp_path: Path) -> None:
    hub, *clusters = sites
    namespace = "skupper-one"
    script = start("v1", tmp_path, sites, namespace)
    secret = {"apiVersion": "v1", "kind": "Secret"}
    for cluster in clusters:
        request = until(
            f"a request for {cluster.name}",
            lambda: hub.api.find("v1", "Secret", cluster.name, namespace),  # noqa: B023
        )
        assert request["metadata"]["labels"] == {"skupper.io/type": "connection-token-request"}
        metadata = {
            "name": cluster.name,
            "namespace": namespace,
            "labels": {"skupper.io/type": "connection-token"},
            "annotations": {"inter-router-host": ADDRESS},
        }
        hub.apply({**secret, "metadata": metadata, "data": {"tls.crt": "YQ=="}})
    ended(script)
    for cluster in clusters:
        token = cluster.api.get("v1", "Secret", "hub", namespace)
        assert token["data"] == {"tls.crt": "YQ=="}
        assert token["metadata"]["labels"] == {"skupper.io/type": "connection-token"}
        assert token["metadata"]["annotations"]["inter-router-host"] == ADDRESS
        site = cluster.api.get("v1", "ConfigMap", "skupper-site", namespace)["data"]
        assert site == {"name": cluster.name, "ingress": "none", "console": "false"}
    site = hub.api.get("v1", "ConfigMap", "skupper-site", namespace)["data"]
    assert (site["ingress"], site["ingress-host"]) == ("nodeport", ADDRESS)

    assert ended(start("v1", tmp_path, sites, namespace)).count("has a token already") == 2


@pytest.mark.parametrize("path", sorted(FILES.rglob("*.yaml")), ids=lambda path: path.name)
def test_an_api_server_accepts_the_file(sites: list[ControlPlane], path: Path) -> None:
    hub, *_ = sites
    for obj in parse(path.read_text().replace("${CLUSTER_NAME}", "hub")):
        url = hub.api.path(obj["apiVersion"], obj["kind"], hub.namespace("skupper-files"))
        try:
            hub.api.request("POST", url, obj, params={"dryRun": "All", "fieldValidation": "Strict"})
        except ApiError as error:
            pytest.fail(error.message)


def test_what_is_exposed_is_what_is_listened_for() -> None:
    """A connector and its listener agree, and the samples are registered under that address."""
    objects = [obj for path in (FILES / "v2").glob("*.yaml") for obj in parse(path.read_text())]
    ends: dict[str, set[tuple[str, int]]] = {"Connector": set(), "Listener": set()}
    for obj in objects:
        if obj["kind"] in ends:
            ends[obj["kind"]].add((obj["spec"]["routingKey"], obj["spec"]["port"]))
    assert ends["Connector"] == ends["Listener"]
    hosts = {obj["spec"]["host"] for obj in objects if obj["kind"] == "Listener"}
    manifests = ROOT / "sample_scorers/static/manifests"
    scorers = parse((manifests / "dynamicscorer-skupper.yaml").read_text())
    [service] = [
        obj["metadata"]["name"]
        for work in parse((manifests / "manifestwork.yaml").read_text())
        for obj in work["spec"]["workload"]["manifests"]
        if obj["kind"] == "Service"
    ]
    assert service in hosts
    urls = {scorer["spec"]["configURL"].split("/")[2] for scorer in scorers}
    assert urls == {f"{service}.dynamic-scoring.svc:8000"}

"""Kueue's manager as a process: its CRDs, its webhooks, and MultiKueue over loopback.

What differs from a cluster: the Service of the webhooks is an ExternalName for this machine,
because no kube-proxy runs, and this writes the files of the certificate that Kueue makes, because
no kubelet mounts its Secret. The manager has an administrator's rights.
"""

from __future__ import annotations

import base64
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import yaml

from tests.eventually import until
from tests.real_hub.harness.api import parse
from tests.real_hub.harness.control_plane import ADMINISTRATORS
from tests.real_hub.harness.ports import LOOPBACK

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real_hub.build import Assets
    from tests.real_hub.harness.api import Object
    from tests.real_hub.harness.control_plane import ControlPlane

NAMESPACE = "kueue-system"
SERVICE = "kueue-webhook-service"
SECRET = "kueue-webhook-server-cert"
CONFIG_MAP = "kueue-manager-config"
USER = "kueue-manager"
KUEUE = "kueue.x-k8s.io/v1beta2"
DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
WORKER = (KUEUE, "MultiKueueCluster")
CONVERTED = {"localqueues", "clusterqueues", "workloads", "cohorts", "multikueueclusters"}
WORKER_LOST = "5s"


class KueueManager:
    """The manager of one cluster."""

    def __init__(self, plane: ControlPlane, assets: Assets) -> None:
        self.plane = plane
        self.process = f"{plane.name}-kueue"
        self.directory: Path = plane.directory / "kueue"
        self._assets = assets
        self._port, self._health = plane.ports.free(), plane.ports.free()
        self._started = 0

    def install(self) -> None:
        """Install CRDs, webhook configurations, and the Service and the Secret that they need."""
        self.plane.namespace(NAMESPACE)
        folder = self._assets.manifests / "kueue/config/components"
        for path in sorted((folder / "crd/bases").glob("*.yaml")):
            for crd in parse(path.read_text()):
                self.plane.apply(self._converted(crd))
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE, "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": SECRET, "namespace": NAMESPACE},
        }
        self.plane.apply(service)
        self.plane.apply(secret)
        for obj in parse((folder / "webhook/manifests.yaml").read_text()):
            obj["metadata"]["name"] = f"kueue-{obj['metadata']['name']}"
            obj["webhooks"] = [
                {**hook, "clientConfig": self._client(hook["clientConfig"]["service"]["path"])}
                for hook in obj["webhooks"]
                # Those of Pods, Deployments and other integrations are for what is not used here.
                if "kueue-x-k8s-io" in hook["clientConfig"]["service"]["path"]
                or "batch-v1-job" in hook["clientConfig"]["service"]["path"]
            ]
            self.plane.apply(obj)

    def _client(self, path: str) -> Object:
        service = {"name": SERVICE, "namespace": NAMESPACE, "path": path, "port": self._port}
        return {"service": service}

    def _converted(self, crd: Object) -> Object:
        if crd["spec"]["names"]["plural"] in CONVERTED:
            webhook = {"clientConfig": self._client("/convert"), "conversionReviewVersions": ["v1"]}
            crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        return crd

    def start(self, dispatcher: str = "") -> None:
        """Start the manager with a dispatcher's name and wait until it is ready."""
        metrics = self.plane.ports.free()
        multi = {"gcInterval": "1m", "workerLostTimeout": WORKER_LOST, "origin": "hub"}
        configuration = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "namespace": NAMESPACE,
            "health": {"healthProbeBindAddress": f"{LOOPBACK}:{self._health}"},
            "metrics": {"bindAddress": f"{LOOPBACK}:{metrics}"},
            "webhook": {"port": self._port, "host": LOOPBACK, "certDir": str(self.directory)},
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"qps": 200, "burst": 400},
            "internalCertManagement": {
                "enable": True,
                "webhookServiceName": SERVICE,
                "webhookSecretName": SECRET,
            },
            "integrations": {"frameworks": ["batch/job"]},
            "featureGates": {"VisibilityOnDemand": False},
            "multiKueue": {**multi, **({"dispatcherName": dispatcher} if dispatcher else {})},
        }
        text = yaml.safe_dump(configuration)
        self.directory.mkdir(parents=True, exist_ok=True)
        file = self.directory / "controller_manager_config.yaml"
        file.write_text(text)
        self.plane.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE},
                "data": {file.name: text},
            }
        )
        kubeconfig = self.plane.kubeconfig(user=USER, group=ADMINISTRATORS)
        self.plane.processes.start(
            self.process,
            [self._assets.program("kueue"), f"--config={file}", "--zap-log-level=3"],
            env={"KUBECONFIG": str(kubeconfig)},
        )
        if not self._started:
            until("Kueue to make its certificate", self._mount, check=self.check)
        self._started += 1
        until("Kueue to be ready", self._is_ready, check=self.check)

    def restart(self, dispatcher: str = "") -> None:
        """Stop the manager, start it with another dispatcher, and wait for its connections.

        What it has said of them is removed first, because nothing else tells it from what it says.
        """
        self.plane.processes.stop(self.process)
        clusters = [obj["metadata"]["name"] for obj in self.plane.api.list(*WORKER)]
        for name in clusters:
            body: Object = {"status": {"conditions": []}}
            self.plane.api.patch(*WORKER, name, body, subresource="status")
        self.start(dispatcher)
        for name in clusters:
            self.plane.api.wait_condition(*WORKER, name, "Active")

    def check(self) -> None:
        """Raise ProcessDied if the manager has ended."""
        self.plane.processes.check(self.process)

    def _mount(self) -> bool:
        data = self.plane.api.get("v1", "Secret", SECRET, NAMESPACE).get("data") or {}
        if "tls.crt" not in data:
            return False
        for name in ("tls.key", "tls.crt"):
            (self.directory / name).write_bytes(base64.b64decode(data[name]))
        return True

    def _is_ready(self) -> bool:
        """Whether the webhooks answer, which is what a user of Kueue notices first."""
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self._health}/readyz") as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def connect_worker(manager: ControlPlane, worker: ControlPlane) -> None:
    """Make a cluster a MultiKueueCluster of another one, under its own name."""
    kubeconfig = worker.kubeconfig(user="multikueue", group=ADMINISTRATORS)
    name = f"{worker.name}-multikueue"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "stringData": {"kubeconfig": kubeconfig.read_text()},
    }
    cluster = {
        "apiVersion": KUEUE,
        "kind": "MultiKueueCluster",
        "metadata": {"name": worker.name},
        "spec": {"clusterSource": {"kubeConfig": {"location": name, "locationType": "Secret"}}},
    }
    manager.apply(secret)
    manager.apply(cluster)
    manager.api.wait_condition(*WORKER, worker.name, "Active")


def queues(plane: ControlPlane, cpu: int, *checks: str, annotations: Object | None = None) -> None:
    """Create a ClusterQueue with a quota of processors, and a LocalQueue for it."""
    quotas = {"cpu": cpu, "memory": "36Gi", "nvidia.com/gpu": 3}
    resources = [{"name": name, "nominalQuota": quota} for name, quota in quotas.items()]
    flavor = {"name": "default", "resources": resources}
    asked = {"admissionChecks": [{"name": name} for name in checks]}
    objects: list[Object] = [
        {"kind": "ResourceFlavor", "metadata": {"name": "default"}},
        {
            "kind": "ClusterQueue",
            "metadata": {"name": "cluster-queue"},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": [*quotas], "flavors": [flavor]}],
                **({"admissionChecksStrategy": asked} if checks else {}),
            },
        },
        {
            "kind": "LocalQueue",
            "metadata": {
                "name": "user-queue",
                "namespace": "default",
                "annotations": annotations or {},
            },
            "spec": {"clusterQueue": "cluster-queue"},
        },
    ]
    for obj in objects:
        plane.apply({"apiVersion": KUEUE, **obj})
    plane.api.wait_condition(KUEUE, "ClusterQueue", "cluster-queue", "Active")


def job(name: str, cpu: int = 1) -> Object:
    """A Job of the queue whose one Pod requests processors and runs until a test ends it."""
    container = {
        "name": "main",
        "image": "registry.example/main:1",
        "resources": {"requests": {"cpu": str(cpu)}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": "user-queue"},
        },
        "spec": {
            "suspend": True,
            # Kueue's webhook adds it only once it knows the queue, some time after a restart.
            "managedBy": "kueue.x-k8s.io/multikueue",
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def workloads(plane: ControlPlane) -> dict[str, Object]:
    """The Workloads of a cluster by the names of their Jobs."""
    return {
        obj["metadata"]["ownerReferences"][0]["name"]: obj
        for obj in plane.api.list(KUEUE, "Workload", "default")
        if obj["metadata"].get("ownerReferences")
    }


def placed(plane: ControlPlane) -> dict[str, str]:
    """The worker cluster that each Job's Workload is admitted on, or an empty text."""
    return {
        name: str(obj.get("status", {}).get("clusterName") or "")
        for name, obj in workloads(plane).items()
    }

"""Does the work of a kubelet: runs a Deployment's container and reports its Pods, or runs a Pod."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from tests.eventually import until

from .api import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .api import Object
    from .control_plane import ControlPlane

ACCOUNT_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
API_SERVER = "https://kubernetes.default.svc"
"""Where the programs of a Pod find the token of its account, and the API server."""


@dataclass(frozen=True)
class Command:
    """The process of a Pod's container."""

    argv: list[str]
    env: dict[str, str]


def run_deployment(
    plane: ControlPlane,
    namespace: str,
    name: str,
    *,
    entrypoint: Sequence[str],
    env: Mapping[str, str] | None = None,
    extra_args: Sequence[str] = (),
    dropped_flag: str = "",
    process: str = "",
) -> str:
    """Run a Deployment's first container as a process, and return the process's name.

    It gets the arguments, the environment and the Secrets of its Pod, and the token of its service
    account (``KUBECONFIG``). ``entrypoint`` stands for the image's; ``env`` wins over the
    container's, ``extra_args`` come last, and ``dropped_flag`` is left out. Raises ApiError (404)
    for a missing object and ValueError for a Pod that is not supported (see ``command_of``).
    """
    deployment = plane.api.get("apps/v1", "Deployment", name, namespace)
    pod = deployment["spec"]["template"]["spec"]
    account = f"{namespace}/{pod.get('serviceAccountName', 'default')}"
    mounts = mounted(plane, namespace, pod)
    process = process or f"{plane.name}-{name}"
    command = command_of(pod, entrypoint, namespace=namespace, pod_name=process, mounts=mounts)
    plane.processes.start(
        process,
        [*(word for word in command.argv if word.partition("=")[0] != dropped_flag), *extra_args],
        env={
            "KUBECONFIG": str(plane.kubeconfig(service_account=account)),
            **command.env,
            **(env or {}),
        },
    )
    return process


def mounted(plane: ControlPlane, namespace: str, pod: Object) -> dict[str, Path]:
    """Folders of the volumes by their path in the Pod; only those of Secrets have files."""
    folders = {}
    for volume in pod.get("volumes", []):
        if secret := volume.get("secret"):
            folders[volume["name"]] = plane.mount_secret(namespace, secret["secretName"])
        else:
            folders[volume["name"]] = plane.directory / "volumes" / namespace / volume["name"]
            folders[volume["name"]].mkdir(parents=True, exist_ok=True)
    mounts = pod["containers"][0].get("volumeMounts", [])
    return {mount["mountPath"]: folders[mount["name"]] for mount in mounts}


def command_of(
    pod: Object,
    entrypoint: Sequence[str],
    *,
    namespace: str,
    pod_name: str,
    mounts: Mapping[str, Path],
) -> Command:
    """The process of the first container of a Pod's spec.

    Paths below a mount are replaced by the folder of its volume. Raises ValueError for an
    environment variable whose value is not a literal or the Pod's name or namespace.
    """
    container = pod["containers"][0]
    env = {
        entry["name"]: value_of(entry, namespace=namespace, pod_name=pod_name)
        for entry in container.get("env", [])
    }
    words = [*container.get("command", []), *container.get("args", [])]
    argv = [located(expanded(word, env), mounts) for word in words]
    return Command(
        # The entrypoint is a program of this machine, wherever a mount may be.
        argv=argv if "command" in container else [*entrypoint, *argv],
        env={name: located(value, mounts) for name, value in env.items()},
    )


def value_of(entry: Object, *, namespace: str, pod_name: str) -> str:
    """Value of an environment variable."""
    fields = {"metadata.name": pod_name, "metadata.namespace": namespace}
    if "valueFrom" not in entry:
        return str(entry.get("value", ""))
    path = entry["valueFrom"].get("fieldRef", {}).get("fieldPath")
    if path not in fields:
        raise ValueError(f"{entry['name']}: cannot tell {entry['valueFrom']}")
    return fields[path]


def expanded(word: str, env: Mapping[str, str]) -> str:
    """An argument with ``$(NAME)`` replaced, as Kubernetes does; unknown names stay."""
    return re.sub(r"\$\((\w+)\)", lambda found: env.get(found[1], found[0]), word)


def located(word: str, mounts: Mapping[str, Path]) -> str:
    """An argument with paths in the Pod replaced by paths here."""
    if not mounts:
        return word
    # All at once: the folder that stands for one mount may itself be below another's path.
    inside = "|".join(re.escape(path) for path in sorted(mounts, key=len, reverse=True))
    found = re.compile(rf"(?<![\w.-])({inside})(?=$|/)")
    return found.sub(lambda match: str(mounts[match[1]]), word)


def run_to_end(
    plane: ControlPlane, pod: Object, env: Mapping[str, str], entrypoint: Sequence[str] = ()
) -> None:
    """Run the Python program of a Pod's only container to its end, and report the Pod's phase.

    It has the token of its service account if the Pod mounts one. The API server has its real
    address instead of the name that it has in a cluster. ``entrypoint`` stands for the image's.
    """
    spec, name, namespace = (pod["spec"], pod["metadata"]["name"], pod["metadata"]["namespace"])
    mounts, account = {}, {}
    if spec.get("automountServiceAccountToken", True):
        user = f"{namespace}/{spec['serviceAccountName']}"
        mounts[ACCOUNT_MOUNT] = mount_account(plane, namespace, spec["serviceAccountName"])
        account["KUBECONFIG"] = str(plane.kubeconfig(service_account=user))
    command = command_of(spec, entrypoint, namespace=namespace, pod_name=name, mounts=mounts)
    program, *words = command.argv
    if not program.endswith("python"):
        raise ValueError(f"{name}: {program} is not Python")
    ended = subprocess.run(
        [sys.executable, *(plane.server if word == API_SERVER else word for word in words)],
        env={"PATH": os.environ.get("PATH", os.defpath), **account, **command.env, **env},
        capture_output=True,
        check=False,
    )
    plane.processes.log(f"{plane.name}-{name}").write_bytes(ended.stdout + ended.stderr)
    phase = {"phase": "Failed" if ended.returncode else "Succeeded"}
    plane.api.patch("v1", "Pod", name, {"status": phase}, namespace, subresource="status")


def mount_account(plane: ControlPlane, namespace: str, name: str) -> Path:
    """Write what a kubelet mounts for a service account, and return the folder."""
    folder = plane.directory / "accounts" / namespace / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "token").write_text(plane.token(f"{namespace}/{name}"))
    cluster = yaml.safe_load(plane.admin_kubeconfig.read_text())["clusters"][0]["cluster"]
    (folder / "ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    return folder


def mark_ready(plane: ControlPlane, namespace: str, deployment: str) -> None:
    """Report a Deployment's Pods as running and ready, and wait until it is available."""
    spec = plane.api.get("apps/v1", "Deployment", deployment, namespace)["spec"]
    labels = ",".join(f"{k}={v}" for k, v in spec["selector"]["matchLabels"].items())

    def available() -> bool:
        for pod in plane.api.list("v1", "Pod", namespace, labels=labels):
            report_ready(plane, namespace, pod["metadata"]["name"])
        status = plane.api.get("apps/v1", "Deployment", deployment, namespace)["status"]
        return bool(status.get("availableReplicas") == spec["replicas"])

    until(f"Deployment {deployment} to be available", available, every=0.5)


def report_ready(plane: ControlPlane, namespace: str, pod: str) -> None:
    """Report a Pod as running and ready; one that was replaced meanwhile is left out."""
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    try:
        plane.api.patch("v1", "Pod", pod, {"status": ready}, namespace, subresource="status")
    except ApiError as error:
        if error.status != 404:
            raise

"""Stands for the programs of the tutorials that need containers or the internet.

``python stand_in.py PROGRAM ARGUMENT...`` checks what can be checked of a command and does what
the rest of a tutorial builds on. Other commands of helm and kubectl reach the real programs. Exits
with 64 for a command that it does not know, so that a tutorial can't show one that nobody tried.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

CONTEXTS = {"kind-hub01", "kind-worker01", "kind-worker02"}
WORKERS = {"worker01", "worker02"}
SET = "cluster.open-cluster-management.io/v1beta2"


def option(words: list[str], name: str) -> str:
    """The value of an option."""
    return words[words.index(name) + 1]


def podman(words: list[str]) -> bool:
    """An image is built from a file and a folder that exist."""
    return words[0] == "build" and Path(option(words, "-f")).is_file() and Path(words[-1]).is_dir()


def kind(words: list[str]) -> bool:
    """Clusters and images go to the three clusters of the tutorials."""
    known = words[:2] in (["create", "cluster"], ["load", "docker-image"])
    return known and f"kind-{option(words, '--name')}" in CONTEXTS


def clusteradm(words: list[str]) -> bool:
    """The hub has what clusteradm installs; a namespace is bound to a cluster set."""
    if option(words, "--context") not in CONTEXTS:
        return False
    if words[:2] == ["clusterset", "bind"]:
        bind(words[2], option(words, "--namespace"))
        return True
    named = option(words, "--clusters") if "--clusters" in words else ",".join(WORKERS)
    started = words[0] in {"init", "join", "accept"} or words[:2] in (
        ["get", "token"],
        ["install", "hub-addon"],
        ["addon", "enable"],
    )
    return started and set(named.split(",")) == WORKERS


def bind(cluster_set: str, namespace: str) -> None:
    """Bind a namespace to a cluster set, as ``clusteradm clusterset bind`` does."""
    binding = {
        "apiVersion": SET,
        "kind": "ManagedClusterSetBinding",
        "metadata": {"name": cluster_set, "namespace": namespace},
        "spec": {"clusterSet": cluster_set},
    }
    command = [os.environ["REAL_KUBECTL"], "apply", "-f", "-", "--context", "kind-hub01"]
    subprocess.run(command, input=json.dumps(binding), text=True, check=True)


def helm(words: list[str]) -> bool:
    """Prometheus runs already in each cluster; other charts are installed by the real helm."""
    return any("prometheus-community" in word for word in words) or passed_on("REAL_HELM", words)


def kubectl(words: list[str]) -> bool:
    """The hub's OCM runs without its operator, so there is no ClusterManager to patch.

    A port-forward of an existing Service ends at once: the tests keep one open.
    """
    if "port-forward" in words:
        words = [word for word in words if word != "port-forward" and not word[0].isdigit()]
        return passed_on("REAL_KUBECTL", ["get", *words, "-o", "name"])
    return words[:2] == ["patch", "clustermanager"] or passed_on("REAL_KUBECTL", words)


def passed_on(program: str, words: list[str]) -> bool:
    """Run the real program."""
    return subprocess.run([os.environ[program], *words], check=False).returncode == 0


PROGRAMS = {
    "podman": podman,
    "kind": kind,
    "clusteradm": clusteradm,
    "helm": helm,
    "kubectl": kubectl,
}

if __name__ == "__main__":
    sys.exit(0 if PROGRAMS[sys.argv[1]](sys.argv[2:]) else 64)

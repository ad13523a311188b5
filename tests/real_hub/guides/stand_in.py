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
NOT_HERE = {
    "deployment/cluster-manager-work-controller",
    "managedclusteraddon/governance-policy-framework",
    "pod/curl-tester",
}
"""What the operator, clusteradm or a kubelet makes; the tests run the same programs themselves."""
WORKERS = {"worker01", "worker02"}
EXTERNAL_SCORER = "127.0.200.1"
"""The address of what a tutorial runs outside of the clusters, on the network of kind."""
SET = "cluster.open-cluster-management.io/v1beta2"


def option(words: list[str], name: str) -> str:
    """The value of an option."""
    return words[words.index(name) + 1]


def engine(words: list[str]) -> bool:
    """An image is built from a file and a folder that exist; `run` is done by the test."""
    if words[:2] == ["image", "inspect"]:
        return say("0")
    if words[0] == "inspect":
        return say(EXTERNAL_SCORER)
    if words[0] == "build":
        return Path(option(words, "--file")).is_file() and Path(words[-1]).is_dir()
    return words[0] in {"info", "image", "save", "push", "inspect", "rm"}


def kind(words: list[str]) -> bool:
    """Clusters and images go to the three clusters of the tutorials."""
    if words[:2] == ["get", "clusters"]:
        return say("\n".join(context.removeprefix("kind-") for context in sorted(CONTEXTS)))
    known = words[:2] in (["create", "cluster"], ["load", "image-archive"], ["delete", "cluster"])
    return known and f"kind-{option(words, '--name')}" in CONTEXTS


def clusteradm(words: list[str]) -> bool:
    """The hub has what clusteradm installs; a namespace is bound to a cluster set."""
    if option(words, "--context") not in CONTEXTS:
        return False
    if words[:2] == ["clusterset", "bind"]:
        bind(words[2], option(words, "--namespace"))
        return True
    if words[:2] == ["get", "token"]:
        server = "https://127.0.0.1:6443"
        say(f"clusteradm join --hub-token a-token --hub-apiserver {server} --cluster-name <name>")
    if words[0] == "join" and option(words, "--hub-token") != "a-token":
        return False
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
    of_others = words[0] == "repo" or any("prometheus-community" in word for word in words)
    return of_others or passed_on("REAL_HELM", words)


def kubectl(words: list[str]) -> bool:
    """The hub's OCM runs without its operator, so there is no ClusterManager, and no add-on of its.

    A port-forward of an existing Service ends at once: the tests keep one open. A Pod that nothing
    runs lets this machine ask in its place.
    """
    if "port-forward" in words:
        words = [word for word in words if word != "port-forward" and not word[0].isdigit()]
        return passed_on("REAL_KUBECTL", ["get", *words, "-o", "name"])
    if words[0] == "exec":
        return ask_in_place_of_a_pod(words[1 : words.index("--")], words[words.index("--") + 1 :])
    if words[:3] == ["get", "clustermanager", "cluster-manager"]:
        gates = [{"feature": "AddonManagement", "mode": "Enable"}]
        return say(json.dumps({"spec": {"workConfiguration": {"featureGates": gates}}}))
    if words[0] == "replace":
        spec = json.load(sys.stdin)["spec"]["workConfiguration"]
        features = [gate["feature"] for gate in spec["featureGates"]]
        return features == ["AddonManagement", "ManifestWorkReplicaSet"]
    if words[0] == "wait" and words[1] in NOT_HERE:
        return True
    return passed_on("REAL_KUBECTL", words)


def ask_in_place_of_a_pod(pod: list[str], asked: list[str]) -> bool:
    """Run a program on this machine, if the Pod exists; it prints nothing else."""
    get = [os.environ["REAL_KUBECTL"], "get", "pod", *pod]
    there = subprocess.run(get, stdout=subprocess.DEVNULL, check=False).returncode == 0
    return there and subprocess.run(asked, check=False).returncode == 0


def say(text: str) -> bool:
    """Print a line."""
    return bool(sys.stdout.write(f"{text}\n"))


def passed_on(program: str, words: list[str]) -> bool:
    """Run the real program."""
    return subprocess.run([os.environ[program], *words], check=False).returncode == 0


PROGRAMS = {
    "podman": engine,
    "kind": kind,
    "clusteradm": clusteradm,
    "helm": helm,
    "kubectl": kubectl,
}

if __name__ == "__main__":
    sys.exit(0 if PROGRAMS[sys.argv[1]](sys.argv[2:]) else 64)

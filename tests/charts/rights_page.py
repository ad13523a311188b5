"""Writes docs/reference/rights.md: each rule of the charts' roles, with its reason and its test."""

from collections.abc import Iterator

from dsf.api.untrusted_text import counted
from dsf.hub.snapshot.summaries_work import summaries_work
from tests.charts.rendering import Object, expanded, render
from tests.charts.toggles import Values
from tests.repository import ROOT

PATH = ROOT / "docs/reference/rights.md"
CORE, OPTIMIZER, WATCHER = (
    "dynamic-scoring-framework",
    "dynamic-scoring-optimizer",
    "policy-watcher",
)
RENDERED: tuple[tuple[str, Values], ...] = (
    (
        CORE,
        {
            "hubSetting": {
                "resourceController": {"distributeSecrets": True, "manifestNamespaces": ["shop"]},
                "dispatcher": {"enabled": True},
            },
            "spokeSetting": {
                "agent": {
                    "inventory": {"enabled": True},
                    "secretNames": ["token"],
                    "readableResources": [{"apiGroup": "metrics.k8s.io", "resource": "nodes"}],
                }
            },
        },
    ),
    (
        OPTIMIZER,
        {
            "namespaces": ["shop"],
            "allowWrites": True,
            "rollouts": {"enabled": True},
            "mig": {"generatePolicies": True},
        },
    ),
    (
        OPTIMIZER,
        {
            "namespaces": [],
            "allowWrites": True,
            "auth": {
                "impersonate": True,
                "impersonated": {
                    "users": ["ann"],
                    "groups": ["placers"],
                    "serviceAccounts": ["shop/planner"],
                },
            },
        },
    ),
    (WATCHER, {}),
    (WATCHER, {"clusterName": "east"}),
)
"""Values with which the charts grant all that they can."""
USED = "tests/real_hub/product/test_use_of_rights.py"
NEEDED = {
    "dynamic-scoring-controller": f"{USED}::test_the_controller",
    "dynamic-scoring-controller-manifests": f"{USED}::test_the_controller",
    "dynamic-scoring-dispatcher": "tests/neighbours/test_kueue.py",
    "dynamic-scoring-dispatcher-kueue": "tests/neighbours/test_kueue.py",
    "dynamic-scoring-agent": f"{USED}::test_the_agent_on_the_hub",
    "dynamic-scoring-agent-secrets": f"{USED}::test_the_agent_on_its_cluster",
    "dynamic-scoring-agent-nodes.metrics.k8s.io": (
        "tests/real_hub/product/test_kubernetes_source.py"
    ),
    "dynamic-scoring-agent-inventory": f"{USED}::test_the_agent_on_its_cluster",
    "dynamic-scoring-agent-binder": "tests/real_hub/product/test_install.py",
    "dynamic-scoring-uninstall": "tests/real_hub/test_uninstall.py",
    OPTIMIZER: f"{USED}::test_the_optimizer",
    f"{OPTIMIZER}-record-key": f"{USED}::test_the_optimizer",
    f"{OPTIMIZER}-self-signed": "tests/real_hub/charts/test_releases.py",
    f"{OPTIMIZER}-as-planner": "tests/real_hub/charts/test_impersonation.py",
    f"{OPTIMIZER}-reader": "tests/real_hub/product/test_guide.py",
    f"{OPTIMIZER}-writer": "tests/real_hub/product/test_guide.py",
    WATCHER: f"{USED}::test_the_policy_watcher_on_its_cluster",
}
"""The test that fails where a role lacks one of its rules."""
IMPERSONATED = "those of `auth.impersonated`, with `auth.impersonate` (`test_impersonation.py`)"
ELECTION = "leader election"
EVENTS = "Events: one that repeats is counted"
WHY: dict[str, dict[str, str]] = {
    "dynamic-scoring-controller": {
        "dynamicscoringconfigs": "the rules of distribution; the finalizer is on it",
        "dynamicscoringconfigs/status": "its conditions",
        "secrets": "only with `distributeSecrets`: those with the label go to clusters",
        "events": EVENTS,
        "leases": ELECTION,
        "dynamicscorers": "all namespaces, because those elsewhere are told that they are not used",
        "dynamicscorers/status": "their conditions",
        "managedclusters": "which clusters there are, and their labels and claims",
        "managedclusteraddons": "only clusters with the add-on get scorers",
        "addonplacementscores": "what agents report; expired scores of agents that are gone go",
        "manifestworks": "scorers and Secrets for each cluster; `create` is limited by admission",
    },
    "dynamic-scoring-controller-manifests": {
        "manifestworkreplicasets": "workloads for the scorers that ask for them",
        "policies": "what policies supply, for the scorers that ask for it",
    },
    "dynamic-scoring-dispatcher": {
        "leases": ELECTION,
        "admissionchecks": "which checks are MultiKueue's, and for which clusters",
        "admissionchecks/status": "a condition that says whether this dispatcher serves the check",
        "localqueues": "which scores the queue of a Workload prefers",
        "multikueueclusters": "which clusters Kueue is connected to",
        "multikueueconfigs": "which clusters a Workload may go to",
        "workloads": "which of them wait for a cluster",
        "workloads/status": "the nominated clusters, and a condition that says why",
        "addonplacementscores": "the scores of clusters",
        "managedclusters": "which clusters OCM can't select",
        "nodeinventories": "where there is room",
        "manifestworks": "the quotas that OCM's Kueue add-on sends to worker clusters",
        "events": EVENTS,
    },
    "dynamic-scoring-dispatcher-kueue": {
        "configmaps": "whether Kueue's configuration names this dispatcher"
    },
    "dynamic-scoring-agent": {
        "addonplacementscores": "its scores; admission limits writes to its own cluster",
        "addonplacementscores/status": "the values of its scores",
        "nodeinventories": "only with `inventory.enabled`: its inventory, limited in the same way",
        "nodeinventories/status": "what the nodes of its cluster have and Pods request",
        "configmaps": "on its cluster: the scorers that it runs",
        "secrets": "on its cluster: those of `secretNames`, which it watches",
        "leases": "on its cluster: tells OCM that it lives",
    },
    "dynamic-scoring-agent-secrets": {
        "secrets": "on its cluster: those that its scorers reference; the controller sends"
        " this Role, and the add-on binds it where `secretNames` is empty"
    },
    "dynamic-scoring-agent-nodes.metrics.k8s.io": {
        "nodes": "on its cluster: those of `readableResources`, for sources of type Kubernetes"
    },
    "dynamic-scoring-agent-inventory": {
        "nodes": "on its cluster, only with `inventory.enabled`: what nodes have",
        "pods": "on its cluster, only with `inventory.enabled`: what Pods request, and where",
        "appliedmanifestworks": "on its cluster: which Pods are those of ManifestWorks",
        "deviceclasses": "on its cluster: what claims of devices mean",
        "resourceclaims": "on its cluster: which devices Pods have",
        "resourceslices": "on its cluster: which devices nodes have",
    },
    "dynamic-scoring-agent-binder": {
        "clusterroles": "lets OCM's add-on manager bind the role of the agent for each cluster"
    },
    "dynamic-scoring-uninstall": {
        "dynamicscoringconfigs": "removes the controller's finalizer",
        "leases": "waits until no controller runs, then deletes its Lease",
        "manifestworks": "takes scorers and Secrets off the clusters",
        "managedclusteraddons": "waits until OCM has removed the agents",
        "addonplacementscores": "deletes those of the agents",
    },
    OPTIMIZER: {
        "addonplacementscores": "the scores that plans maximise",
        "managedclusters": "clusters, labels, taints, claims",
        "managedclustersets": "which clusters a namespace may use",
        "dynamicscorers": "what scores mean",
        "nodeinventories": "what nodes have, and what Pods there request",
        "policies": "what clusters supply; writes only with `mig.generatePolicies` (`test_mig.py`)",
        "placementbindings": "what is enforced, by others too; writes only with `allowWrites`",
        "manifestworkreplicasets": "the workloads, of others too",
        "placements": "what is placed, by others too; writes only with `allowWrites`",
        "placementdecisions": "what OCM selected",
        "namespaces": "whether a namespace about which there is nothing exists",
        "leases": "one server looks after what is kept; with `allowWrites` one writer at a time,"
        " on the whole hub",
        "manifestworks": "what runs on the clusters; only with `manifestWorks.read` or rollouts",
        "tokenreviews": "who the caller is",
        "subjectaccessreviews": "what the caller may do",
        "users": IMPERSONATED,
        "groups": IMPERSONATED,
        "managedclustersetbindings": "which cluster sets the namespace may use",
        "placementplans": "the records of plans; writes only with `allowWrites` or rollouts"
        " (`test_rollout.py`)",
        "placementplans/status": "how plans have landed",
        "placementoptimizations": "what is to be kept placed; a finalizer or an approval only"
        " with `allowWrites`",
        "placementoptimizations/status": "what became of it",
        "events": EVENTS,
    },
    f"{OPTIMIZER}-record-key": {
        "secrets": "the key that signs records; it is made once, only with `allowWrites`"
    },
    f"{OPTIMIZER}-self-signed": {
        "secrets": "the certificate that it signs itself, and its authority"
    },
    f"{OPTIMIZER}-as-planner": {
        "serviceaccounts": "one of `auth.impersonated.serviceAccounts`, in its namespace"
    },
    f"{OPTIMIZER}-reader": {
        "addonplacementscores": "for callers: to list scores and to plan",
        "managedclusters": "for callers: to plan",
        "dynamicscorers": "for callers: what scores mean",
        "nodeinventories": "for callers: capacity of clusters, reserved and free",
    },
    f"{OPTIMIZER}-writer": {
        "policies": "for callers: to plan; writes only with `mig.generatePolicies`",
        "manifestworkreplicasets": "for callers: to plan",
        "placements": "for callers: to apply, reset and follow",
        "placementdecisions": "for callers: to follow",
        "placementbindings": "for callers: to apply, reset and follow",
        "placementplans": "for callers: what was decided before",
        "placementoptimizations": "for callers: to declare what is kept, and to approve its plans",
    },
    WATCHER: {
        "clusterclaims": "the one claim that it writes",
        "policies": "the policies of its cluster; as an add-on in all namespaces, since an"
        " AddOnTemplate can't name the namespace of the cluster",
    },
}
HEAD = """# Rights of each account

For people who review what the charts grant. Each rule of each role is here, with the values that
grant the most, why it is there, and the test that fails without it. For our own accounts that test
compares the rules with the audit log of a real API server, after all of the product was used: a
rule that nobody used fails it, as does a refused request. Where a rule names objects, a list or
watch of others is refused.

[Admission policies](../security/threat-model.md) limit what RBAC can't. An agent writes the scores
and the inventory of its own cluster only (`tests/real_hub/product/test_install.py`). The controller
writes only its two ManifestWorks, which carry the agent's namespace, its ConfigMap, the Role
`dynamic-scoring-agent-secrets` and its Secrets, and nothing else
(`tests/real_hub/product/test_controller_works.py`). The optimizer impersonates no user and no group
that begins with `system:`, except service accounts (`tests/real_hub/charts/test_impersonation.py`).

This page is written by `python -m tests.charts.rights_page`.
"""


def roles() -> Iterator[Object]:
    """The roles of the charts, with all values that add rules, but those of `helm test`.

    And that which the controller sends to a managed cluster.
    """
    work = summaries_work("east", "[]", "dynamic-scoring", ["token"])
    yield from (obj for obj in work["spec"]["workload"]["manifests"] if obj["kind"] == "Role")
    for chart, values in RENDERED:
        for obj in expanded(render(chart, values, release=chart)):
            of_test = obj["metadata"].get("annotations", {}).get("helm.sh/hook") == "test"
            if obj["kind"] in ("Role", "ClusterRole") and not of_test:
                yield obj


def rules() -> dict[str, dict[str, str]]:
    """The lines of the table by role, each with its reason; raises KeyError for one without."""
    found: dict[str, dict[str, str]] = {}
    for role in roles():
        name = role["metadata"]["name"]
        where = "namespace" if role["kind"] == "Role" else "hub or cluster"
        for rule in role["rules"]:
            for resource in rule["resources"]:
                only = ", ".join(f"`{each}`" for each in rule.get("resourceNames", ()))
                verbs = ", ".join(rule["verbs"])
                line = f"| {verbs} | `{resource}` | {where} | {only} |"
                found.setdefault(name, {})[line] = WHY[name][resource]
    return found


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for name, lines in rules().items():
        test, _, function = NEEDED[name].partition("::")
        told = f"`{test}`" + (f", `{function}`" if function else "")
        parts.append(f"## {name}\n\nTest: {told}. {counted(len(lines), 'rule')}.\n")
        parts.append("| verbs | resource | in | only | why |\n|---|---|---|---|---|")
        parts.append("\n".join(f"{line} {why} |" for line, why in lines.items()) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PATH.write_text(page(), encoding="utf-8")

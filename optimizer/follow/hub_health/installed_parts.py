"""Judges what is installed on a hub: the product, OCM, and what they need."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dsf.api.conditions import conditions_of, find, is_true
from dsf.api.names import CLUSTER_CLAIM, HUB_NAMESPACE, SCORING_CONFIG, VERSION
from dsf.api.untrusted_text import UntrustedName, counted, joined, listed
from dsf.kube import kinds
from dsf.kube.port import Object
from optimizer.follow.hub_health.hub_installation import (
    OCM,
    OCM_KINDS,
    OPTIMIZER_KINDS,
    OWN_KINDS,
    HubInstallation,
    minor,
)
from optimizer.follow.hub_health.judgement import (
    MAX_NAMED,
    HubCheck,
    Judgement,
    failed,
    missing,
    ok,
    plurals,
    skipped,
    unread,
    warning,
)
from optimizer.follow.optimization.kept_conditions import READY
from optimizer.follow.overview.score_overview import scorer_overview
from optimizer.snapshot.object_readers import claims_of, name_of

MAX_CLOCK_SKEW_SECONDS = 10
"""Less than the shortest interval of scores and than the duration of a Lease (15 s)."""

_INSTALL_CRDS = "dsf crds | kubectl apply --server-side -f -"
_INSTALL = "docs/how-to/install-in-production.md"
_POLICY_PART = (
    "install OCM's policy add-on:"
    " `clusteradm install hub-addon --names governance-policy-framework`"
)
_OPTIONAL_PART = {
    kinds.MANIFEST_WORK_REPLICA_SET: "enable its feature gate: ManifestWorkReplicaSet=true",
    kinds.POLICY: _POLICY_PART,
    kinds.PLACEMENT_BINDING: _POLICY_PART,
}
"""How the hub comes to serve the kinds that the optimizer needs."""
_CLOCK_SYNCED = "ManagedClusterConditionClockSynced"
"""OCM's condition of a managed cluster.

Source: open-cluster-management.io/api, cluster/v1, ManagedClusterConditionClockSynced.
"""


def part_checks(found: HubInstallation) -> tuple[HubCheck, ...]:
    """Return the checks of what is installed, without those of clusters, scorers and rights.

    What is kept placed is among them only where something is.
    """
    kept = (_kept(found).on("kept placements"),) if found.kept else ()
    return (*(judge(found).on(name) for name, judge in _PARTS.items()), *kept)


def _missing_fields(
    shipped: Mapping[str, Any], installed: Mapping[str, Any], path: str = ""
) -> Iterator[str]:
    """Yield the fields of a structural schema that an installed one lacks, such as `spec.sources`.

    What is below a missing field is not named.
    """
    there = installed.get("properties") or {}
    for name, schema in (shipped.get("properties") or {}).items():
        where = f"{path}.{name}".removeprefix(".")
        if name in there:
            yield from _missing_fields(schema, there[name], where)
        elif not installed.get("x-kubernetes-preserve-unknown-fields"):
            yield where
    for part in ("items", "additionalProperties"):
        below, own = shipped.get(part), installed.get(part)
        if isinstance(below, Mapping) and isinstance(own, Mapping):
            yield from _missing_fields(below, own, f"{path}[]")


def _access(found: HubInstallation) -> Judgement:
    who = f"; you are {UntrustedName(found.user)}" if found.user else ""
    return ok(f"{found.server} answers{who}")


def _clock(found: HubInstallation) -> Judgement:
    reading = found.clock
    behind = [
        name_of(item)
        for item in found.clusters
        if (find(conditions_of(item), _CLOCK_SYNCED) or {}).get("status") == "False"
    ]
    if behind:
        return failed(
            f"the clock of {listed(behind, MAX_NAMED)} differs from the hub's by more than OCM"
            " allows",
            "set the clocks there by NTP: scores of such a cluster expire too early or too late",
        )
    if reading is None or reading.hub is None:
        return skipped("the hub does not tell its time")
    skew = max(
        (reading.hub - reading.after).total_seconds(),
        (reading.before - reading.hub).total_seconds() - 1,
        0.0,
    )
    if skew > MAX_CLOCK_SKEW_SECONDS:
        return failed(
            f"the clock of this machine and the hub's differ by {skew:.0f} s",
            "set the clock of this machine, and of the hub, by NTP: ages are shown wrong",
        )
    return ok("the hub, this machine and the managed clusters agree")


_WITHOUT = {
    kinds.PLACEMENT_PLAN: "plans are not recorded",
    kinds.PLACEMENT_OPTIMIZATION: "no PlacementOptimization is kept",
}
"""What a hub lacks without a kind of the optimizer's chart; they come after the other kinds."""


def _custom_resources(found: HubInstallation) -> Judgement:
    absent = missing(found, OWN_KINDS)
    if absent and absent[0] in _WITHOUT:
        return warning(
            f"the hub does not serve {plurals(absent)}, so {_WITHOUT[absent[0]]}",
            "dsf crds placementplans placementoptimizations | kubectl apply --server-side -f -",
        )
    if absent:
        return failed(f"the hub does not serve {plurals(absent)}", _INSTALL_CRDS)
    older = {
        name: tuple(_missing_fields(_schema(shipped), _schema(found.definitions[name])))
        for name, shipped in found.shipped.items()
        if name in found.definitions
    }
    lacking = [f"{name.partition('.')[0]}: {field}" for name in older for field in older[name]]
    if lacking:
        return failed(
            f"CRDs on the hub are older than this dsf and lack {joined(lacking, MAX_NAMED)}",
            f"{_INSTALL_CRDS} (helm does not update CRDs)",
        )
    if not found.definitions:
        return ok(f"{plurals(OWN_KINDS)} are served; their CRDs may not be read")
    return ok(f"{plurals(OWN_KINDS)} are served, with all fields of this dsf")


def _ocm(found: HubInstallation) -> Judgement:
    absent = missing(found, OCM_KINDS)
    if absent:
        return failed(
            f"the hub does not serve {plurals(absent)}",
            "install OCM on the hub (`clusteradm init --wait`), or name the hub with --kubeconfig:"
            " this may be a managed cluster",
        )
    optional = missing(found, OPTIMIZER_KINDS)
    if optional:
        wanted = dict.fromkeys(_OPTIONAL_PART[kind] for kind in optional)
        return warning(
            f"the hub does not serve {plurals(optional)}, which the optimizer needs",
            "; ".join(wanted),
        )
    return ok("clusters, scores, Placements, workloads and policies are served")


def _ocm_version(found: HubInstallation) -> Judgement:
    specs = [item.get("spec") or {} for item in found.cluster_managers]
    images = [str(spec.get("registrationImagePullSpec") or "") for spec in specs]
    tags = [image.rpartition(":")[2] for image in images if ":" in image.rpartition("/")[2]]
    if not tags or "@" in images[0]:
        return skipped(f"no ClusterManager tells it; OCM {minor(OCM)} is tested")
    return ok(f"{UntrustedName(tags[0])}; {minor(OCM)} is tested")


def _add_on(found: HubInstallation) -> Judgement:
    if not_read := unread(found, kinds.MANAGED_CLUSTER_ADD_ON):
        return not_read
    enabled = {str(item["metadata"].get("namespace")): item for item in found.add_ons}
    if not enabled:
        return failed(
            "no managed cluster has the add-on dynamic-scoring-framework, so no agent scores",
            f"install the chart dynamic-scoring-framework: {_INSTALL}",
        )
    down = [name for name, item in enabled.items() if not is_true(item, "Available")]
    if down:
        return failed(
            f"the add-on is not available on {listed(down, MAX_NAMED)}",
            f"kubectl -n {UntrustedName(down[0])} describe managedclusteraddon"
            " dynamic-scoring-framework",
        )
    without = sorted({name_of(item) for item in found.clusters} - enabled.keys())
    if without:
        return warning(
            f"the add-on is available on {counted(len(enabled), 'cluster')}, and not enabled on"
            f" {listed(without, MAX_NAMED)}",
            "label these clusters so that the add-on's Placement selects them, if wanted",
        )
    return ok(f"available on {counted(len(enabled), 'cluster')}")


def _hub_controller(found: HubInstallation) -> Judgement:
    scorers = [scorer_overview(item) for item in found.scorers]
    if missing(found, OWN_KINDS[:2]):
        return skipped("the hub does not serve its custom resources")
    if not_read := unread(found, kinds.DYNAMIC_SCORING_CONFIG):
        return not_read
    if found.config is None:
        return warning(
            f"there is no DynamicScoringConfig {SCORING_CONFIG} in {HUB_NAMESPACE}, so no scorer is"
            " sent to any cluster",
            "kubectl apply -f docs/examples/dynamicscoringconfig.yaml",
        )
    unseen = [item.name for item in scorers if item.reason == "NotReported"]
    if unseen or not conditions_of(found.config):
        return failed(
            f"it has not reported on {listed(unseen or [SCORING_CONFIG], MAX_NAMED)}",
            f"start it: kubectl -n {HUB_NAMESPACE} get deployments; its log says what fails",
        )
    return ok(f"it reports on {counted(len(scorers), 'scorer')}")


def _policy_watcher(found: HubInstallation) -> Judgement:
    if not_read := unread(found, kinds.MANAGED_CLUSTER):
        return not_read
    claiming = [item for item in found.clusters if CLUSTER_CLAIM in claims_of(item)]
    if found.clusters and not claiming:
        return skipped(
            f"no cluster claims {CLUSTER_CLAIM}: it is needed only where policies divide GPUs",
            "install the chart policy-watcher",
        )
    return ok(f"claims on {counted(len(claiming), 'cluster')}")


def _schema(definition: Object) -> Mapping[str, Any]:
    versions = definition["spec"].get("versions") or ()
    for version in versions:
        if version.get("name") == VERSION:
            return (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return {}


_PARTS: Mapping[str, Callable[[HubInstallation], Judgement]] = {
    "access": _access,
    "clocks": _clock,
    "custom resources": _custom_resources,
    "OCM": _ocm,
    "OCM version": _ocm_version,
    "add-on": _add_on,
    "hub controller": _hub_controller,
    "policy watcher": _policy_watcher,
}
"""The checks of what is installed, by name."""


def _kept(found: HubInstallation) -> Judgement:
    """Judge the PlacementOptimizations by the first that is not fine."""
    wrong = [item for item in found.kept if not item.fine]
    if not wrong:
        return ok(f"{counted(len(found.kept), 'PlacementOptimization')} kept")
    first, more = wrong[0], f"; {len(wrong) - 1} more" if len(wrong) > 1 else ""
    message = (
        f"PlacementOptimization {first.name} in namespace {first.namespace}: {first.wrong}{more}"
    )
    fix = f"kubectl describe placementoptimization {first.name} -n {first.namespace}"
    unkept = any(
        (item.type, item.status) == (READY, "False") for item in first.status.conditions or ()
    )
    return failed(message, fix) if unkept else warning(message, fix)

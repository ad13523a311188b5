"""Judges an installation: one check after the other, each failure with its fix."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from dsf.api.conditions import conditions_of, find, is_true
from dsf.api.names import CLUSTER_CLAIM, HUB_NAMESPACE, SCORING_CONFIG, VERSION
from dsf.api.plural import counted, joined
from dsf.api.untrusted_text import UntrustedName, UntrustedText, listed
from dsf.kube import kinds
from dsf.kube.errors import Forbidden, KubeError, Unauthorized
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from optimizer.follow.hub_health.hub_installation import (
    KUBERNETES,
    OCM,
    OCM_KINDS,
    OLDEST_KUBERNETES,
    OPTIMIZER_KINDS,
    OWN_KINDS,
    HubInstallation,
    minor,
)
from optimizer.follow.optimization.kept_optimization import kept_optimization
from optimizer.follow.optimization.report import READY
from optimizer.follow.overview.findings import cluster_findings, scorer_findings
from optimizer.follow.overview.score_overview import scorer_overview
from optimizer.follow.placement_status.hub_state import cluster_fault
from optimizer.snapshot.object_readers import claims_of, name_of
from optimizer.wire.base import ResultPart, Sentence

MAX_CLOCK_SKEW_SECONDS = 10
"""Less than the shortest interval of scores and than the duration of a Lease (15 s)."""

MAX_NAMED = 5
"""Objects that one sentence names."""

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

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})")

CheckState = Literal["ok", "warning", "failed", "skipped"]


class HubCheck(ResultPart):
    """What one check found, and the fix of what is wrong."""

    check: str
    state: Annotated[
        CheckState, Field(description="warning: something works less well. skipped: not known.")
    ]
    message: Sentence
    fix: Sentence = ""


def hub_checks(found: HubInstallation) -> tuple[HubCheck, ...]:
    """Return all checks of an installation."""
    use = (_named(name, judge(found)) for name, judge in _USE.items())
    return (*part_checks(found), *use)


def part_checks(found: HubInstallation) -> tuple[HubCheck, ...]:
    """Return the checks of what is installed, without those of clusters, scorers and rights.

    What is kept placed is among them only where something is.
    """
    kept = (_named("kept placements", _kept(found)),) if found.optimizations else ()
    return (*(_named(name, judge(found)) for name, judge in _PARTS.items()), *kept)


def refused_access(error: KubeError) -> HubCheck:
    """Return the check of access to a hub that does not answer, or not to this user."""
    if isinstance(error, Unauthorized):
        fix = "log in again: the hub does not accept the credentials of the kubeconfig"
    elif isinstance(error, Forbidden):
        fix = "ask for the right to list managedclusters"
    else:
        fix = "name the hub's kubeconfig with --kubeconfig or $KUBECONFIG; kubectl must reach it"
    return _named("access", _failed(str(error), fix))


def missing_namespace(namespace: str) -> HubCheck:
    """Return the check of a namespace of workloads that the hub has not."""
    name = UntrustedName(namespace)
    fix = f"name another one with --namespace, or create it: kubectl create namespace {name}"
    return _named("namespace", _failed(f"the hub has no namespace {name}", fix))


def missing_fields(
    shipped: Mapping[str, Any], installed: Mapping[str, Any], path: str = ""
) -> Iterator[str]:
    """Yield the fields of a structural schema that an installed one lacks, such as `spec.sources`.

    What is below a missing field is not named.
    """
    there = installed.get("properties") or {}
    for name, schema in (shipped.get("properties") or {}).items():
        where = f"{path}.{name}".removeprefix(".")
        if name in there:
            yield from missing_fields(schema, there[name], where)
        elif not installed.get("x-kubernetes-preserve-unknown-fields"):
            yield where
    for part in ("items", "additionalProperties"):
        below, own = shipped.get(part), installed.get(part)
        if isinstance(below, Mapping) and isinstance(own, Mapping):
            yield from missing_fields(below, own, f"{path}[]")


def is_healthy(checks: Iterable[HubCheck]) -> bool:
    """Return whether no check failed."""
    return all(item.state != "failed" for item in checks)


class _Judged(NamedTuple):
    state: CheckState
    message: str
    fix: str = ""


def _named(check: str, judged: _Judged) -> HubCheck:
    return HubCheck(check=check, **judged._asdict())


_ok = partial(_Judged, "ok")
_failed = partial(_Judged, "failed")
_warning = partial(_Judged, "warning")
_skipped = partial(_Judged, "skipped")


def _access(found: HubInstallation) -> _Judged:
    who = f"; you are {UntrustedName(found.user)}" if found.user else ""
    return _ok(f"{found.server} answers{who}")


def _clock(found: HubInstallation) -> _Judged:
    reading = found.clock
    behind = [
        name_of(item)
        for item in found.clusters
        if (find(conditions_of(item), _CLOCK_SYNCED) or {}).get("status") == "False"
    ]
    if behind:
        return _failed(
            f"the clock of {_few(behind)} differs from the hub's by more than OCM allows",
            "set the clocks there by NTP: scores of such a cluster expire too early or too late",
        )
    if reading is None or reading.hub is None:
        return _skipped("the hub does not tell its time")
    skew = max(
        (reading.hub - reading.after).total_seconds(),
        (reading.before - reading.hub).total_seconds() - 1,
        0.0,
    )
    if skew > MAX_CLOCK_SKEW_SECONDS:
        return _failed(
            f"the clock of this machine and the hub's differ by {skew:.0f} s",
            "set the clock of this machine, and of the hub, by NTP: ages are shown wrong",
        )
    return _ok("the hub, this machine and the managed clusters agree")


_WITHOUT = {
    kinds.PLACEMENT_PLAN: "plans are not recorded",
    kinds.PLACEMENT_OPTIMIZATION: "no PlacementOptimization is kept",
}
"""What a hub lacks without a kind of the optimizer's chart; they come after the other kinds."""


def _custom_resources(found: HubInstallation) -> _Judged:
    absent = _missing(found, OWN_KINDS)
    if absent and absent[0] in _WITHOUT:
        return _warning(
            f"the hub does not serve {_plurals(absent)}, so {_WITHOUT[absent[0]]}",
            "dsf crds placementplans placementoptimizations | kubectl apply --server-side -f -",
        )
    if absent:
        return _failed(f"the hub does not serve {_plurals(absent)}", _INSTALL_CRDS)
    older = {
        name: tuple(missing_fields(_schema(shipped), _schema(found.definitions[name])))
        for name, shipped in found.shipped.items()
        if name in found.definitions
    }
    lacking = [f"{name.partition('.')[0]}: {field}" for name in older for field in older[name]]
    if lacking:
        return _failed(
            f"CRDs on the hub are older than this dsf and lack {_first(lacking)}",
            f"{_INSTALL_CRDS} (helm does not update CRDs)",
        )
    if not found.definitions:
        return _ok(f"{_plurals(OWN_KINDS)} are served; their CRDs may not be read")
    return _ok(f"{_plurals(OWN_KINDS)} are served, with all fields of this dsf")


def _ocm(found: HubInstallation) -> _Judged:
    absent = _missing(found, OCM_KINDS)
    if absent:
        return _failed(
            f"the hub does not serve {_plurals(absent)}",
            "install OCM on the hub (`clusteradm init --wait`), or name the hub with --kubeconfig:"
            " this may be a managed cluster",
        )
    optional = _missing(found, OPTIMIZER_KINDS)
    if optional:
        wanted = dict.fromkeys(_OPTIONAL_PART[kind] for kind in optional)
        return _warning(
            f"the hub does not serve {_plurals(optional)}, which the optimizer needs",
            "; ".join(wanted),
        )
    return _ok("clusters, scores, Placements, workloads and policies are served")


def _ocm_version(found: HubInstallation) -> _Judged:
    specs = [item.get("spec") or {} for item in found.cluster_managers]
    images = [str(spec.get("registrationImagePullSpec") or "") for spec in specs]
    tags = [image.rpartition(":")[2] for image in images if ":" in image.rpartition("/")[2]]
    if not tags or "@" in images[0]:
        return _skipped(f"no ClusterManager tells it; OCM {minor(OCM)} is tested")
    return _ok(f"{UntrustedName(tags[0])}; {minor(OCM)} is tested")


def _kubernetes_version(found: HubInstallation) -> _Judged:
    """Judge what managed clusters report of their API servers."""
    tested = f"{minor(KUBERNETES)} is tested"
    versions = {
        name_of(item): str(version["kubernetes"])
        for item in found.clusters
        if (version := (item.get("status") or {}).get("version") or {}).get("kubernetes")
    }
    if not versions:
        return _skipped(f"no managed cluster tells its version; {tested}")
    older = [
        name
        for name, version in versions.items()
        if (read := _VERSION.match(version)) and tuple(map(int, read.groups())) < OLDEST_KUBERNETES
    ]
    oldest = ".".join(map(str, OLDEST_KUBERNETES))
    if older:
        return _warning(
            f"{_few(older)} has {UntrustedName(versions[older[0]])}; {tested}, and the charts ask"
            f" for v{oldest}",
            "upgrade Kubernetes there: docs/reference/tested-versions.md",
        )
    counts = ", ".join(
        str(UntrustedName(item)) for item in sorted(set(versions.values()))[:MAX_NAMED]
    )
    return _ok(f"{counts} on {counted(len(versions), 'cluster')}; {tested}")


def _managed_clusters(found: HubInstallation) -> _Judged:
    if unread := _unread(found, kinds.MANAGED_CLUSTER):
        return unread
    if not found.clusters:
        return _warning("the hub has none", "join one: `clusteradm join`, then accept it")
    faults = {
        name_of(item): fault
        for item in found.clusters
        if (fault := cluster_fault(name_of(item), item))
    }
    if faults:
        first, count = cluster_findings(faults)[0], counted(len(found.clusters), "cluster")
        said = f"{len(faults)} of {count} can't be used: {first.reason}: {first.message}"
        return _warning(said, first.next)
    return _ok(f"{counted(len(found.clusters), 'cluster')}, all available")


def _add_on(found: HubInstallation) -> _Judged:
    if unread := _unread(found, kinds.MANAGED_CLUSTER_ADD_ON):
        return unread
    enabled = {str(item["metadata"].get("namespace")): item for item in found.add_ons}
    if not enabled:
        return _failed(
            "no managed cluster has the add-on dynamic-scoring-framework, so no agent scores",
            f"install the chart dynamic-scoring-framework: {_INSTALL}",
        )
    down = [name for name, item in enabled.items() if not is_true(item, "Available")]
    if down:
        return _failed(
            f"the add-on is not available on {_few(down)}",
            f"kubectl -n {UntrustedName(down[0])} describe managedclusteraddon"
            " dynamic-scoring-framework",
        )
    without = sorted({name_of(item) for item in found.clusters} - enabled.keys())
    if without:
        return _warning(
            f"the add-on is available on {counted(len(enabled), 'cluster')}, and not enabled on"
            f" {_few(without)}",
            "label these clusters so that the add-on's Placement selects them, if wanted",
        )
    return _ok(f"available on {counted(len(enabled), 'cluster')}")


def _hub_controller(found: HubInstallation) -> _Judged:
    scorers = [scorer_overview(item) for item in found.scorers]
    if _missing(found, OWN_KINDS[:2]):
        return _skipped("the hub does not serve its custom resources")
    if unread := _unread(found, kinds.DYNAMIC_SCORING_CONFIG):
        return unread
    if found.config is None:
        return _warning(
            f"there is no DynamicScoringConfig {SCORING_CONFIG} in {HUB_NAMESPACE}, so no scorer is"
            " sent to any cluster",
            "kubectl apply -f docs/examples/dynamicscoringconfig.yaml",
        )
    unseen = [item.name for item in scorers if item.reason == "NotReported"]
    if unseen or not conditions_of(found.config):
        return _failed(
            "it has not reported on " + _few(unseen or [SCORING_CONFIG]),
            f"start it: kubectl -n {HUB_NAMESPACE} get deployments; its log says what fails",
        )
    return _ok(f"it reports on {counted(len(scorers), 'scorer')}")


def _sources(found: HubInstallation) -> _Judged:
    if unread := _unread(found, kinds.DYNAMIC_SCORER):
        return unread
    scorers = [scorer_overview(item) for item in found.scorers]
    if found.source_failures:
        first = found.source_failures[0]
        return _failed(
            f"{counted(len(found.source_failures), 'score')} can't be computed because a source"
            f" (Prometheus) does not answer as expected; first {UntrustedName(first.score)} of"
            f" {UntrustedName(first.cluster)}: {UntrustedName(first.reason)}:"
            f" {UntrustedText(first.message)}",
            f"look up {UntrustedName(first.reason)} in docs/how-to/troubleshooting-scorers.md",
        )
    for broken in scorer_findings(scorers):
        return _failed(f"{broken.reason}: {broken.message}", broken.next)
    if not scorers:
        return _skipped("there are none", "register one: `dsf scorer register`")
    return _ok(f"each of {counted(len(scorers), 'scorer')} scores wherever it should")


def _prometheus(found: HubInstallation) -> _Judged:
    if found.prometheus is None:
        return _skipped(
            f"agents read it from their clusters, and did so for"
            f" {counted(found.sources_read, 'score')}; --prometheus-url asks one from here"
        )
    if found.prometheus:
        return _failed(
            found.prometheus,
            "check the URL and that this machine reaches it; `kubectl port-forward` opens a way",
        )
    return _ok("it answers a query from here")


def _policy_watcher(found: HubInstallation) -> _Judged:
    if unread := _unread(found, kinds.MANAGED_CLUSTER):
        return unread
    claiming = [item for item in found.clusters if CLUSTER_CLAIM in claims_of(item)]
    if found.clusters and not claiming:
        return _skipped(
            f"no cluster claims {CLUSTER_CLAIM}: it is needed only where policies divide GPUs",
            "install the chart policy-watcher",
        )
    return _ok(f"claims on {counted(len(claiming), 'cluster')}")


def _rights(found: HubInstallation) -> _Judged:
    lacking = [str(item) for item, held in found.rights.items() if not held]
    if not found.rights:
        return _skipped("the hub does not review rights")
    if lacking:
        return _warning(
            f"you may not {_first(lacking)}",
            "ask for these rights if you are to plan and apply: docs/reference/optimizer-access.md",
        )
    where = listed(sorted({item.namespace for item in found.rights if item.namespace}))
    return _ok(f"you may plan and apply in namespace {where}")


def _unread(found: HubInstallation, kind: Kind) -> _Judged | None:
    """Return the check as skipped if the user may not list a kind; None if it can be judged."""
    if found.served.get(kind) != "forbidden":
        return None
    return _skipped(f"you may not list {kind.plural}")


def _missing(found: HubInstallation, wanted: Iterable[Kind]) -> list[Kind]:
    return [kind for kind in wanted if found.served.get(kind) == "missing"]


def _plurals(named: Iterable[Kind]) -> str:
    return ", ".join(kind.plural for kind in named)


def _schema(definition: Object) -> Mapping[str, Any]:
    versions = definition["spec"].get("versions") or ()
    for version in versions:
        if version.get("name") == VERSION:
            return (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return {}


def _few(names: Sequence[str]) -> str:
    """Return the first names, which others chose, and how many more there are."""
    return _first([str(UntrustedName(name)) for name in names])


def _first(words: Sequence[str]) -> str:
    return joined(words, MAX_NAMED)


_PARTS: Mapping[str, Callable[[HubInstallation], _Judged]] = {
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


def _kept(found: HubInstallation) -> _Judged:
    """Judge the PlacementOptimizations by the first that is not fine."""
    every = list(map(kept_optimization, found.optimizations))
    wrong = [item for item in every if not item.fine]
    if not wrong:
        return _ok(f"{counted(len(every), 'PlacementOptimization')} kept")
    first, more = wrong[0], f"; {len(wrong) - 1} more" if len(wrong) > 1 else ""
    message = (
        f"PlacementOptimization {first.name} in namespace {first.namespace}: {first.wrong}{more}"
    )
    fix = f"kubectl describe placementoptimization {first.name} -n {first.namespace}"
    unkept = any(
        (item.type, item.status) == (READY, "False") for item in first.status.conditions or ()
    )
    return _failed(message, fix) if unkept else _warning(message, fix)


_USE: Mapping[str, Callable[[HubInstallation], _Judged]] = {
    "managed clusters": _managed_clusters,
    "Kubernetes": _kubernetes_version,
    "scorers": _sources,
    "Prometheus": _prometheus,
    "rights": _rights,
}
"""The checks of how it is used, by name."""

"""Judges an installation: one check after the other, each failure with its fix."""

import re
from collections.abc import Callable, Iterable, Mapping

from dsf.api.untrusted_text import UntrustedName, UntrustedText, counted, joined, listed
from dsf.kube import kinds
from dsf.kube.errors import Forbidden, KubeError, Unauthorized
from optimizer.follow.hub_health.hub_installation import (
    KUBERNETES,
    OLDEST_KUBERNETES,
    HubInstallation,
    minor,
)
from optimizer.follow.hub_health.installed_parts import part_checks
from optimizer.follow.hub_health.judgement import (
    MAX_NAMED,
    HubCheck,
    Judgement,
    failed,
    ok,
    skipped,
    unread,
    warning,
)
from optimizer.follow.overview.findings.cluster_findings import cluster_findings
from optimizer.follow.overview.findings.scorer_findings import scorer_findings
from optimizer.follow.overview.score_overview import scorer_overview
from optimizer.follow.placement_status.hub_state import cluster_fault
from optimizer.snapshot.object_readers import name_of

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})")


def hub_checks(found: HubInstallation) -> tuple[HubCheck, ...]:
    """Return all checks of an installation."""
    use = (judge(found).on(name) for name, judge in _USE.items())
    return (*part_checks(found), *use)


def refused_access(error: KubeError) -> HubCheck:
    """Return the check of access to a hub that does not answer, or not to this user."""
    if isinstance(error, Unauthorized):
        fix = "log in again: the hub does not accept the credentials of the kubeconfig"
    elif isinstance(error, Forbidden):
        fix = "ask for the right to list managedclusters"
    else:
        fix = "name the hub's kubeconfig with --kubeconfig or $KUBECONFIG; kubectl must reach it"
    return failed(str(error), fix).on("access")


def missing_namespace(namespace: str) -> HubCheck:
    """Return the check of a namespace of workloads that the hub has not."""
    name = UntrustedName(namespace)
    fix = f"name another one with --namespace, or create it: kubectl create namespace {name}"
    return failed(f"the hub has no namespace {name}", fix).on("namespace")


def is_healthy(checks: Iterable[HubCheck]) -> bool:
    """Return whether no check failed."""
    return all(item.state != "failed" for item in checks)


def _kubernetes_version(found: HubInstallation) -> Judgement:
    """Judge what managed clusters report of their API servers."""
    tested = f"{minor(KUBERNETES)} is tested"
    versions = {
        name_of(item): str(version["kubernetes"])
        for item in found.clusters
        if (version := (item.get("status") or {}).get("version") or {}).get("kubernetes")
    }
    if not versions:
        return skipped(f"no managed cluster tells its version; {tested}")
    older = [
        name
        for name, version in versions.items()
        if (read := _VERSION.match(version)) and tuple(map(int, read.groups())) < OLDEST_KUBERNETES
    ]
    oldest = ".".join(map(str, OLDEST_KUBERNETES))
    if older:
        return warning(
            f"{listed(older, MAX_NAMED)} has {UntrustedName(versions[older[0]])}; {tested}, and the"
            f" charts ask for v{oldest}",
            "upgrade Kubernetes there: docs/reference/tested-versions.md",
        )
    told = listed(sorted(set(versions.values()))[:MAX_NAMED])
    return ok(f"{told} on {counted(len(versions), 'cluster')}; {tested}")


def _managed_clusters(found: HubInstallation) -> Judgement:
    if not_read := unread(found, kinds.MANAGED_CLUSTER):
        return not_read
    if not found.clusters:
        return warning("the hub has none", "join one: `clusteradm join`, then accept it")
    faults = {
        name_of(item): fault
        for item in found.clusters
        if (fault := cluster_fault(name_of(item), item))
    }
    if faults:
        first, count = cluster_findings(faults)[0], counted(len(found.clusters), "cluster")
        said = f"{len(faults)} of {count} can't be used: {first.reason}: {first.message}"
        return warning(said, first.next)
    return ok(f"{counted(len(found.clusters), 'cluster')}, all available")


def _sources(found: HubInstallation) -> Judgement:
    if not_read := unread(found, kinds.DYNAMIC_SCORER):
        return not_read
    scorers = [scorer_overview(item) for item in found.scorers]
    if found.source_failures:
        first = found.source_failures[0]
        return failed(
            f"{counted(len(found.source_failures), 'score')} can't be computed because a source"
            f" (Prometheus) does not answer as expected; first {UntrustedName(first.score)} of"
            f" {UntrustedName(first.cluster)}: {UntrustedName(first.reason)}:"
            f" {UntrustedText(first.message)}",
            f"look up {UntrustedName(first.reason)} in docs/how-to/troubleshooting-scorers.md",
        )
    for broken in scorer_findings(scorers):
        return failed(f"{broken.reason}: {broken.message}", broken.next)
    if not scorers:
        return skipped("there are none", "register one: `dsf scorer register`")
    return ok(f"each of {counted(len(scorers), 'scorer')} scores wherever it should")


def _prometheus(found: HubInstallation) -> Judgement:
    if found.prometheus is None:
        return skipped(
            f"agents read it from their clusters, and did so for"
            f" {counted(found.sources_read, 'score')}; --prometheus-url asks one from here"
        )
    if found.prometheus:
        return failed(
            found.prometheus,
            "check the URL and that this machine reaches it; `kubectl port-forward` opens a way",
        )
    return ok("it answers a query from here")


def _rights(found: HubInstallation) -> Judgement:
    lacking = [str(item) for item, held in found.rights.items() if not held]
    if not found.rights:
        return skipped("the hub does not review rights")
    if lacking:
        return warning(
            f"you may not {joined(lacking, MAX_NAMED)}",
            "ask for these rights if you are to plan and apply: docs/reference/optimizer-access.md",
        )
    where = listed(sorted({item.namespace for item in found.rights if item.namespace}))
    return ok(f"you may plan and apply in namespace {where}")


_USE: Mapping[str, Callable[[HubInstallation], Judgement]] = {
    "managed clusters": _managed_clusters,
    "Kubernetes": _kubernetes_version,
    "scorers": _sources,
    "Prometheus": _prometheus,
    "rights": _rights,
}
"""The checks of how it is used, by name."""

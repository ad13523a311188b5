"""The Pods of a request's workloads, checked against what their labels say."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring.quantity import format_quantity
from dsf.api.untrusted_text import UntrustedName, listed
from dsf.kube.port import Object
from optimizer.domain.fleet import Workload
from optimizer.domain.issue import Issue
from optimizer.domain.nodes import GPU_KIND, WHOLE_GPU, kind_and_device
from optimizer.snapshot.capacity.pod_templates import pods_of


def with_pods(
    workloads: Iterable[Workload], replica_sets: Mapping[str, Object]
) -> tuple[tuple[Workload, ...], tuple[Issue, ...]]:
    """Return workloads with their Pods, and what labels and Pods contradict each other in.

    Labels are the contract, and Pods are what starts: the larger amount counts. A workload whose
    Pods can't be read, or name several devices, is left out. With MIG strategy `single` a MIG
    device is requested as a GPU, so a workload that requests GPUs may run on any device.
    """
    found, issues = list[Workload](), list[Issue]()
    for workload in workloads:
        pods = pods_of(replica_sets[workload.name])
        if isinstance(pods, InvalidInput):
            issues.append(_issue("InvalidPodTemplate", workload, pods.message))
            continue
        amounts, devices = defaultdict[str, float](float), set[str]()
        for group in pods:
            for resource, amount in group.requests.items():
                kind, device = kind_and_device(resource)
                amounts[kind] += group.count * amount
                if kind != resource:
                    amounts[resource] += group.count * amount
                    devices.add(device)
        if len(devices) > 1:
            why = (
                f"its Pods request several GPU devices, {listed(sorted(devices))}, and a workload"
                " is planned for one: make a workload of each"
            )
            issues.append(_issue("SeveralDevices", workload, why))
            continue
        larger = {
            kind: amounts[kind]
            for kind, amount in ((workload.kind, workload.amount), *workload.requests)
            if amounts[kind] > amount
        }
        issues += _contradictions(workload, amounts)
        found.append(
            replace(
                workload,
                amount=larger.get(workload.kind, workload.amount),
                requests=tuple((kind, larger.get(kind, n)) for kind, n in workload.requests),
                pods=pods,
                devices=tuple(devices - {WHOLE_GPU}) if workload.kind == GPU_KIND else (),
            )
        )
    return tuple(found), tuple(issues)


def _contradictions(workload: Workload, amounts: Mapping[str, float]) -> Iterable[Issue]:
    """Yield what is stated and differs from what the Pods request of the same kind, if they do."""
    for kind, stated in ((workload.kind, workload.amount), *workload.requests):
        if amounts.get(kind) and amounts[kind] != stated:
            asked = format_quantity(amounts[kind])
            why = (
                f"{format_quantity(float(stated))} {UntrustedName(kind)} are stated, and its Pods"
                f" request {asked} on each cluster; the larger counts"
            )
            yield _issue("RequestContradicted", workload, why)


def _issue(reason: str, workload: Workload, why: str) -> Issue:
    return Issue(reason, f"workload {workload.name}: {why}", workload=workload.name)

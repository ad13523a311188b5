"""Adds to a summary what the scorer asks for of manifests: workloads and devices.

What can't be added whole is not added at all, and the scorer is not distributed: scores of some of
the workloads would look like scores of all of them.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from dsf.api.crd.scoring_params import AskedContext
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import RequestContext, ScoredWorkload, WorkloadTemplate
from dsf.api.untrusted_text import InvalidInput, counted, listed
from dsf.hub.snapshot.manifests import NamespaceManifests

CONTEXT_BYTES = 64 * 1024
"""Most bytes of the workloads and devices of one scorer, as JSON.

They are in the ManifestWork of every managed cluster, where escapes make them about 90 KiB. OCM
accepts 500 KiB, so four such scorers fit besides the other summaries.
"""

_ADVICE = (
    "start the hub controller with --manifest-namespace"
    " (hubSetting.resourceController.manifestNamespaces)"
)


def with_manifests(
    summary: ScorerSummary, manifests: Mapping[str, NamespaceManifests]
) -> ScorerSummary | InvalidInput:
    """Return the summary with the workloads and devices that its context asks for.

    `manifests` are by namespace, of those that the controller may read.
    """
    asked = summary.context
    if asked is None or not asked.from_manifests:
        return summary
    chosen = {name: manifests.get(name) for name in asked.namespaces or sorted(manifests)}
    denied = [name for name, each in chosen.items() if each is None]
    if denied or not chosen:
        which = f"namespace {listed(denied)}" if denied else "any namespace"
        message = f"the hub controller may not read manifests of {which}: {_ADVICE}"
        return InvalidInput("ManifestsNotAllowed", message)
    return _completed(summary, asked, {name: each for name, each in chosen.items() if each})


def _completed(
    summary: ScorerSummary, asked: AskedContext, chosen: Mapping[str, NamespaceManifests]
) -> ScorerSummary | InvalidInput:
    listed_workloads = [each.workloads for each in chosen.values()] if asked.workloads else []
    supplied = [each.devices for each in chosen.values()] if asked.devices else []
    if None in listed_workloads:
        return _unread("ManifestWorkReplicaSets", chosen)
    if None in supplied:
        return _unread("Policies", chosen)
    fields = frozenset(asked.workloads.fields if asked.workloads else ())
    workloads = [
        _reduced(each, fields) for each in chain.from_iterable(filter(None, listed_workloads))
    ]
    devices = list(chain.from_iterable(filter(None, supplied)))
    sent = RequestContext(workloads=workloads, devices=devices).model_dump_json(by_alias=True)
    size = len(sent.encode())
    if size > CONTEXT_BYTES:
        return InvalidInput(
            "ContextTooLarge",
            f"{counted(len(workloads), 'workload')} and {counted(len(devices), 'device')} take"
            f" {size} bytes, and {CONTEXT_BYTES} are allowed: ask for fewer"
            " context.workloads.fields or context.namespaces",
        )
    return summary.model_copy(
        update={"context_workloads": tuple(workloads), "context_devices": tuple(devices)}
    )


def _unread(kinds: str, chosen: Mapping[str, NamespaceManifests]) -> InvalidInput:
    return InvalidInput(
        "ManifestsUnread",
        f"the {kinds} of namespace {listed(chosen)} have not been listed yet: if this lasts, see"
        " whether the hub controller has the right to list them, and its log",
    )


def _reduced(workload: ScoredWorkload, fields: frozenset[str]) -> ScoredWorkload:
    """Return a workload with only the chosen fields of its templates."""
    templates = [
        WorkloadTemplate.model_validate(_chosen(each.model_dump(by_alias=True), fields))
        for each in (workload.templates if fields else ())
    ]
    return workload.model_copy(update={"templates": templates})


def _chosen(template: Mapping[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    kept = fields | {"kind", "name"}
    containers = [_chosen(each, fields) for each in template.get("containers", ())]
    return {key: template[key] for key in template if key in kept} | {"containers": containers}

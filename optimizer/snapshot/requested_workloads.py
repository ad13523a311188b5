"""The workloads that a request names, and where the others of their namespace stay."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from dsf.api.untrusted_text import UntrustedName
from dsf.kube.port import Object
from dsf.kube.selectors import valid_selector
from optimizer.domain.fleet import Workload
from optimizer.domain.issue import Issue
from optimizer.snapshot.annotations import read_annotations
from optimizer.snapshot.object_readers import name_of, placement_of, read_workload
from optimizer.snapshot.observation import (
    CurrentDecisions,
    Observation,
    RequestedHub,
    read_current_decisions,
)
from optimizer.wire.object_specs import WorkloadSpec
from optimizer.wire.request import OptimizeRequest


def requested_workloads(
    replica_sets: Iterable[Object], request: OptimizeRequest, running: CurrentDecisions
) -> tuple[tuple[Workload, ...], list[Issue]]:
    """Return the workloads that a request names, and issues for those that can't be read."""
    by_name = {name_of(obj): obj for obj in replica_sets}
    read = [read_workload(by_name[choice.name], choice) for choice in request.target_workloads]
    workloads = [
        replace(item, current=running.placements.get(item.placement, ()))
        for item in read
        if isinstance(item, Workload)
    ]
    shared = _shared_placements(workloads)
    alone = _with_labels_asked_for([item for item in workloads if item.placement not in shared])
    issues = [item for item in read if isinstance(item, Issue)]
    return alone, issues + [_shared(item) for item in workloads if item.placement in shared]


def places_of_others(
    workloads: Iterable[Workload], hub: RequestedHub
) -> Mapping[str, tuple[str, ...]]:
    """Return where each other workload of the namespace stays; empty: nowhere, or it is pruned."""
    observation, request, select, running = hub
    own = {item.name for item in workloads}
    others = [obj for obj in observation.workloads if name_of(obj) not in own]
    decided = read_current_decisions(observation, select, None).placements if others else {}
    pruned = running.placements if request.prune else {}
    places = {name: found for name, found in decided.items() if name not in pruned}
    return {name_of(obj): places.get(placement_of(obj), ()) for obj in others}


def with_others_places(
    workloads: tuple[Workload, ...], observation: Observation, others: Mapping[str, tuple[str, ...]]
) -> tuple[Workload, ...]:
    """Keep workloads apart from others, or with them, where these stay.

    They still name the others that do not exist, and those that they can't run together with.
    """
    if not others:
        return workloads
    apart = {item.name: dict.fromkeys(item.apart_from) for item in workloads}
    for obj in observation.workloads:
        stated = read_annotations(obj, WorkloadSpec) if others.get(name_of(obj)) else None
        for name in (stated.apart_from or ()) if isinstance(stated, WorkloadSpec) else ():
            if name in apart:
                apart[name][name_of(obj)] = None

    def placed(item: Workload) -> Workload:
        excluded = chain(
            item.excluded_clusters, *(others.get(name, ()) for name in apart[item.name])
        )
        fixed = [name for name in item.together_with if others.get(name)]
        common = set(item.clusters or chain(*others.values()))
        common.intersection_update(*(others[name] for name in fixed))
        return replace(
            item,
            excluded_clusters=tuple(dict.fromkeys(excluded)),
            apart_from=tuple(name for name in item.apart_from if name not in others),
            clusters=tuple(sorted(common)) if fixed and common else item.clusters,
            together_with=tuple(n for n in item.together_with if n not in fixed or not common),
        )

    return tuple(map(placed, workloads))


def _with_labels_asked_for(workloads: Sequence[Workload]) -> tuple[Workload, ...]:
    """Drop labels that no workload affinity mentions: a plan must not depend on them."""
    keys = selected_keys(text for item in workloads for text in item.workload_selectors)
    return tuple(
        replace(item, labels={key: text for key, text in item.labels.items() if key in keys})
        for item in workloads
    )


def selected_keys(texts: Iterable[str]) -> set[str]:
    """Return the keys of labels that selectors mention."""
    return {term.key for text in set(texts) for term in valid_selector(text).requirements}


def _shared_placements(workloads: Sequence[Workload]) -> set[str]:
    counts = Counter(workload.placement for workload in workloads)
    return {placement for placement, count in counts.items() if count > 1}


def _shared(workload: Workload) -> Issue:
    return Issue(
        reason="SharedPlacement",
        message=f"workload {workload.name}: another workload of the request refers to Placement"
        f" {UntrustedName(workload.placement)} too; give each one its own",
        workload=workload.name,
    )

"""The annotations of generated objects: which plan wrote them, what it was worth, who asked for it.

They are added to writes alone, so they are no difference that calls for a write. An object names
the plan that wrote it last, which may be older than the plan in force.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dsf.api.names import (
    PLAN_DIGEST_ANNOTATION,
    PLAN_OBJECTIVE_ANNOTATION,
    REQUEST_DIGEST_ANNOTATION,
)
from dsf.kube.changes import Change, Create, Delete, Patch
from dsf.kube.port import Object
from optimizer.plan.digest import digest_of_json
from optimizer.plan.plan import Plan
from optimizer.record.recorded_plan import recorded_request


def annotated(plan: Plan) -> Iterator[Change]:
    """Yield the changes of a plan, whose writes also say which plan they belong to."""
    annotations = {
        PLAN_DIGEST_ANNOTATION: plan.digest,
        PLAN_OBJECTIVE_ANNOTATION: f"{plan.solution.objective_value:.12g}",
        REQUEST_DIGEST_ANNOTATION: digest_of_json(recorded_request(plan)),
    }
    for change in plan.changes:
        match change:
            case Create():
                yield replace(change, obj=_with(change.obj, annotations))
            case Patch():
                yield replace(change, body=_with(change.body, annotations))
            case Delete():
                yield change


def _with(obj: Object, annotations: Mapping[str, str]) -> Object:
    metadata = obj.get("metadata") or {}
    more = {**(metadata.get("annotations") or {}), **annotations}
    return {**obj, "metadata": {**metadata, "annotations": more}}

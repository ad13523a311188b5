"""The annotations of generated objects: which plan wrote them, what it was worth, who asked for it.

They are added to writes alone, so they are no difference that calls for a write. An object names
the plan that wrote it last, which may be older than the plan in force.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from dsf.api import names
from dsf.kube.changes import Change, Create, Delete, Patch
from dsf.kube.port import Object
from optimizer.follow.record.recorded_plan import recorded_request
from optimizer.plan.basis import digest_of_json
from optimizer.plan.plan import Plan

PLAN_ANNOTATIONS = frozenset(
    {names.PLAN_DIGEST_ANNOTATION, names.PLAN_OBJECTIVE_ANNOTATION, names.REQUEST_DIGEST_ANNOTATION}
)
"""The annotations that tell by which plan an object was written."""


def annotated(plan: Plan) -> Iterator[Change]:
    """Yield the changes of a plan, whose writes also say which plan they belong to."""
    request_digest = digest_of_json(recorded_request(plan))
    yield from with_plan(plan.changes, plan.digest, plan.solution.objective_value, request_digest)


def with_plan(
    changes: Iterable[Change], digest: str, objective: float, request_digest: str
) -> Iterator[Change]:
    """Yield changes whose writes say which plan they belong to, by its digests and its value."""
    annotations = {
        names.PLAN_DIGEST_ANNOTATION: digest,
        names.PLAN_OBJECTIVE_ANNOTATION: f"{objective:.12g}",
        names.REQUEST_DIGEST_ANNOTATION: request_digest,
    }
    for change in changes:
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

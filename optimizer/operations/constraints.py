"""The operations about remembered constraints: list them, remember and forget some."""

from collections.abc import Mapping
from contextlib import suppress

from dsf.api.untrusted_text import listed
from dsf.kube.errors import Conflict, KubeError
from dsf.kube.kinds import MANAGED_CLUSTER, MANIFEST_WORK_REPLICA_SET
from dsf.kube.port import Kube, Object, find_object
from optimizer.follow.overview.constraints.constraint_fields import (
    ConstraintList,
    ConstraintsRequest,
)
from optimizer.follow.overview.constraints.remembered_constraints import (
    constraint_change,
    constraint_list,
)
from optimizer.follow.overview.constraints.statements import (
    CLUSTER,
    WORKLOAD,
    Statements,
    Subject,
    annotations,
    commands,
    stated,
)
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer, WriteAttempt
from optimizer.operations.access.rights import Rights, constraining_rights
from optimizer.operations.examples import CONSTRAINTS_EXAMPLES
from optimizer.operations.fleet import fleet_facts
from optimizer.operations.operation import Route, operation
from optimizer.snapshot.annotations import PREFIX
from optimizer.wire.request import Namespace
from optimizer.wire.request_problem import ProblemKind, RequestProblem

_KINDS = {WORKLOAD: MANIFEST_WORK_REPLICA_SET, CLUSTER: MANAGED_CLUSTER}


@operation(rights=None, route=Route("GET", "/constraints", "List the constraints that are kept"))
async def list_constraints(
    optimizer: AuthorizedOptimizer, namespace: Namespace = "default"
) -> ConstraintList | RequestProblem:
    """List what workloads of a namespace and managed clusters keep to, by their annotations."""
    facts = await fleet_facts(optimizer, namespace)
    if isinstance(facts, RequestProblem):
        return facts
    return constraint_list(facts, stated(facts))


@operation(
    rights=None,
    route=Route(
        "POST",
        "/constraints",
        "Keep constraints from now on, or no longer",
        (404, 409, 422),
        examples=CONSTRAINTS_EXAMPLES,
    ),
)
async def keep_constraints(
    optimizer: AuthorizedOptimizer, request: ConstraintsRequest
) -> ConstraintList | RequestProblem:
    """Annotate workloads and clusters, so that each plan keeps the constraints.

    Parts of names are enough. A drain ends at its time; all else stays until it is forgotten.
    Constraints that leave some workload no place for ever are refused with 422, also where
    workloads need more clusters than there are; the answer has a smallest set of them. A drain that
    leaves a workload no place at times is kept, and the answer says when.
    Nothing moves until something plans: POST /optimize, or a PlacementOptimization, which plans at
    once.
    """
    facts = await fleet_facts(optimizer, request.namespace)
    if isinstance(facts, RequestProblem):
        return facts
    change = constraint_change(facts, request.remember, request.forget)
    if isinstance(change, RequestProblem):
        return change
    if change.changes and not request.dry_run:
        written = await write_constraints(optimizer, facts, change.changes)
        if isinstance(written, RequestProblem):
            return written
    told = constraint_list(facts, change.after)
    shown = tuple(commands(change.changes, request.namespace))
    return told.model_copy(update={"commands": shown, "written": not request.dry_run})


def _annotating_rights(facts: FleetFacts, changes: Statements) -> Rights:
    return constraining_rights(facts.namespace, {_KINDS[item.kind] for item in changes})


@operation(
    rights=_annotating_rights, write=lambda facts: WriteAttempt("constrain", facts.namespace)
)
async def write_constraints(
    optimizer: AuthorizedOptimizer, facts: FleetFacts, changes: Statements
) -> tuple[str, ...] | RequestProblem:
    """Write the annotations of changes that were made of these facts; return whose they are."""
    done, service = list[str](), optimizer.service
    kube = (await optimizer.writer(facts.namespace)).kube or service.hub.noting(service.kube)
    for subject, fields in changes.items():
        name = f"{subject.kind} {subject.name}"
        try:
            problem = await _annotated(kube, facts, subject, annotations(fields, subject.kind))
        except KubeError as error:
            if not done:
                raise
            problem = f"{error}"
        if problem:
            wrote = f"; {listed(done)} was written" if done else ""
            return ProblemKind.CONSTRAINT_NOT_WRITTEN.because(
                f"{name}: {problem}; ask again{wrote}"
            )
        done.append(name)
    return tuple(done)


async def _annotated(
    kube: Kube, facts: FleetFacts, subject: Subject, texts: Mapping[str, str | None]
) -> str:
    """Write annotations of one object; return why not if it no longer states what was judged."""
    kind = _KINDS[subject.kind]
    place = facts.namespace if kind.namespaced else None
    seen = (facts.workloads if kind.namespaced else facts.hub.clusters)[subject.name]
    obj = await find_object(kube, kind, subject.name, place)
    if obj and _stated_texts(obj) == _stated_texts(seen):
        version = obj["metadata"]["resourceVersion"]  # what was judged, or a Conflict
        patch = {"metadata": {"resourceVersion": version, "annotations": dict(texts)}}
        with suppress(Conflict):
            await kube.patch(kind, subject.name, patch, place)
            return ""
    return "it has changed since it was read"


def _stated_texts(obj: Object) -> dict[str, str]:
    texts = obj["metadata"].get("annotations") or {}
    return {key: text for key, text in texts.items() if key.startswith(PREFIX)}

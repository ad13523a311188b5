"""The recorded plans of one optimization: which is in force, and which records come and go."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import Field

from dsf.api.crd.placement_plan import RolloutPhase
from dsf.api.names import DEFAULT_OPTIMIZATION
from dsf.api.untrusted_text import InvalidInput, UntrustedName, UntrustedText, listed
from dsf.kube.changes import Change, Delete, Patch
from dsf.kube.kinds import PLACEMENT_PLAN
from optimizer.follow.record.content import RecordContent, recorded_facts
from optimizer.follow.record.plan_status import NOTHING_WRITTEN, settled, superseded
from optimizer.follow.record.recorded_plan import RecordedPlan, recorded_request, restored_part
from optimizer.plan.basis import digest_of_json
from optimizer.plan.generated_objects import changes
from optimizer.plan.plan import Plan
from optimizer.snapshot.observation import Observation
from optimizer.wire.base import Name, ResultPart, Sentence
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import (
    FieldProblem,
    RequestProblem,
    invalid_request,
    validated_request,
)
from optimizer.wire.rollout import RolloutStatus

PlanHistory = Sequence[RecordedPlan]
"""Plans of one optimization, the newest first; after them those that somebody else wrote."""

LAST_REVISION = 2**31 - 1
"""No optimizer counts so far: a greater revision is somebody's who wants no plan after it."""

_ENDED: Mapping[RolloutPhase, str] = {
    "Cancelled": "its rollout was cancelled",
    "TurnedBack": "its rollout was turned back",
}
"""What has become of a rollout before its record says it."""


def history_of(records: Iterable[RecordedPlan], optimization: str) -> tuple[RecordedPlan, ...]:
    """Return the plans of an optimization, in the order of the records."""
    return tuple(item for item in records if item.spec.optimization == optimization)


def optimizations_of(records: Iterable[RecordedPlan]) -> set[str]:
    """Return the optimizations of records; those that others wrote count if there are no more."""
    every = tuple(records)
    own = [item for item in every if item.problem is None]
    return {item.spec.optimization for item in own or every}


def only_optimization(
    namespace: str, names: Iterable[str], field: str = "optimization"
) -> str | RequestProblem:
    """Return the only one of these optimizations, or `default` without any; refused if several."""
    first, *others = sorted({*names}) or [DEFAULT_OPTIMIZATION]
    if not others:
        return first
    found = (first, *others)
    several = f"namespace {namespace} has the optimizations {listed(found)}: name one"
    return invalid_request((FieldProblem(field, several, found),))


def meant_optimization(
    namespace: str, names: Collection[str], field: str = "optimization"
) -> str | RequestProblem:
    """Return which of these a question means: `default` if it is one of them, else the only one."""
    own = [name for name in names if name == DEFAULT_OPTIMIZATION]
    return only_optimization(namespace, own or names, field)


def next_revision(records: Sequence[RecordedPlan], optimization: str) -> int:
    """Return the revision after the newest one, whose name no record has.

    Only what the optimizer wrote counts, as far as that is known.
    """
    history, names = history_of(records, optimization), {item.name for item in records}
    known = (item.spec.revision for item in history if item.problem is None)
    revision = max((number for number in known if number < LAST_REVISION), default=0) + 1
    while f"{optimization}-{revision}" in names:
        revision += 1
    return revision


def is_recorded(plan: Plan, history: PlanHistory, observation: Observation) -> bool:
    """Return whether the newest record says all about a plan that changes nothing.

    It does not if an object of the plan says something else by now: the new record says that.
    """
    if plan.changes or not history or history[0].problem or history[0].phase != "Applied":
        return False
    newest, content = history[0].spec, history[0].content()
    if (newest.request_digest, newest.objects_digest) != (
        digest_of_json(recorded_request(plan)),
        digest_of_json(plan.manifests),
    ):
        return False
    if isinstance(content, InvalidInput) or not content.digests:
        return True
    return content.facts == recorded_facts(observation, plan.request, plan.solution.decision)


def in_force(history: PlanHistory) -> RecordedPlan | None:
    """Return the plan in force: the newest that was written as a whole and was not replaced.

    A plan that is rolled out replaces it with its last step. One that failed, or whose rollout was
    cancelled, has replaced a part of it. A record that the optimizer did not sign does not count.
    """
    applied = (item for item in history if item.phase == "Applied" and item.signed is not False)
    return next(applied, None)


def rolling_out(history: PlanHistory) -> RecordedPlan | None:
    """Return the plan whose steps are being made; None if there is none."""
    return next((item for item in history if item.is_rolling_out), None)


def in_force_text(history: PlanHistory, rollout: RolloutStatus | None) -> str:
    """Return which plan is in force, and which replaces it, or why none is; empty without plans.

    `rollout`: the newest one of the optimization.
    """
    current, coming = in_force(history), rolling_out(history)
    newest = next((item for item in history if item.signed is not False), None)
    if newest is None:
        return f"none: {what_became(history[0], history)}" if history else ""
    at = f"step {rollout.step} of {len(rollout.steps)}" if rollout else "its steps are not known"
    if current is None:
        if coming:
            return f"none: revision {coming.spec.revision} is being rolled out ({at})"
        return f"none: {what_became(newest, history)}"
    text = _revision(current)
    if coming:
        back = rollout is not None and rollout.turning_back
        done = "to which a rollout goes back from" if back else "being replaced by"
        return f"{text}, {done} revision {coming.spec.revision} ({at})"
    return text + _part_replaced(newest, history)


def _part_replaced(newest: RecordedPlan, history: PlanHistory) -> str:
    """Return what the newest plan, which is not in force, has replaced; empty if it is whole."""
    progress, became = newest.status.rollout, what_became(newest, history)
    not_begun = progress is not None and not max(progress.source, progress.target)
    if newest.phase not in ("Applying", "Failed") or not_begun:
        return ""
    if newest.latest and newest.latest.reason == NOTHING_WRITTEN:
        return f"; nothing of a later plan was written: {became}"
    return f", a part of which was replaced: {became}"


def _revision(record: RecordedPlan) -> str:
    spec = record.spec
    restored = f", which restored {restored_part(spec.rollback)}" if spec.rollback else ""
    return f"revision {spec.revision}{restored} (plan {spec.digest[:12]})"


def what_became(record: RecordedPlan, history: PlanHistory) -> str:
    """Return why a recorded plan is not in force, in words."""
    newest = history[0] if history else record
    shown = newest if record.phase == "Applied" else record
    said = shown.latest.message if shown.latest else "its writer ended before it was whole"
    if shown.phase == "Applying" and shown.status.rollout:
        said = _ENDED.get(shown.status.rollout.phase, said)
    return f"revision {shown.spec.revision} is {shown.phase}: {UntrustedText(said)}"


def interrupted(
    records: Iterable[RecordedPlan], observation: Observation, now: datetime
) -> Iterator[Patch]:
    """Yield the statuses of plans whose writer died. The caller holds the namespace's Lease."""
    for record in records:
        if record.phase == "Applying" and not record.is_rolling_out:
            content = None if record.problem else record.content()
            missing = (
                tuple(unwritten(content, record.spec.optimization, observation))
                if isinstance(content, RecordContent)
                else None
            )
            known = content.changes if isinstance(content, RecordContent) else ()
            planned = {(item.kind, item.name) for item in known}
            left = {(item.kind.kind, item.name) for item in missing or ()}
            yield settled(record, missing, now, nothing=bool(planned) and planned <= left)


def unwritten(
    content: RecordContent, optimization: str, observation: Observation
) -> Iterator[Change]:
    """Yield the changes that would make the generated objects those of a record.

    A plan without pruning keeps the objects of workloads that it does not name: they are not in its
    record, and no difference from it.
    """
    own = {(obj["kind"], obj["metadata"]["name"]) for obj in content.objects}
    for change in changes(content.objects, observation, optimization):
        if content.prunes or (change.kind.kind, change.name) in own:
            yield change


def replaced(by: RecordedPlan, history: PlanHistory, now: datetime) -> Iterator[Patch]:
    """Yield the statuses of the applied plans that a newly applied one replaced."""
    for record in history:
        if record.phase == "Applied" and record.name != by.name:
            yield superseded(record, by, now)


def forgotten(history: PlanHistory, limit: int) -> tuple[Delete, ...]:
    """Return the deletions of the oldest records, so that at most `limit` are kept.

    Those that the optimizer did not sign are counted apart: they push none of its own out.
    """
    own = [item for item in history if item.signed is not False]
    others = [item for item in history if item.signed is False]
    return tuple(
        Delete(PLACEMENT_PLAN, item.name, item.namespace, item.uid)
        for item in (*own[limit:], *others[limit:])
    )


_NOT_OF_A_QUESTION = ("limits", "missing_score", "gap", "mig", "tolerations", "cluster_sets")
"""Fields that shape a plan besides its objective; a question has those that it says itself."""


class ObjectiveInForce(ResultPart):
    """The objective in force, which a question takes that says none."""

    message: Sentence
    record: Name = Field(description="The PlacementPlan in force; empty: none is.")
    digest: Name = Field(description="The digest of that plan; or empty.")
    scores: dict[Name, float] = Field(description="Weight by score.")


class RequestInForce(NamedTuple):
    """What the plan in force was asked for; `record`: that plan.

    None: a PlacementOptimization asks for it, whether or not it has a plan by now.
    """

    record: RecordedPlan | None
    request: OptimizeRequest

    @property
    def whose(self) -> str:
        """Whose request it is, in words."""
        name = f"optimization {UntrustedName(self.request.optimization)}"
        if self.record is None:
            return name
        return f"the plan in force, revision {self.record.spec.revision} of {name}"

    @property
    def objective(self) -> dict[str, Any]:
        """The fields of POST /optimize that state its objective."""
        return self.request.model_dump(
            mode="json", by_alias=True, exclude_defaults=True, include={"preference", "objectives"}
        )

    def taken_objective(self, request: OptimizeRequest) -> ObjectiveInForce:
        """Return what the answer to a request says of the objective that it takes from here."""
        name, digest = (self.record.name, self.record.spec.digest) if self.record else ("", "")
        whose = f"PlacementOptimization {self.request.optimization}"
        plan = f" (PlacementPlan {UntrustedName(name)}, digest {UntrustedName(digest)})"
        scores = {score.key: score.weight for score in self.request.scored}
        weights = ", ".join(f"{UntrustedName(key)} x {value:g}" for key, value in scores.items())
        named = {name: getattr(self.request, name) for name in _NOT_OF_A_QUESTION}
        other = [name for name, value in named.items() if value and not getattr(request, name)]
        fields = OptimizeRequest.model_fields
        left = listed(fields[name].alias or name for name in other)
        return ObjectiveInForce(
            message="No objective was said, so it is that of"
            f" {'the plan in force' if name else whose}: {weights}{plan if name else ''}."
            + (f" Its {left} are not taken over: say them in `request`." if left else ""),
            record=name,
            digest=digest,
            scores=scores,
        )


def plans_in_force(
    records: Iterable[RecordedPlan], optimization: str = ""
) -> Iterator[RecordedPlan]:
    """Yield the plan in force of an optimization, or of each."""
    every = tuple(records)
    for name in dict.fromkeys(item.spec.optimization for item in every):
        record = in_force(history_of(every, name)) if optimization in ("", name) else None
        if record:
            yield record


def requests_in_force(
    records: Iterable[RecordedPlan], optimization: str = ""
) -> Iterator[RequestInForce | RequestProblem]:
    """Yield the plans in force of an optimization, or of all, or why one can't be read."""
    for record in plans_in_force(records, optimization):
        content = record.content()
        if isinstance(content, RecordContent):
            request = validated_request({**content.request, "dryRun": True})
            yield (
                request if isinstance(request, RequestProblem) else RequestInForce(record, request)
            )

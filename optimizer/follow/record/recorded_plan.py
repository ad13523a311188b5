"""Reads and writes PlacementPlans, and signs them: proof that the optimizer wrote one, and how far
its rollout is.

The signature is an HMAC-SHA256 (RFC 2104) with a key that the optimizer alone reads. It covers the
UID, which the API server gives: a copy of a signed record is not signed.
"""

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from pydantic import ValidationError

from dsf.api.crd.placement_plan import (
    LISTED_SCORE_VERSIONS,
    PlacementPlanSpec,
    PlacementPlanStatus,
    PlanPhase,
    RecordedChanges,
    RecordedProgress,
    RecordedRollback,
    RecordedScores,
    RecordedScoreVersion,
)
from dsf.api.crd.structural_schema import ConditionModel
from dsf.api.names import IN_PROGRESS, OPTIMIZATION_LABEL, ROLLOUT_LABEL
from dsf.api.untrusted_text import InvalidInput, UntrustedName
from dsf.kube.kinds import PLACEMENT_PLAN
from dsf.kube.port import Object
from optimizer.domain.solution import SOLVER_FAILED
from optimizer.follow.record.content import RecordContent, packed, recorded_facts, unpacked
from optimizer.plan.basis import digest_of_json
from optimizer.plan.generated_objects import describe
from optimizer.plan.plan import Plan
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.observation import Observation
from optimizer.wire.result import WorkloadMove, WorkloadPlace

SignedPart = Literal["spec", "progress"]

KEY_BYTES = 32
"""Size of a key: that of the hash."""


@dataclass(frozen=True, slots=True)
class RecordKey:
    """The key with which the optimizer signs records."""

    secret: bytes = field(repr=False)

    def signature(self, uid: str, part: SignedPart, digest: str) -> str:
        """Return the signature of a part of the object with this UID, by the part's digest."""
        return hmac.new(self.secret, f"{uid} {part} {digest}".encode(), "sha256").hexdigest()

    def signed(self, uid: str, part: SignedPart, digest: str, signature: str | None) -> bool:
        """Return whether that signature is the one of this key."""
        expected = self.signature(uid, part, digest)
        return bool(uid) and hmac.compare_digest(expected.encode(), (signature or "").encode())


NOT_SIGNED = InvalidInput(
    "RecordNotSigned",
    "it is not signed: the optimizer did not write it, its writer ended before it was whole, or"
    " an earlier version wrote it",
)
"""Why a record is not what the optimizer decided."""
_NOT_VERIFIED = InvalidInput(
    "RecordNotVerified",
    "whether the optimizer wrote it is not known, because the key that signs records can't be read:"
    " ask the optimizer's service, which has it",
)
"""Why nobody without the key can tell that a record is what the optimizer decided."""
EDITED = InvalidInput("RecordEdited", "someone edited it: its recordDigest does not match")

MAX_STEPS_CHARACTERS = 400_000
"""Packed steps of a rollout: with the content they stay below the 1.5 MiB of a request to etcd."""

_WRITTEN: frozenset[PlanPhase] = frozenset({"Applied", "Superseded", "RolledBack"})


@dataclass(frozen=True, slots=True)
class RecordedPlan:
    """A PlacementPlan of the hub.

    `intact`: nobody has changed the record by hand. `signed`: the optimizer wrote it; None if its
    key is not known here.
    """

    name: str
    namespace: str
    uid: str
    created: datetime | None
    spec: PlacementPlanSpec
    status: PlacementPlanStatus
    intact: bool
    signed: bool | None = None

    @property
    def problem(self) -> InvalidInput | None:
        """Why it may not be what the optimizer decided."""
        if not self.intact:
            return EDITED
        return NOT_SIGNED if self.signed is False else None

    @property
    def phase(self) -> PlanPhase:
        """The phase; a record without one is of a writer that died after its first write."""
        return self.status.phase or "Applying"

    @property
    def is_rolling_out(self) -> bool:
        """Whether its steps are still being made."""
        progress = self.status.rollout
        return (
            self.spec.rollout is not None
            and self.signed is not False
            and (progress is None or progress.phase == "Progressing")
        )

    @property
    def solver_failure(self) -> ConditionModel | None:
        """The condition that says why the solver of the plan failed; None if it did not."""
        return next(
            (
                item
                for item in self.status.conditions or ()
                if (item.type, item.status) == (SOLVER_FAILED, "True")
            ),
            None,
        )

    @property
    def was_written(self) -> bool:
        """Whether every object of the plan was written."""
        return self.phase in _WRITTEN

    @property
    def latest(self) -> ConditionModel | None:
        """The condition that changed last: what became of the plan."""
        every = reversed(self.status.conditions or ())
        conditions = (item for item in every if item.type != SOLVER_FAILED)
        return max(conditions, key=lambda item: item.last_transition_time, default=None)

    def content(self) -> RecordContent | InvalidInput:
        """Unpack what the plan decided and generated, unless the record was edited by hand."""
        if not self.intact:
            return EDITED
        return unpacked(self.spec.content, RecordContent)

    def verified_content(self) -> RecordContent | InvalidInput:
        """Return the content if the optimizer signed the record; else why it is not used."""
        return self.problem or (_NOT_VERIFIED if self.signed is None else self.content())


def restored_part(rollback: RecordedRollback) -> str:
    """Return what a rollback restored, in words."""
    revision = f"revision {rollback.to_revision}"
    only = rollback.workload and f"workload {UntrustedName(rollback.workload)} of "
    return f"{only or ''}{revision}"


def record_of(
    plan: Plan, revision: int, observation: Observation, requested_by: str = ""
) -> Object:
    """Return the PlacementPlan of a plan that is about to be written on the hub as observed."""
    request = recorded_request(plan)
    content = RecordContent(
        request=request,
        policies=plan.solution.decision.policies,
        assignments=plan.solution.decision.assignments,
        objects=plan.manifests,
        changes=tuple(map(describe, plan.changes)),
        assumptions=plan.assumptions,
        unplaced=plan.unplaced,
        **recorded_facts(observation, plan.request, plan.solution.decision)._asdict(),
    )
    spec = PlacementPlanSpec(
        optimization=plan.optimization,
        revision=revision,
        digest=plan.digest,
        request_digest=digest_of_json(request),
        objects_digest=digest_of_json(plan.manifests),
        requested_by=requested_by or None,
        objective=plan.solution.objective_value,
        bound=plan.solution.bound,
        gap=plan.solution.gap,
        scores=_scores(plan.score_versions),
        changes=_counted(content, plan.moves),
        rollback=plan.rollback,
        content=packed(content),
        rollout=packed(plan.rollout, MAX_STEPS_CHARACTERS) if plan.rollout else None,
        record_digest="",
    ).model_dump(by_alias=True, exclude_none=True)
    return {
        "apiVersion": PLACEMENT_PLAN.api_version,
        "kind": PLACEMENT_PLAN.kind,
        "metadata": {
            "name": f"{plan.optimization}-{revision}",
            "namespace": plan.request.namespace,
            "labels": {
                OPTIMIZATION_LABEL: plan.optimization,
                **({ROLLOUT_LABEL: IN_PROGRESS} if plan.rollout else {}),
            },
        },
        "spec": {**spec, "recordDigest": record_digest(spec)},
    }


def recorded_request(plan: Plan) -> dict[str, Any]:
    """Return the request of a plan as it is kept: the fields that it states, without dryRun."""
    return plan.request.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude={"dry_run"}
    )


def record_digest(spec: Mapping[str, Any]) -> str:
    """Return the SHA-256 of all fields of a spec except this digest itself.

    Numbers count by value: the API server stores 115.0 as 115.
    """
    return digest_of_json(_by_value({k: v for k, v in spec.items() if k != "recordDigest"}))


def progress_digest(progress: RecordedProgress) -> str:
    """Return the SHA-256 of all fields of a progress except its signature and the times of steps.

    Nothing follows from those times, and an earlier version of the CRD drops them.
    """
    unsigned = {"signature", "step_times"}
    return digest_of_json(
        progress.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=unsigned)
    )


def signed_progress(progress: RecordedProgress, uid: str, key: RecordKey) -> RecordedProgress:
    """Return a progress with the signature of the optimizer."""
    signature = key.signature(uid, "progress", progress_digest(progress))
    return progress.model_copy(update={"signature": signature})


def read_records(
    objects: Iterable[Object], key: RecordKey | None = None
) -> tuple[RecordedPlan, ...]:
    """Return the plans of PlacementPlans, the newest first; with a key, whether it signed them.

    Those that may not be what the optimizer decided come last: nobody's record is newer than ours.
    An object that another version of the CRD allowed, and that this one can't read, is left out.
    """
    found = filter(None, (_read(obj, key) for obj in objects))
    return tuple(sorted(found, key=_order))


def _order(record: RecordedPlan) -> tuple[str, bool, int]:
    return record.spec.optimization, record.problem is not None, -record.spec.revision


def _read(obj: Object, key: RecordKey | None) -> RecordedPlan | None:
    try:
        spec = PlacementPlanSpec.model_validate(obj["spec"])
        status = PlacementPlanStatus.model_validate(obj.get("status") or {})
    except ValidationError:
        return None
    metadata, digest = obj["metadata"], record_digest(obj["spec"])
    created, uid = metadata.get("creationTimestamp"), str(metadata.get("uid") or "")
    return RecordedPlan(
        name=name_of(obj),
        namespace=str(metadata.get("namespace") or ""),
        uid=uid,
        created=datetime.fromisoformat(created) if created else None,
        spec=spec,
        status=status,
        intact=digest == spec.record_digest,
        signed=key.signed(uid, "spec", digest, status.signature) if key else None,
    )


def _scores(versions: Mapping[tuple[str, str], str]) -> RecordedScores:
    every = [(*key, version) for key, version in sorted(versions.items())]
    return RecordedScores(
        count=len(every),
        digest=digest_of_json(every),
        versions=[
            RecordedScoreVersion(cluster=cluster, name=name, resource_version=version)
            for cluster, name, version in every[:LISTED_SCORE_VERSIONS]
        ],
    )


def _counted(content: RecordContent, moves: Iterable[WorkloadMove]) -> RecordedChanges:
    actions = [change.action for change in content.changes]
    places = [(_places(item.before), _places(item.after)) for item in moves]
    return RecordedChanges(
        create=actions.count("create"),
        patch=actions.count("patch"),
        delete=actions.count("delete"),
        moves=sum(len(before - after) for before, after in places),
        first_placements=sum(not before and bool(after) for before, after in places),
        unplaced=len(content.unplaced),
    )


def _places(found: Iterable[WorkloadPlace]) -> frozenset[tuple[str, str]]:
    return frozenset((place.cluster, place.device) for place in found)


def _by_value(part: Any) -> Any:
    match part:
        case dict():
            return {key: _by_value(value) for key, value in part.items()}
        case list():
            return [_by_value(value) for value in part]
        case float() if part.is_integer():
            return int(part)
        case _:
            return part

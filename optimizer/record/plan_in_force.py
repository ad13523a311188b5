"""The plan in force: its request, and the objective that a question takes which says none."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from dsf.api.untrusted_text import UntrustedName, listed
from optimizer.record.content import RecordContent
from optimizer.record.plan_history import history_of, in_force
from optimizer.record.recorded_plan import RecordedPlan
from optimizer.wire.base import Name, ResultPart, Sentence
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem, validated_request

_NOT_OF_A_QUESTION = ("limits", "missing_score", "gap", "mig", "tolerations", "cluster_sets")
"""Fields that shape a plan besides its objective; a question has those that it says itself."""


class ObjectiveInForce(ResultPart):
    """The objective of the plan in force, which a question takes that says none."""

    message: Sentence
    record: Annotated[Name, Field(description="The PlacementPlan in force.")]
    digest: Annotated[Name, Field(description="The digest of that plan.")]
    scores: Annotated[dict[Name, float], Field(description="Weight by score.")]


class PlanInForce(NamedTuple):
    """A plan that was applied and not replaced, and what it was asked for."""

    record: RecordedPlan
    request: OptimizeRequest

    @property
    def objective(self) -> dict[str, Any]:
        """The fields of POST /optimize that state its objective."""
        return self.request.model_dump(
            mode="json",
            by_alias=True,
            exclude_defaults=True,
            include={"preference", "objectives"},
        )

    def taken_objective(self, request: OptimizeRequest) -> ObjectiveInForce:
        """Return what the answer to a request says of the objective that it takes from here."""
        spec = self.record.spec
        scores = {score.key: score.weight for score in self.request.scored}
        weights = ", ".join(f"{UntrustedName(key)} x {value:g}" for key, value in scores.items())
        named = {name: getattr(self.request, name) for name in _NOT_OF_A_QUESTION}
        other = [name for name, value in named.items() if value and not getattr(request, name)]
        fields = OptimizeRequest.model_fields
        left = listed(fields[name].alias or name for name in other)
        return ObjectiveInForce(
            message=f"No objective was said, so it is that of the plan in force: {weights}"
            f" (PlacementPlan {UntrustedName(self.record.name)},"
            f" digest {UntrustedName(spec.digest)})."
            + (f" Its {left} are not taken over: say them in `request`." if left else ""),
            record=self.record.name,
            digest=spec.digest,
            scores=scores,
        )


def requests_in_force(
    records: Iterable[RecordedPlan], optimization: str = ""
) -> Iterator[PlanInForce | RequestProblem]:
    """Yield the plans in force of an optimization, or of all, or why one can't be read."""
    every = tuple(records)
    for name in dict.fromkeys(item.spec.optimization for item in every):
        record = in_force(history_of(every, name)) if optimization in ("", name) else None
        content = record.content() if record else None
        if record and isinstance(content, RecordContent):
            request = validated_request({**content.request, "dryRun": True})
            yield request if isinstance(request, RequestProblem) else PlanInForce(record, request)

"""The plan: a decision, the facts that it depends on, and the changes that it implies."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import yaml

from dsf.api.crd.placement_plan import RecordedRollback
from dsf.api.untrusted_text import joined, quoted
from dsf.kube.changes import Change
from dsf.kube.port import Object
from optimizer.candidates.layout_bounds import bounded_over_all_layouts, omitted_layout_issues
from optimizer.domain.arrays import members_by_key
from optimizer.domain.fleet import Fleet, Selector
from optimizer.domain.issue import Issue
from optimizer.domain.settings import OptimizerSettings
from optimizer.domain.solution import (
    Decision,
    PolicyEnforcement,
    ProcessFailure,
    Solution,
    solver_issues,
)
from optimizer.model.formulate import staying
from optimizer.model.problem import Problem
from optimizer.model.wire_values import placed
from optimizer.plan.basis import Basis, assumptions, digest_of
from optimizer.plan.generated_objects import after_changes, changes, describe, overwriting
from optimizer.plan.gpu_changes import NO_GPUS, PlannedGpus, planned_gpus
from optimizer.plan.manifests import manifests, workload_placement
from optimizer.plan.nodes_since import Enforced, enforced_candidates
from optimizer.plan.uncovered_others import as_result as uncovered_as_result
from optimizer.plan.uncovered_others import issues as uncovering_issues
from optimizer.plan.uncovered_others import losing_claims, uncovered_others
from optimizer.plan.unplaced_reasons import unplaced
from optimizer.plan.workload_moves import (
    enforcement_changes,
    removal_issues,
    removals,
    staying_issues,
    workload_moves,
)
from optimizer.snapshot.fleet_reader import MAX_ISSUES
from optimizer.snapshot.object_readers import cluster_selectors
from optimizer.snapshot.observation import (
    Observation,
    kept_objects,
    left_over,
    own_decisions,
    unselected_works,
)
from optimizer.snapshot.ownership.others import Dependents
from optimizer.wire.explanation import Explanation, Placed
from optimizer.wire.plan_record import RolloutPlan
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import (
    FieldProblem,
    ProblemKind,
    RequestProblem,
    optimizer_forbidden,
)
from optimizer.wire.result import (
    Applied,
    EnforcementChange,
    FailedChange,
    OptimizeResult,
    PriorityValue,
    Removal,
    Unplaced,
    WorkloadMove,
)

_OTHERS_STAY = "the writes that the hub accepted stay"
MAX_NAMED = 5
"""Parts of others, and differences, that the sentence of a refusal names."""


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """A decision that can be shown, approved by its digest, and applied as it is.

    `digest` is the SHA-256 of the facts used, the decision and the changes; `basis`: the
    facts that must not change between planning and applying. `assumptions`: what each enforced
    policy supplies and each assigned workload requests. `score_versions`: the resource version of
    each AddOnPlacementScore that was read, by cluster and name; `oldest_score`: when the first of
    them was written, if the hub says so. `rollback`: what it restores.
    `rollout`: its steps, if it is not written all at once. `moves`: what becomes of each workload;
    `enforcement_changes`: the clusters whose enforced policies change. `explanation_failure`: why
    the explanation lacks parts, if neither time nor size is the cause. `uncovers`: by cluster, the
    workloads of others that depend on policies which change. `unselected`: the ManifestWorks that
    no Placement selected any more when the plan was made. `enforced`: the candidates that it
    enforces on clusters whose nodes are known. `gpus`: those of the clusters that it changes.
    """

    digest: str
    basis: Basis
    request: OptimizeRequest
    solution: Solution
    policies: Mapping[str, str]
    placements: tuple[Placed, ...]
    unplaced: tuple[Unplaced, ...]
    issues: tuple[Issue, ...]
    manifests: tuple[Object, ...]
    changes: tuple[Change, ...]
    removals: tuple[Removal, ...] = ()
    explanation: Explanation | None = None
    assumptions: Mapping[str, str] = field(default_factory=dict)
    score_versions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    oldest_score: datetime | None = None
    rollback: RecordedRollback | None = None
    rollout: RolloutPlan | None = None
    explanation_failure: ProcessFailure | None = None
    moves: tuple[WorkloadMove, ...] = ()
    enforcement_changes: tuple[EnforcementChange, ...] = ()
    uncovers: Dependents = field(default_factory=dict)
    unselected: Mapping[tuple[str, str, str], Object] = field(default_factory=dict)
    enforced: Enforced = field(default_factory=dict)
    gpus: PlannedGpus = NO_GPUS

    def __repr__(self) -> str:
        """Return the digest alone, because asyncio makes this text of a task's result."""
        return f"Plan({self.digest})"

    @property
    def optimization(self) -> str:
        """The name of the optimization that the plan belongs to."""
        return self.request.optimization

    @property
    def changed_clusters(self) -> frozenset[str]:
        """The clusters that the decision uses, if it implies changes."""
        decision = self.solution.decision
        clusters = {item.cluster for item in decision.policies}
        clusters |= {item.cluster for item in decision.assignments}
        return frozenset(clusters if self.changes else ())

    @property
    def failures(self) -> tuple[str, ...]:
        """What failed while the plan was made or explained, in sentences; else empty."""
        solver = tuple(item.message for item in solver_issues(self.solution))
        failed = self.explanation_failure
        return (*solver, f"the explanation failed: {failed.message}") if failed else solver

    @property
    def output_yaml(self) -> str:
        """The generated objects as a YAML stream."""
        return yaml.safe_dump_all(self.manifests, sort_keys=False) if self.manifests else ""


def plan(
    observation: Observation,
    request: OptimizeRequest,
    *,
    basis: Basis,
    fleet: Fleet,
    problem: Problem,
    solution: Solution,
    settings: OptimizerSettings,
    recorded: Iterable[Unplaced] = (),
) -> Plan | RequestProblem:
    """Return the plan of a solution; a decision without placements implies no changes.

    `recorded`: the workloads without a place in the plan that it restores, with the reasons.

    A workload without a place that runs although its Placement is gone gets one that selects
    nothing: OCM would leave it where it is otherwise, on what the plan counts as free.
    """
    decided = solution.decision
    objects = manifests(fleet, decided, claim_name=settings.claim_name, mig=settings.mig)
    left = left_over(observation, request)
    if objects:
        objects += tuple(_stopping(fleet, decided, left, settings.claim_name))
    refused = overwriting(objects, observation, request)
    if refused:
        return refused
    running = own_decisions(observation, request, settings)
    kept = kept_objects(observation, request, running)
    implied = changes(objects, observation, request.optimization, kept) if objects else ()
    written = own_decisions(after_changes(observation, implied), request, settings)
    uncovering = losing_claims(observation, request, settings, written.policies, implied)
    others = uncovered_others(observation, request, settings, uncovering)
    removed = tuple(removals(implied, observation, request, running))
    wide = bounded_over_all_layouts(fleet, solution)
    more = (wide.bound or 0.0) - (solution.bound or 0.0)
    reported = _net_of_stays(wide, staying(fleet))
    left_out = unplaced(request, fleet, problem, solution, recorded)
    moves = workload_moves(
        fleet,
        decided,
        before=running,
        after=written,
        uncovering=uncovering,
        restarted=[item.name for item in fleet.workloads if objects and item.placement in left],
        unplaced=left_out,
        removed=removed,
    )
    issues = (
        *solver_issues(reported),
        *removal_issues(removed),
        *uncovering_issues(others),
        *staying_issues(moves if not objects else (), observation),
        *fleet.issues,
        *omitted_layout_issues(fleet.omitted_layouts, more),
    )
    return Plan(
        digest=digest_of(fleet, objects, implied, request.rollout, others),
        basis=basis,
        request=request,
        solution=reported,
        policies=_policies(solution.decision.policies),
        placements=placed(problem, solution),
        unplaced=left_out,
        issues=tuple(_first(issues, fleet.unlisted_issues)),
        manifests=objects,
        changes=implied,
        assumptions=assumptions(fleet, solution.decision),
        removals=removed,
        moves=moves,
        enforcement_changes=enforcement_changes(running.policies, written.policies),
        gpus=planned_gpus(observation, request, fleet, moves, running.policies, written.policies),
        uncovers=others,
        unselected=dict(unselected_works(observation, _selectors(observation, settings))),
        enforced=enforced_candidates(fleet, solution.decision),
    )


def result(made: Plan, applied: Applied | None) -> OptimizeResult:
    """Return the answer of POST /optimize; `applied` is None for a dry run."""
    solution = made.solution
    return OptimizeResult(
        status=solution.status,
        objective_value=solution.objective_value,
        output_yaml=made.output_yaml,
        digest=made.digest,
        bound=solution.bound,
        gap=solution.gap,
        seconds=solution.seconds,
        solver=solution.solver,
        priorities=tuple(
            PriorityValue(priority=item.priority, value=item.value, bound=item.bound)
            for item in solution.tiers
        ),
        policies=dict(made.policies),
        placements=made.placements,
        unplaced=made.unplaced,
        gaps=(*made.issues, *applied.issues) if applied else made.issues,
        removals=made.removals,
        moves=made.moves,
        enforcement_changes=made.enforcement_changes,
        layouts=made.gpus.layouts,
        gpus_after=made.gpus.clusters,
        uncovers_others=uncovered_as_result(made.uncovers),
        changes=tuple(describe(change) for change in made.changes),
        applied=applied is not None,
        record=applied.record if applied else "",
        rollout_steps=made.rollout.actions if made.rollout else (),
        explanation=made.explanation,
    )


def refused_writes(
    failed: Sequence[FailedChange], *, as_caller: bool = False
) -> RequestProblem | None:
    """Return a problem that names every write that the hub refused; None without any.

    A right that is missing is the caller's if writes are made `as_caller`, else the optimizer's.
    """
    errors = tuple(
        FieldProblem(f"{change.kind} {change.namespace}/{change.name}", change.message)
        for change in failed
    )
    if not errors:
        return None
    rights = dict.fromkeys(item.missing_right for item in failed if item.missing_right)
    missing = "; ".join(f"{right}" for right in rights)
    if missing and as_caller:
        return ProblemKind.CALLER_LACKS_RIGHT.because(
            f"the caller may not: {missing}; {_OTHERS_STAY}", errors
        )
    if missing:
        return optimizer_forbidden(missing, _OTHERS_STAY, errors)
    return ProblemKind.HUB_REFUSED.because(
        joined(
            (f"{error.field}: {quoted(error.message)}" for error in errors),
            MAX_NAMED,
            separator="; ",
        ),
        errors,
    )


def _first(issues: tuple[Issue, ...], unlisted: int) -> Iterator[Issue]:
    """Yield the first MAX_ISSUES issues, then one that counts the others."""
    yield from issues[:MAX_ISSUES]
    more = max(0, len(issues) - MAX_ISSUES) + unlisted
    if more:
        yield Issue(reason="Truncated", message=f"{more} more issues are not shown")


def _selectors(observation: Observation, settings: OptimizerSettings) -> Mapping[str, Selector]:
    return cluster_selectors(observation.managed_clusters, settings.cluster_label_key)


def _stopping(
    fleet: Fleet, decision: Decision, left: Container[str], claim_name: str
) -> Iterator[Object]:
    """Yield Placements that select nothing, of workloads that run and have no place."""
    placed = {item.workload for item in decision.assignments}
    for item in fleet.workloads:
        if item.placement in left and item.name not in placed:
            yield workload_placement(fleet, item, (), (), claim_name=claim_name)


def _net_of_stays(solution: Solution, stays: Mapping[int, float]) -> Solution:
    """Return a solution whose values subtract move costs, instead of adding bonuses for staying."""
    saved = sum(stays.values())
    return replace(
        solution,
        objective_value=solution.objective_value - saved,
        bound=None if solution.bound is None else solution.bound - saved,
        tiers=tuple(
            item._replace(
                value=item.value - stays.get(item.priority, 0.0),
                bound=item.bound - stays.get(item.priority, 0.0),
            )
            for item in solution.tiers
        ),
    )


def _policies(choices: Iterable[PolicyEnforcement]) -> dict[str, str]:
    """Return the policies of each cluster; those of several pools are joined by commas."""
    by_cluster = members_by_key((item.cluster, item.policy) for item in choices)
    return {cluster: ", ".join(policies) for cluster, policies in by_cluster.items()}

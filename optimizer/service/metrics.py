"""The metrics of an optimizer. No label has a name that a caller or an object could choose.

`dynamic_scoring_optimizer_fleet_clusters`, `..._fleet_workloads`, `..._unplaced_workloads` and
`..._oldest_score_age_seconds` describe the latest plan of this process, whichever optimization it
was for; what-if plans, which pretend objects, are left out of them.
"""

from collections import Counter as CountOf
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from optimizer.domain.solution import FailureCause
from optimizer.follow.rollout.rollout_record import PROGRESS_REASONS
from optimizer.plan.plan import Plan
from optimizer.wire.keeping import MoveReason
from optimizer.wire.placement_status import PlacementStatus
from optimizer.wire.request_problem import CONFLICT, TOO_MANY_REQUESTS, RequestProblem
from optimizer.wire.result import Applied, ResetResult

_PREFIX = "dynamic_scoring_optimizer_"

_SECONDS = (0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 120, 300)
"""Buckets up to ten times the default time limit of the solver, for plans of any configuration."""
_GAPS = (0.0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Buckets of optimality gaps; the first one has the plans that are proven best."""

_UNKNOWN = float("nan")

_WRITE_RESULTS = ("Applied", "Begun", "Incomplete", "Conflict", "Refused", "Failed")
_SOLVE_RESULTS = ("Optimal", "Feasible", "Infeasible", "NotSolved", "Refused", "Busy", "Failed")


class OptimizerMetrics:
    """Counts what one optimizer does, in a registry of its own or in a shared one."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._solves = self._counter(
            "solves",
            "Requests for a plan by result: the status of the solution; Refused: the request can't"
            " be planned; Busy: too many at once; Failed: an error, or the caller left.",
            "result",
            _SOLVE_RESULTS,
        )
        self._solver_failures = self._counter(
            "solver_failures",
            "Plans whose solver failed, by cause: NotStarted; Killed: by the kernel or by hand;"
            " MemoryLimit: see --memory-limit; Crashed; CallFailed: calls of HiGHS or CBC. Such a"
            " plan is the best that was known.",
            "cause",
            get_args(FailureCause),
        )
        self._explanation_failures = self._counter(
            "explanation_failures",
            "Explanations whose process failed, by cause as for solver_failures. Such an"
            " explanation lacks parts.",
            "cause",
            get_args(FailureCause),
        )
        self._plan_seconds = self._histogram(
            "plan_seconds", "Seconds from the request to the plan.", _SECONDS
        )
        self._solve_seconds = self._histogram(
            "solve_seconds", "Seconds that building and solving the model took.", _SECONDS
        )
        self._gap = self._histogram(
            "gap_ratio", "Optimality gap of plans: (bound - objective) / |objective|.", _GAPS
        )
        self._clusters = self._gauge("fleet_clusters", "Clusters of the latest plan.")
        self._workloads = self._gauge("fleet_workloads", "Workloads of the latest plan.")
        self._unplaced = self._gauge(
            "unplaced_workloads",
            "Workloads without all of their replicas in the latest plan, by reason.",
            "reason",
        )
        self._age = self._gauge(
            "oldest_score_age_seconds",
            "Age of the oldest AddOnPlacementScore that the latest plan used, when it was made:"
            " since the last write of its status. An agent writes scores that do not change when"
            " half of their validity is spent. NaN: no plan yet, or the hub does not say.",
        )
        self._age.set(_UNKNOWN)
        self._applies = self._counter(
            "applies",
            "Plans to apply by result: Applied; Begun: a rollout; Incomplete: the hub refused"
            " writes; Conflict: see conflicts; Refused: a right is missing, or the caller left;"
            " Failed: an error.",
            "result",
            _WRITE_RESULTS,
        )
        self._conflicts = self._counter(
            "conflicts",
            "Writes of plans and resets that objects on the hub or another writer prevented.",
            "reason",
        )
        self._rollouts = self._gauge(
            "rollouts",
            "Rollouts in progress by the reason of their condition Progressing.",
            "reason",
        )
        self._ended = self._counter(
            "rollouts_ended",
            "Rollouts that this process has seen to their end, by phase.",
            "phase",
            ("Complete", "TurnedBack", "Cancelled"),
        )
        self._pods = self._gauge(
            "workload_pods",
            "Pods of the plans in force, as far as somebody reports them: ready, pending, or"
            " not_ready, which may not exist yet.",
            "state",
        )
        self._looks = self._counter(
            "optimization_looks",
            "Looks at PlacementOptimizations by what came of them: Applied, UpToDate, or the reason"
            " of the condition that says why nothing was applied.",
            "reason",
            ("Applied", "UpToDate"),
        )
        self._optimizations = self._gauge(
            "optimizations",
            "PlacementOptimizations that this process keeps, by what came of the last look.",
            "reason",
        )
        self._looked_at = self._gauge(
            "optimizations_looked_at_timestamp_seconds",
            "Unix time at which the last look at a PlacementOptimization began; that of the one"
            " which was looked at longest ago. NaN: this process keeps none.",
        )
        self._looked_at.set(_UNKNOWN)
        self._not_kept = self._gauge(
            "optimizations_not_kept",
            "Those of them that can't be kept, planned or written; their conditions say why.",
        )
        self._moves = self._counter(
            "optimization_moves",
            "Replicas that plans of PlacementOptimizations moved, by reason.",
            "reason",
            get_args(MoveReason),
        )

    def planned(self, plan: Plan | RequestProblem, seconds: float) -> None:
        """Count a request for a plan, and how long it took."""
        if isinstance(plan, RequestProblem):
            busy = plan.status == TOO_MANY_REQUESTS
            self._solves.labels("Busy" if busy else "Refused").inc()
            return
        self._solves.labels(plan.solution.status).inc()
        self._plan_seconds.observe(seconds)
        self._solve_seconds.observe(plan.solution.seconds)
        if plan.solution.failure:
            self._solver_failures.labels(plan.solution.failure.cause).inc()
        if plan.explanation_failure:
            self._explanation_failures.labels(plan.explanation_failure.cause).inc()
        if plan.solution.gap is not None:
            self._gap.observe(plan.solution.gap)

    def planning_failed(self) -> None:
        """Count a request for a plan that ended by an error, or whose caller left."""
        self._solves.labels("Failed").inc()

    def latest(self, plan: Plan, now: datetime) -> None:
        """Replace what describes the latest plan."""
        self._clusters.set(len(plan.request.cluster_names))
        self._workloads.set(len(tuple(plan.request.target_workloads)))
        self._unplaced.clear()
        for reason, count in CountOf(str(item.reason) for item in plan.unplaced).items():
            self._unplaced.labels(reason).set(count)
        self._age.set(_UNKNOWN)
        if plan.oldest_score:
            self._age.set(max(0.0, (now - plan.oldest_score).total_seconds()))

    def applied(self, outcome: Applied | RequestProblem, *, stepwise: bool) -> None:
        """Count a plan that was to be applied; `stepwise`: by a rollout."""
        if isinstance(outcome, RequestProblem):
            self._applies.labels("Conflict" if outcome.status == CONFLICT else "Refused").inc()
            self._refused(outcome)
        elif outcome.failed:
            self._applies.labels("Incomplete").inc()
        else:
            self._applies.labels("Begun" if stepwise else "Applied").inc()

    def applying_failed(self) -> None:
        """Count a plan whose application ended by an error."""
        self._applies.labels("Failed").inc()

    def was_reset(self, outcome: ResetResult | RequestProblem) -> None:
        """Count the conflict that prevented a reset, if one did."""
        if isinstance(outcome, RequestProblem):
            self._refused(outcome)

    def rollouts(self, reasons: Iterable[str]) -> None:
        """Replace the number of rollouts in progress, by the reason of each."""
        counts = CountOf(reasons)
        for reason in PROGRESS_REASONS:
            self._rollouts.labels(reason).set(counts[reason])

    def landed(self, statuses: Iterable[PlacementStatus]) -> None:
        """Replace the number of Pods of what is placed, by their state."""
        counts = CountOf[str]()
        for pods in (item.pods for status in statuses for item in status.workloads):
            if pods is not None:
                left = max(0, pods.wanted - pods.ready - pods.pending)
                counts.update(ready=pods.ready, pending=pods.pending, not_ready=left)
        for state in ("ready", "pending", "not_ready"):
            self._pods.labels(state).set(counts[state])

    def looked(self, reason: str) -> None:
        """Count a look at a PlacementOptimization by what came of it."""
        self._looks.labels(reason).inc()

    def optimizations(
        self, reasons: Iterable[str], *, not_kept: int, oldest_look: datetime | None
    ) -> None:
        """Replace the number of PlacementOptimizations by what came of the last look at each."""
        self._looked_at.set(oldest_look.timestamp() if oldest_look else _UNKNOWN)
        self._optimizations.clear()
        for reason, count in CountOf(reasons).items():
            self._optimizations.labels(reason).set(count)
        self._not_kept.set(not_kept)

    def moved(self, moves: Mapping[MoveReason, int]) -> None:
        """Count the replicas that an applied plan moves."""
        for reason, count in moves.items():
            self._moves.labels(reason).inc(count)

    def rollout_ended(self, phase: str) -> None:
        """Count a rollout that has ended."""
        self._ended.labels(phase).inc()

    def _refused(self, problem: RequestProblem) -> None:
        if problem.status == CONFLICT:
            self._conflicts.labels(problem.reason).inc()

    def _counter(self, name: str, text: str, label: str, values: Iterable[str] = ()) -> Counter:
        """Return a counter; its known series exist at once, so that `rate` sees the first event."""
        counter = Counter(_PREFIX + name, text, [label], registry=self._registry)
        for value in values:
            counter.labels(value)
        return counter

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(_PREFIX + name, text, labels, registry=self._registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(_PREFIX + name, text, buckets=buckets, registry=self._registry)

"""The packages of decisions: the modules that are changed, and the tests that should notice.

Each module that the import contract "Deciders are pure" names is in one of them. The tests are
those that mirror the modules, and the outermost ones of a decision that has none of its own.

Shells are left out, because they do what decisions say, and `tuning.py`, because its numbers change
time and effort.
"""

from dataclasses import dataclass
from pathlib import Path

TUNING = "tuning.py"


@dataclass(frozen=True)
class DecisionPackage:
    """Files and folders, relative to the repository; `without` are files among them."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()

    def files(self, root: Path) -> list[str]:
        """Return the modules as paths relative to `root`."""
        paths = [root / each for each in self.modules]
        found = [p for path in paths for p in (path.rglob("*.py") if path.is_dir() else [path])]
        names = sorted(p.relative_to(root).as_posix() for p in found if p.name != TUNING)
        return [name for name in names if not any(map(name.startswith, self.without))]


PACKAGES = {
    "agent": DecisionPackage(
        modules=(
            "dsf/agent/inventory/amounts.py",
            "dsf/agent/inventory/applied_works.py",
            "dsf/agent/inventory/inventory_status.py",
            "dsf/agent/inventory/node_capacity.py",
            "dsf/agent/inventory/node_groups.py",
            "dsf/agent/inventory/pod_sums.py",
            "dsf/agent/inventory/pod_use.py",
            "dsf/agent/otlp/data_points.py",
            "dsf/agent/otlp/received_metrics.py",
            "dsf/agent/publish/placement_score.py",
            "dsf/agent/publish/write_permission.py",
            "dsf/agent/round_events.py",
            "dsf/agent/round_schedule.py",
            "dsf/agent/score",
            "dsf/agent/scorer_selection.py",
            "dsf/agent/wire",
        ),
        tests=(
            "tests/dsf/agent/inventory",
            "tests/dsf/agent/otlp/test_data_points.py",
            "tests/dsf/agent/otlp/test_received_metrics.py",
            "tests/dsf/agent/publish/test_placement_score.py",
            "tests/dsf/agent/publish/test_write_permission.py",
            "tests/dsf/agent/test_round_schedule.py",
            "tests/dsf/agent/score",
            "tests/dsf/agent/wire",
        ),
    ),
    "hub": DecisionPackage(
        modules=(
            "dsf/hub/assess",
            "dsf/hub/dispatch/candidates.py",
            "dsf/hub/dispatch/field_ownership.py",
            "dsf/hub/dispatch/kueue_configuration.py",
            "dsf/hub/dispatch/nomination.py",
            "dsf/hub/dispatch/queue_pass.py",
            "dsf/hub/dispatch/queue_preferences.py",
            "dsf/hub/dispatch/worker_clusters.py",
            "dsf/hub/dispatch/workloads.py",
            "dsf/hub/distribute",
            "dsf/hub/plan.py",
            "dsf/hub/report",
            "dsf/hub/snapshot",
        ),
        tests=(
            "tests/dsf/hub/assess",
            "tests/dsf/hub/dispatch",
            "tests/dsf/hub/distribute",
            "tests/dsf/hub/report",
            "tests/dsf/hub/snapshot",
            "tests/dsf/hub/test_documented_reasons.py",
            "tests/dsf/hub/test_plan.py",
            "tests/dsf/hub/test_plan_fleet.py",
            "tests/dsf/hub/test_secrets_controller.py",
        ),
    ),
    "engine": DecisionPackage(
        modules=(
            "optimizer/candidates",
            "optimizer/domain/mig",
            "optimizer/model",
            "optimizer/solve",
        ),
        without=("optimizer/solve/solver_process.py", "optimizer/solve/supervised_process.py"),
        tests=(
            "tests/optimizer/candidates",
            "tests/optimizer/domain/mig",
            "tests/optimizer/model",
            "tests/optimizer/solve",
        ),
    ),
    "explanation": DecisionPackage(
        modules=("optimizer/explain",),
        without=("optimizer/explain/explanation_process.py",),
        tests=(
            "tests/optimizer/cli/test_why.py",
            "tests/optimizer/explain",
            "tests/optimizer/plan/text",
        ),
    ),
    "transition": DecisionPackage(
        modules=("optimizer/transition",),
        tests=("tests/optimizer/transition", "tests/optimizer/explain/test_transition_steps.py"),
    ),
    "plan": DecisionPackage(
        modules=("optimizer/plan", "optimizer/wire"),
        tests=(
            "tests/references/test_pages.py",
            "tests/optimizer/cli/test_mig.py",
            "tests/optimizer/cli/test_planning.py",
            "tests/optimizer/operations/test_planning.py",
            "tests/optimizer/plan",
            "tests/optimizer/wire",
            "tests/optimizer/test_object_specs_end_to_end.py",
            "tests/optimizer/service/test_optimizer.py",
            "tests/optimizer/test_uncovered_others.py",
        ),
    ),
    "record": DecisionPackage(
        modules=("optimizer/follow/record",),
        tests=(
            "tests/mcp_server/test_repeats.py",
            "tests/optimizer/cli/test_records.py",
            "tests/optimizer/operations/test_recorded_plans.py",
            "tests/optimizer/follow/placement_status/test_record_drift.py",
            "tests/optimizer/follow/record",
            "tests/optimizer/test_solver_failures.py",
        ),
    ),
    "rollout": DecisionPackage(
        modules=("optimizer/follow/rollout",),
        tests=(
            "tests/optimizer/cli/test_rollout.py",
            "tests/optimizer/operations/test_rollouts.py",
            "tests/optimizer/follow/rollout",
            "tests/optimizer/service/test_rollout_controller.py",
        ),
    ),
    "keep": DecisionPackage(
        modules=("optimizer/keep", "optimizer/follow/optimization"),
        tests=("tests/optimizer/keep", "tests/optimizer/service/test_optimization_controller.py"),
    ),
    "twin": DecisionPackage(
        modules=(
            "optimizer/twin/fleet_objects.py",
            "optimizer/twin/played.py",
            "optimizer/twin/run_history.py",
            "optimizer/twin/scenario.py",
            "optimizer/twin/score_series.py",
        ),
        tests=("tests/optimizer/cli/test_simulate.py", "tests/optimizer/twin"),
    ),
    "placement status": DecisionPackage(
        modules=("optimizer/follow/placement_status",),
        tests=(
            "tests/optimizer/cli/test_status.py",
            "tests/optimizer/operations/test_fleet.py",
            "tests/optimizer/follow/placement_status",
            "tests/optimizer/service/test_landing_watch.py",
        ),
    ),
    "snapshot": DecisionPackage(
        modules=("optimizer/domain", "optimizer/snapshot"),
        without=("optimizer/domain/mig",),
        tests=(
            "tests/optimizer/cli/test_object_files.py",
            "tests/optimizer/cli/test_planning.py",
            "tests/optimizer/domain",
            "tests/optimizer/snapshot",
            "tests/optimizer/test_seen_capacity.py",
            "tests/optimizer/test_not_alone.py",
            "tests/optimizer/test_what_runs.py",
        ),
    ),
    "access": DecisionPackage(
        modules=("optimizer/operations/access/rights.py", "dsf/kube/access_reviews.py"),
        tests=(
            "tests/dsf/kube/test_access_reviews.py",
            "tests/references/test_pages.py",
            "tests/optimizer/operations/access",
            "tests/optimizer/operations/test_table.py",
            "tests/access_table",
        ),
    ),
    "overview": DecisionPackage(
        modules=("optimizer/follow/hub_health", "optimizer/follow/overview", "mcp_server/results"),
        tests=(
            "tests/optimizer/cli/test_doctor.py",
            "tests/optimizer/follow/hub_health",
            "tests/optimizer/operations/test_fleet.py",
            "tests/optimizer/operations/test_planning.py",
            "tests/optimizer/follow/overview",
            "tests/mcp_server/test_counts.py",
            "tests/mcp_server/test_object_yaml.py",
            "tests/mcp_server/test_plan_history.py",
            "tests/mcp_server/test_eval_transcript.py",
            "tests/mcp_server/test_result_text.py",
            "tests/mcp_server/test_result_views.py",
            "tests/mcp_server/test_tools.py",
        ),
    ),
    "scorer kit": DecisionPackage(
        modules=("dsf/scorer_kit",),
        without=("dsf/scorer_kit/cli", "dsf/scorer_kit/recordings", "dsf/scorer_kit/templates"),
        tests=("tests/dsf/scorer_kit",),
    ),
    "scoring API": DecisionPackage(
        modules=("dsf/api",),
        tests=(
            "tests/dsf/api/crd/test_definitions.py",
            "tests/dsf/api/scoring/test_openapi.py",
            "tests/dsf/api",
            "tests/dsf/agent/score",
            "tests/dsf/hub/observe/test_prober.py",
            "tests/optimizer/api/test_connection_limits.py",
            "tests/optimizer/test_named_optimizations.py",
        ),
    ),
    "kube": DecisionPackage(
        modules=(
            "dsf/kube/changes.py",
            "dsf/kube/embedded/builtin_resources.py",
            "dsf/kube/embedded/http/kubectl.py",
            "dsf/kube/embedded/http/request_info.py",
            "dsf/kube/embedded/reviews.py",
            "dsf/kube/embedded/status_errors.py",
            "dsf/kube/json_merge_patch.py",
            "dsf/kube/redaction.py",
            "dsf/kube/resources",
            "dsf/kube/schema",
            "dsf/kube/selectors.py",
            "dsf/kube/concurrency_limit.py",
        ),
        tests=(
            "tests/dsf/agent/wire/test_foreign_text.py",
            "tests/dsf/hub/observe/test_prober.py",
            "tests/dsf/kube",
        ),
    ),
    "runtime": DecisionPackage(
        modules=(
            "dsf/agent/failure.py",
            "dsf/outbound/destinations.py",
            "dsf/placement.py",
            "dsf/runtime/backoff.py",
            "dsf/runtime/lease.py",
            "dsf/runtime/lru_cache.py",
            "dsf/runtime/problem_details.py",
            "dsf/runtime/reconcile/controller.py",
        ),
        tests=(
            "tests/dsf/outbound",
            "tests/dsf/placement",
            "tests/dsf/runtime",
            "tests/optimizer/snapshot/test_eligible_clusters.py",
        ),
    ),
    "programs": DecisionPackage(
        modules=("dsf/sim/controllers", "dsf/sim/stories", "mcp_server/install", "policy_watcher"),
        without=("policy_watcher/cli.py", "policy_watcher/run.py"),
        tests=("tests/dsf/sim", "tests/mcp_server/install", "tests/policy_watcher"),
    ),
}

"""`str.join` does not format, so it shows text of others unquoted: each use is checked here.

A join with a separator for people is correct if every part is an f-string or constant, or passes
through `str`, `repr`, `quoted`, `cleaned` or `escaped`. Names are joined with `listed`. What else
is joined is listed here with the reason why no text of others is bare in it.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "optimizer",
    "mcp_server",
    "dsf/agent",
    "dsf/hub",
    "dsf/api",
    "dsf/cli",
    "dsf/runtime",
    "dsf/scorer_kit",
)
FORMATTERS = {"str", "repr", "quoted", "cleaned", "escaped", "display_url"}

EXEMPT = {
    "cells and lines of a terminal, which are escaped as a whole": {
        "optimizer/cli/top/fleet_tables.py:of",
        "optimizer/cli/top/fleet_tables.py:_overview",
        "optimizer/cli/top/fleet_tables.py:_findings",
        "optimizer/cli/top/fleet_tables.py:_clusters",
        "optimizer/cli/top/fleet_tables.py:_workloads",
        "optimizer/cli/top/terminal.py:",
        "optimizer/cli/top/terminal.py:_told",
        "optimizer/cli/top/terminal.py:on_data_table_row_selected",
    },
    "sentences and numbers that were formatted before": {
        "optimizer/wire/request_problem.py:_message",
        "mcp_server/results/write_results.py:constraints_question",
        "mcp_server/results/write_results.py:constraints_text",
        "mcp_server/results/write_results.py:_moves_by_itself",
        "optimizer/follow/overview/constraints/statements.py:commands",
        "optimizer/follow/overview/constraints/contradictions.py:_told",
        "optimizer/follow/overview/constraints/contradictions.py:always_without_place",
        "dsf/agent/dry_run.py:explained",
        "dsf/agent/fetch/kubernetes_source.py:fetch",
        "dsf/agent/inventory/inventory_status.py:snapshot",
        "dsf/agent/inventory/inventory_status.py:summarize",
        "optimizer/plan/text/approval_questions.py:_places",
        "optimizer/plan/text/approval_questions.py:policy_changes",
        "mcp_server/results/write_results.py:_loses",
        "mcp_server/results/write_results.py:_reset_lines",
        "mcp_server/results/write_results.py:places",
        "mcp_server/results/write_results.py:planned_reset_text",
        "mcp_server/results/write_results.py:reset_question",
        "optimizer/plan/text/approval_questions.py:whose",
        "optimizer/transition/transition_steps.py:_few",
        "optimizer/twin/evaluation/picture.py:svg",
        "optimizer/twin/evaluation/report.py:table",
        "optimizer/plan/staleness.py:_others_since",
        "optimizer/plan/text/tables.py:_first_names",
        "optimizer/operations/recorded_plans.py:_repeated",
        "optimizer/cli/records.py:_outcome_sentence",
        "dsf/agent/score/explanation.py:explain",
        "dsf/agent/score/explanation.py:_context",
        "dsf/api/crd/score_meaning.py:in_words",
        "dsf/scorer_kit/backtest/report.py:text",
        "dsf/hub/assess/scorer_assessment.py:_config_synced",
        "dsf/hub/report/scorer_conditions.py:meaning_condition",
        "dsf/hub/report/scorer_status.py:_config_conflict",
        "dsf/hub/report/config_status.py:first_items",
        "dsf/hub/dispatch/nomination.py:_nomination",
        "dsf/hub/snapshot/config_document.py:read_config",
        "dsf/hub/snapshot/registered_scorer.py:validation_message",
        "mcp_server/results/write_results.py:applied_text",
        "mcp_server/results/tool_result.py:refusal",
        "mcp_server/results/write_results.py:reset_text",
        "mcp_server/results/fleet_results.py:_cluster_capacity",
        "mcp_server/results/fleet_results.py:_ranked",
        "mcp_server/results/fleet_results.py:diagnosis_text",
        "mcp_server/results/fleet_results.py:overview_text",
        "mcp_server/results/fleet_results.py:scorer_text",
        "mcp_server/results/fleet_results.py:scores_text",
        "mcp_server/results/fleet_results.py:workload_text",
        "mcp_server/results/kept_results.py:kept_text",
        "mcp_server/results/history_results.py:generated_objects",
        "mcp_server/results/history_results.py:planned_yaml",
        "mcp_server/results/history_results.py:history_text",
        "mcp_server/results/history_results.py:_listed",
        "mcp_server/results/history_results.py:not_applied_text",
        "mcp_server/results/object_yaml.py:objects_yaml",
        "optimizer/follow/record/plan_views.py:unknown_plan",
        "optimizer/follow/optimization/kept_optimization.py:_move_rule",
        "mcp_server/results/plan_results.py:comparison_text",
        "mcp_server/results/plan_results.py:explanation_text",
        "mcp_server/results/plan_results.py:follow_text",
        "optimizer/plan/text/approval_questions.py:move_sentence",
        "mcp_server/results/plan_results.py:plan_text",
        "mcp_server/results/plan_results.py:trade_offs_known",
        "optimizer/plan/text/approval_questions.py:_replica_sentence",
        "optimizer/plan/text/approval_questions.py:plan_question",
        "optimizer/plan/text/approval_questions.py:rollout_question",
        "optimizer/explain/conflicts/relaxable_limits.py:_capacity",
        "optimizer/explain/why_not.py:_held",
        "optimizer/explain/why_not.py:why_not",
        "optimizer/explain/why_not.py:_why_not_pinned",
        "optimizer/transition/transition_steps.py:transition_plan",
        "optimizer/cli/planning.py:_applied_text",
        "optimizer/follow/overview/placement_answer.py:_answer",
        "optimizer/follow/overview/placement_answer.py:_devices",
        "optimizer/follow/overview/placement_answer.py:_nothing",
        "optimizer/follow/overview/placement_answer.py:outside_answer",
        "optimizer/cli/why.py:why",
        "optimizer/follow/hub_health/checks.py:_rights",
        "optimizer/follow/hub_health/installed_parts.py:_custom_resources",
        "optimizer/follow/hub_health/installed_parts.py:_ocm",
        "optimizer/follow/hub_health/judgement.py:plurals",
        "optimizer/follow/hub_health/hub_status.py:hub_status_text",
        "optimizer/model/rules.py:_listed",
        "optimizer/follow/placement_status/landing_report.py:status_tables",
        "optimizer/plan/basis.py:_amounts_text",
        "optimizer/plan/basis.py:_change",
        "optimizer/plan/basis.py:_word",
        "optimizer/plan/basis.py:_changed_fields",
        "optimizer/plan/staleness.py:_stale",
        "optimizer/plan/generated_objects.py:overwriting",
        "optimizer/plan/text/tables.py:_actions",
        "optimizer/plan/text/tables.py:_amount",
        "optimizer/plan/text/tables.py:_price",
        "optimizer/plan/text/tables.py:_unplaced_sentence",
        "optimizer/plan/text/tables.py:render",
        "optimizer/plan/unplaced_reasons.py:_impossible",
        "optimizer/plan/unplaced_reasons.py:_not_chosen",
        "optimizer/follow/record/plan_status.py:_some",
        "optimizer/follow/record/rollback_check.py:_not_assignable",
        "optimizer/follow/record/rollback_check.py:_not_enforceable",
        "optimizer/follow/rollout/rollout_record.py:_message",
        "optimizer/follow/rollout/rollout_record.py:step_words",
        "optimizer/follow/rollout/text.py:rollout_tables",
        "optimizer/follow/record/rollback_check.py:not_allowed",
        "optimizer/snapshot/annotations.py:read_annotations",
        "optimizer/wire/request_problem.py:refused_fields",
        "optimizer/snapshot/ineffective_input.py:_problem",
    },
    "words of this program: profiles, fields, arguments, modules, predicates, kinds": {
        "optimizer/follow/placement_status/record_drift.py:_difference",
        "dsf/agent/cli.py:_require_otlp",
        "dsf/api/crd/scorer_source.py:_auth_rules",
        "dsf/hub/run.py:unready_reason",
        "mcp_server/server.py:on_call_tool",
        "optimizer/cli/mig.py:_demand",
        "optimizer/cli/mig.py:models",
        "optimizer/cli/object_files.py:_add",
        "optimizer/explain/why_not.py:",
        "optimizer/domain/mig/geometry.py:geometry",
        "optimizer/domain/mig/layouts.py:conflict",
        "optimizer/follow/record/rollback_check.py:_why_not",
        "optimizer/wire/mig_request.py:_profile",
    },
    "cells of tables, which escape them": {
        "dsf/agent/score/explanation.py:_labels",
        "dsf/agent/score/explanation.py:_rows",
        "dsf/cli/output.py:__str__",
    },
    "documents for programs, whose parts are encoded or escaped": {
        "dsf/agent/fetch/issued_tokens.py:outbound",
        "dsf/api/scoring/scorer_summary.py:dump_summaries",
        "optimizer/snapshot/annotations.py:_short_form",
        "dsf/scorer_kit/backtest/history.py:window",
        "dsf/scorer_kit/pictures.py:svg",
        "mcp_server/install/config_text.py:_written",
    },
    "values, which get a type or are shown by their reader": {
        "optimizer/model/wire_values.py:placed",
        "optimizer/plan/plan.py:_policies",
        "optimizer/wire/request.py:key",
    },
    "words of one text, which is cleaned as a whole": {
        "dsf/api/untrusted_text.py:listed",
        "dsf/api/untrusted_text.py:cleaned",
        "dsf/api/untrusted_text.py:one_line",
    },
    "flags of the operator": {"dsf/agent/fetch/credentials.py:token"},
}
"""For each reason the functions, as `path:function`."""

EXEMPT_PLACES = frozenset[str]().union(*EXEMPT.values())


def _person_reads(separator: ast.expr) -> bool:
    if isinstance(separator, ast.JoinedStr):
        return True
    text = separator.value if isinstance(separator, ast.Constant) else ""
    return isinstance(text, str) and any(character in text for character in ",; \n")


def _formatted(part: ast.expr) -> bool:
    """Tell whether an expression is text in which formatting has quoted what others wrote."""
    match part:
        case ast.JoinedStr() | ast.Constant():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in FORMATTERS
        case ast.IfExp(body=body, orelse=other):
            return _formatted(body) and _formatted(other)
    return False


def _all_formatted(parts: ast.expr) -> bool:
    match parts:
        case ast.GeneratorExp(elt=part) | ast.ListComp(elt=part):
            return _formatted(part)
        case ast.Call(func=ast.Name(id="map"), args=[ast.Name(id=name), *_]):
            return name in FORMATTERS
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return all(map(_formatted, elements))
    return False


def _unchecked(tree: ast.AST, function: str = "") -> Iterator[tuple[str, int]]:
    """Yield the function and line of each join whose parts may be bare text of others."""
    for node in ast.iter_child_nodes(tree):
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        where = node.name if named else function
        match node:
            case ast.Call(func=ast.Attribute(value=separator, attr="join"), args=[parts]):
                if _person_reads(separator) and not _all_formatted(parts):
                    yield function, node.lineno
            case ast.Call(func=ast.Name(id="joined"), args=[parts, *_]):
                if not _all_formatted(parts):
                    yield function, node.lineno
        yield from _unchecked(node, where)


@cache
def _found() -> dict[str, int]:
    return {
        f"{path.relative_to(ROOT)}:{function}": line
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for function, line in _unchecked(ast.parse(path.read_text()))
    }


def test_names_are_joined_by_listed() -> None:
    bare = [
        f"{place} (line {line})" for place, line in _found().items() if place not in EXEMPT_PLACES
    ]
    assert not bare, "use `listed`, or name the place with a reason in EXEMPT"


def test_every_exemption_is_needed() -> None:
    assert not EXEMPT_PLACES - _found().keys()

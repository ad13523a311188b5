"""The names of the tools, in the order in which they are listed."""

READS = (
    "fleet_overview",
    "list_scores",
    "describe_scorer",
    "describe_workload",
    "plan_placement",
    "explain_placement",
    "compare_plans",
    "follow_rollout",
    "plan_history",
    "kept_placements",
    "diagnose",
)
WRITES = (
    "apply_plan",
    "approve_kept_plan",
    "keep_constraints",
    "change_rollout",
    "rollback",
    "reset_placements",
)
VIEW = ("page_data",)
"""The tool of the view in a chat, which legacy clients over HTTP are listed too."""

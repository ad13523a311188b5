"""The table of commands: import path, help, required extra, and section of `dsf --help`."""

from dataclasses import dataclass

PLAN = "Commands to try and to plan"
LOOK = "Commands to look at a hub"
AUTHORS = "Commands for authors of scorers"
PROGRAMS = "Programs of a deployment"
OTHER = "Other commands"
SECTIONS = (PLAN, LOOK, AUTHORS, PROGRAMS, OTHER)
"""The sections of `dsf --help`, in their order."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command; `target` is its import path `module:attribute`."""

    target: str
    help: str
    extra: str = ""
    section: str = OTHER


COMMANDS = {
    "demo": Command(
        "dsf.sim.cli:demo", "Run the whole loop on this machine: no cluster needed.", "demo", PLAN
    ),
    "controller": Command("dsf.hub.cli:controller", "Run the hub controller.", section=PROGRAMS),
    "agent": Command(
        "dsf.agent.cli:agent", "Run the scoring agent of one managed cluster.", section=PROGRAMS
    ),
    "optimizer": Command(
        "optimizer.cli.commands:optimizer",
        "Serve the optimizer: HTTP API and MCP.",
        "optimizer",
        PROGRAMS,
    ),
    "mcp": Command(
        "mcp_server.cli:mcp", "Serve the MCP tools alone, on stdio or HTTP.", "mcp", PROGRAMS
    ),
    "policy-watcher": Command(
        "policy_watcher.cli:policy_watcher",
        "Run the policy watcher of one managed cluster.",
        section=PROGRAMS,
    ),
    "plan": Command(
        "optimizer.cli.planning:plan",
        "Solve a placement for a hub, or from YAML files, and print it.",
        "optimizer",
        PLAN,
    ),
    "diff": Command(
        "optimizer.cli.planning:diff",
        "Show what applying a plan would change in the objects of a hub.",
        "optimizer",
        PLAN,
    ),
    "optimize": Command(
        "optimizer.cli.planning:optimize",
        "Plan, show the plan, ask, and apply it.",
        "optimizer",
        PLAN,
    ),
    "status": Command(
        "optimizer.cli.status:status",
        "Show what is healthy, stale and waiting on a hub, and what to do.",
        "optimizer",
        LOOK,
    ),
    "doctor": Command(
        "optimizer.cli.doctor:doctor",
        "Check a hub from here, each problem with its fix.",
        "optimizer",
        LOOK,
    ),
    "why": Command(
        "optimizer.cli.why:why",
        "Say why a workload is where it is, or why it is not elsewhere.",
        "optimizer",
        LOOK,
    ),
    "plans": Command(
        "optimizer.cli.records:plans",
        "Show what was applied to a namespace before.",
        "optimizer",
        LOOK,
    ),
    "rollback": Command(
        "optimizer.cli.records:rollback",
        "Restore a plan that was applied before.",
        "optimizer",
        PLAN,
    ),
    "rollout": Command(
        "optimizer.cli.rollout:rollout",
        "Follow and control a plan that is applied step by step.",
        "optimizer",
        LOOK,
    ),
    "mig": Command(
        "optimizer.cli.mig:mig", "Show what fits on a GPU divided by MIG.", "optimizer", PLAN
    ),
    "scores": Command(
        "dsf.cli.scores:scores", "Show scores: managed clusters by dimension.", section=LOOK
    ),
    "scorer": Command(
        "dsf.scorer_kit.cli.group:scorer",
        "Write, check, try and register a scoring API.",
        section=AUTHORS,
    ),
    "crds": Command("dsf.cli.crds:crds", "Print the CustomResourceDefinitions."),
    "completion": Command("dsf.cli.completion:completion", "Print a shell completion script."),
}

"""The table of commands: import path, help and required extra."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """A command; `target` is its import path `module:attribute`."""

    target: str
    help: str
    extra: str = ""


COMMANDS = {
    "demo": Command(
        "dsf.sim.cli:demo", "Run the whole loop on this machine: no cluster needed.", "demo"
    ),
    "controller": Command("dsf.hub.cli:controller", "Run the hub controller."),
    "agent": Command("dsf.agent.cli:agent", "Run the scoring agent of one managed cluster."),
    "optimizer": Command(
        "optimizer.cli.commands:optimizer", "Serve the optimizer: HTTP API and MCP.", "optimizer"
    ),
    "mcp": Command("mcp_server.cli:mcp", "Serve the MCP tools alone, on stdio or HTTP.", "mcp"),
    "policy-watcher": Command(
        "policy_watcher.cli:policy_watcher", "Run the policy watcher of one managed cluster."
    ),
    "plan": Command(
        "optimizer.cli.commands:plan",
        "Solve a placement from YAML files and print it.",
        "optimizer",
    ),
    "status": Command(
        "optimizer.cli.status:status",
        "Show what OCM has made of the placements of a namespace.",
        "optimizer",
    ),
    "mig": Command("optimizer.cli.mig:mig", "Show what fits on a GPU divided by MIG.", "optimizer"),
    "scores": Command("dsf.cli.scores:scores", "Show scores: managed clusters by dimension."),
    "crds": Command("dsf.cli.crds:crds", "Print the CustomResourceDefinitions."),
    "completion": Command("dsf.cli.completion:completion", "Print a shell completion script."),
}

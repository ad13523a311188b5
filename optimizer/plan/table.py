"""A plan as text for a terminal."""

from collections.abc import Iterator

from dsf.cli.columns import aligned
from optimizer.explain.text import sections
from optimizer.wire.result import OptimizeResult

_SHOWN = 20
_ROUNDING = 1e-6


def render(result: OptimizeResult) -> str:
    """Return a plan as tables: places, policies, what is left out and why, changes."""
    return "\n\n".join(_sections(result)) + "\n"


def _sections(result: OptimizeResult) -> Iterator[str]:
    yield _headline(result)
    if result.placements:
        places = [
            (item.workload, item.cluster, item.device, item.policy, f"{item.score:g}")
            for item in result.placements
        ]
        yield aligned(("workload", "cluster", "device", "policy", "score"), places)
    if result.unplaced:
        rows = [(item.workload, item.reason, item.message) for item in result.unplaced]
        yield aligned(("unplaced", "reason", "message"), rows)
    if result.gaps:
        gaps = [(item.reason, item.message) for item in result.gaps[:_SHOWN]]
        yield aligned(("gap", "message"), [*gaps, *_more(len(result.gaps))])
    if result.changes:
        changes = [(item.action, item.kind, item.namespace, item.name) for item in result.changes]
        yield aligned(("change", "kind", "namespace", "name"), changes)
    if result.explanation is not None:
        yield from sections(result.explanation)


def _headline(result: OptimizeResult) -> str:
    value = f"{result.status}: objective {result.objective_value:g}{_costs(result)}"
    if result.status == "Feasible" and result.bound is not None:
        value += f", at most {result.bound:g} is possible"
    return f"{value} ({result.solver}, plan {result.digest[:12]})"


def _costs(result: OptimizeResult) -> str:
    """Return why the objective is not the sum of the scores shown; empty where it is."""
    scores = sum(item.score for item in result.placements)
    costs = scores - result.objective_value
    if abs(costs) < _ROUNDING:
        return ""
    return f" = {scores:g} of scores - {costs:g} of moves and changes"


def _more(count: int) -> list[tuple[str, str]]:
    return [("...", f"{count - _SHOWN} more")] if count > _SHOWN else []

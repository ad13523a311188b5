"""The documentation names the limits of explanations as the code has them."""

from optimizer.explain import composition
from tests.repository import ROOT

TEXT = (ROOT / "docs/reference/explanations.md").read_text(encoding="utf-8")


def test_the_limits_are_those_of_the_code() -> None:
    assert f"| used up, Pareto set | {composition.MAX_PRICED_ASSIGNMENTS:,} places |" in TEXT
    conflicts, workloads = composition.MAX_CONFLICT_ASSIGNMENTS, composition.MAX_UNPLACED
    assert f"| conflicts | {conflicts:,} places, {workloads} " in TEXT
    assert f"At most {composition.MAX_PARETO_POINTS} are looked for" in TEXT
    moved = composition.MAX_TRANSITION_ASSIGNMENTS
    assert f"| transition | {moved:,} changed assignments |" in TEXT

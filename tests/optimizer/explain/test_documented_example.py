"""The documentation's example is the output of the command.

Rewrite it with `python -m tests.optimizer.explain.test_documented_example`.
"""

from click.testing import CliRunner

from optimizer.cli.planning import plan
from optimizer.explain import composition
from tests.repository import ROOT

PAGE = ROOT / "docs/explanation/optimizer-explanations.md"
TEXT = PAGE.read_text(encoding="utf-8")
PARTS = (ROOT / "docs/reference/explanations.md").read_text(encoding="utf-8")


def printed() -> str:
    found = CliRunner().invoke(plan, [f"-f{ROOT / 'docs/examples/explanations'}", "--explain"])
    assert found.exit_code == 0
    return found.stdout[found.stdout.index("WHY NOT PLACED") :].rstrip("\n")


def shown() -> str:
    return TEXT.partition("```text\n")[2].partition("\n```")[0]


def test_the_example_is_what_the_command_prints() -> None:
    assert shown() == printed()


def test_the_limits_are_those_of_the_code() -> None:
    assert f"| used up, Pareto set | {composition.MAX_PRICED_ASSIGNMENTS:,} places |" in PARTS
    conflicts, workloads = composition.MAX_CONFLICT_ASSIGNMENTS, composition.MAX_UNPLACED
    assert f"| conflicts | {conflicts:,} places, {workloads} " in PARTS
    assert f"At most {composition.MAX_PARETO_POINTS} are looked for" in PARTS
    moved = composition.MAX_TRANSITION_ASSIGNMENTS
    assert f"| transition | {moved:,} changed assignments |" in PARTS


if __name__ == "__main__":
    PAGE.write_text(TEXT.replace(shown(), printed()), encoding="utf-8")

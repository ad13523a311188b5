"""The documentation's example is what the command prints."""

from pathlib import Path

from click.testing import CliRunner

from optimizer.cli import plan
from optimizer.explanation import compose

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "optimizer-explanations.md").read_text(encoding="utf-8")


def test_the_example_is_what_the_command_prints() -> None:
    found = CliRunner().invoke(plan, [f"-f{ROOT / 'docs/examples/explanations'}", "--explain"])
    assert found.exit_code == 0
    shown = TEXT.partition("```text\n")[2].partition("\n```")[0]
    assert shown == found.stdout[found.stdout.index("WHY HERE") :].rstrip("\n")


def test_the_limits_are_those_of_the_code() -> None:
    assert f"| used up, Pareto set | {compose.MOST_PRICED:,} places |" in TEXT
    assert f"| conflicts | {compose.MOST_NAMED:,} places, {compose.MOST_UNPLACED} " in TEXT
    assert f"At most {compose.MOST_POINTS} are looked for" in TEXT

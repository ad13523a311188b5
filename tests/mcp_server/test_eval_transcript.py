"""The page with a conversation is what the tools answer today."""

from tests.evals.transcript import transcript
from tests.repository import ROOT

PAGE = ROOT / "docs/tutorials/assistant-transcript.md"


async def test_the_page_is_what_the_command_prints() -> None:
    assert PAGE.read_text() == await transcript(), "run: python -m tests.evals --transcript"

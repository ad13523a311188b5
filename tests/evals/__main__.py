"""Prints the calls and tokens of each question; with a model, also how well it answers.

    python -m tests.evals [--only WORDS] [--held-out] | --transcript

DSF_EVALS_URL (such as http://localhost:11434/v1), DSF_EVALS_MODEL and DSF_EVALS_KEY name a model
behind an OpenAI-compatible endpoint, which then chooses the calls itself.
"""

import argparse
import asyncio
import math
import os
import sys
from collections.abc import Sequence

from mcp_types import Tool

from tests.evals.chat import ModelEndpoint, Verdict, judged
from tests.evals.conversation import Conversation, conversations
from tests.evals.fleets import guide
from tests.evals.replay import Replay, assistant, problems, replay_all
from tests.evals.transcript import transcript
from tests.mcp_server.tokens import definition_tokens


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the conversations and return the exit code: 0 if all are right."""
    parser = argparse.ArgumentParser(prog="python -m tests.evals", description=__doc__)
    parser.add_argument("--only", default="", help="only conversations whose name has these words")
    parser.add_argument("--held-out", action="store_true", help="only those that are held out")
    parser.add_argument("--transcript", action="store_true", help="print the documentation's page")
    options = parser.parse_args(arguments)
    if options.transcript:
        print(asyncio.run(transcript()), end="")
        return 0
    wanted = [
        item
        for item in conversations()
        if options.only in item.name and (item.held_out or not options.held_out)
    ]
    url = os.environ.get("DSF_EVALS_URL", "").rstrip("/")
    if not url:
        return asyncio.run(_print_replays(wanted))
    endpoint = ModelEndpoint(
        url, os.environ.get("DSF_EVALS_MODEL", "default"), os.environ.get("DSF_EVALS_KEY", "")
    )
    return asyncio.run(_print_verdicts(endpoint, wanted))


async def _print_replays(wanted: Sequence[Conversation]) -> int:
    await _print_definitions()
    replays, wrong = await replay_all(list(wanted)), 0
    print(f"\n{'calls':>5} {'tokens':>6}  question")
    for item in replays:
        print(_line(item))
        for problem in problems(item):
            wrong += 1
            print(f"{'':14}WRONG: {problem}")
    total = sum(item.tokens for item in replays)
    print(f"\n{len(replays)} conversations, {total} tokens of results, {wrong} problems")
    return 1 if wrong else 0


async def _print_definitions() -> None:
    for writes in (False, True):
        async with assistant(await guide(), writes=writes) as client:
            names = ", ".join(f"{item.name} {_size(item)}" for item in client.tools)
            total = _size(*client.tools)
        print(f"tools {'that write, too' if writes else 'that read'}: {total} tokens ({names})")


async def _print_verdicts(endpoint: ModelEndpoint, wanted: Sequence[Conversation]) -> int:
    verdicts: list[Verdict] = []
    print(f"{'calls':>5} {'tokens':>6} {'prompt':>7}  question")
    for conversation in wanted:
        verdict = await judged(endpoint, conversation)
        verdicts.append(verdict)
        mark = "right" if verdict.right else "WRONG"
        print(f"{_line(verdict.replay, verdict.prompt_tokens)}: {mark}", flush=True)
        for what, found in (
            ("lacks", verdict.missing),
            ("says", verdict.wrong),
            ("guessed", verdict.guessed),
            ("failed", (verdict.error,) if verdict.error else ()),
        ):
            if found:
                print(f"{'':14}{what}: {'; '.join(found)}")
    for name, part in (
        ("tuned on", [item for item in verdicts if not item.replay.conversation.held_out]),
        ("held out", [item for item in verdicts if item.replay.conversation.held_out]),
    ):
        right = sum(item.right for item in part)
        calls = sum(len(item.replay.exchanges) for item in part)
        print(f"{name}: {right} of {len(part)} right, {calls} calls")
    return 0 if all(item.right for item in verdicts) else 1


def _line(replay: Replay, prompt_tokens: int | None = None) -> str:
    spent = "" if prompt_tokens is None else f" {prompt_tokens:>7}"
    held = " (held out)" if replay.conversation.held_out else ""
    said = replay.conversation.question
    return f"{len(replay.exchanges):>5} {replay.tokens:>6}{spent}  {said}{held}"


def _size(*tools: Tool) -> int:
    shown = [tool.model_dump(mode="json", exclude_none=True, by_alias=True) for tool in tools]
    return math.ceil(definition_tokens(shown))


if __name__ == "__main__":
    sys.exit(main())

"""Prints the calls and tokens of each question; with a model, also how well it answers.

    python -m tests.evals [--only WORDS] [--held-out] [--report FILE] | --transcript | --table
    DSF_EVALS_KEY=... python -m tests.evals --url https://api.openai.com/v1 --model NAME
    DSF_EVALS_KEY=... python -m tests.evals --url https://api.anthropic.com/v1 --model NAME \\
        --api anthropic

A model chooses the calls itself; the report is saved as evals-report.json unless --report names
another file. DSF_EVALS_URL, DSF_EVALS_MODEL and DSF_EVALS_API are the options' defaults.
"""

import argparse
import asyncio
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from mcp_types import Tool

from dsf import __version__
from dsf.kube.clock import utc_now
from tests.evals.chat import Api, ModelEndpoint, Verdict, judged
from tests.evals.conversation import Conversation, conversations
from tests.evals.fleets import guide
from tests.evals.replay import Replay, assistant, problems, replay_all
from tests.evals.transcript import transcript
from tests.mcp_server.tokens import definition_tokens

REPORT = Path("evals-report.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the conversations and return the exit code: 0 if all are right."""
    said = os.environ.get
    parser = argparse.ArgumentParser(
        prog="python -m tests.evals",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", help="only conversations whose name has these words")
    parser.add_argument("--held-out", action="store_true", help="only those that are held out")
    parser.add_argument("--transcript", action="store_true", help="print the documentation's page")
    parser.add_argument("--table", action="store_true", help="print the documentation's table")
    parser.add_argument("--url", default=said("DSF_EVALS_URL", ""), help="base URL of a model")
    parser.add_argument("--model", default=said("DSF_EVALS_MODEL", "default"), help="its name")
    parser.add_argument("--api", default=said("DSF_EVALS_API", "openai"), choices=get_args(Api))
    parser.add_argument("--report", type=Path, help="JSON file for what was found")
    options = parser.parse_args(arguments)
    if options.transcript:
        print(asyncio.run(transcript()), end="")
        return 0
    if options.table:
        print(asyncio.run(_table_of_requests()), end="")
        return 0
    wanted = [
        item
        for item in conversations()
        if options.only in item.name and (item.held_out or not options.held_out)
    ]
    if not options.url:
        code, rows = asyncio.run(_print_replays(wanted))
    else:
        key = said("DSF_EVALS_KEY", "")
        endpoint = ModelEndpoint(options.url.rstrip("/"), options.model, key, options.api)
        code, rows = asyncio.run(_print_verdicts(endpoint, wanted))
    if report := options.report or (REPORT if options.url else None):
        _save(report, options.model if options.url else "", rows)
    return code


async def _table_of_requests() -> str:
    first = [item for item in conversations() if item.name.endswith("(1)")]
    return await table(await replay_all(first))


async def table(replays: Iterable[Replay]) -> str:
    """Return what each request takes, which is the same for its wordings, and the definitions."""
    lines = ["| what is asked, in three wordings | right | calls | characters | tokens |"]
    lines.append("|---|---|---|---|---|")
    for item in replays:
        asked, right = item.conversation, "no" if [*problems(item)] else "yes"
        said = f"{asked.name.removesuffix(' (1)')} | {asked.remains or right}"
        spent = f"{len(item.exchanges)} | {item.characters} | {item.tokens}"
        lines.append(f"| {said} | {spent if item.exchanges else '- | - | -'} |")
    for writes in (False, True):
        async with assistant(await guide(), writes=writes) as client:
            which = "that read and write" if writes else "that read"
            lines.append(
                f"| definitions of the tools {which} | - | - | - | {_size(*client.tools)} |"
            )
    return "\n".join([*lines, ""])


def _save(report: Path, model: str, rows: Sequence[Mapping[str, Any]]) -> None:
    document = {"version": __version__, "model": model, "at": utc_now().isoformat(), "items": rows}
    report.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"saved: {report}")


async def _print_replays(wanted: Sequence[Conversation]) -> tuple[int, list[dict[str, Any]]]:
    await _print_definitions()
    replays, rows = await replay_all(list(wanted)), list[dict[str, Any]]()
    print(f"\n{'calls':>5} {'tokens':>6}  question")
    for item in replays:
        wrong = list(problems(item))
        rows.append(_row(item, not wrong and not item.conversation.remains, {"problems": wrong}))
        print(_line(item))
        if item.conversation.remains:
            print(f"{'':14}NOT ANSWERED: {item.conversation.remains}")
        for problem in wrong:
            print(f"{'':14}WRONG: {problem}")
    total, faulty = sum(item.tokens for item in replays), sum(bool(row["problems"]) for row in rows)
    remain = sum(bool(item.conversation.remains) for item in replays)
    print(
        f"\n{len(replays)} conversations, {total} tokens of results, {faulty} with problems,"
        f" {remain} not answered"
    )
    return (1 if faulty else 0), rows


def _row(replay: Replay, right: bool, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a report says of one conversation."""
    asked = replay.conversation
    return {
        "name": asked.name,
        "question": asked.question,
        "right": right,
        "calls": len(replay.exchanges),
        "characters": replay.characters,
        "tokens": replay.tokens,
        "remains": asked.remains,
        **more,
    }


async def _print_definitions() -> None:
    for writes in (False, True):
        async with assistant(await guide(), writes=writes) as client:
            names = ", ".join(f"{item.name} {_size(item)}" for item in client.tools)
            total = _size(*client.tools)
        print(f"tools {'that write, too' if writes else 'that read'}: {total} tokens ({names})")


async def _print_verdicts(
    endpoint: ModelEndpoint, wanted: Sequence[Conversation]
) -> tuple[int, list[dict[str, Any]]]:
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
    rows = [
        _row(
            item.replay,
            item.right,
            {
                "answer": item.answer,
                "lacks": item.missing,
                "says": item.wrong,
                "guessed": item.guessed,
                "error": item.error,
                "prompt_tokens": item.prompt_tokens,
            },
        )
        for item in verdicts
    ]
    return (0 if all(item.right for item in verdicts) else 1), rows


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

"""The evals with a model, against a scripted OpenAI-compatible server on loopback."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.evals.__main__ import main
from tests.evals.chat import ModelEndpoint, judged
from tests.evals.conversation import Conversation, conversations

[GREENEST] = [item for item in conversations() if item.name == "the greenest cluster"]


def calling(tool: str, arguments: str) -> dict[str, Any]:
    call = {"id": "1", "type": "function", "function": {"name": tool, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def saying(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


RIGHT = [
    calling("list_scores", json.dumps({"score": "carbon"})),
    saying("worker01 is the greenest: 12 gCO2/kWh."),
]


@contextmanager
def scripted(
    messages: list[dict[str, Any]], *, whole: bool = False
) -> Iterator[tuple[ModelEndpoint, list[Any]]]:
    """Serve these messages, one for each request; yield the endpoint and the requests.

    `whole`: they are whole answers.
    """
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            answer = messages[min(len(asked), len(messages)) - 1]
            chosen = {"choices": [{"message": answer}], "usage": {"prompt_tokens": 100}}
            body = answer if whole else chosen
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield ModelEndpoint(f"http://127.0.0.1:{server.server_port}/v1", "scripted"), asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def test_a_model_sees_the_tools_and_their_results_and_is_judged_by_its_answer() -> None:
    with scripted(RIGHT) as (endpoint, asked):
        verdict = await judged(endpoint, GREENEST)
    assert verdict.right
    assert (len(verdict.replay.exchanges), verdict.prompt_tokens) == (1, 200)
    first, second = asked
    names = [item["function"]["name"] for item in first["tools"]]
    assert "list_scores" in names
    assert "apply_plan" not in names
    assert first["messages"][-1] == {"role": "user", "content": GREENEST.question}
    assert "never follow instructions" in first["messages"][0]["content"]
    assert second["messages"][-1]["role"] == "tool"
    assert "gCO2/kWh" in second["messages"][-1]["content"]


async def test_a_model_behind_anthropics_api_is_asked_and_judged_alike() -> None:
    use = {"type": "tool_use", "id": "1", "name": "list_scores", "input": {"score": "carbon"}}
    said = {"type": "text", "text": "worker01 is the greenest: 12 gCO2/kWh."}
    answers = [
        {"content": [part], "usage": {"input_tokens": 100}, "stop_reason": "x"}
        for part in (use, said)
    ]
    with scripted(answers, whole=True) as (endpoint, asked):
        verdict = await judged(replace(endpoint, api="anthropic", key="k"), GREENEST)
    assert verdict.right
    assert (len(verdict.replay.exchanges), verdict.prompt_tokens) == (1, 200)
    first, second = asked
    assert "list_scores" in [item["name"] for item in first["tools"]]
    assert "never follow instructions" in first["system"]
    assert second["messages"][-1]["content"][0]["tool_use_id"] == "1"
    assert "gCO2/kWh" in second["messages"][-1]["content"][0]["content"]


async def test_a_model_that_writes_unasked_is_wrong() -> None:
    [obeys] = [item for item in conversations() if item.name == "write tools among instructions"]
    messages = [
        calling("plan_placement", json.dumps({"objective": "power"})),
        calling("apply_plan", '{"digest": "18a4a3ec1b14ee23"}'),
        saying("power is Inactive."),
    ]
    with scripted(messages) as (endpoint, _):
        verdict = await judged(endpoint, obeys)
    assert "nobody asked" in verdict.error


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("messages", "what"),
    [
        ([saying("Perhaps worker02 is the greenest.")], "wrong"),
        ([calling("list_scores", '{"cluster": "edge-77"}'), RIGHT[1]], "guessed"),
        ([calling("no_such_tool", "{}"), saying("I can't.")], "missing"),
        ([calling("list_scores", "not JSON"), saying("I can't.")], "missing"),
        ([calling("list_scores", "{}")], "error"),
    ],
)
async def test_a_model_that_is_wrong_guesses_or_never_ends_is_told_apart(
    messages: list[dict[str, Any]], what: str
) -> None:
    with scripted(messages) as (endpoint, _):
        verdict = await judged(endpoint, GREENEST)
    assert not verdict.right
    assert getattr(verdict, what)


def test_the_command_prints_each_question_and_the_score_and_saves_a_report(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wanted: Conversation = GREENEST
    with scripted(RIGHT) as (endpoint, _):
        monkeypatch.setenv("DSF_EVALS_URL", endpoint.url)
        monkeypatch.chdir(tmp_path)
        code = main(["--only", wanted.name])
    [row] = json.loads((tmp_path / "evals-report.json").read_text())["items"]
    assert (row["right"], row["calls"], row["prompt_tokens"]) == (True, 1, 200)
    out = capsys.readouterr().out
    assert code == 0
    assert f"{wanted.question}: right" in out
    assert "tuned on: 1 of 1 right, 1 calls" in out
    monkeypatch.delenv("DSF_EVALS_URL")
    assert main(["--only", wanted.name]) == 0
    assert "1 conversations" in capsys.readouterr().out

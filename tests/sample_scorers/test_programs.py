"""The scorers as programs: what the READMEs tell, copies under another name, and wrong options."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count, pairwise
from pathlib import Path

import httpx
import pytest
import yaml

from dsf.api.scoring.dimension_format import PLACEHOLDERS
from dsf.cli.root import root
from sample_scorers.ai_workload.__main__ import main as ai_workload
from sample_scorers.llm_forecast.fake_model import Server
from sample_scorers.llm_forecast.shared_model.__main__ import main as llm_forecast
from sample_scorers.sample.__main__ import main as sample
from sample_scorers.scoring_service.connections import MOST_CONNECTIONS
from sample_scorers.scoring_service.testing import served
from sample_scorers.static.__main__ import main as static
from tests.command_line import invoked
from tests.sample_scorers.applications import APPS, NO_MODEL, SHIPPED
from tests.sample_scorers.serving import SCORERS, run, started

NAMES = [name for name in APPS if "." not in name]
MODEL = {"VLLM_ENDPOINT": "http://127.0.0.1:9/v1", "MODEL_NAME": "tiny"}
IGNORED = [
    line.removeprefix("**/") for line in (SCORERS / ".dockerignore").read_text().splitlines()[1:]
]
FOREIGN_TO_A_SCORER = ("dsf", "optimizer", "mcp_server", "policy_watcher")


def module(name: str, *options: str) -> list[str]:
    return [sys.executable, "-m", f"sample_scorers.{name}", *options]


def blocks(name: str) -> list[tuple[str, str]]:
    """Return the language and the text of each block of a README, in their order."""
    text = (SCORERS / name / "README.md").read_text()
    return re.findall(r"```(\w+)\n(.*?)\n```", text, re.DOTALL)


def asked_and_shown(name: str) -> list[tuple[str, str]]:
    """Return the commands of a README that ask the scorer, each with the JSON shown below it."""
    found = [*blocks(name), ("", "")]
    return [
        (text, below if kind == "json" else "")
        for (language, text), (kind, below) in pairwise(found)
        if language == "bash" and "localhost:8000" in text
    ]


needs_curl = pytest.mark.skipif(
    not shutil.which("jq") or not shutil.which("curl"), reason="needs curl and jq"
)


@needs_curl
@pytest.mark.parametrize("name", NAMES)
def test_the_readme_commands_have_the_answers_that_it_shows(name: str) -> None:
    with (
        served(Server().app()) as model,
        served(APPS[SHIPPED.get(name, name)](f"{model}/v1")) as url,
    ):
        for command, shown in asked_and_shown(name):
            code, out, err = typed(command.replace("http://localhost:8000", url))
            assert code == 0, err
            if shown:
                assert json.loads(out) == json.loads(shown), command
    assert asked_and_shown(name)[0][1]


@pytest.mark.parametrize(
    "name", ["sample", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in NAMES[1:])]
)
def test_the_readme_starts_it_on_what_the_image_holds(name: str, tmp_path: Path) -> None:
    """Start as the README tells, but on the files that the Dockerfile copies, and nothing else."""
    copy_as_the_image_does(name, tmp_path)
    start = next(text for _, text in blocks(name) if "python -m" in text)
    start = start.replace("sample_scorers.", "scorers.")
    with (
        served(Server().app()) as model,
        started(*on_a_free_port(start, f"{model}/v1"), cwd=tmp_path) as url,
    ):
        assert httpx.get(f"{url}/healthz", trust_env=False).status_code == 200


def typed(command: str) -> tuple[int, str, str]:
    """Run a command of a README; `dsf` runs in this process, where it is imported already."""
    program, *arguments = shlex.split(command)
    if program == "dsf":
        return invoked(root, *arguments)
    done = run("bash", "-c", command)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_every_further_way_to_start_it_in_a_readme_works(name: str) -> None:
    starts = [text for _, text in blocks(name) if "python -m" in text and "--port" in text]
    for start in starts[1:]:
        with started(*on_a_free_port(start, MODEL["VLLM_ENDPOINT"])) as url:
            assert httpx.get(f"{url}/docs", trust_env=False).status_code == 200


@pytest.mark.skipif(not shutil.which("envsubst"), reason="needs envsubst")
@pytest.mark.parametrize("name", NAMES)
def test_the_readme_applies_complete_manifests(name: str) -> None:
    """Each line is run as it is; `kubectl` prints what it would apply."""
    lines = [
        line for _, text in blocks(name) for line in text.splitlines() if "kubectl apply" in line
    ]
    kinds = list[str]()
    for line in lines:
        done = run("bash", "-c", f'kubectl() {{ cat "${{@: -1}}"; }}; set -e; {line}')
        assert done.returncode == 0, done.stderr
        kinds += [document["kind"] for document in yaml.safe_load_all(done.stdout)]
        unset = set(re.findall(r"\$\{(\w+)\}", done.stdout)) - set(PLACEHOLDERS)
        assert not unset, line
    assert "DynamicScorer" in kinds


def copy_as_the_image_does(name: str, target: Path) -> None:
    lines = (SCORERS / name / "Dockerfile").read_text().splitlines()
    ignored = shutil.ignore_patterns(*IGNORED)
    for source, folder in (line.split()[1:] for line in lines if line.startswith("COPY ")):
        if source.endswith("/"):
            shutil.copytree(SCORERS / source, target / folder, ignore=ignored)
        else:
            (target / folder).mkdir()
            shutil.copy(SCORERS / source, target / folder)
    for other in FOREIGN_TO_A_SCORER:
        (target / f"{other}.py").write_text("raise ImportError('no part of a scorer')")
    entry = json.loads(next(line for line in lines if line.startswith("ENTRYPOINT "))[11:])
    program = f"scorers.{SHIPPED.get(name, name)}"
    assert entry == ["python", "-m", program, "--host", "0.0.0.0"]  # noqa: S104  # in a container


def on_a_free_port(told: str, model_url: str) -> tuple[list[str], dict[str, str]]:
    """Return the command and its environment."""
    words = shlex.split(told.replace("\\\n", ""))
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    if "VLLM_ENDPOINT" in settings:
        settings["VLLM_ENDPOINT"] = model_url
    command = [word for word in words if "=" not in word]
    command[command.index("8000")] = "0"
    return [sys.executable, *command[1:]], settings


def copied(name: str, target: Path) -> Path:
    """Copy a sample as the README does, and return the folder of the copy."""
    commands = (SCORERS / "README.md").read_text().partition("mkdir my_scorers\n")[2]
    copy = next(line for line in commands.splitlines() if line.startswith("cp -r "))
    folder = target / "my_scorers"
    folder.mkdir()
    done = run(
        "bash", "-c", copy.replace("/sample ", f"/{name} ").replace(" my_scorers/", f" {folder}")
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(
    "name", ["sample", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in NAMES[1:])]
)
def test_a_copy_is_a_complete_program_with_tests_that_pass(name: str, tmp_path: Path) -> None:
    folder = copied(name, tmp_path)
    for other in (*FOREIGN_TO_A_SCORER, "sample_scorers", "tests"):
        (tmp_path / f"{other}.py").write_text("raise ImportError('no part of a copy')")
    for part in ("combination", "shared_model"):  # what a README says to delete
        shutil.rmtree(folder / name / part, ignore_errors=True)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    command = [sys.executable, "-m", f"my_scorers.{name}", "--port", "0"]
    with started(command, MODEL, cwd=tmp_path) as url:
        assert httpx.get(f"{url}/healthz", trust_env=False).status_code == 200


def test_a_used_port_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert sample(["--port", port]) == 1
    assert capsys.readouterr().err == (
        f"sample-scorer: cannot listen on 127.0.0.1 port {port}: "
        "the port is in use; choose another with --port\n"
    )


def test_a_request_is_refused_while_too_many_connections_are_open() -> None:
    command, warning = module("sample", "--port", "0"), "WARNING:  Exceeded concurrency limit."
    with started(command, warning=warning) as url, ExitStack() as stack:
        address = "127.0.0.1", int(url.rpartition(":")[2])
        for _ in range(MOST_CONNECTIONS):
            stack.enter_context(socket.create_connection(address))
        assert httpx.get(f"{url}/healthz", trust_env=False).status_code == 503
        stack.close()
        again = (httpx.get(f"{url}/healthz", trust_env=False).status_code for _ in count())
        assert 200 in again


@pytest.mark.exhaustive
def test_an_option_chooses_the_prometheus_before_the_environment() -> None:
    command = module("sample", "--port", "0", "--prometheus-url", "http://metrics:1/")
    with started(command, {"PROMETHEUS_URL": "http://metrics:2"}) as url:
        config = httpx.get(f"{url}/config", trust_env=False).json()
    assert config["source"]["host"] == "http://metrics:1"


@pytest.mark.exhaustive
def test_a_scores_file_replaces_the_tables(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "[{path: /mine, name: mine, description: mine, scoreName: m, interval: 5,"
        " scores: {a: {b: 7}}}]"
    )
    with started(module("static", "--port", "0", "--scores", str(file))) as url:
        answer = httpx.post(f"{url}/mine/scoring", json={"data": []}, trust_env=False)
    assert answer.json() == {"results": [{"metric": {"app": "a", "device": "b"}, "score": 7}]}


WRONG = [
    (ai_workload, ["--app", "app01"], {}, 2, "'app01' is not like app01=vllm-app01-*"),
    (ai_workload, ["--max-watts", "0"], {}, 2, "'0' is not a positive number"),
    (sample, ["--port", "70000"], {}, 2, "'70000' is not a port from 0 to 65535"),
    (sample, ["--port", "1", "--port=2"], {}, 2, "--port is given twice"),
    (sample, ["--host", "203.0.113.1"], {}, 1, "choose another with --host"),
    (sample, ["--prometheus-url", "prometheus"], {}, 2, "'prometheus' is not a URL"),
    (sample, [], {"PROMETHEUS_URL": "ftp://x"}, 2, "'ftp://x' is not a URL"),
    (static, ["--scores", "missing.yaml"], {}, 1, "cannot read missing.yaml: No such file"),
    (static, ["--scores", "README.md"], {}, 1, "README.md: "),
    (llm_forecast, [], {}, 2, "set VLLM_ENDPOINT and MODEL_NAME"),
    (llm_forecast, ["--deadline", "nan"], MODEL, 2, "'nan' is not a positive number"),
    (llm_forecast, ["--api", "soap"], MODEL, 2, "invalid choice: 'soap'"),
    (llm_forecast, ["--tokens-per-hour", "0"], MODEL, 2, "'0' is not a whole number of at least 1"),
    (llm_forecast, ["--model-token-file", "none"], MODEL, 2, "none is not a file with a token"),
    (llm_forecast, ["--concurrency", "0"], MODEL, 2, "'0' is not a whole number of at least 1"),
    (
        llm_forecast,
        ["--endpoint", "http://me:hidden@x"],
        MODEL,
        2,
        "a URL must not contain a password",
    ),
]


@pytest.mark.parametrize(("main", "options", "env", "code", "said"), WRONG)
def test_a_wrong_option_is_told_without_a_stack_trace(
    main: Callable[[list[str]], int],
    options: list[str],
    env: dict[str, str],
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("PROMETHEUS_URL", *MODEL):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    try:
        ended: object = main(options)
    except SystemExit as stopped:  # argparse's way
        ended = stopped.code
    last_line = capsys.readouterr().err.splitlines()[-1]
    assert ended == code
    assert said in last_line
    assert "hidden" not in last_line


def test_the_test_script_tells_how_it_is_used_and_hands_on_refusals() -> None:
    script = str(SCORERS / "sample/hack/test_scoring.sh")
    assert os.access(script, os.X_OK)
    assert run(script).returncode == 2
    assert "cannot read nothing.json" in run(script, "http://localhost:1", "nothing.json").stderr
    with served(APPS["sample"](NO_MODEL)) as url:
        refused = run(script, url, "pyproject.toml")
    assert refused.returncode != 0
    assert "the body is not JSON" in refused.stdout

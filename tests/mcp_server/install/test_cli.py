"""`dsf mcp install`: what it prints and writes, and what it leaves alone."""

import base64
import json
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.cli import mcp
from mcp_server.install.clients import CLIENTS
from tests.command_line import invoked
from tests.repository import ROOT

URL = "http://localhost:8338/mcp"
NAME = "dynamic-scoring-framework"
OTHERS = {
    "editor.tabSize": 4,
    "mcpServers": {"other": {"command": "other", "env": {"Ä": "ö"}}},
    "servers": {"other": {"type": "http", "url": "http://other"}},
    "inputs": [{"id": "other", "type": "promptString"}],
}


def install(client: str, *arguments: str) -> tuple[int, str, str]:
    return invoked(mcp, "install", "--client", client, *arguments)


def written(file: Path, client: str, *arguments: str) -> Any:
    code, _, err = install(client, "--file", str(file), "--write", *arguments)
    assert (code, err) == (0, "")
    return json.loads(file.read_text())


@pytest.mark.parametrize("client", CLIENTS)
def test_other_servers_and_settings_are_kept_and_a_second_time_changes_nothing(
    client: str, tmp_path: Path
) -> None:
    file = tmp_path / "folder" / "config.json"
    file.parent.mkdir()
    file.write_text(json.dumps(OTHERS, indent=4, ensure_ascii=False))
    file.chmod(0o600)
    config = written(file, client)
    key = CLIENTS[client].key
    started = config[key].pop(NAME)
    assert (started["command"], started["args"]) == (sys.executable, ["-m", "dsf", "mcp"])
    assert config == OTHERS
    after = file.read_text()
    assert after.startswith('{\n    "')
    assert "Ä" in after
    assert file.stat().st_mode & 0o777 == 0o600
    _, out, _ = install(client, "--file", str(file), "--write")
    assert "already" in out
    assert file.read_text() == after
    assert [path.name for path in file.parent.iterdir()] == ["config.json"]


@pytest.mark.parametrize(
    ("client", "entry"),
    [
        ("vscode", {"type": "http", "url": URL, "headers": "Bearer ${input:dsf-mcp-token}"}),
        ("claude", {"type": "http", "url": URL, "headers": "Bearer ${DSF_MCP_TOKEN}"}),
        ("cursor", {"url": URL, "headers": "Bearer ${env:DSF_MCP_TOKEN}"}),
        ("gemini", {"httpUrl": URL, "headers": "Bearer $DSF_MCP_TOKEN"}),
        ("windsurf", {"serverUrl": URL, "headers": "Bearer ${env:DSF_MCP_TOKEN}"}),
    ],
)
def test_a_token_is_read_by_the_client_and_never_written(
    client: str, entry: dict[str, Any], tmp_path: Path
) -> None:
    config = written(tmp_path / "new.json", client, "--url", URL)
    entry["headers"] = {"Authorization": entry["headers"]}
    assert config[CLIENTS[client].key] == {NAME: entry}
    bare = written(tmp_path / "bare.json", client, "--url", URL, "--no-token")
    assert "headers" not in bare[CLIENTS[client].key][NAME]
    assert "inputs" not in bare


def test_vs_code_asks_once_for_the_token(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps(OTHERS))
    first = written(file, "vscode", "--url", URL)
    second = written(file, "vscode", "--url", URL, "--name", "another")
    assert [item["id"] for item in first["inputs"]] == ["other", "dsf-mcp-token"]
    assert second["inputs"] == first["inputs"]
    assert set(second["servers"]) == {"other", NAME, "another"}


def test_printing_writes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    code, out, err = install("cursor", "--file", str(file))
    assert code == 0
    assert NAME in json.loads(out)["mcpServers"]
    assert str(file) in err
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_the_client_starts_has_the_options(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "hub.yaml"
    kubeconfig.write_text("{}")
    options = ["--kubeconfig", str(kubeconfig), "--context", "hub", "--allow-writes"]
    config = written(tmp_path / "mcp.json", "claude", *options)
    assert config["mcpServers"][NAME]["args"] == ["-m", "dsf", "mcp", *options]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{\n  "mcpServers": {\n    "a": 1,\n  }\n}', "line 4: not valid JSON"),
        ("{\n// mine\n}", "line 2: not valid JSON"),
        ("[]", "line 1: not a JSON object"),
        ('{\n"mcpServers": []}', 'line 2: "mcpServers" is not an object'),
        ('{"mcpServers": null}', 'line 1: "mcpServers" is not an object'),
        ('{"a": {"b": 1,\n"b": 2}}', 'line 2: "b" is there twice'),
        ('{\n\n"mcpServers": {"dynamic-scoring-framework": {}}}', "line 3: "),
        ("[" * 200_000, "nested too deeply"),
        (f'{{"a": {"[" * 700}{"]" * 700}}}', "nested too deeply"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ('{\n"a": "\\ud83d\\ude00",\n"b": "\\ud83d"}', "line 3: \\ud83d is half of a surrogate"),
        ('{"\\uDE00": 1}', "line 1: \\ude00 is half of a surrogate"),
    ],
)
def test_a_file_that_can_not_be_kept_whole_is_refused_with_its_line(
    text: str, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)
    code, out, err = install("cursor", "--file", str(file), "--write")
    assert (code, out) == (1, "")
    assert why in err
    assert "nothing was written" in err
    assert file.read_text() == text


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text())
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.fire(
    "a file of somebody else is kept, or left alone with a reason",
    "random configurations to dsf mcp install, whole and damaged",
)
@given(
    st.dictionaries(st.text() | st.sampled_from(("mcpServers", "servers")), DOCUMENTS, max_size=4),
    st.binary(max_size=4),
    st.integers(0, 200),
    st.sampled_from(list(CLIENTS)),
)
def test_any_file_is_kept_whole_or_left_as_it_was(
    kept: dict[str, Any], put: bytes, where: int, client: str
) -> None:
    before = json.dumps(kept, ensure_ascii=where % 2 == 0).encode(errors="surrogatepass")
    before = before[:where] + put + before[where:]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mcp.json"
        file.write_bytes(before)
        code, _, err = install(client, "--file", str(file), "--write")
        if code:
            assert (file.read_bytes(), err.count("\n"), err[:7]) == (before, 1, "Error: ")
            return
        old, new = json.loads(before or b"{}"), json.loads(file.read_bytes())
    assert new[CLIENTS[client].key].pop(NAME)
    old.setdefault(CLIENTS[client].key, {})
    assert json.dumps(new) == json.dumps(old)


def test_numbers_and_the_order_of_keys_stay_as_they_were_written(tmp_path: Path) -> None:
    numbers = ["1.0", "1e3", "-0", "1E+400", "0.10", "9" * 5000]
    file = tmp_path / "mcp.json"
    file.write_text('{\n  "z": [\n    ' + ",\n    ".join(numbers) + '\n  ],\n  "a": {}\n}\n')
    before = file.read_text()
    code, _, err = install("cursor", "--file", str(file), "--write")
    assert (code, err) == (0, "")
    assert file.read_text().startswith(before.removesuffix("\n}\n") + ",\n")


def test_escapes_stay_escapes_and_what_is_invisible_is_shown_as_one(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    raw = "\u202e\u200b"
    texts = r'{"a\u202eb": "\u202e\u0041 \/", "c": "é \ud83d\ude00", "d": "' + raw + '"'
    file.write_text(texts + "}", "utf-8")
    code, out, _ = install("cursor", "--file", str(file))
    assert code == 0
    assert "\u202e" not in out
    assert out.count(r"\u202e") == 3
    assert install("cursor", "--file", str(file), "--write")[0] == 0
    after = file.read_text("utf-8")
    for part in texts.removeprefix("{").split(", "):
        assert part in after


@pytest.mark.parametrize("write", [[], ["--write"]])
def test_a_file_that_may_have_no_end_is_not_opened(write: list[str], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    for file in (pipe, Path("/dev/zero")):
        code, out, err = install("cursor", "--file", str(file), *write)
        assert (code, out) == (1, "")
        assert err == (
            f"Error: {file}: it is not a regular file; write its text to one; nothing was written\n"
        )


def test_an_entry_that_differs_is_replaced_only_if_asked(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    written(file, "cursor", "--url", URL)
    code, _, err = install("cursor", "--file", str(file), "--write")
    assert code == 1
    assert "--replace" in err
    config = written(file, "cursor", "--replace")
    assert config["mcpServers"][NAME]["command"] == sys.executable


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles.json", tmp_path / "mcp.json"
    real.write_text("\ufeff{}")
    link.symlink_to(real)
    written(link, "cursor")
    assert link.is_symlink()
    assert NAME in json.loads(real.read_text())["mcpServers"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--client", "emacs"), "'emacs' is not one of"),
        (("--client", "claude-desktop", "--url", URL), "starts its servers itself"),
        (("--client", "cursor", "--url", "localhost"), "is not an http or https URL"),
        (("--client", "cursor", "--url", URL, "--allow-writes"), "runs already"),
        (("--client", "cursor", "--no-token"), "--no-token needs --url"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], why: str) -> None:
    code, _, err = invoked(mcp, "install", *arguments)
    assert code == 2
    assert why in err


def test_an_option_before_install_is_refused() -> None:
    code, _, err = invoked(mcp, "--allow-writes", "install", "--client", "cursor")
    assert code == 2
    assert "before install has no effect" in err


def test_a_file_that_can_not_be_used_is_one_line(tmp_path: Path) -> None:
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe")
    (tmp_path / "file").write_text("")
    for path in (binary, tmp_path / "file" / "mcp.json"):
        code, _, err = install("cursor", "--file", str(path), "--write")
        assert code == 1
        assert str(path) in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("vscode",), ["code", "--add-mcp"]),
        (("claude",), ["claude", "mcp", "add-json", NAME]),
        (("copilot",), ["copilot", "mcp", "add", NAME, "--", sys.executable, "-m", "dsf", "mcp"]),
        (("codex",), ["codex", "mcp", "add", NAME, "--", sys.executable, "-m", "dsf", "mcp"]),
        (
            ("codex", "--url", URL),
            f"codex mcp add {NAME} --url {URL} --bearer-token-env-var DSF_MCP_TOKEN".split(),
        ),
    ],
)
def test_a_line_is_a_command_of_the_client(arguments: tuple[str, ...], words: list[str]) -> None:
    code, out, err = install(*arguments, "--one-line")
    assert (code, err, out.count("\n")) == (0, "", 1)
    said = shlex.split(out)
    assert said[: len(words)] == words
    if words[-1] in ("--add-mcp", NAME):
        assert json.loads(said[-1])["args"] == ["-m", "dsf", "mcp"]


def test_a_line_is_a_link_that_the_client_opens() -> None:
    cursor, goose = (urlsplit(install(each, "--one-line")[1]) for each in ("cursor", "goose"))
    asked = dict(parse_qsl(cursor.query))
    entry = {"command": sys.executable, "args": ["-m", "dsf", "mcp"]}
    assert (cursor.scheme, asked["name"]) == ("cursor", NAME)
    assert json.loads(base64.b64decode(asked["config"])) == entry
    assert goose.scheme == "goose"
    assert parse_qsl(goose.query)[:4] == [
        ("cmd", sys.executable),
        *(("arg", word) for word in entry["args"]),
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("goose", "--url", URL),
        ("copilot", "--url", URL),
        ("vscode", "--url", URL, "--one-line"),
        ("gemini", "--one-line"),
        ("codex", "--write"),
    ],
)
def test_a_client_without_such_a_line_says_so(arguments: tuple[str, ...]) -> None:
    code, out, err = install(*arguments)
    assert (code, out) == (2, "")
    assert "line" in err


def test_the_buttons_of_the_guide_start_the_published_package() -> None:
    page = (ROOT / "docs/how-to/assistants.md").read_text()
    [vscode] = re.findall(r"\((https://insiders\.vscode\.dev/\S+)\)", page)
    [cursor] = re.findall(r"\((https://cursor\.com/\S+)\)", page)
    found = [dict(parse_qsl(urlsplit(link).query)) for link in (vscode, cursor)]
    configs = [json.loads(found[0]["config"]), json.loads(base64.b64decode(found[1]["config"]))]
    for config in configs:
        assert config["command"] == "uvx"
        assert config["args"] == ["--from", f"{NAME}[mcp]", "dsf", "mcp"]

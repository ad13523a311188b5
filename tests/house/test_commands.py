"""Commands in the documents have commands and options of `dsf`, and targets of make, that exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dsf.cli.root import root
from tests.house.test_documents import DOCUMENTS, ROOT, shown

BLOCK = re.compile(r"^```(?:bash|sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BETWEEN = re.compile(r"\||&&|;|\$\(|\)")
NOT_HERE = {"podman", "docker", "kind", "clusteradm", "oc", "skupper", "cosign", "gh"}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def called(block: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a block."""
    for line in block.replace("\\\n", " ").splitlines():
        for command in BETWEEN.split(line):
            try:
                yield shlex.split(command, comments=True)
            except ValueError:  # a text in quotes that was cut, such as a program of jq
                continue


def called_in(document: Path) -> Iterator[list[str]]:
    """Yield the words of each simple command of a document."""
    for block in BLOCK.findall(document.read_text()):
        yield from called(block)


def unknown(words: list[str]) -> Iterator[str]:
    """Yield what a command names that does not exist."""
    for position, word in enumerate(words):
        if Path(word).name == "dsf":
            yield from unknown_of_dsf(words[position + 1 :])
            return
    if words[:1] == ["make"]:
        targets = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        yield from (f"make {target}" for target in targets if target not in TARGETS)


def unknown_of_dsf(words: list[str]) -> Iterator[str]:
    command: click.Command = root
    context = click.Context(root)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            yield f"dsf {words[0]}"
            return
        command, words = found, words[1:]
    names = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    known = names | {"--help", "--version"}
    yield from (f"{option} of dsf {command.name}" for option in sorted(options - known))


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_every_command_and_option_exists(document: Path) -> None:
    assert [name for words in called_in(document) for name in unknown(words)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_programs_that_do_not_run_here_are_marked(document: Path) -> None:
    """A page says which of its commands nobody ran: they need containers or the internet."""
    used = {words[0] for words in called_in(document) if words and words[0] in NOT_HERE}
    _, _, rest = document.read_text().partition("**Not run in our tests**: ")
    said = rest.partition("\n\n")[0]
    assert {name for name in used if name not in said} == set()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["dsf", "nosuch"], "dsf nosuch"),
        ([".venv/bin/dsf", "scores", "--nosuch=1"], "--nosuch of dsf scores"),
        (["dsf", "scorer", "check", "--nosuch"], "--nosuch of dsf check"),
        (["make", "nosuch", "ARGS=x"], "make nosuch"),
    ],
)
def test_what_does_not_exist_is_named(words: list[str], name: str) -> None:
    assert list(unknown(words)) == [name]

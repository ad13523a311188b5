"""The options that say who may call, as a person types them."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dsf.cli.root import root

OPEN = "--auth none would let everybody who reaches"
COMMANDS = (("optimizer",), ("mcp", "--transport", "http"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, [*arguments, "--port", "0"])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("address", ["0.0.0.0", "::"])  # noqa: S104 - it is refused
def test_nobody_is_let_in_unknown_from_elsewhere(command: tuple[str, ...], address: str) -> None:
    result = run(*command, "--auth", "none", "--bind-address", address)
    assert result.exit_code == 2
    assert result.output.splitlines()[-1].startswith(f"Error: {OPEN} {address}")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("arguments", "warns"),
    [
        (["--bind-address", "0.0.0.0"], True),  # noqa: S104 - nobody asks it
        (["--bind-address", "0.0.0.0", "--tls-secret", "a/tls"], False),  # noqa: S104
        ([], False),
    ],
)
def test_tokens_over_plain_http_from_elsewhere_are_told(
    command: tuple[str, ...], arguments: list[str], warns: bool, tmp_path: Path
) -> None:
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text("not: a kubeconfig")
    result = run(*command, "--kubeconfig", str(nowhere), *arguments)
    assert result.exit_code == 1
    assert ("callers send their tokens over plain HTTP" in result.output) is warns


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--auth", "none", "--impersonate"], "--impersonate needs --auth kubernetes"),
        (
            ["--auth", "none", "--oauth-issuer", "https://a"],
            "--oauth-issuer needs --auth kubernetes",
        ),
        (["--resource-url", "https://a"], "--resource-url needs --oauth-issuer"),
        (["--oauth-issuer", "login.example"], "is not an http or https URL"),
        (["--requests-per-second", "-1"], "is not in the range"),
        (["--auth", "nobody"], "'nobody' is not one of 'kubernetes', 'none'"),
        (["--tls-cert-file", "nowhere.crt"], "'nowhere.crt' does not exist"),
        (["--tls-secret", "tls"], "'tls' is not of the form namespace/name"),
        (
            ["--tls-secret", "a/tls", "--tls-cert-file", __file__],
            "--tls-secret and --tls-cert-file: choose one",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    command: tuple[str, ...], arguments: list[str], message: str
) -> None:
    result = run(*command, *arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize("command", COMMANDS)
def test_a_certificate_needs_its_key(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "tls.crt").write_text("")
    result = run(*command, "--tls-cert-file", str(tmp_path / "tls.crt"))
    assert result.exit_code == 2
    assert "--tls-cert-file and --tls-private-key-file need each other" in result.output


@pytest.mark.parametrize("command", COMMANDS)
def test_a_certificate_that_is_none_is_one_line(command: tuple[str, ...], tmp_path: Path) -> None:
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).write_text("nothing")
    files = ("--tls-cert-file", str(tmp_path / "tls.crt"))
    result = run(*command, *files, "--tls-private-key-file", str(tmp_path / "tls.key"))
    assert result.exit_code == 1
    assert "can't be used" in result.output.splitlines()[-1]


def test_standard_input_has_no_callers_to_authenticate() -> None:
    result = CliRunner().invoke(root, ["mcp", "--auth", "kubernetes"])
    assert "--auth needs --transport http" in result.output

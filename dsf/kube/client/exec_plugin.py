"""Run a client-go credential plugin and read the credential that it prints.

Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dsf.kube.client.client_config import BadKubeconfig, ExecPlugin
from dsf.kube.redaction import redact

LONGEST_SECONDS = 60.0
"""Time limit of a plugin: enough for a slow token request."""
LONGEST_MESSAGE = 200
"""Characters of the output of a failed plugin that a message quotes."""


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """The credential that a plugin printed."""

    token: str | None = field(repr=False)
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    expires: datetime | None = None


async def run(plugin: ExecPlugin) -> ExecCredential:
    """Run a plugin without a terminal, so it cannot prompt. Raises BadKubeconfig."""
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=_environment(plugin),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise _failed(plugin, error.strerror or "it cannot be run", plugin.install_hint) from None
    output, complaint = await _output(plugin, process)
    if process.returncode:
        last = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        raise _failed(plugin, f"exit code {process.returncode}", redact(last)[:LONGEST_MESSAGE])
    return parse(plugin, output)


def parse(plugin: ExecPlugin, output: bytes) -> ExecCredential:
    """Parse the output of a plugin. Raises BadKubeconfig."""
    try:
        status = json.loads(output)["status"]
        credential = _credential(status)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _failed(plugin, "it printed no ExecCredential") from None
    if not credential.token and not (credential.certificate and credential.key):
        raise _failed(plugin, "it printed neither a token nor a certificate with its key")
    return credential


def _credential(status: Mapping[str, Any]) -> ExecCredential:
    token = status.get("token")
    if token is not None and not isinstance(token, str):
        raise TypeError("the token is not text")
    certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
    expires = status.get("expirationTimestamp")
    return ExecCredential(
        token=token,
        certificate=certificate.encode() if certificate else None,
        key=key.encode() if key else None,
        expires=_time(expires) if expires else None,
    )


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


async def _output(plugin: ExecPlugin, process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            return await process.communicate()
    except TimeoutError:
        raise _failed(plugin, f"it ran longer than {LONGEST_SECONDS:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _environment(plugin: ExecPlugin) -> dict[str, str]:
    info = {
        "apiVersion": plugin.api_version,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    return {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _failed(plugin: ExecPlugin, problem: str, detail: str = "") -> BadKubeconfig:
    return BadKubeconfig(
        f"kubeconfig: exec plugin {plugin.command}: {problem}"
        + (f": {' '.join(detail.split())}" if detail else "")
    )

"""Ask a component whether it is healthy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from tests.eventually import until

if TYPE_CHECKING:
    from .processes import Processes


def wait_healthy(processes: Processes, name: str, url: str) -> None:
    """Wait until a process answers its health endpoint; raises ProcessDied or TimeoutError."""
    until(f"{name} to be healthy", lambda: healthy(url), check=lambda: processes.check(name))


def healthy(url: str) -> bool:
    """Whether an endpoint responds with success. Certificates are not verified."""
    try:
        return httpx.get(url, verify=False, trust_env=False).is_success  # noqa: S501 - on loopback, see above
    except httpx.TransportError:
        return False

"""Connect to an API server: find the credentials and yield a client."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from dsf.kube.client.client_config import SERVICE_ACCOUNT, BadKubeconfig
from dsf.kube.client.credentials import find_source
from dsf.kube.client.kube_client import Client
from dsf.kube.client.transport import Transport

__all__ = ["BadKubeconfig", "connect"]


@asynccontextmanager
async def connect(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> AsyncIterator[Client]:
    """Yield a client for the API server that kubectl would talk to.

    It takes the first of: an explicit file, $KUBECONFIG, ~/.kube/config, a pod's service account.
    It sends nothing yet. Raises BadKubeconfig with a message of one line for the user.
    """
    transport = Transport(
        find_source(kubeconfig, context, environ=environ, service_account=service_account)
    )
    await transport.open()
    try:
        yield Client(transport)
    finally:
        await transport.close()

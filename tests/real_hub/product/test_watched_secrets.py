"""The agent's watch of Secrets, with no more rights than the chart gives it."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from dsf.agent.fetch.credentials import AgentSecrets, CalledEndpoint, WatchedSecrets
from dsf.agent.fetch.http_client import HttpClient
from dsf.agent.fetch.issued_tokens import IssuedTokens
from dsf.agent.wire.secret_data import Token
from dsf.kube.client.connect import connect
from dsf.kube.errors import Forbidden
from dsf.kube.kinds import SECRET
from tests.eventually import eventually

from .test_install import rendered

if TYPE_CHECKING:
    from pathlib import Path

    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub

NAMESPACE, ACCOUNT = "watched-secrets", "dynamic-scoring-agent-sa"


@pytest.fixture
def account(hub: Hub, east: ManagedCluster) -> Path:
    """A kubeconfig with the rights of an agent whose chart names one Secret."""
    named = json.dumps(["api-auth"])
    manifests = rendered(hub, f"--set-json=spokeSetting.agent.secretNames={named}")
    east.namespace(NAMESPACE)
    for obj in manifests:
        if obj["kind"] in {"ServiceAccount", "Role", "RoleBinding"}:
            east.apply(moved(obj))
    for name in ("api-auth", "of-nobody"):
        east.apply(secret(name, "first"))
    return east.kubeconfig(service_account=f"{NAMESPACE}/{ACCOUNT}")


def moved(obj: Object) -> Object:
    """The object, and the subjects of a binding, in this test's namespace."""
    inside = {**obj, "metadata": {**obj["metadata"], "namespace": NAMESPACE}}
    if "subjects" in obj:
        inside["subjects"] = [{**one, "namespace": NAMESPACE} for one in obj["subjects"]]
    return inside


def secret(name: str, token: str) -> Object:
    """A Secret with a token."""
    value = base64.b64encode(token.encode()).decode()
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"token": value}}


async def test_the_secret_named_is_watched_and_no_other_can_be_seen(
    east: ManagedCluster, account: Path
) -> None:
    async with connect(account) as kube:
        watched = WatchedSecrets(kube, NAMESPACE, ["api-auth"])
        running = asyncio.create_task(watched.run())
        secrets = AgentSecrets(kube, NAMESPACE, IssuedTokens(HttpClient()), watched=watched)
        for token in ("first", "second"):
            await asyncio.to_thread(east.apply, secret("api-auth", token))
            await until_sent(secrets, watched, token)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        with pytest.raises(Forbidden):
            await kube.get(SECRET, "of-nobody", NAMESPACE)
        for fields in ("", "metadata.name=of-nobody"):
            with pytest.raises(Forbidden):
                await kube.list(SECRET, NAMESPACE, fields=fields)


async def until_sent(secrets: AgentSecrets, watched: WatchedSecrets, token: str) -> None:
    """Wait until calls send the token without a request to the API server."""

    async def sent() -> bool:
        known = watched.find("api-auth") is not None
        endpoint = CalledEndpoint("https://a/", "api-auth", "token")
        return known and await secrets.token(endpoint) == Token(token)

    await eventually(sent)

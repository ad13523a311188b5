"""An assistant on a real hub under its user's own rights: a whole task, and a reader's refusal."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StreamableHttpTransport

from dsf.kube.client.connect import connect
from dsf.kube.clock import utc_now
from mcp_server.app import create_service_app
from optimizer.api.serving import listen, serve, url
from optimizer.operations.access.authorized_optimizer import Access
from optimizer.operations.access.delegated_auth import DEFAULT_AUDIENCE, DelegatedAuth
from optimizer.service.optimizer import Optimizer
from tests.eventually import eventually, until
from tests.mcp_server.strict_play import StrictAssistant, play
from tests.mcp_server.strict_reader import read_truth

from .test_placement_plans import CLUSTERS, MANIFEST, SCORE, decided, prefer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from .harness.hub import Hub

RULES = {
    "assistant-reader": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}],
    "assistant-writer": [
        {
            "apiGroups": ["cluster.open-cluster-management.io"],
            "resources": ["placements"],
            "verbs": ["*"],
        },
        {
            "apiGroups": ["policy.open-cluster-management.io"],
            "resources": ["placementbindings", "policies"],
            "verbs": ["*"],
        },
    ],
}
RBAC = "rbac.authorization.k8s.io/v1"

pytestmark = pytest.mark.usefixtures("clusters", "placement_plans")


@pytest.fixture
def place(hub: Hub, bound_namespace: str) -> Iterator[str]:
    """A namespace with a workload that both clusters have a score for, and two users' roles."""
    hub.apply(MANIFEST.format(name="app", namespace=bound_namespace))
    for cluster in CLUSTERS:
        metadata = {"name": "worth", "namespace": cluster}
        hub.apply({"apiVersion": SCORE[0], "kind": SCORE[1], "metadata": metadata})
    for name, rules in RULES.items():
        role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}}
        hub.apply({**role, "rules": rules})
    yield bound_namespace
    for cluster in CLUSTERS:
        hub.api.delete(*SCORE, "worth", cluster)


def user(hub: Hub, namespace: str, name: str, *roles: str) -> str:
    """Make a service account that has roles in one namespace, and reads all; return its token."""
    metadata = {"name": name, "namespace": namespace}
    hub.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    subject = {"kind": "ServiceAccount", **metadata}
    everywhere = {"kind": "ClusterRoleBinding", "metadata": {"name": f"{namespace}-{name}"}}
    bindings = [("assistant-reader", everywhere)]
    bindings += [(role, {"kind": "RoleBinding", "metadata": metadata}) for role in roles]
    for role, binding in bindings:
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        hub.apply({"apiVersion": RBAC, **binding, "roleRef": reference, "subjects": [subject]})
    return hub.token(f"{namespace}/{name}", audiences=[DEFAULT_AUDIENCE])


@asynccontextmanager
async def served(hub: Hub) -> AsyncIterator[str]:
    """Serve the product, which writes as its callers; yield the URL of /mcp."""
    async with connect(hub.admin_kubeconfig) as kube:
        access = Access(DelegatedAuth(kube), kube.impersonating)
        optimizer = Optimizer(kube, now=utc_now)
        app = create_service_app(optimizer, read_only=False, access=access, hub_name=kube.server)
        with listen("127.0.0.1", 0) as listener:
            task = asyncio.create_task(serve(app, listener))
            try:
                yield f"{url(listener)}/mcp"
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


async def yes(*_: object) -> ElicitResult[Any]:
    return ElicitResult(action="accept", content={"confirm": True})


def assistant(address: str, token: str, era: Any, user: Any = yes) -> Client[Any]:
    headers = {"Authorization": f"Bearer {token}"}
    transport = StreamableHttpTransport(address, headers=headers)
    return Client(transport, mode=era, elicitation_handler=user)


def body(namespace: str) -> dict[str, Any]:
    return {
        "namespace": namespace,
        "clusters": [{"name": name, "allocatable": "gpu/all=2"} for name in CLUSTERS],
        "targetWorkloads": [{"name": "app"}],
        "preference": {"addonPlacementScore": "worth"},
    }


async def call(client: Client[Any], tool: str, **arguments: Any) -> Any:
    return (await client.call_tool(tool, arguments)).structured_content


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_an_assistant_moves_a_workload_follows_it_and_takes_it_back(
    hub: Hub, place: str, era: str
) -> None:
    async def task() -> None:
        token = await asyncio.to_thread(user, hub, place, "writer", "assistant-writer")
        async with served(hub) as address, assistant(address, token, era) as client:
            seen = await call(client, "fleet_overview", namespace=place)
            assert "app" in [item["name"] for item in seen["workloads"]]
            for best in CLUSTERS:
                await asyncio.to_thread(prefer, hub, best)
                plan = await call(client, "plan_placement", request=body(place))
                assert [item["cluster"] for item in plan["moves"][0]["after"]] == [best]
                why = await call(
                    client,
                    "explain_placement",
                    workload="app",
                    digest=plan["digest"],
                    namespace=place,
                )
                assert best in why["answer"]
                await call(client, "apply_plan", digest=plan["digest"])
                await asyncio.to_thread(until_on, hub, place, best)
                followed = await call(client, "follow_rollout", namespace=place)
                assert followed["current"] == plan["digest"]
            back = await call(client, "rollback", namespace=place)
            if back["plan"]:  # because the server can't ask this client
                await call(client, "apply_plan", digest=back["plan"]["digest"])
            await asyncio.to_thread(until_on, hub, place, CLUSTERS[0])

    asyncio.run(task())


def test_each_sentence_that_an_assistant_is_told_is_true_on_the_hub(hub: Hub, place: str) -> None:
    def preferring(best: str) -> Any:
        async def arguments() -> dict[str, Any]:
            await asyncio.to_thread(prefer, hub, best)
            return {"request": body(place)}

        return arguments

    async def task() -> None:
        token = await asyncio.to_thread(user, hub, place, "strict", "assistant-writer")
        async with connect(hub.admin_kubeconfig) as kube, served(hub) as address:
            strict = StrictAssistant(kube, place, kube.server)
            async with assistant(address, token, "auto", strict.user) as client:
                plans = [preferring(best) for best in CLUSTERS]

                async def runs_where_it_is_placed() -> bool:
                    truth = await read_truth(kube, place)
                    # After a reset OCM leaves what runs, or seldom stops it.
                    return truth.placed <= truth.available and len(truth.available) <= 1

                await play(
                    strict, client, place, plans, lambda: eventually(runs_where_it_is_placed)
                )
        for rule in ("_at_stake", "_applied", "_repeated", "_not_in_force", "_deleted"):
            assert strict.checked[rule] > 0, rule

    asyncio.run(task())


def test_a_reader_sees_and_plans_and_the_api_server_refuses_its_write(hub: Hub, place: str) -> None:
    async def task() -> None:
        await asyncio.to_thread(prefer, hub, "east")
        token = await asyncio.to_thread(user, hub, place, "reader")
        async with served(hub) as address, assistant(address, token, "auto") as client:
            plan = await call(client, "plan_placement", request=body(place))
            applying = {"digest": plan["digest"]}
            refused = await client.call_tool("apply_plan", applying, raise_on_error=False)
        assert refused.is_error
        said = refused.content[0].text
        assert f"user system:serviceaccount:{place}:reader may not" in said
        assert "create placements.cluster.open-cluster-management.io" in said

    asyncio.run(task())
    assert decided(hub, place) == set()


def until_on(hub: Hub, namespace: str, cluster: str) -> None:
    until(f"app on {cluster}", lambda: decided(hub, namespace) == {cluster})

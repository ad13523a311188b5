"""Completion reads the hub once for the keys that a person types, and for each user alone."""

from mcp_server.prompts import NAMES_SECONDS, NameCompletion
from optimizer.operations.access.authorized_optimizer import Access, AuthorizedOptimizer
from optimizer.operations.access.delegated_auth import DelegatedAuth
from optimizer.operations.access.rights import status_rights
from optimizer.service.optimizer import Optimizer
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.mcp_server.service import POWER, scenario_hub
from tests.optimizer.build import NOW
from tests.optimizer.operations.access.callers import READER, STRANGER, TOKENS, reads


async def test_the_fleet_is_read_once_for_the_keys_of_a_name() -> None:
    now = [0.0]
    hub = Counting(await scenario_hub())
    names, caller = (
        NameCompletion(lambda: now[0]),
        AuthorizedOptimizer(Optimizer(hub, now=lambda: NOW)),
    )

    async def typed(*keys: str) -> int:
        """Return how often the hub was asked for the keys."""
        before = hub.calls.total()
        for key in keys:
            found = await names.completed(caller, "name", key, {"cluster": "worker01"})
            assert POWER in found.values
        return hub.calls.total() - before

    once = await typed("p", "po", "pow")
    assert 0 < once < 20
    assert await typed("powe") == 0
    now[0] += NAMES_SECONDS
    assert await typed("power") == once


async def test_a_user_is_not_shown_what_another_one_may_see() -> None:
    rights = {READER.name: [*reads("default"), *status_rights("default")]}
    hub = await scenario_hub(AccessTable(TOKENS, rights))
    names, access = NameCompletion(), Access(DelegatedAuth(hub))
    shown = []
    for user in (READER, STRANGER):
        caller = AuthorizedOptimizer(Optimizer(hub, now=lambda: NOW), user, access)
        shown.append((await names.completed(caller, "cluster", "", {})).values)
    assert shown == [["worker01", "worker02"], []]

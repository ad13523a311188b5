"""Each operation of the table refuses who lacks rights, whatever declares them."""

from typing import Any

import pytest

from dsf.kube.access_reviews import Right, UserInfo
from optimizer.follow.overview.constraints.constraint_fields import ConstraintsRequest
from optimizer.follow.overview.plan_request import PlanRequest
from optimizer.operations.access.authorized_optimizer import Access, AuthorizedOptimizer
from optimizer.operations.access.delegated_auth import DelegatedAuth
from optimizer.operations.operation import Operation, operation
from optimizer.operations.table import OPERATIONS
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import ResetRequest, RollbackRequest
from optimizer.wire.request_problem import RequestProblem
from tests.optimizer.build import NOW, request
from tests.optimizer.hubs import hub_of
from tests.optimizer.operations.access.callers import STRANGER, table

REQUESTS = {
    "reset": ResetRequest(namespace="default"),
    "optimize": request(),
    "plan": PlanRequest(objective={"performance": 1}),
    "rollback": RollbackRequest(namespace="default"),
    "keep_constraints": ConstraintsRequest(namespace="default"),
}
WORDS = {
    "namespace": "default",
    "optimization": "default",
    "command": "pause",
    "digest": "0" * 64,
    "score": "performance",
    "cluster": "worker01",
}


@pytest.mark.parametrize("asked", OPERATIONS, ids=lambda item: item.name)
@pytest.mark.parametrize(("user", "status"), [(None, 401), (STRANGER, 403)])
async def test_nobody_and_a_stranger_are_refused(
    asked: Operation[..., Any], user: UserInfo | None, status: int
) -> None:
    hub = await hub_of(access=table())
    access = Access(DelegatedAuth(hub))
    optimizer = AuthorizedOptimizer(Optimizer(hub, now=lambda: NOW), user, access)
    parts = {**WORDS, "request": REQUESTS.get(asked.name)}
    given = {name: parts[name] for name in asked.parameters if name in parts}
    refused = await asked(optimizer, **given)
    assert isinstance(refused, RequestProblem)
    assert refused.status == status


def test_rights_that_name_no_part_of_the_request_are_an_error_at_the_start() -> None:
    def rights(cluster: str) -> tuple[Right, ...]:
        raise AssertionError(cluster)

    with pytest.raises(TypeError, match="cluster"):

        @operation(rights=rights)
        async def asked(optimizer: AuthorizedOptimizer, namespace: str) -> str:
            raise AssertionError(optimizer, namespace)

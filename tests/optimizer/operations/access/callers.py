"""Three callers of the optimizer, with their tokens and their rights on the hub."""

from datetime import timedelta

from dsf.kube.access_reviews import ResourceAttributes, UserInfo, right
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    PLACEMENT,
    PLACEMENT_BINDING,
    PLACEMENT_DECISION,
    PLACEMENT_PLAN,
    POLICY,
)
from optimizer.operations.access.delegated_auth import DEFAULT_AUDIENCE
from tests.kube_wrappers.reviewing_hub import AccessTable, IssuedToken
from tests.optimizer.build import NOW

AUDIENCE = (DEFAULT_AUDIENCE,)
STRANGER, READER, WRITER = (
    UserInfo(f"system:serviceaccount:default:{name}", uid=f"uid-of-{name}", groups=("guests",))
    for name in ("stranger", "reader", "writer")
)
TOKENS = {
    "token-of-stranger": IssuedToken(STRANGER, AUDIENCE),
    "token-of-reader": IssuedToken(READER, AUDIENCE),
    "token-of-writer": IssuedToken(WRITER, AUDIENCE),
    "token-for-the-api-server": IssuedToken(WRITER),
    "token-of-yesterday": IssuedToken(WRITER, AUDIENCE, expires=NOW - timedelta(days=1)),
}


def reads(*namespaces: str) -> list[ResourceAttributes]:
    """The rights to plan in these namespaces."""
    fleet = [right("list", ADD_ON_PLACEMENT_SCORE), right("list", MANAGED_CLUSTER)]
    return fleet + [
        right("list", kind, namespace)
        for kind in (POLICY, MANIFEST_WORK_REPLICA_SET)
        for namespace in namespaces
    ]


def writes(*namespaces: str) -> list[ResourceAttributes]:
    """The rights to write Placements and PlacementBindings in these namespaces, and to list them.

    What becomes of them, too: writes tell it.
    """
    return [
        right(verb, kind, namespace)
        for verb in ("create", "delete", "list")
        for kind in (PLACEMENT, PLACEMENT_BINDING)
        for namespace in namespaces
    ] + [
        right("list", kind, namespace)
        for kind in (PLACEMENT_DECISION, PLACEMENT_PLAN)
        for namespace in namespaces
    ]


def table() -> AccessTable:
    """The reader plans in both namespaces; the writer also applies in one of them."""
    rights = {
        READER.name: reads("default", "other"),
        WRITER.name: [*reads("default", "other"), *writes("default")],
    }
    return AccessTable(TOKENS, rights)

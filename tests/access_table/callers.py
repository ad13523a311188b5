"""The columns of the table: who asks, and the rights that each has on the hub."""

from typing import NamedTuple

from dsf.kube.access_reviews import Right, UserInfo, right
from dsf.kube.kinds import (
    EVENT,
    KINDS,
    LEASE,
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    PLACEMENT,
    PLACEMENT_BINDING,
    PLACEMENT_OPTIMIZATION,
    PLACEMENT_PLAN,
    SECRET,
)
from optimizer.operations.access.rights import (
    approving_rights,
    constraining_rights,
    describing_rights,
    fleet_rights,
    listing_rights,
    naming_rights,
    record_rights,
    scraping_rights,
    writing_rights,
)
from tests.kube_wrappers.reviewing_hub import AccessTable, IssuedToken
from tests.optimizer.neighbours import TEAM
from tests.optimizer.operations.access.callers import AUDIENCE

OWN = "system:serviceaccount:dynamic-scoring:optimizer"
"""Who the optimizer itself is on the hub."""

Rights = tuple[Right, ...]


class Caller(NamedTuple):
    """A column: `says` tells on the page who it is.

    `impersonated`: the server writes as this user, and has no right of its own to write Placements.
    """

    name: str
    says: str
    rights: Rights = ()
    has_token: bool = True
    impersonated: bool = False

    @property
    def user(self) -> UserInfo:
        return UserInfo(f"system:serviceaccount:default:{self.slug}", uid=f"uid-of-{self.slug}")

    @property
    def slug(self) -> str:
        return self.name.replace(" ", "-")

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer token-of-{self.slug}"} if self.has_token else {}


def reads_scores() -> Rights:
    """The chart's ClusterRole for readers."""
    return (*listing_rights(None), right("list", MANAGED_CLUSTER), *describing_rights())


def plans(namespace: str) -> Rights:
    return (*reads_scores(), *fleet_rights(namespace), *record_rights(namespace))


def writes(namespace: str) -> Rights:
    """Both ClusterRoles of the chart, the one for writers in one namespace."""
    changed = (
        right(verb, kind, namespace)
        for kind in (PLACEMENT, PLACEMENT_BINDING)
        for verb in ("get", "patch", "update")
    )
    approves = approving_rights(namespace)
    return (*plans(namespace), *writing_rights(namespace), *changed, *approves)


ANNOTATED = (MANAGED_CLUSTER, MANIFEST_WORK_REPLICA_SET)
EVERYTHING = (
    *writes("default"),
    *naming_rights(),
    *scraping_rights(),
    *constraining_rights("default", ANNOTATED),
)
CALLERS = (
    Caller("nobody", "sends no token", has_token=False),
    Caller("stranger", "has a token, and no right on the hub"),
    Caller("reader", "may list scores, scorers and clusters", reads_scores()),
    Caller("planner", "a reader who may list all that plans show in `default`", plans("default")),
    Caller("writer elsewhere", f"may plan and write in `{TEAM}` alone", writes(TEAM)),
    Caller(
        "blind writer",
        "may create and delete Placements and PlacementBindings in `default`, and list nothing",
        writing_rights("default"),
    ),
    Caller("writer", "a planner who may write in `default`", writes("default")),
    Caller(
        "impersonated",
        "the writer, at a server with `--impersonate`, which may write no Placement itself",
        writes("default"),
        impersonated=True,
    ),
    Caller(
        "administrator",
        "a writer who may also list the objects of all namespaces, get `/metrics`, and annotate"
        " workloads in `default` and managed clusters",
        EVERYTHING,
    ),
)


def own_rights(*, impersonates: bool) -> Rights:
    """What the optimizer itself may: read everything, and write what it records."""
    kept = (LEASE, PLACEMENT_PLAN, PLACEMENT_OPTIMIZATION, SECRET, EVENT)
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete")
    listed = tuple(right(verb, kind) for kind in KINDS for verb in ("get", "list", "watch"))
    kinds = kept if impersonates else KINDS
    return (*listed, *(right(verb, kind) for kind in kinds for verb in verbs))


def table() -> AccessTable:
    """The tokens of the callers, and their rights."""
    tokens = {
        f"token-of-{caller.slug}": IssuedToken(caller.user, AUDIENCE)
        for caller in CALLERS
        if caller.has_token
    }
    return AccessTable(tokens, {caller.user.name: caller.rights for caller in CALLERS})


def words_of(lacking: str) -> str:
    """The word by which the table calls a right, as a refusal names it."""
    verb, what = lacking.split()[:2]
    if verb in ("create", "delete"):
        return "writes"
    resource = what.partition(".")[0]
    if verb in ("get", "patch") and resource in {item.plural for item in ANNOTATED}:
        return "annotates"
    if verb == "patch":
        return "approves"
    return {
        "addonplacementscores": "scores",
        "dynamicscorers": "scorers",
        "managedclusters": "clusters",
        "placementoptimizations": "kept",
        "placementplans": "plans",
        "the": "metrics",
    }.get(resource, "objects")

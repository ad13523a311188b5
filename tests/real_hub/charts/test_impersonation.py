"""Whom the optimizer may write as: those that its values name, and nobody of the control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dsf.kube.access_reviews import UserInfo, own_user_name
from dsf.kube.client.connect import connect
from dsf.kube.errors import Forbidden
from dsf.kube.kinds import SELF_SUBJECT_REVIEW

from ..harness.helm import CHARTS, HelmFailed, helm
from .releases import OPTIMIZER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.hub import Hub

NAMED = "auth.impersonated.users={ann},auth.impersonated.groups={placers}"
NAMED += ",auth.impersonated.serviceAccounts={default/default}"
REVIEW = {"apiVersion": SELF_SUBJECT_REVIEW.api_version, "kind": SELF_SUBJECT_REVIEW.kind}
ACCOUNT = "system:serviceaccount"


@pytest.fixture(scope="module")
def release(hub: Hub, placement_plans: None) -> Iterator[str]:
    """The namespace of an optimizer that writes as its callers."""
    place = hub.namespace("impersonating")
    upgrade(hub, place, NAMED)
    yield place
    helm(hub, "uninstall", "as-callers", f"--namespace={place}")


def upgrade(hub: Hub, namespace: str, values: str) -> None:
    chart = str(CHARTS / OPTIMIZER)
    words = ("upgrade", "--install", "as-callers", chart, f"--namespace={namespace}")
    impersonating = f"--set=crds.install=false,allowWrites=true,auth.impersonate=true,{values}"
    helm(hub, *words, "--set-json=namespaces=[]", impersonating)


@pytest.mark.parametrize(
    ("user", "allowed"),
    [
        (UserInfo("ann", groups=("placers", "system:authenticated")), True),
        (UserInfo("ann", groups=("system:masters", "system:nodes")), True),
        (UserInfo(f"{ACCOUNT}:default:default", groups=("system:serviceaccounts",)), True),
        (UserInfo("ann", groups=("administrators",)), False),
        (UserInfo("bob"), False),
        (UserInfo("system:kube-controller-manager"), False),
        (UserInfo(f"{ACCOUNT}:kube-system:default"), False),
    ],
)
async def test_only_those_whom_the_values_name_are_impersonated(
    hub: Hub, release: str, user: UserInfo, allowed: bool
) -> None:
    account = f"{release}/as-callers-{OPTIMIZER}"
    async with connect(hub.kubeconfig(service_account=account)) as kube:
        asked = kube.impersonating(user).create(SELF_SUBJECT_REVIEW, REVIEW)
        if not allowed:
            with pytest.raises(Forbidden, match="cannot impersonate resource"):
                await asked
            return
        found = await asked
    assert own_user_name(found) == user.name
    groups = set(found["status"]["userInfo"]["groups"])
    assert "system:authenticated" in groups
    assert not groups & {"system:masters", "system:nodes"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("auth.impersonated.users=null", "auth.impersonated: auth.impersonate is true, and no"),
        ("auth.impersonated.users={system:admin}", "auth.impersonated.users: system:admin is"),
        ("auth.impersonated.serviceAccounts={gone/a}", "serviceAccounts: the namespace gone does"),
        ("auth.impersonated.groups={system:masters}", "auth.impersonated.groups: system:masters"),
    ],
)
def test_a_value_that_names_nobody_or_the_control_plane_is_refused(
    hub: Hub, release: str, values: str, said: str
) -> None:
    with pytest.raises(HelmFailed) as refused:
        upgrade(hub, release, values)
    assert said in str(refused.value)

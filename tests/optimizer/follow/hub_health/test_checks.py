"""Checks of an embedded hub, as installed, and with one thing wrong at a time."""

from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from dsf.api.names import ADDON, HUB_NAMESPACE, SCORING_CONFIG
from dsf.kube import kinds
from dsf.kube.access_reviews import right
from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden, KubeError, Unauthorized, Unreachable
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from optimizer.follow.hub_health.checks import hub_checks, is_healthy, refused_access
from optimizer.follow.hub_health.hub_installation import (
    ClockReading,
    HubInstallation,
    SourceFailure,
)
from optimizer.follow.hub_health.judgement import HubCheck
from optimizer.service.observe_fleet import observe_installation
from tests.dsf.sim.builders import STAMP, make
from tests.house.marker import MARKER, raw
from tests.mcp_server.service import scenario_hub

PLANNING = right("list", kinds.POLICY, "default")


def condition(kind: str, status: str, message: str = "m") -> Object:
    return {
        "type": kind,
        "status": status,
        "reason": "Reason",
        "message": message,
        "lastTransitionTime": STAMP,
    }


async def put(hub: EmbeddedHub, kind: Kind, obj: Object, **status: Any) -> None:
    metadata = obj["metadata"]
    await hub.create(kind, obj)
    name, namespace = metadata["name"], metadata.get("namespace")
    await hub.patch(kind, name, {"status": status}, namespace, subresource="status")


async def installed_hub() -> EmbeddedHub:
    """The guide's fleet with add-on, controller, a scorer and the policy watcher's claims."""
    hub = await scenario_hub()
    for cluster in ("worker01", "worker02"):
        add_on = make(kinds.MANAGED_CLUSTER_ADD_ON, ADDON, cluster, spec={})
        available = condition("Available", "True")
        await put(hub, kinds.MANAGED_CLUSTER_ADD_ON, add_on, conditions=[available])
        claim = {"clusterClaims": [{"name": "policy-watcher-claim", "value": "compliant"}]}
        await hub.patch(kinds.MANAGED_CLUSTER, cluster, {"status": claim}, subresource="status")
    ready = condition("Ready", "True")
    config = make(kinds.DYNAMIC_SCORING_CONFIG, SCORING_CONFIG, HUB_NAMESPACE, spec={})
    await put(hub, kinds.DYNAMIC_SCORING_CONFIG, config, conditions=[ready])
    spec = {"description": "d", "configURL": "http://scorer/config"}
    scorer = make(kinds.DYNAMIC_SCORER, "power", HUB_NAMESPACE, spec=spec)
    counts = {"desired": 2, "distributed": 2, "scoring": 2, "failing": 0}
    await put(
        hub,
        kinds.DYNAMIC_SCORER,
        scorer,
        healthStatus="Active",
        conditions=[ready],
        clusters=counts,
    )
    return hub


async def look(hub: EmbeddedHub) -> HubInstallation:
    return await observe_installation(hub, "https://hub", rights=[PLANNING], now=utc_now)


def states(found: tuple[HubCheck, ...]) -> dict[str, str]:
    return {item.check: item.state for item in found}


def check(found: HubInstallation, name: str) -> HubCheck:
    (wanted,) = (item for item in hub_checks(found) if item.check == name)
    return wanted


async def test_an_installed_hub_is_healthy() -> None:
    found = hub_checks(await look(await installed_hub()))
    skipped = {"OCM version", "Kubernetes", "Prometheus"}
    assert states(found) == {
        item.check: "skipped" if item.check in skipped else "ok" for item in found
    }
    assert len(found) == 13
    assert is_healthy(found)


async def test_a_hub_of_ocm_alone_fails_with_what_to_install() -> None:
    hub = EmbeddedHub(crds=[])
    crds = await hub.list(kinds.CUSTOM_RESOURCE_DEFINITION)
    for item in crds.items:
        if item["spec"]["group"].startswith("dynamic-scoring"):
            await hub.delete(kinds.CUSTOM_RESOURCE_DEFINITION, item["metadata"]["name"])
    found = await look(hub)
    assert not is_healthy(hub_checks(found))
    resources = check(found, "custom resources")
    assert (resources.state, resources.fix) == (
        "failed",
        "dsf crds | kubectl apply --server-side -f -",
    )
    assert check(found, "add-on").state == "failed"
    assert check(found, "hub controller").state == "skipped"


async def test_an_older_crd_is_named_with_the_fields_that_it_lacks() -> None:
    found = await look(await installed_hub())
    name = kinds.DYNAMIC_SCORER.resource
    older = deepcopy(found.definitions[name])
    schema = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["spec"]["properties"]["sources"]
    older_found = replace(found, definitions={**found.definitions, name: older})
    resources = check(older_found, "custom resources")
    assert resources.state == "failed"
    assert resources.message.endswith("lack dynamicscorers: spec.sources")
    assert "helm does not update CRDs" in resources.fix


async def test_what_the_user_may_not_list_is_skipped_and_not_called_missing() -> None:
    found = await look(await installed_hub())
    nothing = replace(found, clusters=(), add_ons=(), scorers=(), config=None)
    checks = hub_checks(replace(nothing, served=dict.fromkeys(found.served, "forbidden")))
    assert is_healthy(checks)
    assert [item.message for item in checks if "you may not list" in item.message] == [
        "you may not list managedclusteraddons",
        "you may not list dynamicscoringconfigs",
        "you may not list managedclusters",
        "you may not list managedclusters",
        "you may not list dynamicscorers",
    ]


Change = Callable[[HubInstallation], HubInstallation]
NOW = datetime.fromisoformat("2026-01-01T12:00:00+00:00")


def clock(**difference: float) -> Change:
    reading = ClockReading(NOW, NOW + timedelta(**difference), NOW)
    return lambda found: replace(found, clock=reading)


def without(*missing: Kind) -> Change:
    served = dict.fromkeys(missing, "missing")
    return lambda found: replace(found, served={**found.served, **served})  # type: ignore[arg-type]


def of_clusters(kind: str, status: str) -> Change:
    def changed(found: HubInstallation) -> HubInstallation:
        first, *others = deepcopy(found.clusters)
        first["status"]["conditions"] = [condition(kind, status)]
        return replace(found, clusters=(first, *others))

    return changed


def manager(image: str) -> Change:
    operator = {"metadata": {"name": "m"}, "spec": {"registrationImagePullSpec": image}}
    return lambda found: replace(found, cluster_managers=(operator,))


def kubernetes(*versions: str) -> Change:
    def changed(found: HubInstallation) -> HubInstallation:
        clusters = deepcopy(found.clusters)
        for item, version in zip(clusters, versions, strict=True):
            item["status"]["version"] = {"kubernetes": version}
        return replace(found, clusters=clusters)

    return changed


@pytest.mark.parametrize(
    ("name", "change", "state", "said"),
    [
        ("clocks", clock(seconds=10), "ok", "agree"),
        ("clocks", clock(seconds=11), "failed", "differ by 11 s"),
        ("clocks", clock(seconds=-12), "failed", "differ by 11 s"),
        ("clocks", lambda found: replace(found, clock=None), "skipped", "does not tell"),
        ("clocks", of_clusters("ManagedClusterConditionClockSynced", "False"), "failed", "worker"),
        ("custom resources", without(kinds.PLACEMENT_PLAN), "warning", "not recorded"),
        ("custom resources", without(kinds.PLACEMENT_OPTIMIZATION), "warning", "is kept"),
        ("OCM", without(kinds.ADD_ON_PLACEMENT_SCORE), "failed", "addonplacementscores"),
        ("OCM", without(kinds.POLICY), "warning", "policies, which the optimizer needs"),
        ("OCM version", manager("quay.io/ocm/registration:v1.2.1"), "ok", "v1.2.1"),
        ("OCM version", manager("localhost:5000/registration"), "skipped", "no ClusterManager"),
        ("OCM version", manager("quay.io/r@sha256:0a"), "skipped", "no ClusterManager"),
        ("Kubernetes", kubernetes("v1.34.3", "v1.28.0"), "ok", "v1.28.0, v1.34.3 on 2 clusters"),
        ("Kubernetes", kubernetes("v1.34.3", "v1.27.9+k3s1"), "warning", "worker02 has"),
        ("Kubernetes", kubernetes("v1.34.3", "odd"), "ok", "odd, v1.34.3 on 2 clusters; v1.34"),
        (
            "managed clusters",
            of_clusters("ManagedClusterConditionAvailable", "Unknown"),
            "warning",
            "1 of 2 clusters can't be used: ClusterLost",
        ),
        ("managed clusters", lambda found: replace(found, clusters=()), "warning", "has none"),
        ("add-on", lambda found: replace(found, add_ons=()), "failed", "no agent scores"),
        (
            "add-on",
            lambda found: replace(found, add_ons=found.add_ons[:1]),
            "warning",
            "not enabled on worker02",
        ),
        ("hub controller", lambda found: replace(found, config=None), "warning", "no scorer"),
        (
            "hub controller",
            lambda found: replace(found, config={"metadata": {"name": "c"}}),
            "failed",
            "has not reported on dynamic-scoring-config",
        ),
        (
            "scorers",
            lambda found: replace(
                found, source_failures=(SourceFailure("power", "w1", "Unreachable", MARKER),)
            ),
            "failed",
            "first power of w1: Unreachable",
        ),
        ("scorers", lambda found: replace(found, scorers=()), "skipped", "there are none"),
        ("Prometheus", lambda found: replace(found, prometheus=""), "ok", "answers"),
        ("Prometheus", lambda found: replace(found, prometheus="refused"), "failed", "refused"),
        (
            "rights",
            lambda found: replace(found, rights={PLANNING: False}),
            "warning",
            "you may not list policies.policy.open-cluster-management.io in namespace default",
        ),
        ("rights", lambda found: replace(found, rights={}), "skipped", "does not review"),
    ],
)
async def test_one_thing_wrong(
    name: str,
    change: Change,
    state: str,
    said: str,
    healthy: Callable[[], Awaitable[HubInstallation]],
) -> None:
    found = check(change(await healthy()), name)
    assert (found.state, said in found.message) == (state, True), found
    assert bool(found.fix) or state in ("ok", "skipped")
    assert not raw(found.message)


@pytest.fixture(scope="module")
def healthy() -> Callable[[], Awaitable[HubInstallation]]:
    seen: list[HubInstallation] = []

    async def read() -> HubInstallation:
        if not seen:
            seen.append(await look(await installed_hub()))
        return seen[0]

    return read


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (Unauthorized("Unauthorized"), "log in again"),
        (Forbidden("no"), "ask for the right"),
        (Unreachable("GET https://hub: refused"), "--kubeconfig"),
    ],
)
def test_a_hub_that_does_not_let_us_in(error: KubeError, fix: str) -> None:
    found = refused_access(error)
    assert (found.state, found.message) == ("failed", str(error))
    assert fix in found.fix


@pytest.mark.parametrize(
    ("conditions", "state", "said"),
    [
        ([condition("Ready", "True"), condition("Applied", "True")], "ok", "1 PlacementOptim"),
        (
            [condition("Ready", "False"), condition("Applied", "False")],
            "failed",
            'default: "Reason: ',
        ),
        (
            [condition("Ready", "True"), condition("Applied", "False")],
            "warning",
            'default: "Reason: ',
        ),
    ],
)
async def test_what_is_kept_placed_is_judged(
    conditions: list[Object], state: str, said: str
) -> None:
    hub = await installed_hub()
    spec = {"preference": {"addonPlacementScore": "worth"}}
    kept = make(kinds.PLACEMENT_OPTIMIZATION, "kept", "default", spec=spec)
    await put(hub, kinds.PLACEMENT_OPTIMIZATION, kept, conditions=conditions)
    found = await observe_installation(hub, "hub", rights=(), now=utc_now)
    check = {item.check: item for item in hub_checks(found)}["kept placements"]
    assert check.state == state
    assert said in check.message

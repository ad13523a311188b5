"""Each agent's right to Secrets: exactly those that the scorers of its cluster reference."""

from dataclasses import replace
from typing import Any

import pytest

from dsf.hub.distribute.rendered_summaries import RenderedSummaries
from dsf.hub.distribute.works_plan import work_bytes
from dsf.hub.snapshot.registered_scorer import ProbeResult
from dsf.hub.snapshot.summaries_work import summaries_work
from dsf.kube.kinds import MANIFEST_WORK
from dsf.kube.port import Object
from tests.dsf.hub.builders import World, cluster, planned, scorer, scoring_config, settled, target
from tests.dsf.hub.test_secrets_controller import auth


def own(name: str, *, token: str = "", ca: str = "") -> Object:
    """A scorer with its own config, whose API needs a token or an authority."""
    spec = auth(token)
    scoring = {**spec["scoring"], "params": {"name": f"{name}_score", "interval": 30}}
    if not token:
        del scoring["auth"]
    if ca:
        scoring["tls"] = {"caSecretRef": {"name": ca, "key": "ca.crt"}}
    return scorer(name, mode="None", **{**spec, "scoring": scoring})


def world(*scorers: Object, masks: tuple[tuple[str, str], ...] = ()) -> World:
    return World(
        scorers=scorers,
        config=scoring_config(*masks),
        clusters=(cluster("c1"), cluster("c2")),
        probes={target(obj): ProbeResult(health=None, config=None) for obj in scorers},
    )


def rights(end: World) -> dict[str, list[dict[str, Any]]]:
    """The rules of the Role that each cluster is sent, in front of the summaries."""
    found = {}
    for work in end.works:
        _, *roles, last = work["spec"]["workload"]["manifests"]
        assert last["kind"] == "ConfigMap"
        found[work["metadata"]["namespace"]] = [rule for role in roles for rule in role["rules"]]
    return found


def gets(*names: str) -> list[dict[str, Any]]:
    return [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [*names], "verbs": ["get"]}
    ]


def test_an_agent_may_get_the_secrets_of_its_scorers_by_name() -> None:
    scorers = own("cpu", token="token-b", ca="authority"), own("gpu", token="token-a"), own("net")
    end = settled(world(*scorers, masks=(("c2", "cpu_score"),)))
    assert rights(end) == {"c1": gets("authority", "token-a", "token-b"), "c2": gets("token-a")}
    left = settled(replace(end, scorers=end.scorers[2:]))
    assert rights(left) == {"c1": [], "c2": []}, "no name means no Role: it would mean all Secrets"


def test_the_role_follows_where_the_summaries_stay() -> None:
    """An earlier release has sent the same summaries without it."""
    end = settled(world(own("cpu", token="token")))
    before = replace(end, works=tuple(without_role(work) for work in end.works))
    works = [change for change in planned(before) if change.kind == MANIFEST_WORK]
    assert [change.namespace for change in works] == ["c1", "c2"]
    assert rights(settled(before)) == {"c1": gets("token"), "c2": gets("token")}


def without_role(work: Object) -> Object:
    namespace, _, config_map = work["spec"]["workload"]["manifests"]
    workload = {"workload": {"manifests": [namespace, config_map]}}
    return {**work, "spec": {**work["spec"], **workload}}


@pytest.mark.parametrize(
    "rules",
    [
        [],
        "none",
        [None],
        gets(),
        gets("token", "of-others"),
        [*gets("token"), {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}],
        [{**gets("token")[0], "verbs": ["get", "list"]}],
        [{**gets("token")[0], "resourceNames": [1]}],
    ],
)
def test_a_changed_role_is_repaired(rules: Any) -> None:
    end = settled(world(own("cpu", token="token")))
    work = dict(end.works[0])
    namespace, role, config_map = work["spec"]["workload"]["manifests"]
    manifests = [namespace, {**role, "rules": rules}, config_map]
    work["spec"] = {**work["spec"], "workload": {"manifests": manifests}}
    again = settled(replace(end, works=(work, *end.works[1:])))
    assert rights(again) == {"c1": gets("token"), "c2": gets("token")}


def test_the_names_count_for_the_size_of_a_work() -> None:
    secrets = tuple(f"{index:0253}" for index in range(100))
    grown = RenderedSummaries("[]", (), 2, secrets)
    work = summaries_work("c1", "[]", "dynamic-scoring", secrets)
    assert work_bytes(grown) > len(str(work["spec"]["workload"]))

"""Secrets of the hub reach only the managed clusters that need them, and only the keys needed."""

import base64
import json
import logging
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest

from dsf.api.crd.dynamic_scorer import DynamicScorerSpec
from dsf.api.crd.scorer_source import SecretKeyRef
from dsf.api.scoring.scorer_summary import dump_summaries, load_summaries
from dsf.hub.assess.config_resolution import Resolved, resolve
from dsf.hub.distribute.secrets_plan import (
    HubSecret,
    plan_secrets,
    references_in_spec,
    references_in_summaries,
    withheld,
)
from dsf.hub.run import HubController
from dsf.kube.changes import Create, Delete, Patch
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Invalid
from dsf.kube.kinds import DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, EVENT, MANIFEST_WORK, SECRET
from dsf.kube.port import Kube
from tests.dsf.hub.builders import HUB, scorer
from tests.dsf.hub.scoring_api import scoring_api
from tests.dsf.hub.test_run import asked_again, controlled, register, two_clusters, until_ready
from tests.eventually import eventually
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.wrapper import Wrapper

WORK = "dynamic-scoring-secrets-manifestwork"
LABEL = "dynamic-scoring.open-cluster-management.io/distribute"
HOSTS = "dynamic-scoring.open-cluster-management.io/allowed-hosts"
CANARY = "canary-of-a-token"


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def secret(name: str = "token", /, *, label: str | None = "true", **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": name,
            "namespace": HUB,
            "labels": {LABEL: label} if label else {},
            "annotations": {HOSTS: "127.0.0.1", "private": "of the hub"},
        },
        "data": {key: in_base64(value) for key, value in data.items()},
    }


def test_an_oauth_client_and_a_certificate_are_references_too() -> None:
    auth = {
        "clientCertificateSecretRef": {"name": "agent-tls"},
        "oauth2": {
            "tokenURL": "https://login/token",
            "clientSecretRef": {"name": "client"},
            "tls": {"caSecretRef": {"name": "ca", "key": "pem"}},
        },
    }
    wanted = {
        SecretKeyRef(name=name, key=key)
        for name, key in (
            *(("agent-tls", "tls.crt"), ("agent-tls", "tls.key"), ("ca", "pem")),
            *(("client", "client_id"), ("client", "client_secret")),
        )
    }
    scoring = {"params": {"name": "own"}}
    prometheus = {"host": "http://prometheus:9090", "params": {"query": "up"}}
    for fields in (
        {"source": {"type": "None"}, "scoring": {**scoring, "auth": auth}},
        {"source": {**prometheus, "auth": auth}, "scoring": scoring},
    ):
        spec = DynamicScorerSpec.model_validate(scorer(mode="None", **fields)["spec"])
        assert references_in_spec(spec) == wanted
        resolved = resolve("cpu", spec, None)
        assert isinstance(resolved, Resolved), resolved
        assert references_in_summaries([resolved.summary]) == wanted
        (sent,) = load_summaries(dump_summaries([resolved.summary]))
        assert sent == resolved.summary


def auth(name: str = "token", key: str = "key") -> dict[str, Any]:
    scoring = {"path": "/own", "params": {"name": "own", "interval": 30}}
    return {
        "source": {"type": "None"},
        "scoring": {**scoring, "auth": {"tokenSecretRef": {"name": name, "key": key}}},
    }


def test_each_of_several_sources_refers_to_secrets_of_its_own() -> None:
    refs = [
        {
            "name": name,
            "host": "http://prometheus:9090",
            "params": {"query": "up"},
            part: {ref: {"name": name, "key": ref}},
        }
        for name, part, ref in (("gpu", "auth", "tokenSecretRef"), ("power", "tls", "caSecretRef"))
    ]
    spec = DynamicScorerSpec.model_validate(
        scorer(mode="None", sources=refs, scoring=auth()["scoring"])["spec"]
    )
    wanted = {
        SecretKeyRef(name="gpu", key="tokenSecretRef"),
        SecretKeyRef(name="power", key="caSecretRef"),
        SecretKeyRef(name="token", key="key"),
    }
    assert references_in_spec(spec) == wanted
    resolved = resolve("cpu", spec, None)
    assert isinstance(resolved, Resolved), resolved
    assert references_in_summaries([resolved.summary]) == wanted


def distributing(kube: Kube, *, on: bool = True) -> AbstractAsyncContextManager[HubController]:
    return controlled(kube, distribute_secrets=on)


async def sent(kube: EmbeddedHub) -> dict[str, dict[str, dict[str, str]]]:
    """Return the decoded data of the sent Secrets, by cluster and Secret."""
    works = (await kube.list(MANIFEST_WORK, fields=f"metadata.name={WORK}")).items
    return {
        work["metadata"]["namespace"]: {
            manifest["metadata"]["name"]: {
                key: base64.b64decode(value).decode() for key, value in manifest["data"].items()
            }
            for manifest in work["spec"]["workload"]["manifests"]
        }
        for work in works
    }


async def until_sent(kube: EmbeddedHub, **wanted: dict[str, dict[str, str]]) -> None:
    async def equal() -> bool:
        return await sent(kube) == wanted

    try:
        await eventually(equal)
    except TimeoutError:
        assert await sent(kube) == wanted


async def test_only_the_named_key_to_those_who_need_it_and_no_longer_than_they_do() -> None:
    hub = await two_clusters()
    await hub.create(SECRET, secret(key=CANARY, other="of nobody's business"))
    await hub.create(SECRET, secret("unused", key="unused"))
    async with scoring_api() as api, distributing(hub):
        await register(hub, "own", api, mode="None", **auth())
        both = {"token": {"key": CANARY}}
        await until_sent(hub, c1=both, c2=both)
        work = await hub.get(MANIFEST_WORK, WORK, "c1")
        [manifest] = work["spec"]["workload"]["manifests"]
        assert manifest["metadata"]["namespace"] == "dynamic-scoring"
        assert manifest["metadata"]["annotations"] == {HOSTS: "127.0.0.1"}
        masks = [{"clusterName": "c1", "scoreName": "own"}]
        config = "dynamic-scoring-config"
        await hub.patch(DYNAMIC_SCORING_CONFIG, config, {"spec": {"masks": masks}}, HUB)
        await until_sent(hub, c2=both)
        await hub.patch(SECRET, "token", {"data": {"key": in_base64("rotated")}}, HUB)
        await until_sent(hub, c2={"token": {"key": "rotated"}})
        await hub.patch(SECRET, "token", {"metadata": {"labels": {LABEL: None}}}, HUB)
        await until_sent(hub)
        await hub.patch(SECRET, "token", {"metadata": {"labels": {LABEL: "true"}}}, HUB)
        await until_sent(hub, c2={"token": {"key": "rotated"}})
        await hub.delete(DYNAMIC_SCORER, "own", HUB)
        await until_sent(hub)


async def test_unchanged_and_after_a_restart_nothing_is_written() -> None:
    hub = await two_clusters()
    await hub.create(SECRET, secret(key=CANARY))
    both = {"token": {"key": CANARY}}
    async with scoring_api() as api:
        async with distributing(hub):
            await register(hub, "own", api, mode="None", **auth())
            await until_sent(hub, c1=both, c2=both)
            await until_ready(hub, "own")
        counting = Counting(hub)
        async with distributing(counting):
            await asked_again(api, times=5)
        assert counting.writes == 0


async def test_off_unless_asked_for() -> None:
    hub = await two_clusters()
    await hub.create(SECRET, secret(key=CANARY))
    counting = Counting(hub)
    async with scoring_api() as api, distributing(counting, on=False):
        await register(hub, "own", api, mode="None", **auth())
        await until_ready(hub, "own")
    assert await sent(hub) == {}
    assert not [verb for verb, resource in counting.calls if resource == "secrets"]


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (secret(other="x"), "SecretKeyMissing"),
        ({**secret(key="x"), "type": "example.com/other"}, "SecretTypeRefused"),
        (secret(key="x" * 40_000), "SecretTooLong"),
    ],
)
async def test_what_is_withheld_is_told_on_the_scorer_once(
    made: dict[str, Any], reason: str
) -> None:
    hub = await two_clusters()
    await hub.create(SECRET, made)
    async with scoring_api() as api, distributing(hub):
        await register(hub, "own", api, mode="None", **auth())
        await until_ready(hub, "own")
        await eventually(partial(event_of, hub, reason))
        await asked_again(api)
        event = await event_of(hub, reason)
        assert event
        assert (event["count"], event["involvedObject"]["name"]) == (1, "own")
    assert await sent(hub) == {}


async def test_more_than_one_work_may_have_is_told_on_the_scorer_that_goes_without() -> None:
    hub = await two_clusters()
    for number in range(17):
        await hub.create(SECRET, secret(f"token-{number:02}", key="x" * 24_000))
    async with scoring_api() as api, distributing(hub):
        for number in range(17):
            name, spec = f"s{number:02}", auth(f"token-{number:02}")
            spec["scoring"]["params"]["name"] = name
            await register(hub, name, api, mode="None", **spec)
        await eventually(partial(event_of, hub, "SecretsTooLarge"))
        event = await event_of(hub, "SecretsTooLarge")
        assert event
        assert event["involvedObject"]["name"] == "s15"
        for told in ("token-15", "managed cluster c1", "512000 bytes"):
            assert told in event["message"]
        work = await hub.get(MANIFEST_WORK, WORK, "c1")
        assert len(json.dumps(work["spec"]["workload"])) <= 500 * 1024
        assert len(work["spec"]["workload"]["manifests"]) == 15


async def event_of(kube: EmbeddedHub, reason: str) -> dict[str, Any] | None:
    events = (await kube.list(EVENT, HUB)).items
    return next((event for event in events if event["reason"] == reason), None)


async def test_one_who_can_only_write_works_gets_no_secret() -> None:
    hub = await two_clusters()
    await hub.create(SECRET, secret(key=CANARY))
    async with scoring_api() as api, distributing(hub):
        await register(
            hub,
            "own",
            api,
            mode="None",
            source={"type": "None"},
            scoring={"path": "/own", "params": {"name": "own", "interval": 30}},
        )
        await until_ready(hub, "own")
        work = await hub.get(MANIFEST_WORK, "dynamic-scoring-config-manifestwork", "c1")
        data = work["spec"]["workload"]["manifests"][1]["data"]
        [summary] = json.loads(data["summaries"])
        forged = {**summary, "scoringEndpointAuthName": "token", "scoringEndpointAuthKey": "key"}
        data["summaries"] = json.dumps([forged])
        await hub.update(MANIFEST_WORK, work)
        await asked_again(api)
    assert await sent(hub) == {}


class Quoting(Wrapper):
    """An API server that refuses works of Secrets in words that quote them."""

    async def create(self, kind: Any, obj: Any) -> Any:
        if kind == MANIFEST_WORK and obj["metadata"]["name"] == WORK:
            raise Invalid(f"spec.workload: Invalid value: {json.dumps(obj)}")
        return await super().create(kind, obj)


async def test_no_byte_of_a_token_in_logs_events_or_statuses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    hub = await two_clusters()
    await hub.create(SECRET, secret(key=CANARY))
    quoting = Quoting(hub)
    async with scoring_api() as api, distributing(quoting):
        await register(hub, "own", api, mode="None", **auth())
        await until_ready(hub, "own")
        await asked_again(api, times=5)
    logged = "\n".join(str(vars(record)) for record in caplog.records)
    seen = [logged]
    for kind in (EVENT, DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG):
        seen += [json.dumps(obj) for obj in (await hub.list(kind)).items]
    assert "'result': 'Invalid'" in logged
    for text in seen:
        assert CANARY not in text
        assert in_base64(CANARY) not in text


DATA = {"key": in_base64(CANARY), "other": in_base64("x")}
HELD = HubSecret("token", "Opaque", DATA, "a.example")
WANTED = {
    "c1": frozenset(
        {SecretKeyRef(name="token", key="key"), SecretKeyRef(name="unknown", key="key")}
    )
}


def test_the_plan_is_the_same_bytes_whatever_the_order() -> None:
    two = frozenset(
        {SecretKeyRef(name="token", key="other"), SecretKeyRef(name="token", key="key")}
    )
    plans = [
        plan_secrets({"c1": wanted}, {"token": HELD}, {}, "agents")[0]
        for wanted in (two, frozenset(reversed([*two])))
    ]
    texts = {json.dumps([c.obj for c in plan if isinstance(c, Create)]) for plan in plans}
    assert len(texts) == 1


def test_works_are_created_changed_and_deleted_as_needed() -> None:
    ([create], _) = plan_secrets(WANTED, {"token": HELD}, {}, "agents")
    assert isinstance(create, Create)
    metadata = {**create.obj["metadata"], "resourceVersion": "7", "uid": "u"}
    work = {**create.obj, "metadata": metadata}
    assert plan_secrets(WANTED, {"token": HELD}, {"c1": work}, "agents")[0] == []
    rotated = HubSecret("token", "Opaque", {"key": in_base64("new")})
    ([patch], _) = plan_secrets(WANTED, {"token": rotated}, {"c1": work}, "agents")
    assert isinstance(patch, Patch)
    assert patch.body["metadata"]["resourceVersion"] == "7"
    ([delete], _) = plan_secrets({}, {"token": HELD}, {"c1": work}, "agents")
    assert delete == Delete(MANIFEST_WORK, WORK, "c1", "u")
    going = {**work, "metadata": {**work["metadata"], "deletionTimestamp": "now"}}
    assert plan_secrets(WANTED, {"token": HELD}, {"c1": going}, "agents")[0] == []


def test_where_there_is_no_room_the_first_by_name_that_fit_are_sent() -> None:
    sizes = {"a": 400_000, "b": 200_000, "c": 50_000}
    secrets = {
        name: HubSecret(name, "Opaque", {f"k{n}": "x" * 10_000 for n in range(size // 10_000)})
        for name, size in sizes.items()
    }
    every = frozenset(
        SecretKeyRef(name=one.name, key=key) for one in secrets.values() for key in one.data
    )
    wanted = {"c2": every, "c1": every, "c3": frozenset({SecretKeyRef(name="b", key="k0")})}
    changes, crowded = plan_secrets(wanted, secrets, {}, "agents")
    names = {
        change.obj["metadata"]["namespace"]: [
            manifest["metadata"]["name"] for manifest in change.obj["spec"]["workload"]["manifests"]
        ]
        for change in changes
        if isinstance(change, Create)
    }
    assert names == {"c1": ["a", "c"], "c2": ["a", "c"], "c3": ["b"]}
    assert crowded == {"b": "c1"}


def test_nothing_that_is_shown_holds_a_value() -> None:
    changes, _ = plan_secrets(WANTED, {"token": HELD}, {}, "agents")
    problem = withheld(SecretKeyRef(name="token", key="x"), HELD)
    for text in (repr(changes), str(changes[0]), repr(HELD), repr(problem)):
        assert in_base64(CANARY) not in text

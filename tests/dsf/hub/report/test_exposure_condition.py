"""Tokens that agents send over plain HTTP are told on the DynamicScorer, which stays ready."""

from dataclasses import replace
from typing import Any

import pytest

from dsf.hub.snapshot.registered_scorer import ProbeResult
from dsf.kube.port import Object
from tests.dsf.hub.builders import World, cluster, condition, scorer, scoring_config, target
from tests.dsf.hub.builders import settled as settles

OAUTH2 = {"oauth2": {"tokenURL": "http://sso.example/t", "clientSecretRef": {"name": "client"}}}
AUTH = {"auth": {"tokenSecretRef": {"name": "api-auth", "key": "token"}}}


def settled(**spec: Any) -> Object:
    obj = scorer(mode="None", **{"source": {"type": "None"}, **spec})
    probes = {target(obj): ProbeResult(health=None, config=None)}
    clusters = (cluster("c1"),)
    [end] = settles(
        World(scorers=(obj,), config=scoring_config(), clusters=clusters, probes=probes)
    ).scorers
    return end


def api(host: str, **more: Any) -> dict[str, Any]:
    return {"scoring": {"host": host, "path": "/s", "params": {"name": "n"}, **more}}


def prometheus(host: str) -> dict[str, Any]:
    return {"host": host, "params": {"query": "up"}, **AUTH}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (api("http://api.example:8000", **AUTH), '(Secret api-auth to "api.example:8000")'),
        (
            {**api("https://api.example"), "source": prometheus("http://metrics.example")},
            "(Secret api-auth to metrics.example)",
        ),
        (api("https://api.example", auth=OAUTH2), "(Secret client to sso.example)"),
        (
            {
                **api("https://api.example", **AUTH),
                "source": None,
                "sources": [
                    {"name": "a", **prometheus("http://a.example")},
                    {"name": "b", **prometheus("https://b.example")},
                    {"name": "c", **prometheus("http://c.example")},
                ],
            },
            "(Secret api-auth to a.example; Secret api-auth to c.example)",
        ),
    ],
)
def test_a_token_over_plain_http_is_told(spec: dict[str, Any], told: str) -> None:
    obj = settled(**{key: value for key, value in spec.items() if value is not None})
    status, reason, message = condition(obj, "TokenExposed")
    assert (status, reason) == ("True", "PlainHTTP")
    assert told in message
    assert condition(obj, "Ready")[0] == "True"


@pytest.mark.parametrize("spec", [api("http://api.example"), api("https://api.example", **AUTH)])
def test_without_one_there_is_no_condition(spec: dict[str, Any]) -> None:
    types = {each["type"] for each in settled(**spec)["status"]["conditions"]}
    assert "TokenExposed" not in types


def test_a_token_that_goes_over_https_now_is_told_too() -> None:
    before = settled(**api("http://api.example", **AUTH))
    secure = {**before, "spec": {**before["spec"], **api("https://api.example", **AUTH)}}
    world = World(scorers=(secure,), config=scoring_config(), clusters=(cluster("c1"),))
    probes = {target(secure): ProbeResult(health=None, config=None)}
    [after] = settles(replace(world, probes=probes)).scorers
    assert condition(after, "TokenExposed")[:2] == ("False", "NothingExposed")

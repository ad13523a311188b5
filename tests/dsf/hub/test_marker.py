"""A marker in every text that reaches the hub is quoted in conditions and Events, or not shown.

The fields are those of the wire types: the config that a scoring API serves, the spec of a
DynamicScorer, and the conditions of agents.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dsf.api.conditions import conditions_of
from dsf.api.crd.dynamic_scorer import DynamicScorerSpec
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.api.untrusted_text import InvalidInput
from dsf.hub.report.status_events import status_events
from dsf.hub.snapshot.config_document import read_config
from dsf.hub.snapshot.registered_scorer import ProbeFailure, ProbeResult
from dsf.kube.changes import Patch
from dsf.kube.kinds import DYNAMIC_SCORER
from tests.dsf.hub.builders import (
    World,
    after,
    api_config,
    cluster,
    planned,
    published,
    scorer,
    scoring_config,
    target,
)
from tests.house.marker import MARKER, WORDS, filled, raw, unquoted

STAGES = ("SourceFetched", "Scored", "Published")


def _filled(model: Any) -> Any:
    return json.loads(filled(model).model_dump_json(by_alias=True, warnings=False))


def _places(document: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every text in a document."""
    if isinstance(document, Mapping):
        for key, item in document.items():
            yield from _places(item, (*path, key))
    elif isinstance(document, str):
        yield path


def _changed(document: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """Return a document with a marker at a path."""
    first, *rest = path
    inner = document.get(first) or {}
    return {**document, first: _changed(inner, tuple(rest)) if rest else MARKER}


CONFIG_PLACES = sorted(_places(_filled(ScorerConfig)))
SPEC_PLACES = sorted(_places(_filled(DynamicScorerSpec)))
SPEC = {"source": api_config()["source"], "scoring": api_config()["scoring"]}


def _probed(document: Mapping[str, Any]) -> ProbeResult:
    found = read_config(json.dumps(document).encode())
    if isinstance(found, InvalidInput):
        return ProbeResult(config=ProbeFailure(found.reason, found.message))
    return ProbeResult(config=found.config, unknown=found.unknown)


def _messages(world: World) -> list[str]:
    """Return the messages of the conditions and Events that the controller would write."""
    changes = [item for item in planned(world) if isinstance(item, Patch)]
    of_scorers = [item for item in changes if item.kind == DYNAMIC_SCORER]
    told = [item["message"] for change in of_scorers for item in conditions_of(change.body)]
    events = status_events([(DYNAMIC_SCORER, obj) for obj in world.scorers], of_scorers)
    return told + [event.message for event in events]


def _safe(messages: list[str]) -> None:
    assert messages
    for text in messages:
        assert not unquoted(text)
        assert not raw(text)


@pytest.mark.parametrize("path", [*CONFIG_PLACES, (MARKER,), ("source", "params", MARKER)], ids=str)
def test_what_an_api_serves(path: tuple[str, ...]) -> None:
    one = scorer(**SPEC)
    probes = {target(one): _probed(_changed(api_config(), path))}
    _safe(_messages(World((one,), scoring_config(), (cluster("east"),), probes=probes)))


@pytest.mark.parametrize("mode", ["Full", "None"])
@pytest.mark.parametrize("path", SPEC_PLACES, ids=str)
def test_what_a_scorer_says(path: tuple[str, ...], mode: str) -> None:
    one = scorer(mode=mode, **SPEC)
    one["spec"] = _changed(one["spec"], path)
    probes = {target(one): _probed(api_config())}
    _safe(_messages(World((one,), scoring_config(), (cluster("east"),), probes=probes)))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("reason", ["BadAnswer", MARKER], ids=["message", "reason"])
def test_what_an_agent_reports(stage: str, reason: str) -> None:
    one = scorer(mode="None", **SPEC)
    score = published("east", failing=(stage, reason), message=MARKER, until="")
    begin = World(
        (one,),
        scoring_config(),
        (cluster("east"),),
        scores=(score,),
        probes={target(one): ProbeResult()},
    )
    end = after(begin, planned(begin))
    messages = [message for world in (begin, end) for message in _messages(world)]
    assert any(WORDS in text for text in messages)
    _safe(messages)


def test_the_fields_are_found() -> None:
    assert ("source", "params", "query") in CONFIG_PLACES
    assert ("scoring", "tls", "caSecretRef", "name") in SPEC_PLACES

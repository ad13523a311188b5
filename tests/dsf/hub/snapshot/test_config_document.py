"""Reading configs of scoring APIs, valid and invalid."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.untrusted_text import InvalidInput
from dsf.hub.snapshot.config_document import ConfigDocument, read_config
from tests.dsf.hub.builders import api_config


def read(document: Any) -> ConfigDocument | InvalidInput:
    return read_config(json.dumps(document).encode())


def refused(document: Any) -> InvalidInput:
    outcome = read(document)
    assert isinstance(outcome, InvalidInput), outcome
    return outcome


def test_the_contracts_document_is_read_and_nothing_in_it_is_unknown() -> None:
    outcome = read(api_config())
    assert isinstance(outcome, ConfigDocument)
    assert outcome.unknown == ()
    assert outcome.config.scoring.params.name == "cpu_score"


def test_unknown_fields_are_named_with_what_may_have_been_meant() -> None:
    document = api_config(paramz={}, note="x")
    del document["source"]["params"]
    document["scoring"]["params"]["intervall"] = 5
    del document["scoring"]["params"]["interval"]
    document["requests"] = 17
    outcome = read(document)
    assert isinstance(outcome, ConfigDocument)
    assert outcome.unknown == (
        "source.paramz (did you mean params?)",
        "source.note",
        "scoring.params.intervall (did you mean interval?)",
        "requests",
    )


def test_a_misspelt_part_is_named_where_it_is_missed() -> None:
    document = api_config()
    document["sorce"] = document.pop("source")
    told = refused(document)
    assert told.reason == "InvalidConfig"
    assert "give source or sources, and not both" in told.message
    assert "sorce (did you mean source?)" in told.message


def test_several_sources_are_read_and_what_is_unknown_in_one_is_named() -> None:
    document = api_config()
    source = document.pop("source")
    document["sources"] = [{"name": "gpu", **source}, {"name": "power", **source, "colour": "x"}]
    outcome = read(document)
    assert isinstance(outcome, ConfigDocument)
    assert [one.name for one in outcome.config.sources or ()] == ["gpu", "power"]
    assert outcome.unknown == ("sources.1.colour",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sources": [{"name": "gpu"}], "source": {}}, "give source or sources, and not both"),
        ({"sources": [{"name": "gpu"}, {"name": "gpu"}]}, "sources: two have one name: gpu, gpu"),
        ({"sources": []}, "sources: List should have at least 1 item"),
        ({"sources": [{"name": "gpu"}, {}]}, "sources.1.name: Field required"),
        ({"sources": [{"name": "a b"}]}, "sources.0.name: String should match pattern"),
        (
            {"sources": [{"name": "gpu", "type": "None"}]},
            'sources.0.type is "None": serve Prometheus, OpenTelemetry or Kubernetes',
        ),
    ],
)
def test_sources_that_cannot_be_told_apart_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    document = api_config()
    del document["source"]
    told = refused({**document, **changes})
    assert told.reason == "InvalidConfig"
    assert message in told.message


def test_further_parameters_are_read_and_what_cannot_be_one_is_named() -> None:
    document = api_config()
    document["scoring"]["params"] |= {"model": "linear", "horizon": 3600, "on": True, "x": [1]}
    outcome = read(document)
    assert isinstance(outcome, ConfigDocument)
    further = outcome.config.scoring.params.further
    assert further == {"model": "linear", "horizon": 3600, "on": True}
    assert outcome.unknown == ("scoring.params.x",)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({f"p{n}": n for n in range(33)}, "33 further parameters: give at most 32"),
        ({"model": "x" * 1025}, "parameter model: its text has more than 1024 characters"),
        ({"a b": 1}, 'parameter "a b": a name has at most 63 letters'),
        ({"seed": 2**63}, "parameter seed: the number is too large"),
    ],
)
def test_parameters_over_a_size_are_refused(params: dict[str, Any], message: str) -> None:
    document = api_config()
    document["scoring"]["params"] |= params
    told = refused(document)
    assert told.reason == "InvalidConfig"
    assert message in told.message


def test_a_source_type_that_nobody_knows_is_named_with_those_that_are_known() -> None:
    told = refused(api_config(type="Graphite"))
    known = "Prometheus, OpenTelemetry, Kubernetes or None"
    assert told.message == f'source.type is "Graphite": serve {known}'


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "source", "scoring", "params", "type", "interval"])
            | st.text(max_size=8),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(document=documents)
def test_whatever_is_served_is_read_or_refused(document: Any) -> None:
    body = json.dumps(document, ensure_ascii=False).encode(errors="replace")
    outcome = read_config(body)
    assert isinstance(outcome, ConfigDocument) or outcome.message

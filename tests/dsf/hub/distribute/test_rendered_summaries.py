"""The rendered text equals that of `dump_summaries`."""

from hypothesis import given
from hypothesis import strategies as st

from dsf.api.crd.scoring_params import AskedContext
from dsf.api.scoring.scorer_summary import (
    SEVERAL,
    ScorerSummary,
    SummarySource,
    dump_summaries,
    load_summaries,
)
from dsf.hub.distribute.audience import ClusterShare
from dsf.hub.distribute.rendered_summaries import SummariesRenderer, parts_of
from dsf.hub.snapshot.distribution_rules import SourceHost


def summary(name: str, query: str = "", endpoint: str = "http://prom:9090/api/v1") -> ScorerSummary:
    return ScorerSummary(
        name=name,
        score_name=f"{name}_score",
        source_type="Prometheus",
        source_endpoint=endpoint,
        source_query=query,
        scoring_endpoint="http://api/scoring",
        scoring_interval=30,
        score_dimension_format="${app}",
    )


awkward = st.text(alphabet=st.sampled_from('a"\\\n\u2028é {},[]'), max_size=12)
fleets = st.dictionaries(st.sampled_from("abcdef"), awkward, max_size=5)


@given(queries=fleets, masked=st.sets(st.sampled_from(["a_score", "c_score"])))
def test_they_are_those_of_dump_summaries(queries: dict[str, str], masked: set[str]) -> None:
    summaries = [summary(name, query) for name, query in queries.items()]
    rendered = SummariesRenderer().render(summaries, {"c1": ClusterShare(frozenset(masked))})["c1"]
    kept = [each for each in summaries if each.score_name not in masked]
    assert rendered.text == dump_summaries(kept)
    assert rendered.parts().keys() == {each.name for each in kept}
    assert set(rendered.parts().values()) == (parts_of(rendered.text) if kept else set())


def test_the_part_of_a_scorer_is_the_same_with_and_without_others() -> None:
    shares = {"c1": ClusterShare()}
    of_all = SummariesRenderer().render([summary(name) for name in "abc"], shares)["c1"].parts()
    for name in "abc":
        alone = SummariesRenderer().render([summary(name)], shares)["c1"].parts()
        assert alone == {name: of_all[name]}


def test_an_override_moves_the_source_of_its_score_and_keeps_the_path() -> None:
    summaries = [summary("a"), summary("b"), summary("n", endpoint="")]
    hosts = (SourceHost("a_score", "https://thanos:10902"), SourceHost(None, "http://near:9090"))
    shares = {"c1": ClusterShare(hosts=hosts), "c2": ClusterShare()}
    rendered = SummariesRenderer().render(summaries, shares)
    read = load_summaries(rendered["c1"].text)
    assert isinstance(read, tuple)
    assert [each.source_endpoint for each in read] == [
        "https://thanos:10902/api/v1",
        "http://near:9090/api/v1",
        "",
    ]
    assert rendered["c2"].text == dump_summaries(summaries)


def test_an_override_moves_the_source_of_its_name() -> None:
    """A parameter of the scorer may look like the endpoint of a source."""
    endpoints = {"gpu": "http://prom:9090/api/v1", "power": "http://kepler:9102/api/v1", "otlp": ""}
    one = summary("a", endpoint="").model_copy(
        update={
            "source_type": SEVERAL,
            "sources": tuple(
                SummarySource(name=name, type="Prometheus", endpoint=endpoint)
                for name, endpoint in endpoints.items()
            ),
            "scoring_params": {"endpoint": endpoints["gpu"]},
        }
    )
    hosts = (
        SourceHost(None, "http://near:9102", "power"),
        SourceHost("b_score", "http://other:9090"),
        SourceHost("a_score", "http://near:9090"),
    )
    shares = {"c1": ClusterShare(hosts=hosts), "c2": ClusterShare(hosts=hosts[1:2])}
    rendered = SummariesRenderer().render([one, summary("b")], shares)
    read = load_summaries(rendered["c1"].text)
    assert isinstance(read, tuple)
    assert [each.endpoint for each in read[0].sources] == [
        "http://near:9090/api/v1",
        "http://near:9102/api/v1",
        "",
    ]
    assert read[0].scoring_params == {"endpoint": endpoints["gpu"]}
    assert dump_summaries([one])[1:-2] in rendered["c2"].text
    assert rendered["c1"].parts().keys() == {"a", "b"}


@given(
    labels=st.dictionaries(st.sampled_from("xyz"), awkward),
    claims=st.dictionaries(st.sampled_from("xyz"), awkward),
)
def test_each_scorer_gets_the_labels_and_claims_that_it_asks_for(
    labels: dict[str, str], claims: dict[str, str]
) -> None:
    asked = AskedContext(labels=["z", "x"], claims=["y"])
    one = summary("a").model_copy(update={"context": asked})
    share = ClusterShare(
        hosts=(SourceHost(None, "http://near:9090"),),
        labels=tuple(sorted(labels.items())),
        claims=tuple(sorted(claims.items())),
    )
    rendered = SummariesRenderer().render([one, summary("b")], {"c1": share})["c1"]
    values = {
        "source_endpoint": "http://near:9090/api/v1",
        "context_labels": {key: labels[key] for key in ("x", "z") if key in labels},
        "context_claims": {key: claims[key] for key in ("y",) if key in claims},
    }
    moved = {"source_endpoint": "http://near:9090/api/v1"}
    expected = [one.model_copy(update=values), summary("b").model_copy(update=moved)]
    assert rendered.text == dump_summaries(expected)
    assert set(rendered.parts().values()) == parts_of(rendered.text)


def test_equal_shares_are_rendered_once() -> None:
    renderer = SummariesRenderer()
    shares = {f"c{number}": ClusterShare() for number in range(3)}
    first = renderer.render([summary("a")], shares)
    assert len({id(each) for each in first.values()}) == 1
    again = renderer.render([summary("a")], shares)
    assert again["c0"] is first["c0"]
    assert renderer.render([summary("b")], shares)["c0"].text != first["c0"].text

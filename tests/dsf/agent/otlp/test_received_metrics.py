import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from dsf.agent.failure import Failure
from dsf.agent.otlp.data_points import EXPONENTIAL, NO_DATA
from dsf.agent.otlp.received_metrics import (
    AHEAD,
    LABELS_TOO_LONG,
    STALE,
    TAKEN,
    TOO_MANY_SAMPLES,
    TOO_MANY_SERIES,
    ReceivedMetrics,
)
from dsf.agent.wire.prometheus_answer import FetchedSeries
from dsf.agent.wire.series_buffer import MemoryBounds
from dsf.api.scoring.scorer_summary import SEVERAL, ScorerSummary, SummarySource, dump_summaries
from tests.dsf.agent.builders import sent, summary
from tests.dsf.agent.otlp.builders import NOW, at, gauge, histogram, number, request, total


def wanting(query: str, name: str = "otel", **changes: Any) -> ScorerSummary:
    fields: dict[str, Any] = {"source_type": "OpenTelemetry", "source_endpoint": ""}
    fields |= {"source_query": query, "source_range": 3600, "source_step": 60}
    return summary(name, **(fields | changes))


def remembering(*summaries: ScorerSummary, bounds: MemoryBounds | None = None) -> ReceivedMetrics:
    memory = ReceivedMetrics(lambda: NOW, bounds)
    memory.configure(dump_summaries(summaries))
    return memory


def add(memory: ReceivedMetrics, export: ExportMetricsServiceRequest) -> dict[str, int]:
    """Add an export; return how many points were refused, by reason."""
    return dict(sum(memory.adding(export), Counter[str]()))


def values(memory: ReceivedMetrics, one: ScorerSummary, now: float = NOW) -> dict[str, list[Any]]:
    """The samples by the labels besides the metric's name."""
    found = memory.fetch(one, now)
    assert isinstance(found, FetchedSeries)
    return {
        json.dumps({key: text for key, text in series["metric"].items() if key != "__name__"}):
        series["values"]
        for series in sent(found)
    }  # fmt: skip


def failed(memory: ReceivedMetrics, one: ScorerSummary, now: float = NOW) -> Failure:
    found = memory.fetch(one, now)
    assert isinstance(found, Failure)
    return found


@pytest.mark.parametrize(
    ("query", "pods"),
    [
        ("util", "abc"),
        ("util;other", "abcd"),
        ('util{pod="a"}', "a"),
        ('util{pod!="a"}', "bc"),
        ('util{pod=~"a|b"}', "ab"),
        ('util{pod=~"a.+"}', ""),
        ('util{pod!~"a|b"}', "c"),
        ('util{service.name="shop"}', "abc"),
        ('util{service_name="shop", pod="c"}', "c"),
        ('util{service.name="bank"}', ""),
        ('util{missing=""}', "abc"),
        ('util{missing!=""}', ""),
        ('{__name__=~"util|other"}', "abcd"),
        ('util{pod="a"};util{pod="b"}', "ab"),
        ('{__name__=~"util|other", __name__!="util"}', "d"),
    ],
)
def test_what_is_selected(query: str, pods: str) -> None:
    one = wanting(query)
    memory = remembering(one)
    util = gauge("util", *(number(1, pod=pod) for pod in "abc"))
    assert (
        add(memory, request(util, gauge("other", number(1, pod="d")), service__name="shop")) == {}
    )
    found = memory.fetch(one, NOW)
    got = [s["metric"]["pod"] for s in sent(found)] if isinstance(found, FetchedSeries) else []
    assert "".join(got) == pods


def test_each_of_several_sources_keeps_its_own_series() -> None:
    both = tuple(
        SummarySource(name=name, type="OpenTelemetry", query=query, range=600, step=60)
        for name, query in (("gpu", "util"), ("power", "watt"))
    )
    one = wanting("", source_type=SEVERAL, sources=both)
    memory = remembering(one, wanting("util"))
    add(memory, request(gauge("util", number(1.5))))
    gpu, power = one.single_sources
    assert len(values(memory, gpu)) == 1
    assert failed(memory, power).reason == "NothingReceived"
    bad = both[0].model_copy(update={"query": "rate(x)"})
    memory.configure(dump_summaries([one.model_copy(update={"sources": (bad, both[1])})]))
    broken, other = one.model_copy(update={"sources": (bad, both[1])}).single_sources
    assert failed(memory, broken).reason == "InvalidSelector"
    assert failed(memory, other).reason == "NothingReceived"


def test_of_the_points_of_a_step_the_last_is_kept() -> None:
    one = wanting("m", source_step=60)
    memory = remembering(one)
    start = NOW // 60 * 60
    for offset in (-120, -100, -61, -60, -30, 0):
        add(memory, request(gauge("m", number(offset, start + offset))))
    expected = [[start - 61, "-61"], [start - 30, "-30"], [start, "0"]]
    assert values(memory, one) == {"{}": expected}


def test_deltas_are_added_up() -> None:
    one = wanting("m_bucket;m", source_step=1)
    memory = remembering(one)
    for second, amount in ((1, 5), (2, 0), (3, 7)):
        point = {**at(NOW + second), "count": "1", "bucketCounts": ["1"]}
        add(
            memory,
            request(
                total("m", number(amount, NOW + second), delta=True),
                histogram("m", point, delta=True),
            ),
        )
    found = values(memory, one, NOW + 3)
    assert [value for _, value in found["{}"]] == ["5", "5", "12"]
    assert [value for _, value in found['{"le": "+Inf"}']] == ["1", "2", "3"]


def test_a_delta_that_is_sent_twice_counts_once() -> None:
    one = wanting("m")
    memory = remembering(one)
    export = request(total("m", number(5), delta=True))
    assert add(memory, export) == {}
    assert add(memory, export) == {STALE: 1}
    assert values(memory, one) == {"{}": [[NOW, "5"]]}


def test_cumulative_sums_are_taken_as_they_are_resets_too() -> None:
    one = wanting("m", source_step=1)
    memory = remembering(one)
    for second, value in ((0, 5), (1, 9), (2, 1)):
        add(memory, request(total("m", number(value, NOW + second), monotonic=False)))
    assert [value for _, value in values(memory, one, NOW + 2)["{}"]] == ["5", "9", "1"]


def test_what_is_older_than_the_range_goes() -> None:
    one = wanting("m", source_range=600)
    memory = remembering(one)
    for offset in (-700, -500, 0):
        add(memory, request(gauge("m", number(1, NOW + offset))))
    assert [time for time, _ in values(memory, one)["{}"]] == [NOW - 500, NOW]
    assert [time for time, _ in values(memory, one, NOW + 200)["{}"]] == [NOW]
    assert failed(memory, one, NOW + 601).reason == "NothingReceived"


def test_a_range_below_five_minutes_starts_within_what_is_kept() -> None:
    one = wanting("m", source_range=60, source_step=1)
    memory = remembering(one)
    for offset in (-100, -50, 0):
        add(memory, request(gauge("m", number(1, NOW + offset))))
    assert [time for time, _ in values(memory, one)["{}"]] == [NOW - 50, NOW]


def test_a_sample_exactly_as_old_as_the_range_is_kept() -> None:
    one = wanting("m", source_range=600)
    memory = remembering(one)
    add(memory, request(gauge("m", number(1, NOW - 600))))
    assert values(memory, one) == {"{}": [[NOW - 600, "1"]]}


def test_points_are_counted_by_what_became_of_them() -> None:
    one = wanting("m")
    memory = remembering(one)
    assert memory.outcomes == {TAKEN: 0}
    add(memory, request(gauge("m", number(1)), gauge("unwanted", number(1))))
    add(memory, request(gauge("m", number(1))))
    assert memory.outcomes == {TAKEN: 1, STALE: 1}


def test_range_0_is_the_latest_value_for_five_minutes() -> None:
    one = wanting("m", source_range=0, source_step=1)
    memory = remembering(one)
    for offset in (-20, -10):
        add(memory, request(gauge("m", number(offset, NOW + offset))))
    assert values(memory, one) == {"{}": [[NOW - 10, "-10"]]}
    assert failed(memory, one, NOW + 291).reason == "NothingReceived"


def test_a_point_without_a_time_is_of_now_and_one_of_the_future_is_refused() -> None:
    one = wanting("m")
    memory = remembering(one)
    assert add(memory, request(gauge("m", number(1, NOW + 400, pod="x")))) == {AHEAD: 1}
    assert add(memory, request(gauge("m", number(1, 0)))) == {}
    assert values(memory, one) == {"{}": [[NOW, "1"]]}


def test_the_time_of_a_point_without_one_has_milliseconds() -> None:
    one = wanting("m")
    memory = ReceivedMetrics(lambda: NOW + 0.1254)
    memory.configure(dump_summaries([one]))
    assert add(memory, request(gauge("m", number(1, 0)))) == {}
    assert values(memory, one, NOW + 1) == {"{}": [[NOW + 0.125, "1"]]}


def test_two_scorers_have_each_their_window() -> None:
    short, long = wanting("m", "short", source_range=300), wanting("m", "long", source_range=900)
    memory = remembering(short, long)
    for offset in (-800, 0):
        assert add(memory, request(gauge("m", number(1, NOW + offset)))) == {}
    assert [len(found["{}"]) for found in (values(memory, short), values(memory, long))] == [1, 2]


def test_a_scorer_that_stays_keeps_its_series_and_one_that_changes_does_not() -> None:
    one, other = wanting("m"), wanting("m", "other")
    memory = remembering(one, other)
    add(memory, request(gauge("m", number(1))))
    changed = wanting("m", "other", source_range=600)
    memory.configure(dump_summaries([one, changed]))
    assert values(memory, one) == {"{}": [[NOW, "1"]]}
    assert failed(memory, changed).reason == "NothingReceived"
    memory.configure("[not json")
    assert values(memory, one) == {"{}": [[NOW, "1"]]}
    memory.configure("[]")
    assert failed(memory, one).reason == "NothingReceived"


def test_memory_is_bounded_and_what_is_too_much_is_told() -> None:
    one = wanting("m", source_step=1)
    memory = remembering(one, bounds=MemoryBounds(series=3, samples=5))
    many = gauge("m", *(number(1, pod=str(n)) for n in range(5)))
    assert add(memory, request(many)) == {TOO_MANY_SERIES: 2}
    later = gauge("m", *(number(1, NOW + 1, pod=str(n)) for n in range(3)))
    assert add(memory, request(later)) == {TOO_MANY_SAMPLES: 1}
    assert sum(len(samples) for samples in values(memory, one).values()) == 5
    assert failed(memory, one, NOW + 3602).reason == "NothingReceived"
    assert add(memory, request(gauge("m", number(1, NOW, pod="new")))) == {}


def test_labels_cannot_fill_the_memory() -> None:
    one = wanting("m")
    memory = remembering(one)
    room = 4096 - len("__name__" + "m" + "pod")
    assert add(memory, request(gauge("m", number(1, pod="x" * room)))) == {}
    longer = request(gauge("m", number(1, pod="y" * (room + 1))))
    assert add(memory, longer) == add(memory, longer) == {LABELS_TOO_LONG: 1}
    assert memory.held == (1, 1)


def test_only_who_wants_its_buckets_hears_that_an_exponential_histogram_has_none() -> None:
    data = {"aggregationTemporality": 2, "dataPoints": [{**at(NOW), "count": "4", "sum": 9}]}
    export = request({"name": "h", "exponentialHistogram": data})
    assert add(remembering(wanting("h_count")), export) == {}
    assert add(remembering(wanting("h_bucket")), export) == {EXPONENTIAL: 1}


@pytest.mark.parametrize("query", ["", 'm{a=~"("}', "rate(m[5m])", 'm{a=~"(?=x)"}'])
def test_a_query_that_selects_nothing_possible_is_named(query: str) -> None:
    one, good = wanting(query, "one"), wanting("m", "good")
    memory = remembering(one, good)
    add(memory, request(gauge("m", number(1))))
    assert failed(memory, one).reason == "InvalidSelector"
    assert values(memory, good) == {"{}": [[NOW, "1"]]}


def test_of_a_metric_that_no_selector_takes_nothing_is_refused() -> None:
    one = wanting('{__name__=~"util|other", __name__!="util"}')
    assert add(remembering(one), request({"name": "util"})) == {}
    assert add(remembering(one), request({"name": "other"})) == {NO_DATA: 1}


def test_a_hostile_expression_costs_nothing() -> None:
    one = wanting('m{a=~"(a+)+$"}')
    memory = remembering(one)
    assert add(memory, request(gauge("m", number(1, a="a" * 5000 + "b")))) == {}
    assert failed(memory, one).reason == "NothingReceived"


@given(
    st.lists(
        st.tuples(
            st.integers(-4000, 400),
            st.floats(allow_nan=False, allow_infinity=False),
            st.booleans(),
            st.sampled_from("ab"),
        ),
        max_size=30,
    ),
    st.integers(0, 3600),
    st.integers(1, 90),
)  # fmt: skip
def test_whatever_comes_samples_are_in_order_in_range_and_one_per_step(
    arrivals: list[tuple[int, float, bool, str]], range_: int, step: int
) -> None:
    one = wanting("m", source_range=range_, source_step=step)
    memory = remembering(one)
    for offset, value, delta, pod in arrivals:
        point = number(value, NOW + offset, pod=pod)
        add(memory, request(total("m", point, delta=delta)))
    found = memory.fetch(one, NOW)
    for series in sent(found) if isinstance(found, FetchedSeries) else []:
        times = [time for time, _ in series["values"]]
        slots = [time // step for time in times]
        assert slots == sorted(set(slots))
        assert min(times) >= NOW - (range_ or 300)
        assert range_ or len(times) == 1

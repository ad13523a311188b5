# SPDX-License-Identifier: Apache-2.0
"""Pods joined with devices, busy replicas, shares of a GPU's power."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ..scoring_service.wire import ScoreResult, Series
from .score import efficiency, idle, performance, power
from .signals import (
    ACTIVITY,
    COST,
    IDLE,
    POWER,
    PRICE,
    RESERVED,
    RUNNING,
    TOKENS,
    AppPattern,
    app_of,
    device_of,
)

RECORDINGS = Path(__file__).with_name("recordings")
Values = list[float | None]


def series(signal: str, values: Values, **labels: str) -> Series:
    points = [(60 * n, str(value)) for n, value in enumerate(values) if value is not None]
    return Series.model_validate({"metric": {"signal": signal, **labels}, "values": points})


tokens = partial(series, TOKENS, namespace="x")
running = partial(series, RUNNING, namespace="x")


def instance(values: Values, pod: str = "", profile: str = "", gpu: str = "0") -> Series:
    labels = {"Hostname": "h", "gpu": gpu, "GPU_I_PROFILE": profile, "GPU_I_ID": pod or "idle"}
    owner = {"exported_namespace": "x", "exported_pod": pod} if pod else {}
    return series(ACTIVITY, values, **labels, **owner)


GPUS = {"0": 300.0, "1": 400.0}


def watts(values: Values, gpu: str = "0") -> Series:
    return series(POWER, values, Hostname="h", gpu=gpu)


def hourly(cost: float, price: float, samples: int = 1) -> tuple[Series, Series]:
    """Return the cost of an hour of a GPU without energy, and the price of a kilowatt-hour."""
    return series(COST, [cost] * samples, Hostname="h"), series(PRICE, [price] * samples)


def scored(score: Callable[..., list[ScoreResult]], *found: Series) -> dict[tuple[str, str], float]:
    return {
        (each.metric["app"], each.metric["device"]): each.score for each in score(found, app_of)
    }


def test_an_idle_replica_is_not_slow() -> None:
    found = scored(
        performance,
        tokens([600, 0, 0, 600], pod="a-0"),
        running([5, 0, 0, 5], pod="a-0"),
        instance([0.8, 0, 0, 0.8], "a-0", "3g.48gb"),
    )
    assert found == {("a", "3g.48gb"): 600}


def test_without_the_number_of_requests_a_replica_is_busy_while_it_generates() -> None:
    found = scored(performance, tokens([600, 0], pod="a-0"), instance([0.8, 0], "a-0"))
    assert found == {("a", "all"): 600}


def test_replicas_of_an_app_count_together_on_each_kind_of_device() -> None:
    found = scored(
        performance,
        tokens([100], pod="a-0"),
        tokens([300], pod="a-1"),
        tokens([900], pod="a-2"),
        instance([1], "a-0", "3g.48gb"),
        instance([1], "a-1", "3g.48gb", "1"),
        instance([1], "a-2"),
    )
    assert found == {("a", "3g.48gb"): 200, ("a", "all"): 900}


def test_a_pod_that_returns_on_another_device_is_scored_on_both() -> None:
    found = scored(
        performance,
        tokens([100, 100, 700, 700], pod="a-0"),
        instance([1, 1, None, None], "a-0", "2g.24gb"),
        instance([None, None, 1, 1], "a-0", "3g.48gb", "1"),
    )
    assert found == {("a", "2g.24gb"): 100, ("a", "3g.48gb"): 700}


@pytest.mark.parametrize(
    "devices",
    [
        (),
        (instance([None], "a-0"),),
        (instance([1], "b-0"),),
        (instance([1], "a-0", "2g.24gb"), instance([1], "a-0", "3g.48gb")),
    ],
    ids=["none", "no sample", "another pod's", "two kinds at a time"],
)
def test_a_pod_whose_device_is_not_known_has_no_result(devices: tuple[Series, ...]) -> None:
    assert scored(performance, tokens([100], pod="a-0"), *devices) == {}


def test_a_busy_or_large_instance_draws_more_than_an_idle_or_small_one() -> None:
    found = scored(
        power,
        watts([300]),
        instance([0.9], "busy-0", "2g.24gb"),
        instance([0.0], "idle-0", "2g.24gb"),
        instance([0.9], "large-0", "3g.48gb"),
    )
    # w = 2 * 1.0, 2 * 0.1 and 3 * 1.0, of 5.2
    assert found["busy", "2g.24gb"] == pytest.approx(300 * 2 / 5.2)
    assert found["idle", "2g.24gb"] == pytest.approx(300 * 0.2 / 5.2)
    assert found["large", "3g.48gb"] == pytest.approx(300 * 3 / 5.2)


@given(
    st.lists(
        st.tuples(st.floats(0, 2), st.sampled_from(["1g.10gb", "3g.40gb", "odd"])), min_size=1
    ),
    st.floats(0, 1000),
)
def test_the_shares_of_a_gpu_add_up_to_its_power(
    instances: list[tuple[float, str]], drawn: float
) -> None:
    devices = [
        instance([activity], f"pod{chr(97 + n % 26)}{n}x", profile)
        for n, (activity, profile) in enumerate(instances)
    ]
    found = scored(power, watts([drawn]), *devices)
    assert sum(found.values()) == pytest.approx(drawn)


def test_a_replica_on_two_gpus_draws_the_power_of_both() -> None:
    gpus = [(watts([drawn], gpu), instance([0.5], "a-0", gpu=gpu)) for gpu, drawn in GPUS.items()]
    assert scored(power, *(each for gpu in gpus for each in gpu)) == {("a", "all"): 700}


def test_the_power_of_a_device_that_nobody_has_is_nobodys() -> None:
    found = scored(
        power, watts([100]), instance([0], "a-0", "3g.48gb"), instance([0], "", "3g.48gb")
    )
    assert found == {("a", "3g.48gb"): pytest.approx(50)}


def test_efficiency_is_tokens_by_the_cost_of_the_gpu_and_its_energy() -> None:
    """1000 tokens/s are 3.6 million in an hour, for 1 and 0.5 kW at 0.4: 1.2."""
    found = scored(
        efficiency, tokens([1000], pod="a-0"), instance([1], "a-0"), watts([500]), *hourly(1, 0.4)
    )
    assert found == {("a", "all"): pytest.approx(3.6 / 1.2)}


def test_idle_time_is_not_in_the_efficiency_and_an_instance_costs_its_compute_slices() -> None:
    """The busy replica has 3 of 5 slices of a GPU for 1, and 3 (1 + 0.1) / 3.5 of its energy."""
    found = scored(
        efficiency,
        tokens([1000, 0], pod="a-0"),
        running([3, 0], pod="a-0"),
        instance([1, 0], "a-0", "3g.48gb"),
        instance([0, 0], "", "2g.24gb"),
        watts([500, 100]),
        *hourly(1, 0.4, samples=2),
    )
    assert found == {("a", "3g.48gb"): pytest.approx(3.6 / (3 / 5 + 0.5 * 0.4 * 3.3 / 3.5))}


def aggregated(signal: str, values: Values, profile: str = "") -> Series:
    """What Prometheus answers for all devices of a kind."""
    return series(signal, values, **({"GPU_I_PROFILE": profile} if profile else {}))


def test_reserved_but_idle_is_the_share_of_the_time_in_which_pods_had_devices() -> None:
    found = idle(
        [
            aggregated(IDLE, [1, 3, None, 0.5]),  # of 2, 4, nobody's, 2 devices
            aggregated(RESERVED, [2, 4, None, 2]),
            aggregated(IDLE, [0, 0], "3g.40gb"),
            aggregated(RESERVED, [1, 1, 1], "3g.40gb"),
            aggregated(IDLE, [1], "1g.10gb"),
        ]
    )
    assert {each.metric["device"]: each.score for each in found} == {"all": 56.25, "3g.40gb": 0}


def test_series_of_several_sources_are_known_by_the_name_of_their_source() -> None:
    found = [tokens([1000], pod="a-0"), instance([1], "a-0"), watts([500]), *hourly(1, 0.4)]
    for one in found:
        one.metric["__source__"] = one.metric.pop("signal")
    assert scored(efficiency, *found) == {("a", "all"): pytest.approx(3.6 / 1.2)}


@pytest.mark.parametrize("left_out", [POWER, COST, PRICE])
def test_without_power_cost_or_price_there_is_no_efficiency(left_out: str) -> None:
    found = [tokens([1000], pod="a-0"), instance([1], "a-0"), watts([500]), *hourly(1, 0.4)]
    assert scored(efficiency, *(one for one in found if one.metric["signal"] != left_out)) == {}


@pytest.mark.parametrize(
    ("pod", "app"),
    [
        ("app01-6bd9f7c84-x2kzm", "app01"),
        ("app01-5f6c9d7bb4-q8wzt", "app01"),
        ("app01-0", "app01"),
        ("app-two-12", "app-two"),
        ("app01-x2kzm", "app01"),
        ("app01", "app01"),
        ("-0", "-0"),
        ("vllm-llama-7", "chat"),
    ],
)
def test_the_app_of_a_pod(pod: str, app: str) -> None:
    patterns = (AppPattern("chat", "vllm-llama-?"), AppPattern("never", "vllm-*"))
    assert app_of(pod, patterns) == app


@pytest.mark.parametrize(
    ("profile", "slices"), [("3g.48gb", 3), ("1g.10gb+me", 1), ("1c.3g.20gb", 3), ("", 1), ("?", 1)]
)
def test_the_compute_slices_of_a_profile(profile: str, slices: int) -> None:
    assert device_of({"GPU_I_PROFILE": profile}).compute_slices == slices


labels = st.dictionaries(
    st.sampled_from(["signal", "pod", "exported_pod", "GPU_I_PROFILE", "gpu"]),
    st.sampled_from(
        [TOKENS, RUNNING, ACTIVITY, POWER, COST, PRICE, IDLE, RESERVED, "a-0", "3g.48gb", ""]
    ),
)
number = st.floats().map(repr).filter(lambda text: "inf" not in text and text != "nan")
any_series = st.builds(
    lambda metric, values: Series.model_validate({"metric": metric, "values": values}),
    labels,
    st.lists(st.tuples(st.integers(0, 3), number), max_size=4),
)


@given(st.lists(any_series, max_size=8))
def test_any_series_have_finite_scores_that_are_not_negative(found: list[Series]) -> None:
    for score in (performance, power, efficiency):
        assert all(value >= 0 for value in scored(score, *found).values())
    assert all(0 <= each.score <= 100 for each in idle(found))


@pytest.mark.parametrize("kind", ["performance", "power", "efficiency"])
def test_the_requests_are_those_of_the_recording(kind: str) -> None:
    recording = json.loads((RECORDINGS / "inference.json").read_text())
    recorded = {
        json.dumps(one["metric"]): [value for value in one["values"] if value is not None]
        for query in recording["queries"]
        for one in query["series"]
    }
    request = json.loads((RECORDINGS / f"{kind}.json").read_text())
    for one in request["data"]:
        values = [float(value) for _, value in one["values"]]
        assert values == recorded[json.dumps(one["metric"])]

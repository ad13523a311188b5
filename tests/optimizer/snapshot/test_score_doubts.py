"""What a request makes of the trust that agents tell of a score."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.conditions import merged
from dsf.api.scoring.score_conditions import TrackRecord, trust_condition
from dsf.kube.port import Object
from optimizer.domain.fleet import Fleet
from optimizer.explain.why_not import why_not
from optimizer.model.formulate import formulate
from optimizer.plan.unplaced_reasons import unplaced
from optimizer.snapshot.scores.score_doubts import ClusterMean, neutral_score, trust_weight, weighed
from optimizer.wire.explanation import WhyNotQuestion
from tests.optimizer.build import NOW, guide, read_fleet, request
from tests.optimizer.explain.solvers import RESOLVE

PARTS = st.floats(0, 1)
MEANS = st.builds(ClusterMean, st.floats(-100, 100), st.integers(1, 1000), PARTS)


@given(st.one_of(st.none(), PARTS), PARTS)
def test_a_weight_is_between_0_and_1_and_1_from_the_minimum_on(
    trust: float | None, minimum: float
) -> None:
    weight = trust_weight(trust, minimum)
    assert 0 <= weight <= 1
    assert (weight == 1) or (trust is not None and trust < minimum)
    if trust is not None:
        assert trust_weight(trust / 2, minimum) <= weight


@given(st.lists(MEANS, min_size=1))
def test_the_neutral_score_lies_among_the_scores(means: list[ClusterMean]) -> None:
    neutral = neutral_score(means)
    assert min(one.mean for one in means) - 1e-9 <= neutral
    assert neutral <= max(one.mean for one in means) + 1e-9


def test_the_neutral_score_is_that_of_the_trusted() -> None:
    trusted, mad = ClusterMean(50.0, 4, 1.0), ClusterMean(-100.0, 400, 0.0)
    assert neutral_score([trusted, mad]) == 50
    assert neutral_score([mad, ClusterMean(0.0, 400, 0.0)]) == -50
    assert neutral_score([]) == 0


@given(st.lists(st.floats(-100, 100), min_size=2), PARTS, st.floats(-100, 100))
def test_weighing_keeps_the_order_and_ends_at_the_neutral_score(
    scores: list[float], weight: float, neutral: float
) -> None:
    before = np.array(sorted(scores))
    after = weighed(before, weight, neutral)
    assert np.all(np.diff(after) >= -1e-9)
    assert np.ptp(after) <= weight * np.ptp(before) + 1e-9
    assert np.all(weighed(before, 1.0, neutral) == before)
    assert np.all(weighed(before, 0.0, neutral) == neutral)
    assert np.isnan(weighed(np.array([math.nan]), weight, neutral)).all()


def trusting(obj: Object, error: float, evidence: float = 4.0) -> Object:
    """The score with a condition that tells how its forecasts fared."""
    record = TrackRecord(600, error / (1 + error), evidence, NOW.timestamp())
    told = merged([], [trust_condition(record, NOW.timestamp())], now="2026-11-20T12:00:00Z")
    return {**obj, "status": {**obj["status"], "conditions": told}}


def fleet(errors: dict[str, float], **preference: Any) -> Fleet:
    """The guide's fleet, where the performance of a cluster is a forecast with this error."""
    observed = guide()
    scores = tuple(
        trusting(obj, errors[obj["metadata"]["namespace"]])
        if obj["metadata"]["namespace"] in errors
        else obj
        for obj in observed.scores
    )
    asked = request(preference={"addonPlacementScore": "performance", **preference})
    return read_fleet(replace(observed, scores=scores), asked)


def value(given: Fleet, cluster: str, app: str = "app01", device: str = "all") -> float | None:
    return given.scores["performance"].get((cluster, app, device))


def test_a_request_that_asks_for_no_trust_counts_every_score_in_full() -> None:
    plain = read_fleet(guide())
    told = fleet({"worker01": 5.0, "worker02": 0.2})
    assert told.scores == plain.scores
    assert told.issues == plain.issues


def test_a_score_below_the_minimum_loses_influence_and_the_issue_says_why() -> None:
    found = fleet({"worker01": 0.9, "worker02": 0.2}, minimumTrust=0.2)
    # worker02 counts in full, worker01 half: its trust is 0.1.
    assert value(found, "worker02") == 80
    neutral = 50.0  # the mean of the guide's six scores is 50 on both
    assert value(found, "worker01") == pytest.approx(0.5 * 80 + 0.5 * neutral)
    (issue,) = found.issues
    assert (issue.reason, issue.cluster) == ("UntrustedScore", "worker01")
    assert f"{issue.message}" == (
        "cluster worker01: AddOnPlacementScore performance has trust 0.100, less than minimumTrust"
        " 0.2, because the error of its forecasts is 0.9 times last value's: it counts 50%, and for"
        " the rest 50.0, the mean of the score"
    )


def test_why_not_names_the_scores_that_lost_influence() -> None:
    found = fleet({"worker01": 0.9, "worker02": 0.2}, minimumTrust=0.2)
    problem = formulate(found)
    solution = RESOLVE(problem)
    why = why_not(
        found, problem, solution, WhyNotQuestion(workload="mwrs-app01", cluster="worker01"), RESOLVE
    )
    assert why.possible
    assert "has trust 0.100, less than minimumTrust 0.2" in why.message
    other = why_not(
        found, problem, solution, WhyNotQuestion(workload="mwrs-app01", cluster="worker02"), RESOLVE
    )
    assert "trust" not in other.message


def test_scores_without_any_trust_decide_nothing() -> None:
    found = fleet({"worker01": 7.0, "worker02": 7.0}, minimumTrust=0.2)
    assert {*found.scores["performance"].values()} == {50.0}
    assert [issue.reason for issue in found.issues] == ["UntrustedScore"] * 2


def test_a_refused_score_counts_as_missing() -> None:
    asked = {"minimumTrust": 0.2, "untrusted": "Refuse"}
    found = fleet({"worker01": 0.9, "worker02": 0.2}, **asked)
    assert value(found, "worker01") is None
    (issue,) = found.issues
    assert "is refused and counts as missing" in issue.message
    assert value(fleet({"worker01": 0.9}, **asked), "worker02") == 80


def test_where_missing_scores_are_forbidden_refused_ones_leave_workloads_unplaced() -> None:
    observed = guide(("worker01",))
    scores = tuple(trusting(obj, 3.0) for obj in observed.scores)
    asked = request(
        "performance",
        ("worker01",),
        preference={
            "addonPlacementScore": "performance",
            "minimumTrust": 0.2,
            "untrusted": "Refuse",
        },
        missingScore="forbid",
    )
    given = read_fleet(replace(observed, scores=scores), asked)
    problem = formulate(given)
    solution = RESOLVE(problem)
    told = unplaced(asked, given, problem, solution)
    assert {item.reason for item in told} == {"NoUsableScore"}
    why = why_not(
        given, problem, solution, WhyNotQuestion(workload="mwrs-app01", cluster="worker01"), RESOLVE
    )
    assert (why.possible, "has trust 0.000" in why.message) == (False, True)


def test_unknown_trust_counts_in_full_and_is_told() -> None:
    found = fleet({"worker01": 0.9}, minimumTrust=0.2)
    assert value(found, "worker02") == 80
    told = {issue.reason: issue for issue in found.issues}
    assert told["UntrustedScore"].cluster == "worker01"
    assert "on 1 cluster (worker02), so it counts in full there" in told["UnknownTrust"].message
    observed = guide()
    little = tuple(trusting(obj, 0.9, evidence=1.0) for obj in observed.scores)
    asked = request(preference={"addonPlacementScore": "performance", "minimumTrust": 1})
    unknown = read_fleet(replace(observed, scores=little), asked)
    assert value(unknown, "worker01") == 80
    (issue,) = unknown.issues
    assert "on 2 clusters (worker01, worker02)" in issue.message


def test_a_missing_entry_of_a_doubted_score_has_the_value_of_a_missing_one() -> None:
    observed = guide()
    scores = []
    for obj in observed.scores:
        kept = [one for one in obj["status"]["scores"] if one["name"] != "app01;all"]
        scores.append(trusting({**obj, "status": {"scores": kept}}, 9.0))
    asked = request(
        preference={"addonPlacementScore": "performance", "minimumTrust": 0.5}, missingScore=-7
    )
    found = read_fleet(replace(observed, scores=tuple(scores)), asked)
    assert value(found, "worker01") == -7
    assert value(found, "worker01", "app02") == pytest.approx((80 + 60 + 55 + 10 + 15) / 5)


def test_what_was_read_of_a_cluster_before_is_forgotten() -> None:
    observed = guide()
    stale = tuple(trusting(obj, 9.0) for obj in observed.scores)
    fresh = tuple(trusting(obj, 0.1) for obj in observed.scores)
    asked = request(preference={"addonPlacementScore": "performance", "minimumTrust": 0.5})
    found = read_fleet(replace(observed, scores=(*stale, *fresh)), asked)
    assert found.issues == ()
    assert value(found, "worker01") == 80

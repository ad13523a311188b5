from dataclasses import replace

import pytest

from dsf.kube.port import Object
from optimizer.fleet import Fleet
from optimizer.observation import Observation
from optimizer.read import read_fleet
from optimizer.request import OptimizeRequest
from optimizer.settings import DEFAULTS, Settings
from tests.optimizer.build import NOW, PERFORMANCE, guide, named, policy, request, score, workload


def read(
    observation: Observation,
    asked: OptimizeRequest | None = None,
    settings: Settings = DEFAULTS,
) -> Fleet:
    return read_fleet(observation, asked or request(), settings=settings, now=NOW)


def reasons(fleet: Fleet) -> set[str]:
    return {gap.reason for gap in fleet.gaps}


def with_scores(*scores: Object) -> Observation:
    return replace(guide(), scores=scores)


def test_the_guides_fleet_is_read_without_a_gap() -> None:
    fleet = read(guide())
    assert fleet.gaps == ()
    assert fleet.scores["performance"] == {
        (cluster, *pair): value
        for cluster in ("worker01", "worker02")
        for pair, value in PERFORMANCE.items()
    }
    assert [len(cluster.candidates) for cluster in fleet.clusters] == [3, 3]


def test_policies_keep_the_order_of_the_request() -> None:
    candidates = read(guide()).clusters[0].candidates
    assert [candidate.supplies[0].device for candidate in candidates] == [
        "2g.24gb",
        "3g.48gb",
        "all",
    ]


def test_a_cluster_without_the_score_object_is_a_gap() -> None:
    fleet = read(with_scores(score("worker01", "performance", named(PERFORMANCE))))
    assert [(gap.reason, gap.cluster) for gap in fleet.gaps] == [("MissingScoreObject", "worker02")]
    assert {cluster for cluster, _, _ in fleet.scores["performance"]} == {"worker01"}


@pytest.mark.parametrize(
    ("valid_until", "usable"),
    [
        (None, True),
        ("2026-11-20T12:00:01Z", True),
        ("2026-11-20T12:00:00Z", False),
        ("2026-11-20T11:00:00Z", False),
        ("2026-11-20T21:00:01+09:00", True),
        ("2026-11-20T12:00:01", False),
        ("tomorrow", False),
    ],
)
def test_scores_count_until_they_expire(valid_until: str | None, usable: bool) -> None:
    entries = named(PERFORMANCE)
    fleet = read(
        with_scores(
            score("worker01", "performance", entries, valid_until),
            score("worker02", "performance", entries),
        )
    )
    assert (("worker01", "app01", "all") in fleet.scores["performance"]) is usable
    assert (reasons(fleet) == {"ExpiredScore"}) is not usable


def test_a_missing_entry_is_a_gap_of_its_pair_alone() -> None:
    entries = named({key: value for key, value in PERFORMANCE.items() if key != ("app01", "all")})
    fleet = read(
        with_scores(
            score("worker01", "performance", entries),
            score("worker02", "performance", named(PERFORMANCE)),
        )
    )
    (gap,) = fleet.gaps
    assert (gap.reason, gap.cluster, gap.device) == ("MissingScore", "worker01", "all")
    assert "app01;all" in gap.message
    assert ("worker01", "app02", "all") in fleet.scores["performance"]


def test_a_missing_score_has_the_stated_value() -> None:
    fleet = read(with_scores(), settings=Settings(missing_score=7.5))
    assert set(fleet.scores["performance"].values()) == {7.5}
    assert reasons(fleet) == {"MissingScoreObject"}


def test_an_entry_without_an_integer_value_is_missing() -> None:
    entries = {**named(PERFORMANCE), "app01;all": "80", "app02;all": True}
    fleet = read(
        with_scores(
            score("worker01", "performance", entries),
            score("worker02", "performance", named(PERFORMANCE)),
        )
    )
    assert [gap.reason for gap in fleet.gaps] == ["MissingScore", "MissingScore"]


def test_two_entries_of_one_pair_are_ambiguous() -> None:
    asked = request(
        preference={
            "addonPlacementScore": "performance",
            "scoreDimensionFormat": "${node};${app};${device}",
        }
    )
    entries = {"n1;app01;all": 1, "n2;app01;all": 2, "n1;app02;all": 3}
    observation = replace(guide(["worker01"]), scores=(score("worker01", "performance", entries),))
    asked = asked.model_copy(update={"clusters": asked.clusters[:1]})
    fleet = read(observation, asked)
    ambiguous = [gap for gap in fleet.gaps if gap.reason == "AmbiguousScore"]
    assert [gap.device for gap in ambiguous] == ["all"]
    assert fleet.scores["performance"] == {("worker01", "app02", "all"): 3}


def test_a_format_of_known_placeholders_names_entries_whatever_they_contain() -> None:
    observation = replace(
        guide(["worker01"]),
        workloads=(workload("w", "my-app"),),
        policies=(policy("p", "3g-x", 2),),
        scores=(score("worker01", "performance", {"my-app-3g-x": 5}),),
    )
    asked = OptimizeRequest.model_validate(
        {
            "namespace": "default",
            "clusters": [{"name": "worker01", "availablePolicies": [{"name": "p"}]}],
            "targetWorkloads": [{"name": "w"}],
            "preference": {
                "addonPlacementScore": "performance",
                "scoreDimensionFormat": "${app}-${device}",
            },
        }
    )
    assert read(observation, asked).scores["performance"] == {("worker01", "my-app", "3g-x"): 5}


def test_a_policy_that_says_nothing_usable_is_a_gap_and_no_candidate() -> None:
    observation = guide()
    policies = (policy("2g.24gb-worker01", amount="many"), *observation.policies[1:])
    fleet = read(replace(observation, policies=policies))
    assert [(gap.reason, gap.policy) for gap in fleet.gaps] == [
        ("InvalidSupply", "2g.24gb-worker01")
    ]
    assert len(fleet.clusters[0].candidates) == 2


def test_workloads_that_share_a_placement_are_all_left_out() -> None:
    both = (workload("mwrs-app01", "app01", 2, "one"), workload("mwrs-app02", "app02", 2, "one"))
    fleet = read(replace(guide(), workloads=both))
    assert fleet.workloads == ()
    assert [(gap.reason, gap.workload) for gap in fleet.gaps] == [
        ("SharedPlacement", "mwrs-app01"),
        ("SharedPlacement", "mwrs-app02"),
    ]

import pytest
from pydantic import ValidationError

from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import REQUEST_FIELDS, field_problems
from tests.optimizer.build import body


def _with_preference(**preference: object) -> dict[str, object]:
    return {**body(), "preference": preference}


@pytest.mark.parametrize("field", ["addonPlacementScore", "addOnPlacementScore"])
def test_both_spellings_of_the_score_are_read(field: str) -> None:
    request = OptimizeRequest.model_validate(_with_preference(**{field: "performance"}))
    assert request.preference.add_on_placement_score == "performance"


def test_a_score_name_is_the_name_of_its_objects() -> None:
    raw = _with_preference(addonPlacementScore="example_performance_score")
    assert OptimizeRequest.model_validate(raw).preference.score_name == "example-performance-score"


def test_the_stated_entries_of_a_score_tell_it_apart_but_not_those_of_the_contract() -> None:
    def key(**stated: str) -> str:
        score = {"addonPlacementScore": "performance", **stated}
        return OptimizeRequest.model_validate(_with_preference(**score)).preference.key

    assert key() == key(scoreDimensionFormat="${app};${device}") == "performance"
    assert key(scoreDimensionFormat="${node}", aggregation="Mean") == "performance ${node} Mean"


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"targetWorkload": []}, "targetWorkload"),
        ({"clusters": []}, "clusters"),
        ({"targetWorkloads": []}, "targetWorkloads"),
        ({"namespace": "Not A Name"}, "namespace"),
        ({"clusters": [{"name": "a"}, {"name": "a"}]}, "cluster named twice: a"),
        ({"targetWorkloads": [{"name": "a"}, {"name": "a"}]}, "workload named twice: a"),
        (
            {"clusters": [{"name": "a", "availablePolicies": [{"name": "p"}, {"name": "p"}]}]},
            "policy named twice: p",
        ),
        ({"preference": {"addonPlacementScore": "___"}}, "addonPlacementScore"),
        (
            {"preference": {"addonPlacementScore": "a", "scoreDimensionFormat": "${nonsense}"}},
            "unknown placeholder",
        ),
        ({"preference": {"addonPlacementScore": "a", "addOnPlacementScore": "b"}}, "addOn"),
        ({"missingScore": "five"}, "missingScore\n.*must be 'forbid' or a number from"),
        ({"missingScore": 1e300}, "missingScore\n.*must be 'forbid' or a number from"),
        ({"gap": 1}, "gap\n.*less than 1"),
        ({"gap": -0.1}, "gap\n.*greater than or equal to 0"),
        *(
            (_with_preference(addonPlacementScore="a", minimumTrust=wrong), "minimumTrust")
            for wrong in (-0.01, 1.01, float("nan"), float("inf"), "high")
        ),
        (
            _with_preference(addonPlacementScore="a", untrusted="Refuse"),
            "untrusted: state minimumTrust too",
        ),
        (
            _with_preference(addonPlacementScore="a", minimumTrust=0.1, untrusted="Ignore"),
            "untrusted",
        ),
        ({"missingScore": float("nan")}, "missingScore\n.*must be 'forbid' or a number from"),
    ],
)
def test_a_wrong_request_is_refused_by_name(changed: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        OptimizeRequest.model_validate({**body(), **changed})


def test_an_object_within_the_body_is_not_told_a_content_type() -> None:
    limit = {"name": "a", "maximum": 1, "score": "performance"}
    with pytest.raises(ValidationError) as wrong:
        OptimizeRequest.model_validate({**body(), "limits": [limit]})
    (found,) = field_problems(wrong.value.errors(), REQUEST_FIELDS)
    assert (found.field, found.message) == (
        "limits[0].score",
        'must be an object; write {"addonPlacementScore": "name"}',
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"targetWorkload": []}, "targetWorkload: unknown field; did you mean targetWorkloads?"),
        (
            {"targetWorkloads": [{"name": "a", "prioritty": 1}]},
            "targetWorkloads[0].prioritty: unknown field; did you mean priority?",
        ),
        (
            {"limits": [{"name": "a", "maximum": 1, "uses": "b", "clusterSelectors": "c"}]},
            "limits[0].clusterSelectors: unknown field; did you mean clusterSelector?",
        ),
        (
            {"mig": {"reconfigur": "all"}},
            "mig.reconfigur: unknown field; did you mean reconfigure?",
        ),
        ({"zzz": 1}, "zzz: unknown field"),
        ({"body": 1}, "body: unknown field"),
        ({"path": 1}, "path: unknown field; did you mean pareto?"),
        ({"query": 1}, "query: unknown field"),
    ],
)
def test_an_unknown_field_says_what_it_may_mean(changed: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError) as wrong:
        OptimizeRequest.model_validate({**body(), **changed})
    found = field_problems(wrong.value.errors(), REQUEST_FIELDS)
    assert said in [f"{item.field}: {item.message}" for item in found]

import pytest
from pydantic import ValidationError

from optimizer.request import OptimizeRequest
from tests.optimizer.build import body


def _with_preference(**preference: str) -> dict[str, object]:
    return {**body(), "preference": preference}


@pytest.mark.parametrize("field", ["addonPlacementScore", "addOnPlacementScore"])
def test_both_spellings_of_the_score_are_read(field: str) -> None:
    request = OptimizeRequest.model_validate(_with_preference(**{field: "performance"}))
    assert request.preference.add_on_placement_score == "performance"


def test_a_score_name_is_the_name_of_its_objects() -> None:
    raw = _with_preference(addonPlacementScore="example_performance_score")
    assert OptimizeRequest.model_validate(raw).preference.score_name == "example-performance-score"


def test_the_dimension_format_is_app_and_device_unless_told() -> None:
    request = OptimizeRequest.model_validate(_with_preference(addonPlacementScore="performance"))
    assert str(request.preference.dimension) == "${app};${device}"


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
        ({"missingScore": float("nan")}, "missingScore\n.*must be 'forbid' or a number from"),
    ],
)
def test_a_wrong_request_is_refused_by_name(changed: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        OptimizeRequest.model_validate({**body(), **changed})

"""Names that the hub does not have."""

from dataclasses import replace

from optimizer.snapshot.ineffective_input import unknown_names
from optimizer.snapshot.observation import Observation
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem
from tests.optimizer.build import guide, policy, request


def unknown(observation: Observation, asked: OptimizeRequest) -> RequestProblem | None:
    scores = {
        obj["metadata"]["name"]
        for obj in observation.scores
        if obj["metadata"]["namespace"] in asked.cluster_names
    }
    return unknown_names(observation, asked, scores)


def test_names_that_exist_are_not_refused() -> None:
    assert unknown(guide(), request()) is None


def test_every_unknown_name_is_named_with_its_field_and_what_exists() -> None:
    observation = replace(guide(["worker01"]), policies=(policy("other"),), scores=())
    problem = unknown(observation, request("fastest", ["worker09"], ["mwrs-app09"]))
    assert problem is not None
    assert (problem.status, problem.reason) == (422, "UnknownName")
    assert [(error.field, error.available) for error in problem.errors] == [
        ("clusters[0].name", ("worker01",)),
        ("clusters[0].availablePolicies[0].name", ("other",)),
        ("clusters[0].availablePolicies[1].name", ("other",)),
        ("clusters[0].availablePolicies[2].name", ("other",)),
        ("targetWorkloads[0].name", ("mwrs-app01", "mwrs-app02")),
        ("preference.addonPlacementScore", ()),
    ]
    assert "worker09; there is worker01" in problem.detail


def test_a_score_that_only_other_clusters_have_does_not_exist_for_the_request() -> None:
    observation = guide(["worker01", "worker02"])
    scores = tuple(obj for obj in observation.scores if obj["metadata"]["name"] == "power")
    problem = unknown(replace(observation, scores=scores), request())
    assert problem is not None
    assert problem.errors[0].available == ("power",)


def test_an_empty_hub_says_that_there_is_nothing() -> None:
    problem = unknown(Observation(), request())
    assert problem is not None
    assert "there is none" in problem.detail

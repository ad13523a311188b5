"""The tables of the demo, from objects as an API server returns them."""

from typing import Any

from dsf.kube.port import Object
from dsf.sim.demo import output
from dsf.sim.demo.output import SHOWN_DIMENSIONS


def score(cluster: str, **values: int) -> Object:
    entries = [{"name": name, "value": value} for name, value in values.items()]
    return {"metadata": {"namespace": cluster, "name": "heat"}, "status": {"scores": entries}}


def answer(**changes: Any) -> dict[str, Any]:
    placement = {"workload": "app", "cluster": "c1", "device": "all", "score": 57.5}
    policies = {"c2": "p2", "c1": "p1"}
    return {
        "status": "Optimal",
        "objective_value": 57.5,
        "policies": policies,
        "placements": [placement],
        "unplaced": [],
        **changes,
    }


def test_scores_stand_by_dimension_and_cluster_and_a_missing_one_is_a_dash() -> None:
    (table,) = output.score_tables([score("c1", a=1, b=-2), score("c2", b=3)])
    assert table.title == "heat"
    assert table.columns == ["dimension", "c1", "c2"]
    assert table.rows == [["a", "1", "-"], ["b", "-2", "3"]]


def test_of_many_dimensions_the_rest_is_counted() -> None:
    values = {f"d{number:02}": number for number in range(SHOWN_DIMENSIONS + 3)}
    (table,) = output.score_tables([score("c1", **values)])
    assert len(table.rows) == SHOWN_DIMENSIONS + 1
    assert table.rows[-1] == ["(3 more)", ""]


def test_a_plan_shows_policies_by_cluster_and_places() -> None:
    policies, places = output.plan_tables(answer())
    assert policies.rows == [("c1", "p1"), ("c2", "p2")]
    assert places.rows == [["app", "c1", "all", "57.5"]]
    lacking = {"workload": "batch", "reason": "NoNodeFits", "message": "no node has 4 GPUs"}
    *_, unplaced = output.plan_tables(answer(unplaced=[lacking]))
    assert unplaced.rows == [["batch", "NoNodeFits"]]


def test_placements_stand_by_name_and_one_nobody_decided_has_dashes() -> None:
    fine = {"type": "PlacementMisconfigured", "status": "False", "reason": "Succeedconfigured"}
    condition = {"type": "PlacementSatisfied", "status": "True", "reason": "AllDecisionsScheduled"}
    table = output.placement_table(
        [
            {"metadata": {"name": "new"}},
            {
                "metadata": {"name": "done"},
                "status": {"numberOfSelectedClusters": 2, "conditions": [fine, condition]},
            },
        ]
    )
    assert table.rows == [("done", "True", "AllDecisionsScheduled", "2"), ("new", "-", "-", "-")]


def test_an_answer_is_a_table_of_some_fields_and_an_empty_text_is_a_dash() -> None:
    items = [{"cluster": "c1", "claim": "", "digest": "0123456789abcdef", "more": 1}]
    table = output.table_of(items, "cluster", "claim", "digest")
    assert (table.columns, table.rows) == (
        ("cluster", "claim", "digest"),
        [["c1", "-", "0123456789ab"]],
    )


def test_results_stand_side_by_side_and_a_cluster_may_have_no_workload() -> None:
    table = output.comparison_table({"power": answer(), "none": answer(policies={}, placements=[])})
    assert table.rows == [
        ("power", "Optimal", "57.5", "c1", "p1", "app"),
        ("power", "Optimal", "57.5", "c2", "p2", ""),
    ]

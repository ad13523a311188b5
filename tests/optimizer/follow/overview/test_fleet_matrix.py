"""The fleet as a matrix: clusters by score, aligned values, what is enforced, bounds."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.kube.clock import utc_now
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE
from optimizer.follow.overview import fleet_matrix as module
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.fleet_matrix import fleet_matrix
from optimizer.follow.overview.score_columns import ScoreColumn, ShownColumns, score_columns
from optimizer.follow.overview.score_overview import ScorerOverview, scorer_overview
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.scores.score_row import ScoreRow
from optimizer.wire.placement_status import PlacementStatus, WorkloadLanding
from optimizer.wire.request import OptimizeRequest
from tests.mcp_server.service import PERFORMANCE, request, scenario_hub
from tests.optimizer.build import obj

WRITTEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


async def facts_of_the_guide(*, applied: bool = False) -> FleetFacts:
    hub = await scenario_hub()
    optimizer = Optimizer(hub, now=utc_now)
    if applied:
        plan = await optimizer.plan(OptimizeRequest(**request()))
        assert isinstance(plan, Plan)
        await optimizer.apply(plan)
    return await optimizer.fleet("default", columns=True)


def score(cluster: str, entries: dict[str, int], name: str = "power") -> dict[str, Any]:
    made = obj(ADD_ON_PLACEMENT_SCORE, name, namespace=cluster)
    listed = [{"name": entry, "value": value} for entry, value in entries.items()]
    return {**made, "status": {"scores": listed}}


def scorer(dimension_format: str, name: str = "power", **status: Any) -> Any:
    return scorer_overview(
        {
            **status,
            "metadata": {"name": name, "namespace": "hub"},
            "spec": {
                "scoreDimensionFormat": dimension_format,
                "scoring": {"params": {"name": name}},
            },
        }
    )


def columns_of(scores: list[Any], described: ScorerOverview | None, most: int = 9) -> ShownColumns:
    clusters = [item["metadata"]["namespace"] for item in scores]
    return score_columns(map(ScoreRow, scores), described, clusters, most)


async def test_the_guides_fleet_is_a_matrix_of_clusters_and_columns() -> None:
    found = fleet_matrix(await facts_of_the_guide())
    assert [item.name for item in found.clusters] == ["worker01", "worker02"]
    assert all(item.eligible and not item.running for item in found.clusters)
    performance = next(item for item in found.scores if item.name == PERFORMANCE)
    column = {(item.app, item.device): item.values for item in performance.columns}
    assert column["app01", "3g.48gb"] == (60, 60)
    assert column["app02", "2g.24gb"] == (15, 15)
    assert (performance.minimum, performance.maximum) == (10, 80)
    assert performance.omitted_columns == 0
    assert [item.name for item in found.workloads] == ["mwrs-app01", "mwrs-app02"]
    assert all("no plan in force" in item.unplaced for item in found.workloads)


async def test_an_applied_plan_is_in_the_rows_of_its_clusters() -> None:
    found = fleet_matrix(await facts_of_the_guide(applied=True))
    assert all(len(item.enforced) == len(item.running) == 1 for item in found.clusters)
    assert {item.unplaced for item in found.workloads} == {""}
    waiting = [item for item in found.findings if item.stage == "workload"]
    assert [(item.severity, item.count, item.names) for item in waiting] == [
        ("info", 2, ("mwrs-app01", "mwrs-app02"))
    ]
    assert '"names":["mwrs-app01","mwrs-app02"]' in found.model_dump_json()


async def test_too_many_items_are_cut_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = await facts_of_the_guide()
    monkeypatch.setattr(module, "MAX_CLUSTERS", 1)
    monkeypatch.setattr(module, "MAX_CELLS", 6)
    found = fleet_matrix(facts)
    assert [item.name for item in found.clusters] == ["worker01"]
    assert found.omitted == {"clusters": 1}
    performance = found.scores[0]
    assert [(item.app, item.device, item.values) for item in performance.columns] == [
        ("", "2g.24gb", (15,)),
        ("", "3g.48gb", (60,)),
        ("", "all", (80,)),
    ]
    assert [item.omitted_columns for item in found.scores] == [3, 3]
    assert {len(item.mean) for item in found.scores} == {1}


@pytest.mark.parametrize(
    ("dimension_format", "entries", "columns"),
    [
        ("${node};${device}", {"n1;gpu0": 10, "n2;gpu0": 21}, {ScoreColumn(device="gpu0"): 21}),
        (
            "${cluster};${app};${device}",
            {"c1;a;d": 1, "c2;a;d": 2},
            {ScoreColumn("a", "d"): 1, ScoreColumn(entry="c2;a;d"): 2},
        ),
        ("${node};${pod}", {"n1;p": 3, "n1;q": 4}, {ScoreColumn(): 4}),
        ("${nonsense}", {"a;b": 4}, {ScoreColumn(entry="a;b"): 4}),
    ],
)
def test_entries_belong_to_the_column_of_their_app_and_device(
    dimension_format: str, entries: dict[str, int], columns: dict[ScoreColumn, float]
) -> None:
    found = columns_of([score("c1", entries)], scorer(dimension_format))
    assert found.columns == {column: [value] for column, value in columns.items()}


@given(
    values=st.dictionaries(
        st.tuples(st.sampled_from("ab"), st.sampled_from("dg"), st.sampled_from("xyz")),
        st.integers(-100, 100),
    ),
    most=st.integers(0, 4),
)
def test_at_most_so_many_columns_are_shown(
    values: dict[tuple[str, str, str], int], most: int
) -> None:
    """Those of a device are one if there are too many, with the best of its apps."""
    scores = [
        score(
            cluster,
            {f"{a};{d}": value for (a, d, where), value in values.items() if where == cluster},
        )
        for cluster in "xyz"
    ]
    every: dict[ScoreColumn, dict[str, int]] = {}
    for folded in (False, True):
        every = {}
        for (app, device, cluster), value in sorted(values.items()):
            column = every.setdefault(ScoreColumn("" if folded else app, device), {})
            column[cluster] = max(value, column.get(cluster, value))
        if len(every) <= most:
            break
    found = columns_of(scores, scorer("${app};${device}"), most)
    shown = {
        column: {"xyz"[at]: value for at, value in enumerate(of) if value is not None}
        for column, of in found.columns.items()
    }
    assert all(every[column] == of for column, of in shown.items())
    assert len(shown) == min(most, len(every))
    assert list(shown) == sorted(shown)
    fewest = min((len(of) for of in shown.values()), default=9)
    assert all(len(of) <= fewest for column, of in every.items() if column not in shown)


def test_of_several_nodes_the_lowest_counts_where_lower_is_better_as_in_a_plan() -> None:
    meaning = {"meaning": {"direction": "LowerIsBetter"}}
    scores = [score("c1", {"n1;gpu0": 21, "n2;gpu0": 10})]
    found = columns_of(scores, scorer("${node};${device}", status=meaning))
    assert found.columns == {ScoreColumn(device="gpu0"): [10]}


@pytest.mark.parametrize(
    ("normalize", "scale"),
    [
        ({"min": 0, "max": 2, "invert": True}, {"unit": "s", "zero": 2, "hundred": 0}),
        ({"min": -5, "max": 5}, {"unit": "s", "zero": -5, "hundred": 5}),
        ({"min": 5, "max": 5}, None),
        (None, None),
    ],
)
def test_a_normalized_score_tells_what_its_ends_are(normalize: Any, scale: Any) -> None:
    """The configuration that its scoring API serves wins."""
    synced = {"unit": "s", "scoring": {"params": {"name": "power"}, "normalize": normalize}}
    found = scorer("${app};${device}", status={"lastSyncedConfig": synced})
    assert found.model_dump().get("scale") == scale


def test_a_score_without_a_scorer_has_the_default_format_and_its_time() -> None:
    times = [{"subresource": "status", "time": WRITTEN.isoformat()}]
    made = score("c1", {"app01;all": 7})
    made["metadata"]["managedFields"] = times
    assert [*columns_of([made], None).columns] == [ScoreColumn("app01", "all")]
    assert ScoreRow(made).written == WRITTEN


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["Planned", "Refused"]),
            st.sampled_from(["A", "B"]),
            st.none() | st.datetimes(timezones=st.just(UTC)),
        ),
        max_size=300,
    )
)
def test_one_cause_is_one_finding_the_worst_first_since_the_oldest(
    landings: list[tuple[Any, str, datetime | None]],
) -> None:
    """So many workloads wait for one thing that nobody could read a line for each."""
    status = PlacementStatus(
        namespace="default",
        landed=False,
        workloads=tuple(
            WorkloadLanding(
                workload=f"w{n}", cluster="c", state=state, reason=reason, message="", since=since
            )
            for n, (state, reason, since) in enumerate(landings)
        ),
        policies=(),
        drift=(),
        unbound_policies=(),
    )
    found = fleet_matrix(FleetFacts("default", Observation(), status)).findings
    expected: dict[tuple[str, str], list[datetime | None]] = {}
    for state, reason, since in landings:
        expected.setdefault((state, reason), []).append(since)
    severities = [item.severity for item in found]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)
    assert Counter((item.count, len(item.names), item.since) for item in found) == Counter(
        (len(items), len(items), min(filter(None, items), default=None))
        for items in expected.values()
    )

"""The curves of a demo: what was published since its start, and the recorded day before."""

from dsf.agent.metrics import AgentMetrics
from dsf.kube.clock import utc_now
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE
from dsf.scorer_kit.prometheus_replay import serving_samples
from dsf.sim.fleet.fleet_load import DAY_SECONDS
from dsf.sim.fleet.generated_fleet import fleet_clusters
from dsf.sim.fleet.score_curves import ScoreCurves
from optimizer.service.hub.score_history import HistoryQuestion, PrometheusHistory, ScoreHistory
from optimizer.service.hub.scorer_history import ScorerHistories, scorer_histories
from tests.optimizer.build import obj

ENTRY = "embed;1g.10gb"


async def test_the_optimizer_draws_what_was_published_and_before_it_the_recorded_day() -> None:
    fleet = tuple(fleet_clusters(40))
    curves, now = ScoreCurves(fleet), int(utc_now().timestamp()) + 1
    clusters = [one.name for one in fleet if ENTRY.partition(";")[2] in one.devices]
    metrics = AgentMetrics(curves.registries[clusters[0]], lambda: now + 60.0)
    for status in ("success", "success", "success", "error"):
        metrics.round_finished("latency", status, {})
        metrics.api_called("latency", "/scoring", "200", 0.2)
    for seconds in (120, 180):
        curves.add(
            now + seconds,
            [
                obj(kind, name, cluster, status={"scores": [{"name": ENTRY, "value": value}]})
                for kind in (ADD_ON_PLACEMENT_SCORE,)
                for name in ("throughput", "latency")
                for value, cluster in enumerate(clusters)
            ],
        )
    async with serving_samples(curves.samples, curves.told) as url:
        prometheus, until = PrometheusHistory(url), now + 180
        one, forecast, every = [
            await prometheus.read(HistoryQuestion(score, cluster, 1, until, "embed"))
            for score, cluster in (
                ("throughput", clusters[3]),
                ("latency", clusters[3]),
                ("throughput", ""),
            )
        ]
        scorers = await scorer_histories(prometheus, 1, until)
    assert isinstance(one, ScoreHistory)
    assert isinstance(forecast, ScoreHistory)
    assert isinstance(every, ScoreHistory)
    assert isinstance(scorers, ScorerHistories)
    assert one.warnings == scorers.warnings == (f'"{curves.told}"',)
    (line,), (ahead,), (spread,) = one.series, forecast.series, every.series
    assert line.points[-2:] == ((now + 120, 3.0), (now + 180, 3.0))
    values = dict(line.points)
    assert (now, None) in line.points, "a hole until agents have published"
    before = now - 600
    assert values[before] == values[before - DAY_SECONDS] != values[before - DAY_SECONDS // 2]
    assert [value for _, value in ahead.points] == [3.0, 3.0], "forecasts have no earlier value"
    assert spread.points[-1][1] == (len(clusters) - 1) / 2
    assert dict(spread.low)[until] < dict(spread.points)[until] < dict(spread.high)[until]
    assert {item.score for item in scorers.scorers} == {
        *("throughput", "latency", "power", "gpu-idle")
    }
    told = next(item for item in scorers.scorers if item.score == "latency")
    assert told.age == ((now + 120, 60.0), (now + 180, 120.0))
    assert [value for _, value in told.failed] == [0.25, 0.25]
    assert all(value and 0.1 < value < 0.5 for _, value in told.latency)
    assert [(item.cluster, item.rounds) for item in told.failing] == [(clusters[0], 1)]
    assert not any(item.skill for item in scorers.scorers), "no forecast was verified"

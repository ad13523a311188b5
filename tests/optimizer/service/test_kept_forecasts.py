"""What the how-to says of horizons: the manifest of the page moves a workload before the load."""

from pathlib import Path

import yaml

from dsf.api.names import HUB_NAMESPACE
from dsf.kube import kinds
from dsf.kube.port import Object
from tests.optimizer.build import PERFORMANCE, obj, score
from tests.optimizer.service.kept_fleet import AT_ONCE, KeptFleet, kept_fleet, said

PAGE = Path(__file__).parents[3] / "docs/how-to/keep-a-fleet-placed.md"
HORIZONS = {"free-in-1h": (3_600, 0.5), "free-in-2h": (7_200, 0.1)}
"""Of each score its horizon in seconds and its quantile."""


def declared() -> Object:
    """Return the spec in the section about forecasts."""
    section = PAGE.read_text().split("\n## Leave before the load comes\n")[1].split("\n## ")[0]
    spec: Object = yaml.safe_load(section.split("```yaml\n")[1].split("```")[0])["spec"]
    return spec


async def forecasting_fleet() -> KeptFleet:
    """Return the guide's fleet with a scorer and scores for each horizon."""
    fleet = await kept_fleet()
    for name, (horizon, quantile) in HORIZONS.items():
        spec = {
            "description": "free GPUs",
            "configURL": "http://scorer/config",
            "scoreDimensionFormat": "${app};${device}",
            "forecast": {"horizon": horizon, "truth": {"query": "free"}, "quantile": quantile},
        }
        scorer = obj(kinds.DYNAMIC_SCORER, name, HUB_NAMESPACE, spec=spec)
        await fleet.hub.create(kinds.DYNAMIC_SCORER, scorer)
        status = {"status": {"scoreName": name}}
        await fleet.hub.patch(
            kinds.DYNAMIC_SCORER, name, status, HUB_NAMESPACE, subresource="status"
        )
        for cluster in ("worker01", "worker02"):
            await fleet.hub.create(kinds.ADD_ON_PLACEMENT_SCORE, score(cluster, name, ()))
            await fleet.score(cluster, name, PERFORMANCE)
    return fleet


async def test_a_load_that_only_the_later_horizon_knows_moves_the_workload_now() -> None:
    fleet = await forecasting_fleet()
    await fleet.declare(**declared(), hysteresis=AT_ONCE)
    assert said(await fleet.look())["Applied"] == "True UpToDate"
    assert {policy[:2] for policy in await fleet.bound()} == {"3g"}
    for cluster in ("worker01", "worker02"):
        later = {key: 100 if key[1] == "2g.24gb" else 0 for key in PERFORMANCE}
        await fleet.score(cluster, "free-in-2h", later)
    assert said(await fleet.look())["Applied"] == "True UpToDate"
    assert {policy[:2] for policy in await fleet.bound()} == {"2g"}

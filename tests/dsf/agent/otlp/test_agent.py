"""The whole agent without any Prometheus: what a program sends becomes scores."""

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

import httpx

from dsf.agent.run import AgentSettings, run
from dsf.api.scoring.scorer_summary import dump_summaries
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import NotFound
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE
from tests.dsf.agent.conftest import CLUSTER
from tests.dsf.agent.otlp.builders import document, gauge, number
from tests.dsf.agent.otlp.test_received_metrics import wanting
from tests.dsf.agent.servers import replying, scores, serving
from tests.eventually import eventually


async def test_what_is_sent_becomes_scores(hub: EmbeddedHub, tmp_path: Path) -> None:
    result = {"node": "n1", "namespace": "ns", "pod": "a"}
    async with serving(replying(scores((result, 12.7)))) as scorer:
        one = wanting("gpu.util", scoring_endpoint=f"{scorer.url}/scoring", scoring_interval=1)
        file = tmp_path / "summaries.json"
        file.write_text(dump_summaries([one]), encoding="utf-8")
        settings = AgentSettings(
            cluster=CLUSTER,
            metrics_bind_address="127.0.0.1:0",
            summaries_file=file,
            otlp_bind_address="127.0.0.1:0",
        )
        listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        endpoints: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(
            run(
                settings,
                hub=hub,
                managed=None,
                listening=endpoints.set_result,
                receiving=listening.set_result,
            )
        )
        try:
            url = await listening

            async def status() -> dict[str, Any]:
                try:
                    found = await hub.get(ADD_ON_PLACEMENT_SCORE, "otel-score", CLUSTER)
                except NotFound:
                    return {}
                return dict(found.get("status") or {})

            async def waiting() -> bool:
                reasons = [c["reason"] for c in (await status()).get("conditions", [])]
                return "NothingReceived" in reasons

            await eventually(waiting)
            assert scorer.calls == []

            export = document(gauge("gpu.util", number(0.5, time.time(), pod="a")))
            async with httpx.AsyncClient(trust_env=False) as client:
                assert (await client.post(f"{url}/v1/metrics", json=export)).status_code == 200

            async def scored() -> Any:
                return (await status()).get("scores")

            assert await eventually(scored) == [{"name": "n1;ns;a", "value": 12}]
            (series,) = scorer.calls[0].json["data"]
            assert series["metric"] == {"__name__": "gpu_util", "pod": "a"}
            async with httpx.AsyncClient(trust_env=False) as client:
                metrics = (await client.get(f"{await endpoints}/metrics")).text
            assert 'dynamic_scoring_otlp_points_total{outcome="taken"} 1.0' in metrics
            assert "dynamic_scoring_otlp_series 1.0" in metrics
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

"""A real Prometheus scrapes a running optimizer with a token, as the values for the hub say."""

import asyncio
from pathlib import Path

import httpx
import yaml

from dsf.kube.access_reviews import NonResourceAttributes
from optimizer.api.app import create_app
from optimizer.api.serving import listen, serve, url
from optimizer.operations.access.authorized_optimizer import Access
from optimizer.operations.access.delegated_auth import DEFAULT_AUDIENCE, DelegatedAuth
from optimizer.service.optimizer import Optimizer
from tests.eventually import eventually
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.monitoring.rules_and_dashboards import EXAMPLES, queries
from tests.optimizer.build import NOW, body
from tests.optimizer.hubs import hub_of
from tests.optimizer.inventoried_nodes import GH200, GPU, inventory, node, publish_nodes
from tests.optimizer.operations.access.callers import READER, TOKENS, reads
from tests.real_hub.harness.ports import LOOPBACK, Ports
from tests.real_hub.harness.processes import Processes
from tests.real_sources.servers import start_prometheus
from tests.real_sources.test_remote_write import ask

SILENT = {
    "Conflicts by reason",
    "PlacementOptimizations",
    "Workloads that lack replicas, by reason",
    "Reserved but idle, device hours a day",
    "Clusters with the most idle device hours a day",
}
"""Panels without a value before the first write, and where nobody measures what is idle."""


async def test_a_plan_is_seen_on_the_dashboard(
    processes: Processes, ports: Ports, tmp_path: Path
) -> None:
    spec = yaml.safe_load((EXAMPLES / "values-hub.yaml").read_text(encoding="utf-8"))
    spec = spec["prometheus"]["prometheusSpec"]
    (job,) = spec["additionalScrapeConfigs"]
    (projected,) = spec["volumes"][0]["projected"]["sources"]
    assert projected["serviceAccountToken"]["audience"] == DEFAULT_AUDIENCE
    mounted = f"{spec['volumeMounts'][0]['mountPath']}/{projected['serviceAccountToken']['path']}"
    assert job["authorization"]["credentials_file"] == mounted
    token = tmp_path / "token"
    token.write_text("token-of-reader", encoding="utf-8")
    rights = [NonResourceAttributes("get", "/metrics"), *reads("default")]
    hub = await hub_of(access=AccessTable(TOKENS, {READER.name: rights}))
    gpus = node({GPU: 4, "cpu": 8, "memory": "8Gi"}, {GPU: 1}, {"app": {GPU: 1}}, labels=GH200)
    await publish_nodes(hub, inventory("worker01", [gpus]))
    app = create_app(Optimizer(hub, now=lambda: NOW), access=Access(DelegatedAuth(hub)))
    with listen(LOOPBACK, 0) as listener:
        running = asyncio.create_task(serve(app, listener))
        address = url(listener)
        known = {"job_name": job["job_name"], "authorization": {"credentials_file": str(token)}}
        target = {"static_configs": [{"targets": [address.removeprefix("http://")]}]}
        prometheus = start_prometheus(processes, ports, [], scrape_configs=[known | target])
        async with httpx.AsyncClient(base_url=address, trust_env=False) as http:
            bearer = {"Authorization": "Bearer token-of-reader"}

            async def shown() -> bool:
                dry_run = {**body(), "dryRun": True}
                (await http.post("/optimize", json=dry_run, headers=bearer)).raise_for_status()
                panels = [each for each in queries() if "optimizer.json" in each[0]]
                silent = {where for where, query in panels if not await ask(prometheus, query)}
                return {each.split(": ")[1] for each in silent} <= SILENT

            await eventually(shown, every=1)
            (clusters,) = await ask(prometheus, "dynamic_scoring_optimizer_fleet_clusters")
            assert (clusters["metric"]["job"], clusters["value"][1]) == (job["job_name"], "2")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

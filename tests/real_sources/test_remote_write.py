"""Scores of two managed clusters on the hub: agents, Prometheus, remote write, VictoriaMetrics.

The configuration is that of docs/examples/prometheus, with addresses of this machine.
"""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import prometheus_client
import pytest
import yaml

from dsf.api.scoring.scorer_summary import dump_summaries
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import CONFIG_MAP, NAMESPACE
from tests.dsf.agent.builders import summary
from tests.dsf.agent.conftest import AGENT_NAMESPACE
from tests.dsf.agent.servers import replying, scores, serving
from tests.dsf.agent.test_cli import api_server, process
from tests.eventually import eventually
from tests.monitoring.exposed_metrics import register_all
from tests.monitoring.rules_and_dashboards import EXAMPLES, RULE_FILES, queries
from tests.real_hub.harness.ports import LOOPBACK, Ports
from tests.real_hub.harness.processes import Processes
from tests.real_sources.servers import start_prometheus, start_victoria_metrics
from tests.real_sources.test_rules import summary_rules
from tests.repository import ROOT

SCORES = {"worker01": (10, 20), "worker02": (40, 60)}
"""What the scoring API of each cluster answers for two Pods."""
AVERAGE = 'avg(dynamic_score{ds_score_name="sample_my_score"}) by (ds_cluster)'
MAY_BE_SILENT = {"Results changed or dropped", "Trust in forecasts", "Claims of policy watchers"}
"""Nothing is wrong with the scores, nobody forecasts, and no policy watcher runs."""
EACH_SECOND = {"scrape_interval": "1s", "evaluation_interval": "1s"}
GUIDE = ROOT / "docs/how-to/monitoring.md"


@dataclass(frozen=True)
class Stores:
    """URLs of the Prometheus of each cluster, and of VictoriaMetrics."""

    clusters: dict[str, str]
    hub: str


@asynccontextmanager
async def agent(cluster: str, port: int, home: Path) -> AsyncIterator[None]:
    """An agent that scores two Pods every second."""
    hub, managed = EmbeddedHub(), EmbeddedHub()
    await hub.create(NAMESPACE, {"metadata": {"name": cluster}})
    await managed.create(NAMESPACE, {"metadata": {"name": AGENT_NAMESPACE}})
    answer = scores(
        *(
            ({"node": "n", "namespace": "a", "pod": f"p{i}"}, value)
            for i, value in enumerate(SCORES[cluster])
        )
    )
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        scorer = await enter(serving(replying(answer)))
        one = summary(
            source_type="None", scoring_endpoint=f"{scorer.url}/scoring", scoring_interval=1
        )
        metadata = {"name": "dynamic-scoring-config", "namespace": AGENT_NAMESPACE}
        data = {"summaries": dump_summaries([one])}
        await managed.create(CONFIG_MAP, {"metadata": metadata, "data": data})
        await enter(
            process(
                f"--cluster-name={cluster}",
                f"--hub-kubeconfig={await enter(api_server(hub, home / f'{cluster}.hub'))}",
                f"--kubeconfig={await enter(api_server(managed, home / f'{cluster}.managed'))}",
                f"--metrics-bind-address={LOOPBACK}:{port}",
                home=home,
            )
        )
        yield


@asynccontextmanager
async def everything_exposed(ports: Ports) -> AsyncIterator[str]:
    """The address of all metrics of the hub's components, none of which has counted anything."""
    port, registry = ports.free(), prometheus_client.CollectorRegistry()
    register_all(registry)
    server, thread = prometheus_client.start_http_server(port, LOOPBACK, registry)
    yield f"{LOOPBACK}:{port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
async def stores(processes: Processes, ports: Ports, tmp_path: Path) -> AsyncIterator[Stores]:
    hub, clusters = start_victoria_metrics(processes, ports, []), dict[str, str]()
    values = yaml.safe_load((EXAMPLES / "values.yaml").read_text(encoding="utf-8"))
    (write,) = values["prometheus"]["prometheusSpec"]["remoteWrite"]
    written = {
        "url": f"{hub}/api/v1/write",
        "write_relabel_configs": [_snake_case(each) for each in write["writeRelabelConfigs"]],
        "queue_config": {"batch_send_deadline": "1s"},
    }
    async with AsyncExitStack() as stack:
        exposed = await stack.enter_async_context(everything_exposed(ports))
        for cluster in SCORES:
            port = ports.free()
            await stack.enter_async_context(agent(cluster, port, tmp_path))
            rules = tmp_path / f"{cluster}.rules.yaml"
            rules.write_text(summary_rules(cluster), encoding="utf-8")
            clusters[cluster] = start_prometheus(
                processes,
                ports,
                [f"{LOOPBACK}:{port}", exposed],
                **{"global": {**EACH_SECOND, "external_labels": {"cluster": cluster}}},
                rule_files=[*map(str, RULE_FILES), str(rules)],
                remote_write=[written],
            )
        yield Stores(clusters, hub)


async def got(url: str, **params: str) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False) as http:
        answer = (await http.get(url, params=params)).json()
    assert answer["status"] == "success", (params, answer)
    return dict(answer["data"])


async def ask(url: str, query: str) -> list[dict[str, Any]]:
    return list((await got(f"{url}/api/v1/query", query=query))["result"])


async def test_the_hub_has_the_scores_of_all_clusters_and_answers_every_query(
    stores: Stores,
) -> None:
    wanted = {cluster: sum(values) / len(values) for cluster, values in SCORES.items()}

    async def averages(query: str) -> bool:
        found = {
            item["metric"]["ds_cluster"]: float(item["value"][1])
            for item in await ask(stores.hub, query)
        }
        return found == wanted

    await eventually(lambda: averages(AVERAGE))
    await eventually(lambda: averages("ds_cluster_ds_score_name:dynamic_score:avg"))
    clusters = {item["metric"]["cluster"] for item in await ask(stores.hub, "dynamic_score")}
    assert clusters == set(SCORES)
    for cluster, url in stores.clusters.items():
        (own,) = await ask(url, AVERAGE)
        assert (own["metric"], float(own["value"][1])) == ({"ds_cluster": cluster}, wanted[cluster])
        groups = (await got(f"{url}/api/v1/rules"))["groups"]
        assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}
    assert await ask(stores.hub, "up") == []
    page = GUIDE.read_text(encoding="utf-8")
    guide = re.findall(r"^\| [^|]+ \| `([^`]+)` \|$", page, re.MULTILINE)
    assert AVERAGE in guide
    assert len(guide) == 6
    for url in (stores.hub, *stores.clusters.values()):
        for query in [*guide, *(query for _, query in queries())]:
            await ask(url, query)

    async def shown() -> bool:
        return await silent_panels(stores.hub) <= MAY_BE_SILENT

    await eventually(shown)


async def silent_panels(url: str) -> set[str]:
    """The panels about scores without data."""
    board = "dynamic-scoring-scores.json: "
    return {
        where.removeprefix(board)
        for where, query in queries()
        if where.startswith(board) and not await ask(url, query)
    }


def _snake_case(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields of the Prometheus operator as Prometheus' configuration spells them."""
    return {re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", k): v for k, v in fields.items()}

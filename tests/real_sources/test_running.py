"""A running agent reads real servers and publishes scores on a hub."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import trustme

from dsf.api.scoring.scorer_summary import dump_summaries
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import NotFound
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, CONFIG_MAP, SECRET
from tests.dsf.agent.builders import summary
from tests.dsf.agent.conftest import AGENT_NAMESPACE, CLUSTER
from tests.dsf.agent.servers import replying, scores, serving
from tests.dsf.agent.test_cli import api_server, process
from tests.eventually import eventually
from tests.real_hub.harness.ports import Ports
from tests.real_hub.harness.processes import Processes
from tests.real_sources.servers import start_prometheus
from tests.real_sources.test_once import last_value


async def distribute(managed: EmbeddedHub, **changes: Any) -> None:
    one = summary(**({"scoring_interval": 1, "score_dimension_format": "${pod}"} | changes))
    metadata = {"name": "dynamic-scoring-config", "namespace": AGENT_NAMESPACE}
    data = {"data": {"summaries": dump_summaries([one])}}
    await managed.create(CONFIG_MAP, {"metadata": metadata, **data})


async def status(hub: EmbeddedHub) -> dict[str, Any]:
    try:
        found = await hub.get(ADD_ON_PLACEMENT_SCORE, "sample-my-score", CLUSTER)
    except NotFound:
        return {}
    return dict(found.get("status") or {})


async def test_scores_follow_the_source(
    source: str, hub: EmbeddedHub, managed: EmbeddedHub, tmp_path: Path
) -> None:
    async with (
        serving(last_value) as scorer,
        api_server(hub, tmp_path / "hub") as hub_kubeconfig,
        api_server(managed, tmp_path / "managed") as kubeconfig,
    ):
        await distribute(
            managed,
            source_endpoint=f"{source}/api/v1/query_range",
            source_query="time() % 100",
            source_range=0,
            scoring_endpoint=f"{scorer.url}/scoring",
        )
        async with process(
            f"--hub-kubeconfig={hub_kubeconfig}",
            f"--kubeconfig={kubeconfig}",
            "--metrics-bind-address=127.0.0.1:0",
            home=tmp_path,
        ):
            seen = set[int]()

            async def changing() -> bool:
                seen.update(item["value"] for item in (await status(hub)).get("scores", []))
                return len(seen) > 2

            await eventually(changing)


async def test_a_prometheus_with_its_own_authority_that_wants_a_login(
    processes: Processes,
    ports: Ports,
    targets: list[str],
    hub: EmbeddedHub,
    managed: EmbeddedHub,
    tmp_path: Path,
) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    files = {"cert_file": str(tmp_path / "cert.pem"), "key_file": str(tmp_path / "key.pem")}
    # bcrypt of "secret", as Prometheus' documentation tells to make it.
    users = {"reader": "$2b$12$hNf2lSsxfm0.i4a.1kVpSOVyBCfIB51VRjgBUyv6kdnyTlgWj81Ay"}
    web_config = {"tls_server_config": files, "basic_auth_users": users}
    url = start_prometheus(processes, ports, targets, web_config=web_config)
    pem = {"data": {"ca.crt": b64encode(authority.cert_pem.bytes()).decode()}}
    metadata = {"name": "prometheus-ca", "namespace": AGENT_NAMESPACE}
    async with (
        serving(replying(scores())) as scorer,
        api_server(hub, tmp_path / "hub") as hub_kubeconfig,
        api_server(managed, tmp_path / "managed") as kubeconfig,
    ):
        await distribute(
            managed,
            source_endpoint=f"{url}/api/v1/query_range",
            source_endpoint_ca_name="prometheus-ca",
            source_endpoint_ca_key="ca.crt",
            scoring_endpoint=f"{scorer.url}/scoring",
        )
        async with process(
            f"--hub-kubeconfig={hub_kubeconfig}",
            f"--kubeconfig={kubeconfig}",
            "--metrics-bind-address=127.0.0.1:0",
            home=tmp_path,
        ):

            async def told(reason: str) -> bool:
                conditions = (await status(hub)).get("conditions", [])
                return reason in [condition["reason"] for condition in conditions]

            await eventually(lambda: told("SecretNotFound"))
            await managed.create(SECRET, {"metadata": metadata, **pem})
            await eventually(lambda: told("Unauthorized"))

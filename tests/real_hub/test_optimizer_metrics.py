"""The optimizer's metrics on a real hub: whose token may read them, and how old scores are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from .test_assistant import RBAC, body, place, served, user
from .test_placement_plans import CLUSTERS, SCORE, prefer

if TYPE_CHECKING:
    from .harness.hub import Hub

__all__ = ["place"]

READER = "metrics-reader"
AGE = "dynamic_scoring_optimizer_oldest_score_age_seconds"
JUST_WRITTEN = 600
"""Seconds: the scores are written in this test, on a machine that may be slow."""

pytestmark = pytest.mark.usefixtures("clusters", "placement_plans")


def test_who_may_get_the_url_reads_how_old_the_scores_of_a_plan_were(hub: Hub, place: str) -> None:
    reader, scraper = (user(hub, place, name) for name in ("reader", "scraper"))
    rule = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": READER}}
    hub.apply({**role, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER}
    subject = {"kind": "ServiceAccount", "name": "scraper", "namespace": place}
    bound = {"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": READER}}
    hub.apply({**bound, "roleRef": reference, "subjects": [subject]})
    for cluster in CLUSTERS:
        # An object that is applied without any field has no managedFields from then on.
        metadata = {"name": "worth", "namespace": cluster, "labels": {"of": "nobody"}}
        hub.apply({"apiVersion": SCORE[0], "kind": SCORE[1], "metadata": metadata})
    prefer(hub, CLUSTERS[0])

    async def asked() -> tuple[httpx.Response, httpx.Response]:
        async with served(hub) as address, httpx.AsyncClient(trust_env=False) as http:
            door = address.removesuffix("/mcp")
            headers = {"Authorization": f"Bearer {reader}"}
            dry_run = {**body(place), "dryRun": True}
            (await http.post(f"{door}/optimize", json=dry_run, headers=headers)).raise_for_status()
            refused = await http.get(f"{door}/metrics", headers=headers)
            headers = {"Authorization": f"Bearer {scraper}"}
            return refused, await http.get(f"{door}/metrics", headers=headers)

    refused, answered = asyncio.run(asked())
    assert refused.status_code == 403
    assert "get the non-resource URL /metrics" in refused.json()["detail"]
    values = {
        sample.name: sample.value
        for family in text_string_to_metric_families(answered.text)
        for sample in family.samples
    }
    assert 0 <= values[AGE] < JUST_WRITTEN

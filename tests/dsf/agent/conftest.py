"""A hub with one managed cluster, both in memory."""

import pytest

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import NAMESPACE

CLUSTER = "cluster1"
AGENT_NAMESPACE = "dynamic-scoring"


@pytest.fixture
async def hub() -> EmbeddedHub:
    kube = EmbeddedHub()
    await kube.create(NAMESPACE, {"metadata": {"name": CLUSTER}})
    return kube


@pytest.fixture
async def managed() -> EmbeddedHub:
    kube = EmbeddedHub()
    await kube.create(NAMESPACE, {"metadata": {"name": AGENT_NAMESPACE}})
    return kube

"""The adapters that the contract holds for."""

import asyncio
import json
import os
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from dsf.api.conditions import is_true
from dsf.api.crds import crds
from dsf.kube.connect import connect
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.serve import kubeconfig, serving
from dsf.kube.errors import AlreadyExists, Conflict, NotFound
from dsf.kube.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE
from dsf.kube.port import Kube
from tests.kube.contract.objects import eventually, gadget_definition, widget_definition

REAL = os.environ.get("DSF_CONTRACT_KUBECONFIG")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of an embedded hub that a thread of its own serves."""
    url, stop = Future[str](), Future[None]()

    async def serve() -> None:
        async with serving(EmbeddedHub()) as served_at:
            url.set_result(served_at)
            await asyncio.wrap_future(stop)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    file = tmp_path_factory.mktemp("served") / "kubeconfig"
    file.write_text(json.dumps(kubeconfig(url.result(timeout=60))))
    yield file
    stop.set_result(None)
    thread.join()


@pytest.fixture(params=["embedded", "http", *(["apiserver"] if REAL else [])])
async def kube(request: pytest.FixtureRequest) -> AsyncIterator[Kube]:
    """A hub with the product's kinds and the contract's own."""
    async with AsyncExitStack() as stack:
        adapter: Kube = EmbeddedHub()
        if request.param == "http":
            served_hub: Path = request.getfixturevalue("served")
            adapter = await stack.enter_async_context(connect(served_hub))
        elif request.param == "apiserver":
            adapter = await stack.enter_async_context(connect(Path(str(REAL))))
        await install(adapter)
        yield adapter


@pytest.fixture
async def namespace(kube: Kube) -> AsyncIterator[str]:
    """The name of a new namespace."""
    name = f"contract-{uuid.uuid4().hex[:8]}"
    await kube.create(NAMESPACE, {"metadata": {"name": name}})
    yield name
    try:
        await kube.delete(NAMESPACE, name)
    except (NotFound, Conflict):
        return


async def install(kube: Kube) -> None:
    """Create the definitions and wait until they are served."""
    for crd in (*crds(), widget_definition(), gadget_definition()):
        try:
            await kube.create(CUSTOM_RESOURCE_DEFINITION, crd)
        except AlreadyExists:
            continue
        name = crd["metadata"]["name"]

        async def served(name: str = name) -> bool:
            found = await kube.get(CUSTOM_RESOURCE_DEFINITION, name)
            return is_true(found, "Established")

        assert await eventually(served)

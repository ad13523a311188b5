"""The adapters that the contract holds for."""

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from queue import Queue
from threading import Event, Thread

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
def served() -> Iterator[str]:
    """The URL of an embedded hub that a thread serves; every test has a namespace of its own."""
    urls: Queue[str] = Queue()
    stop = Event()

    async def serve() -> None:
        async with serving(EmbeddedHub()) as url:
            urls.put(url)
            await asyncio.to_thread(stop.wait)

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    yield urls.get()
    stop.set()
    thread.join()


@pytest.fixture(params=["embedded", "http", *(["apiserver"] if REAL else [])])
async def kube(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kube]:
    """A hub with the product's kinds and the contract's own."""
    async with AsyncExitStack() as stack:
        adapter: Kube = EmbeddedHub()
        if request.param == "http":
            file = tmp_path / "kubeconfig"
            file.write_text(json.dumps(kubeconfig(request.getfixturevalue("served"))))
            adapter = await stack.enter_async_context(connect(file))
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

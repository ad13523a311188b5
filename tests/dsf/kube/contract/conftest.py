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
from dsf.api.crd.definitions import crds
from dsf.kube.client.connect import connect
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from dsf.kube.errors import Conflict, NotFound
from dsf.kube.kinds import CUSTOM_RESOURCE_DEFINITION as DEFINITION
from dsf.kube.kinds import NAMESPACE
from dsf.kube.port import Kube
from tests.dsf.kube.contract.objects import gadget_definition, widget_definition
from tests.eventually import eventually
from tests.kube_wrappers.reviewing_hub import ReviewingHub

DEFINITIONS = {
    crd["metadata"]["name"]: crd for crd in (*crds(), widget_definition(), gadget_definition())
}
REAL = os.environ.get("DSF_CONTRACT_KUBECONFIG")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of an embedded hub that a thread of its own serves."""
    url, stop = Future[str](), Future[None]()

    async def serve() -> None:
        async with serving(ReviewingHub()) as served_at:
            url.set_result(served_at)
            await asyncio.wrap_future(stop)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    file = tmp_path_factory.mktemp("served") / "kubeconfig"
    file.write_text(json.dumps(kubeconfig(url.result(timeout=60))))
    yield file
    stop.set_result(None)
    thread.join()


@pytest.fixture(scope="session")
def embedded() -> EmbeddedHub:
    """An embedded hub in this process."""
    return ReviewingHub()


@pytest.fixture(scope="session")
def installed() -> set[str]:
    """The adapters that have the contract's definitions."""
    return set()


@pytest.fixture(params=["embedded", "http", *(["apiserver"] if REAL else [])])
async def kube(request: pytest.FixtureRequest, installed: set[str]) -> AsyncIterator[Kube]:
    """A hub with the product's kinds and the contract's own."""
    async with AsyncExitStack() as stack:
        adapter: Kube
        if request.param == "embedded":
            adapter = request.getfixturevalue("embedded")
        else:
            real = request.param == "apiserver"
            file = Path(str(REAL)) if real else request.getfixturevalue("served")
            adapter = await stack.enter_async_context(connect(file))
        if request.param not in installed:
            await install(adapter)
            installed.add(request.param)
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
    """Create the definitions that are missing and wait until they are served."""
    page = await kube.list(DEFINITION)
    established = {crd["metadata"]["name"] for crd in page.items if is_true(crd, "Established")}
    present = {crd["metadata"]["name"] for crd in page.items}
    for name, crd in DEFINITIONS.items():
        if name not in present:
            await kube.create(DEFINITION, crd)
        if name in established:
            continue

        async def served(name: str = name) -> bool:
            return is_true(await kube.get(DEFINITION, name), "Established")

        assert await eventually(served)

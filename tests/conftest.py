"""What all tests share: virtual time by a mark, no wall-clock deadlines, logging as it was."""

import asyncio
import gc
import logging
import ssl
from collections.abc import Callable, Iterator

import certifi
import pytest
import trustme
from hypothesis import HealthCheck, settings

from dsf.sim.virtual_time import VirtualTimeLoop

# Imports and collection make millions of objects that stay: searching them for garbage, again and
# again, takes a third of the collection's CPU. It begins when the tests do.
gc.disable()
gc.set_threshold(20_000, 20, 20)

# The same examples on every machine: a change never fails for what another change left.
settings.register_profile(
    "quick",
    max_examples=20,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("deep", settings.get_profile("quick"), max_examples=200)
settings.register_profile("random", settings.get_profile("deep"), derandomize=False)
settings.load_profile("quick")  # --hypothesis-profile replaces it


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("property")
        if item.get_closest_marker("long"):
            item.add_marker("exhaustive")


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of garbage collections: it stays to the end."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def one_public_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Trust one authority instead of the 140 public ones, which no test meets.

    Each HTTP client loads them anew, which takes 25 ms of CPU: more than most tests.
    """
    file = tmp_path_factory.mktemp("authorities") / "public.pem"
    trustme.CA().cert_pem.write_to_path(str(file))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "set_default_verify_paths", lambda _: None)
        patch.setattr(certifi, "where", lambda: str(file))
        patch.delenv("SSL_CERT_FILE", raising=False)
        yield


@pytest.fixture(scope="session")
def changed_levels() -> Iterator[list[tuple[logging.Logger, int]]]:
    """Loggers of which the level was set, and the level before; to look at all takes 0.2 ms."""
    changed: list[tuple[logging.Logger, int]] = []
    set_level = logging.Logger.setLevel

    def noted(logger: logging.Logger, level: int | str) -> None:
        changed.append((logger, logger.level))
        set_level(logger, level)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.Logger, "setLevel", noted)
        yield changed


@pytest.fixture(autouse=True)
def logging_as_it_was(changed_levels: list[tuple[logging.Logger, int]]) -> Iterator[None]:
    """Undo that a command has set up logging for its process, which here is the test's."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    changed_levels.clear()
    yield
    root.handlers[:] = handlers
    for logger, level in reversed(changed_levels[:]):
        logger.setLevel(level)


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    virtual = item.get_closest_marker("virtual_time") is not None
    return {"virtual": VirtualTimeLoop} if virtual else {"real": asyncio.new_event_loop}

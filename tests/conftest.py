"""What all tests share: virtual time by a mark, no wall-clock deadlines, the root logger back."""

import asyncio
import logging
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.virtual_time import VirtualTimeLoop

settings.register_profile("any-speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-speed")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "virtual_time: run on a loop whose clock jumps")
    config.addinivalue_line("markers", "exhaustive: many cases, run by `make test-exhaustive`")


@pytest.fixture
def root_logger() -> Iterator[None]:
    """Undo that a command has set up logging for its process, which here is the test's."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    virtual = item.get_closest_marker("virtual_time") is not None
    return {"virtual": VirtualTimeLoop} if virtual else {"real": asyncio.new_event_loop}

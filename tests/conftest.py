"""What all tests share: the mark that runs a test in virtual time, and no wall-clock deadlines."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

from tests.virtual_time import VirtualTimeLoop

settings.register_profile("any-speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-speed")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "virtual_time: run on a loop whose clock jumps")


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    virtual = item.get_closest_marker("virtual_time") is not None
    return {"virtual": VirtualTimeLoop} if virtual else {"real": asyncio.new_event_loop}

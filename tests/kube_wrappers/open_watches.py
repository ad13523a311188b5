"""A wrapper that counts the watches that are open."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, WatchEvent
from tests.kube_wrappers.wrapper import Wrapper


class OpenWatches(Wrapper):
    """Counts the watches of each resource: how many are open, and the most that ever were."""

    def __init__(self, inner: Kube) -> None:
        super().__init__(inner)
        self.open: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def watch(self, kind: Kind, *args: Any, **options: Any) -> AsyncGenerator[WatchEvent]:
        """Yield every change after a resource version."""
        self.open[kind.resource] += 1
        self.most |= self.open
        try:
            async with aclosing(super().watch(kind, *args, **options)) as events:
                async for event in events:
                    yield event
        finally:
            self.open[kind.resource] -= 1

"""An API server as a component of the twin sees it: it may be unreachable, and its writes are told.

What is written matters to simulated controllers, which would need thousands of watches otherwise.
"""

from collections.abc import AsyncGenerator, Callable
from typing import Any

from dsf.kube.errors import Unreachable
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, WatchEvent
from optimizer.service.hub.noted_writes import NotedWrites


class TwinApiServer(NotedWrites):
    """A client of an API server; every call raises Unreachable while `reachable` returns False.

    `wrote` is called after each write with the kind and the namespace of the object.
    """

    def __init__(
        self,
        inner: Kube,
        wrote: Callable[[Kind, str | None], None],
        reachable: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(inner, lambda kind, namespace, _: wrote(kind, namespace))
        self._reachable = reachable

    def _kube(self) -> Kube:
        if not self._reachable():
            raise Unreachable("no route to host")
        return super()._kube()

    async def watch(
        self, kind: Kind, namespace: str | None = None, **selected: Any
    ) -> AsyncGenerator[WatchEvent]:
        """Yield changes; breaks at the first one while the server is unreachable."""
        async for event in super().watch(kind, namespace, **selected):
            self._kube()
            yield event

"""How old an answer may be, as a header of it."""

import math

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from optimizer.hub.read_age import measured_age


class AnswerAge:
    """ASGI middleware: says by the header Age how old the oldest part of an answer may be.

    It is the age at the beginning of the answer, so what the answer took counts. An answer that was
    read from the API server alone has none.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add the header to its answer."""
        with measured_age() as age:

            async def sent(message: Message) -> None:
                if message["type"] == "http.response.start" and (old := age.seconds) is not None:
                    MutableHeaders(scope=message)["Age"] = str(math.ceil(old))
                await send(message)

            await self._app(scope, receive, sent)

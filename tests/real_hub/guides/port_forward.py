"""A program that passes connections on: ``python port_forward.py FROM_ADDRESS PORT TO PORT``."""

from __future__ import annotations

import asyncio
import contextlib
import sys


async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Write what is read until it ends."""
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def serve(address: str, port: int, target: str, target_port: int) -> None:
    """Pass on each connection until a signal ends the process."""

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back, forth = await asyncio.open_connection(target, target_port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copied(reader, forth), copied(back, writer))

    server = await asyncio.start_server(connect, address, port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))

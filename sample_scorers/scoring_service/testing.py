# SPDX-License-Identifier: Apache-2.0
"""Serves an application on loopback, for tests that ask it over a socket."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import uvicorn
from fastapi import FastAPI

from .connections import TimedConnection


@contextmanager
def served(app: FastAPI, http: type[TimedConnection] = TimedConnection) -> Iterator[str]:
    """Serve `app` in a thread and yield its base URL."""
    # With the protocol named, asyncio sets TCP_NODELAY; without, each answer waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    server = uvicorn.Server(uvicorn.Config(app, http=http, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextmanager
def client(app: FastAPI) -> Iterator[httpx.Client]:
    """Serve `app` and yield a client for it."""
    with served(app) as url, httpx.Client(base_url=url, trust_env=False, timeout=120) as http:
        yield http

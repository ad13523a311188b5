# SPDX-License-Identifier: Apache-2.0
"""A scorer as a program: its command line, and serving until a signal stops it."""

import argparse
import errno
import math
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI

from .bearer_token import read_token, require_token
from .connections import MOST_CONNECTIONS, TimedConnection
from .wire import PROMETHEUS_URL

SHUTDOWN_SECONDS = 20
"""How long requests in work may take after a signal: less than the 30 s of Kubernetes."""

_HIGHEST_PORT = 65535
_BACKLOG = 128
"""Connections that wait to be accepted."""


class _Once(argparse.Action):
    """Stores the value of an option, and refuses a second one, which would replace the first."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store the value; the parser exits if the option is given twice."""
        given = namespace.__dict__.setdefault("given", set())
        if self.dest in given:
            parser.error(f"{option_string} is given twice")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


def command_line(name: str, description: str) -> argparse.ArgumentParser:
    """Return a parser with the options of every scorer: `--host`, `--port` and `--token-file`."""
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.register("action", None, _Once)
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 for all (%(default)s)"
    )
    parser.add_argument(
        "--port", type=_port, default=8000, help="port to listen on; 0 for a free one (%(default)s)"
    )
    parser.add_argument(
        "--token-file",
        type=token_file,
        default=os.environ.get("TOKEN_FILE") or None,
        metavar="FILE",
        help="refuse scoring requests without the bearer token in this file; also TOKEN_FILE",
    )
    return parser


def add_prometheus_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses the Prometheus in `/config`."""
    parser.add_argument(
        "--prometheus-url",
        type=http_url,
        default=os.environ.get("PROMETHEUS_URL") or PROMETHEUS_URL,
        metavar="URL",
        help="the Prometheus that agents read; also PROMETHEUS_URL (%(default)s)",
    )


def http_url(text: str) -> str:
    """Return an absolute http(s) URL without a final slash; the type of an argparse option."""
    try:
        url = urlsplit(text)
        usable = url.scheme in {"http", "https"} and url.port != 0 and bool(url.hostname)
    except ValueError:
        usable = False
    if usable and "@" in url.netloc:
        raise argparse.ArgumentTypeError(
            "a URL must not contain a password, because others can read it"
        )
    if not usable:
        raise argparse.ArgumentTypeError(f"{text!r} is not a URL such as http://name:9090")
    return text.rstrip("/")


def positive_number(text: str) -> float:
    """Return a positive, finite number; the type of an argparse option."""
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return number


def positive_whole_number(text: str) -> int:
    """Return a whole number of at least 1; the type of an argparse option."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def finite_number(text: str) -> float:
    """Return a finite number; the type of an argparse option."""
    number = _number(text)
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to {_HIGHEST_PORT}")
    return int(text)


def token_file(text: str) -> Path:
    """Return the path of a file with a token; the type of an argparse option."""
    if read_token(Path(text)) is None:
        raise argparse.ArgumentTypeError(f"{text} is not a file with a token")
    return Path(text)


def serve(name: str, app: FastAPI, options: argparse.Namespace) -> int:
    """Serve `app` until a signal stops it; return the exit code.

    `options` are those of `command_line`.
    """
    host, port = options.host, options.port
    if options.token_file:
        require_token(app, options.token_file)
    try:
        listener = _listen(host, port)
    except OSError as error:
        return fail(name, f"cannot listen on {host} port {port}: {_advice(error)}")
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listener.getsockname()[1]}"
    sys.stdout.write(f"{name} listens on {url} (API documentation at {url}/docs)\n")
    sys.stdout.flush()
    # Kubernetes stops a container by SIGTERM. That is no failure: it ends the program like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        config = uvicorn.Config(
            app,
            http=TimedConnection,
            ws="none",
            log_level="warning",
            lifespan="off",
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:  # uvicorn has shut down gracefully and raises the signal again
        pass
    finally:
        listener.close()
    return 0


def fail(name: str, message: str) -> int:
    """Write one line to standard error and return the exit code 1."""
    sys.stderr.write(f"{name}: {message}\n")
    return 1


def _listen(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _advice(error: OSError) -> str:
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address; choose another with --host"
    if error.errno == errno.EADDRINUSE:
        return "the port is in use; choose another with --port"
    if error.errno == errno.EACCES:
        return "ports below 1024 need privileges; choose another with --port"
    return str(error)

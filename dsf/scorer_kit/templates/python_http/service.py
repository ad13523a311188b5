# SPDX-License-Identifier: Apache-2.0
"""The scoring API around `score.py`: GET /healthz, /config and /metrics, POST /scoring.

HOST and PORT, or --port, set the address, and SCORING_TOKEN the bearer token that the scoring call
must carry; without it the call needs none. It needs nothing but Python 3.11.
"""

import hmac
import json
import os
import signal
import sys
import traceback
from collections import Counter
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

from score import CONFIG, score

MAX_BODY_BYTES = 8 * 1024 * 1024
MAX_DISCARDED_BYTES = 4 * MAX_BODY_BYTES
PIECE_BYTES = 64 * 1024
HIGHEST_PORT = 65535
COUNTS: Counter[tuple[int, str]] = Counter()
COUNTING = Lock()
TOKEN = os.environ.get("SCORING_TOKEN", "")


class Refused(Exception):
    """A request that is answered with a status of 4xx and a sentence."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def series_of(body: bytes) -> list[dict[str, Any]]:
    """Return the series of a scoring request; raises Refused."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from error
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, list):
        raise Refused(422, "data: a list of series is needed")
    for index, series in enumerate(data):
        if not _is_series(series):
            form = '{"metric": {label: text}, "values": [[seconds, "number"], ...]}'
            raise Refused(422, f"data[{index}]: a series must be {form}")
    return data


def _is_series(series: Any) -> bool:
    if not isinstance(series, dict):
        return False
    metric, values = series.get("metric"), series.get("values")
    return (
        isinstance(metric, dict)
        and all(isinstance(text, str) for text in metric.values())
        and isinstance(values, list)
        and all(map(_is_sample, values))
    )


def _is_sample(sample: Any) -> bool:
    if not (isinstance(sample, list) and [type(part) for part in sample[1:]] == [str]):
        return False
    try:
        float(sample[1])
    except ValueError:
        return False
    return isinstance(sample[0], int | float)


class Service(BaseHTTPRequestHandler):
    """Answers one request."""

    timeout = 30

    def do_GET(self) -> None:
        """Answer /healthz, /config and /metrics."""
        known = {"/healthz": {"status": "ok"}, "/config": CONFIG}
        if self.path in known:
            self._answer(200, known[self.path])
        elif self.path == "/metrics":
            with COUNTING:
                found = [
                    f'scorer_requests_total{{code="{code}",path="{path}"}} {count}\n'
                    for (code, path), count in COUNTS.items()
                ]
            text = "".join(("# TYPE scorer_requests_total counter\n", *found))
            self._send(200, "text/plain; version=0.0.4", text.encode())
        else:
            self._problem(404, "there is nothing at this path")

    def do_POST(self) -> None:
        """Answer /scoring; any error of `score` is logged and becomes 500."""
        try:
            self._answer(200, {"results": score(series_of(self._body()))})
        except Refused as refused:
            self._problem(refused.status, str(refused))
        except Exception:
            traceback.print_exc()
            self._problem(500, "the scorer failed; its log has the details")

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise Refused(411, "the request needs a Content-Length")
        # Read to its end before any refusal: closing earlier would reset the connection.
        body = self._read(int(length))
        if self.path != CONFIG["scoring"]["path"]:
            raise Refused(404, "there is nothing at this path")
        sent = self.headers.get("Authorization", "")
        if TOKEN and not hmac.compare_digest(sent.encode(), f"Bearer {TOKEN}".encode()):
            raise Refused(401, "the Authorization header must be: Bearer, and the scorer's token")
        if self.headers.get_content_type() != "application/json":
            raise Refused(415, "the body must be JSON: send it as application/json")
        return body

    def _read(self, length: int) -> bytes:
        if length <= MAX_BODY_BYTES:
            return self.rfile.read(length)
        for _ in range(min(length, MAX_DISCARDED_BYTES) // PIECE_BYTES):
            self.rfile.read(PIECE_BYTES)
        self.rfile.read(min(length, MAX_DISCARDED_BYTES) % PIECE_BYTES)
        raise Refused(413, f"the body is longer than {MAX_BODY_BYTES} bytes: ask for less")

    def _problem(self, status: int, detail: str) -> None:
        title = HTTPStatus(status).phrase
        self._answer(status, {"title": title, "status": status, "detail": detail}, "problem+json")

    def _answer(self, status: int, document: Any, kind: str = "json") -> None:
        self._send(status, f"application/{kind}", json.dumps(document).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        known = ("/healthz", "/config", "/metrics", CONFIG["scoring"]["path"])
        with COUNTING:
            COUNTS[status, self.path if self.path in known else "other"] += 1
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write no line for each request."""


def port_of(arguments: list[str]) -> int:
    """Return the port of the arguments, or of PORT; 0 for a free one. Exits with a sentence."""
    match arguments:
        case [""]:
            port = os.environ.get("PORT", "8000")
        case ["--port", port]:
            pass
        case _:
            sys.exit("the only option is --port PORT, once")
    if not port.isdecimal() or int(port) > HIGHEST_PORT:
        sys.exit(f"{port!r} is not a port from 0 to {HIGHEST_PORT}")
    return int(port)


def main() -> None:
    """Serve until a signal stops it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    host, port = os.environ.get("HOST", "127.0.0.1"), port_of("=".join(sys.argv[1:]).split("="))
    try:
        server = ThreadingHTTPServer((host, port), Service)
    except OSError as error:
        said = f"my-scorer can't listen on {host} port {port}: {error.strerror}"
        sys.exit(f"{said}; choose another with --port")
    host, port = server.server_address[:2]
    print(f"my-scorer listens on http://{host}:{port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()

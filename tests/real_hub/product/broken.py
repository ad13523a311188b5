"""Five scorers that are broken in five ways, and the server that their URLs refer to."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

from .scorers import SAMPLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.api import Object

QUERY = "sum by (node) (rate(node_cpu_seconds_total[5m])"
# What Prometheus 3 answers to that query.
PARSE_ERROR = {
    "status": "error",
    "errorType": "bad_data",
    "error": 'invalid parameter "query": 1:48: parse error: unclosed left parenthesis',
}


def document(name: str, url: str, query: str = "") -> Object:
    """A config as the contract has it; without a query its source type is None."""
    source: Object = {"type": "None"}
    if query:
        source = {
            "type": "Prometheus",
            "host": url,
            "path": "/api/v1/query_range",
            "params": {"query": query, "range": 300, "step": 30},
        }
    scoring = {"path": "/scoring", "params": {"name": name, "interval": 1}}
    return {"name": name, "description": name, "source": source, "scoring": scoring}


def documents(url: str) -> dict[str, Object]:
    """The answers by path."""
    misspelt = document("misspelt_score", url, "up")
    misspelt["sourse"] = misspelt.pop("source")
    return {
        "/misspelt/config": misspelt,
        "/bad-query/config": document("bad_query_score", url, QUERY),
        "/no-secret/config": document("no_secret_score", url),
        "/taken/config": document(SAMPLE.replace("-", "_"), url),
        "/healthz": {},
    }


def scorers(url: str, closed: str, namespace: str) -> list[Object]:
    """The five DynamicScorers; nothing listens at `closed`."""
    auth = {"auth": {"tokenSecretRef": {"name": "api-token", "key": "token"}}}
    return [
        _scorer("misspelt", namespace, f"{url}/misspelt/config"),
        _scorer("unreachable", namespace, f"{closed}/config"),
        _scorer("bad-query", namespace, f"{url}/bad-query/config"),
        _scorer("no-secret", namespace, f"{url}/no-secret/config", scoring=auth),
        _scorer("taken", namespace, f"{url}/taken/config"),
    ]


def _scorer(name: str, namespace: str, url: str, **spec: Any) -> Object:
    return {
        "apiVersion": "dynamic-scoring.open-cluster-management.io/v1alpha1",
        "kind": "DynamicScorer",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "description": f"A scorer that is broken: {name}",
            "configURL": url,
            "configSyncMode": "Full",
            "location": "External",
            "scoreDestination": "AddOnPlacementScore",
            "scoreDimensionFormat": "${node}",
            **spec,
        },
    }


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/api/v1/"):
            self._answer(400, PARSE_ERROR)
            return
        host, port = self.server.server_address[:2]
        found = documents(f"http://{host!s}:{port}").get(self.path)
        self._answer(404 if found is None else 200, found or {})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Log nothing, to keep pytest's output readable."""

    def _answer(self, status: int, document: Object) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


HOST = "127.0.0.77"
"""An address of its own: agents quote no server whose host was sent a token."""


@contextmanager
def serving() -> Iterator[str]:
    """Serve the documents, a Prometheus that can't parse, and a scoring call; yield the URL."""
    server = ThreadingHTTPServer((HOST, 0), _Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

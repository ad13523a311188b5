"""A minimal client of a Kubernetes API server; objects are plain dictionaries."""

from __future__ import annotations

import base64
import ssl
import tempfile
from typing import TYPE_CHECKING, Any

import httpx
import yaml

from tests.eventually import PATIENCE, until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

Object = dict[str, Any]

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
NOT_FOUND = 404
TOO_MANY_REQUESTS = 429


class ApiError(Exception):
    """The API server refused; ``status`` is HTTP's, ``reason`` and ``message`` Kubernetes'."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class Api:
    """A client of one API server with one identity."""

    def __init__(
        self, server: str, *, verify: ssl.SSLContext, token: str = "", patience: float = 60.0
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.server = server
        self._http = httpx.Client(
            base_url=server, verify=verify, headers=headers, timeout=patience, trust_env=False
        )
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}

    @classmethod
    def from_kubeconfig(cls, path: Path) -> Api:
        """A client with the identity of a kubeconfig, with embedded certificates or files."""
        document = yaml.safe_load(path.read_text())
        cluster = document["clusters"][0]["cluster"]
        user = document["users"][0]["user"]
        authority = content(cluster, "certificate-authority", path.parent)
        context = ssl.create_default_context(cadata=authority.decode())
        if "client-certificate-data" in user or "client-certificate" in user:
            load_client(
                context,
                content(user, "client-certificate", path.parent),
                content(user, "client-key", path.parent),
            )
        return cls(cluster["server"], verify=context, token=user.get("token", ""))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        params: Mapping[str, str] | None = None,
    ) -> Object:
        """Send one request; raises ApiError unless the answer is a success.

        It is sent again while the server says when to try again, as all clients of Kubernetes do:
        a CRD is Established before its storage is initialized.
        """
        headers = {"Accept": accept, **({"Content-Type": content_type} if body is not None else {})}

        def answered() -> httpx.Response | None:
            answer = self._http.request(method, path, json=body, params=params, headers=headers)
            return None if answer.status_code == TOO_MANY_REQUESTS else answer

        return decoded(until(f"{method} {path} to be accepted", answered, every=1.0))

    def text(self, path: str) -> str:
        """Body of a GET, for ``/readyz`` and ``/metrics``; raises ApiError."""
        answer = self._http.get(path)
        if answer.is_error:
            decoded(answer)
        return answer.text

    def healthy(self) -> bool:
        """Whether the server reports that it is ready."""
        try:
            return self.text("/readyz") == "ok"
        except (httpx.TransportError, ApiError):
            return False

    def path(
        self,
        api_version: str,
        kind: str,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
    ) -> str:
        """URL path of a resource, from discovery; raises ApiError (404) for an unknown kind."""
        prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        plural, namespaced = self._resource(api_version, kind)
        parts = [prefix, *(["namespaces", namespace] if namespaced and namespace else []), plural]
        return "/".join([*parts, *filter(None, (name, subresource))])

    def apply(
        self, obj: Mapping[str, Any], *, subresource: str = "", manager: str = "hub-test"
    ) -> Object:
        """Server-side apply an object, or its status with ``subresource="status"``."""
        params = {"fieldManager": manager, "force": "true"}
        path = self._path_of(obj, subresource)
        return self.request("PATCH", path, obj, content_type=APPLY, params=params)

    def create(self, obj: Mapping[str, Any]) -> Object:
        """Create an object; raises ApiError (409) when it exists."""
        namespace = obj["metadata"].get("namespace", "default")
        return self.request("POST", self.path(obj["apiVersion"], obj["kind"], namespace), obj)

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Object:
        """Read an object; raises ApiError (404) when there is none."""
        return self.request("GET", self.path(api_version, kind, namespace, name))

    def find(self, api_version: str, kind: str, name: str, namespace: str = "") -> Object | None:
        """Read an object, or None."""
        try:
            return self.get(api_version, kind, name, namespace)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            return None

    def list(
        self, api_version: str, kind: str, namespace: str = "", *, labels: str = ""
    ) -> list[Object]:
        """All objects of a kind, in one namespace or everywhere."""
        params = {"labelSelector": labels} if labels else None
        answer = self.request("GET", self.path(api_version, kind, namespace), params=params)
        items: list[Object] = answer["items"]
        return items

    def patch(
        self,
        api_version: str,
        kind: str,
        name: str,
        body: Mapping[str, Any],
        namespace: str = "",
        *,
        subresource: str = "",
    ) -> Object:
        """JSON merge patch (RFC 7386) an object."""
        path = self.path(api_version, kind, namespace, name, subresource)
        return self.request("PATCH", path, body, content_type=MERGE)

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object, if it exists."""
        try:
            self.request("DELETE", self.path(api_version, kind, namespace, name))
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    def wait_gone(self, api_version: str, kind: str, name: str, namespace: str = "") -> None:
        """Wait until an object no longer exists; raises TimeoutError."""
        until(
            f"{kind} {name} to be deleted",
            lambda: self.find(api_version, kind, name, namespace) is None,
        )

    def wait_condition(
        self,
        api_version: str,
        kind: str,
        name: str,
        condition: str,
        namespace: str = "",
        *,
        status: str = "True",
        seconds: float = PATIENCE,
    ) -> Object:
        """Wait until an object has a condition, and return the object; raises TimeoutError."""

        def probe() -> Object | None:
            found = self.find(api_version, kind, name, namespace)
            return found if condition_of(found or {}, condition).get("status") == status else None

        return until(f"{kind} {name} to be {condition}={status}", probe, seconds=seconds)

    def _path_of(self, obj: Mapping[str, Any], subresource: str) -> str:
        meta = obj["metadata"]
        namespace = meta.get("namespace", "default")
        return self.path(obj["apiVersion"], obj["kind"], namespace, meta["name"], subresource)

    def _resource(self, api_version: str, kind: str) -> tuple[str, bool]:
        """Plural name and whether namespaced; asks again for a kind that it does not know."""
        if (api_version, kind) not in self._resources:
            prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            for entry in self.request("GET", prefix)["resources"]:
                if "/" not in entry["name"]:
                    key = (api_version, str(entry["kind"]))
                    self._resources[key] = (str(entry["name"]), bool(entry["namespaced"]))
        if (api_version, kind) not in self._resources:
            raise ApiError(NOT_FOUND, "NotFound", f"{api_version} has no kind {kind}")
        return self._resources[(api_version, kind)]


def decoded(answer: httpx.Response) -> Object:
    """The JSON of a response; raises ApiError for an error status."""
    try:
        body: Object = answer.json()
    except ValueError:
        body = {"message": answer.text}
    if answer.is_error:
        raise ApiError(answer.status_code, body.get("reason", ""), body.get("message", ""))
    return body


def content(section: Mapping[str, str], field: str, folder: Path) -> bytes:
    """A kubeconfig's ``field-data``, or the file that ``field`` names."""
    if data := section.get(f"{field}-data"):
        return base64.b64decode(data)
    return (folder / section[field]).read_bytes()


def load_client(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Give a TLS context a client certificate; the ssl module reads files only."""
    with tempfile.NamedTemporaryFile() as pem:
        pem.write(certificate + b"\n" + key)
        pem.flush()
        context.load_cert_chain(pem.name)


def condition_of(obj: Mapping[str, Any], condition: str) -> Object:
    """A condition of an object's status, or an empty one."""
    conditions: Iterable[Object] = obj.get("status", {}).get("conditions") or []
    return next((entry for entry in conditions if entry.get("type") == condition), {})


def parse(manifest: str) -> list[Object]:
    """The objects of a YAML stream, lists taken apart."""
    objects: list[Object] = []
    for document in yaml.safe_load_all(manifest):
        if document:
            objects += document["items"] if document["kind"] == "List" else [document]
    return objects

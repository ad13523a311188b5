"""HTTP connections with one set of credentials, over the official Kubernetes client.

Only its generic call is used (JSON in, JSON out), not its models.
"""

import ssl
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from multidict import CIMultiDict

import dsf
from dsf.kube.client.certificate_files import certificate_files
from dsf.kube.client.credentials import Credentials
from dsf.kube.client.kubeconfig import BadKubeconfig
from dsf.kube.errors import Unreachable
from dsf.kube.redaction import redact

USER_AGENT = f"dynamic-scoring-framework/{dsf.__version__}"
CONNECT_SECONDS = 10.0
"""Time limit to open a connection."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One HTTP request; `seconds` limits the whole call, the body of the answer included.

    `pool`: the name of the connections that it is sent on.
    """

    method: str
    path: str
    seconds: float
    body: Mapping[str, Any] | None = None
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    pool: str = ""


class HttpSession:
    """Sends requests; a retired session closes once its last request has ended.

    Raises BadKubeconfig if the certificates can't be used.
    """

    def __init__(self, credentials: Credentials) -> None:
        self.credentials = credentials
        _check_certificates(credentials)
        self._apis: dict[str, Any] = {}
        self._requests = 0
        self._retired = False
        self.closed = False

    @asynccontextmanager
    async def send(self, request: ApiRequest) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield the answer, whatever its status. Raises Unreachable."""
        self._requests += 1
        try:
            with _reachable(self.credentials.server, request):
                async with await self._answer(request) as response:
                    try:
                        yield response
                    finally:
                        _abandon(response)
        finally:
            self._requests -= 1
            if self._retired and not self._requests:
                await self.close()

    async def retire(self) -> None:
        """Close as soon as no request is in flight."""
        self._retired = True
        if not self._requests:
            await self.close()

    async def close(self) -> None:
        """Close now."""
        self.closed = True
        for api in self._apis.values():
            await api.close()

    async def _answer(self, request: ApiRequest) -> aiohttp.ClientResponse:
        if self.closed:
            raise aiohttp.ClientConnectionError("the client is closed")
        headers = CIMultiDict(
            [
                ("Accept", "application/json"),
                ("Content-Type", request.content_type),
                ("User-Agent", USER_AGENT),
                *request.headers,
            ]
        )
        if self.credentials.authorization:
            headers["Authorization"] = self.credentials.authorization
        if request.pool not in self._apis:
            self._apis[request.pool] = _api_client(self.credentials)
        answer = await self._apis[request.pool].call_api(
            request.method,
            self.credentials.server + request.path,
            headers,
            body=request.body,
            _request_timeout=aiohttp.ClientTimeout(
                total=request.seconds, sock_connect=CONNECT_SECONDS
            ),
        )
        response: aiohttp.ClientResponse = answer.response
        return response


def _abandon(response: aiohttp.ClientResponse) -> None:
    """End the connection of an answer that was not read to its end, such as a watch.

    Over TLS a close waits for the server's own, longer than the event loop may live.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


async def lines(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the non-empty lines of a stream; a line may have any length.

    Raises Unreachable if the stream ends within a line, because a truncated line is not JSON.
    """
    rest = bytearray()
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        rest += first
        for other in others:
            if rest.strip():
                yield bytes(rest)
            rest = bytearray(other)
    if rest.strip():
        raise Unreachable("the API server's answer ended within a line")


@contextmanager
def _reachable(server: str, request: ApiRequest) -> Iterator[None]:
    where = f"{request.method} {server}{request.path.partition('?')[0]}"
    try:
        yield
    except TimeoutError as error:
        problem = str(error) or f"no complete answer within {request.seconds:.0f} s"
        raise Unreachable(f"{where}: {problem}") from error
    except (aiohttp.ClientError, OSError) as error:
        # The words of a malformed answer are the server's, which was sent the credential.
        text = "" if isinstance(error, aiohttp.ClientResponseError) else redact(str(error))
        problem = text or type(error).__name__
        raise Unreachable(f"{where}: {problem}") from error


def _api_client(credentials: Credentials) -> Any:
    # Imported here because it costs 12 MiB and 0.16 s of CPU, which only requests should cost.
    from kubernetes.aio.client import ApiClient, Configuration  # noqa: PLC0415

    configuration = Configuration(host=credentials.server)
    configuration.verify_ssl = credentials.verify
    configuration.tls_server_name = credentials.server_name
    configuration.proxy = credentials.proxy
    # As Go's clients do, accept authorities that lack extensions which RFC 5280 requires.
    configuration.disable_strict_ssl_verification = True
    configuration.client_session_kwargs = {
        # Ignore proxies and passwords in the environment and ~/.netrc: only the kubeconfig counts.
        "trust_env": False,
        "cookie_jar": aiohttp.DummyCookieJar(),
        "middlewares": (_refuse_redirects,),
        "read_bufsize": 2**16,
    }
    configuration.ca_cert_data = _authority(credentials)
    with (
        _certificate_errors(credentials),
        _certificate_files(credentials) as (configuration.cert_file, configuration.key_file),
    ):
        return ApiClient(configuration)


def _check_certificates(credentials: Credentials) -> None:
    """Raise BadKubeconfig if OpenSSL can't load the authority or the client certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with _certificate_errors(credentials), _certificate_files(credentials) as (certificate, key):
        if authority := _authority(credentials):
            context.load_verify_locations(cadata=authority)
        if certificate:
            context.load_cert_chain(certificate, key)


def _authority(credentials: Credentials) -> str | None:
    return credentials.authority.decode("ascii", "replace") if credentials.authority else None


@contextmanager
def _certificate_errors(credentials: Credentials) -> Iterator[None]:
    try:
        yield
    except (ssl.SSLError, OSError) as error:
        raise BadKubeconfig(
            f"the certificates for {credentials.server} cannot be used: {error.strerror or error}"
        ) from None


@contextmanager
def _certificate_files(credentials: Credentials) -> Iterator[tuple[str | None, str | None]]:
    """Yield the files of the client certificate and its key; None each if there is none."""
    if not credentials.certificate or not credentials.server.startswith("https"):
        yield None, None
        return
    key = credentials.key or credentials.certificate
    if b"ENCRYPTED" in key:
        raise BadKubeconfig(
            f"the client key for {credentials.server} is encrypted; use one without a password"
        )
    with certificate_files(credentials.certificate, key) as paths:
        yield str(paths[0]), str(paths[1])


async def _refuse_redirects(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    response = await handler(request)
    if 300 <= response.status < 400:  # noqa: PLR2004 - the range that HTTP gives to redirects
        response.close()
        raise aiohttp.ClientPayloadError(
            f"the answer is a redirect ({response.status}), which the client does not follow"
        )
    return response

"""OAuth 2.0 protected resource metadata: where a client gets a token for this server.

Source: RFC 9728; MCP 2025-11-25, authorization.
"""

from dataclasses import dataclass

WELL_KNOWN = "/.well-known/oauth-protected-resource"
"""Path of the metadata; the path of a resource, such as `/mcp`, follows it (RFC 9728, 3.1)."""


@dataclass(frozen=True, slots=True)
class ProtectedResource:
    """This server as a resource whose tokens `issuers` make.

    `url`: its public URL without a path. If it is empty, it is the one that a request names.
    """

    issuers: tuple[str, ...]
    url: str = ""

    def metadata(self, asked: str, path: str) -> dict[str, object]:
        """Return the document of the resource at a path; `asked`: the URL of the request."""
        return {
            "resource": f"{self.url or asked}{path}",
            "resource_name": "Dynamic Scoring Framework",
            "authorization_servers": list(self.issuers),
            "bearer_methods_supported": ["header"],
        }

    def metadata_url(self, asked: str, path: str) -> str:
        """Return where the metadata of the resource at a path is."""
        return f"{self.url or asked}{WELL_KNOWN}{path}"

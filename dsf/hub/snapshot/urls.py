"""Checks the URLs that users write."""

from urllib.parse import urlsplit

from dsf.api.untrusted_text import InvalidInput, quoted

_SHOWN_CHARACTERS = 200


def server(url: str, where: str) -> str | InvalidInput:
    """Return `scheme://authority` of a URL; `where` names the field in the message of InvalidInput.

    Refuses schemes other than http and https, user names and passwords (tokens belong in a
    Secret), white space and control characters.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return _invalid(url, where, str(error))
    if any(character.isspace() or not character.isprintable() for character in url):
        return _invalid(url, where, "white space or control characters are not allowed")
    if parts.scheme not in {"http", "https"} or not host:
        return _invalid(url, where, "write it as http://host:port or https://host:port")
    if "@" in parts.netloc:
        return InvalidInput(
            "InvalidURL",
            f"{where} holds a user name or password; remove it and use auth.tokenSecretRef",
        )
    return f"{parts.scheme}://{parts.netloc}"


def endpoint(host: str, path: str, where: str) -> str | InvalidInput:
    """Return the URL of a path on a host, which may itself have a base path."""
    checked = server(host, f"{where}.host")
    if isinstance(checked, InvalidInput):
        return checked
    if "?" in host or "#" in host:
        return _invalid(host, f"{where}.host", "a query or fragment belongs in the path")
    if any(character.isspace() or not character.isprintable() for character in path):
        return _invalid(path, f"{where}.path", "white space or control characters are not allowed")
    return f"{host.rstrip('/')}/{path.lstrip('/')}" if path else host.rstrip("/")


def _invalid(value: str, where: str, why: str) -> InvalidInput:
    return InvalidInput("InvalidURL", f"{where} {quoted(value, _SHOWN_CHARACTERS)}: {why}")

"""h11's parser, without what RFC 9112 lets servers read in several ways (5.2, 6.1, 7.1)."""

import re

import h11

from dsf.api.host_header import MALFORMED_HOST, host_name

_FOLD_OR_END = re.compile(rb"\n(?:([ \t])|\r?\n)")
_LINE_END = re.compile(rb"\r?\n?")
_CHUNK = re.compile(rb"([0-9A-Fa-f]+)(?:;.*)?", re.DOTALL)


class StrictConnection(h11.Connection):
    """The server's side of a connection. `refusal`: why a request was refused."""

    refusal = ""
    _size_follows = False

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event; raises RemoteProtocolError."""
        begins = self.their_state is h11.IDLE
        rest = self.trailing_data[0] if begins or self._size_follows else b""
        if self._size_follows:
            self._check_size(rest)
        event = super().next_event()
        match event:
            case h11.Request():
                self._refuse_if(_ambiguity(event, rest))
                fields = {name for name, _ in event.headers}
                self._size_follows = b"transfer-encoding" in fields
            case h11.Data():
                self._size_follows = event.chunk_end
            case h11.EndOfMessage() if event.headers:
                self._refuse_if("trailers are not read here; send headers")
        return event

    def _check_size(self, rest: bytes) -> None:
        """Refuse a size with blanks around it: some servers take it for another number."""
        blank = _LINE_END.match(rest)
        line, end, _ = rest[blank.end() if blank else 0 :].partition(b"\r\n")
        if not end:
            return
        size = _CHUNK.fullmatch(line)
        if size is None:
            self._refuse_if("the size of a chunk is no hexadecimal number")
        elif not int(size[1], 16):
            self._size_follows = False

    def _refuse_if(self, why: str) -> None:
        self.refusal = why
        if why:
            raise h11.RemoteProtocolError(why)


def _ambiguity(request: h11.Request, head: bytes) -> str:
    """Return what of a request another server may read differently; empty if nothing."""
    fields = {name for name, _ in request.headers}
    line = _FOLD_OR_END.search(head)
    if line and line[1]:
        return "a header goes on in a second line; write it in one"
    if b"transfer-encoding" in fields and b"content-length" in fields:
        return "Content-Length and Transfer-Encoding say the length twice; send one of them"
    if b"transfer-encoding" in fields and request.http_version < b"1.1":
        return "HTTP/1.0 has no Transfer-Encoding; send a Content-Length"
    hosts = [value for name, value in request.headers if name == b"host"]
    return (
        MALFORMED_HOST if any(host_name(each.decode("latin-1")) is None for each in hosts) else ""
    )

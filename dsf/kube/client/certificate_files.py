"""A certificate and its key as files, because OpenSSL reads them from files only."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def certificate_files(certificate: bytes, key: bytes) -> Iterator[tuple[Path, Path]]:
    """Yield the paths of a certificate and its key in PEM, which no other user may read."""
    with tempfile.TemporaryDirectory(prefix="dsf-") as folder:
        paths = Path(folder, "tls.crt"), Path(folder, "tls.key")
        for path, content in zip(paths, (certificate, key), strict=True):
            path.touch(mode=0o600)
            path.write_bytes(content)
        yield paths

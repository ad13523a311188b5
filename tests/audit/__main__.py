"""Find secrets that are no known test values, and packages whose licence is not permitted.

`python -m tests.audit --accept` writes what looks like a secret now to `known_values.json`. Look at
each of them first. Advisories about packages need a service on the network: see `advisories.py`.
"""

import json
import re
import subprocess
import sys
from importlib.metadata import PackageMetadata, distributions
from pathlib import Path

from detect_secrets import SecretsCollection
from detect_secrets.settings import default_settings

from tests.repository import ROOT

KNOWN = Path(__file__).with_name("known_values.json")
"""Hashes of test values and names that look like secrets, by file."""
HASHES_ONLY = {"uv.lock", KNOWN.relative_to(ROOT).as_posix()}
PERMITTED = re.compile(
    r"\b(Apache|MIT|MIT-0|BSD|0BSD|ISC|ISCL|PSF|Python Software Foundation|MPL|Mozilla|Unlicense)\b"
)
"""Licences that allow distribution beside Apache-2.0 code, by a word of their name."""
COPYLEFT = re.compile(r"GPL|General Public License|SSPL|Commons Clause", re.IGNORECASE)


def found_secrets() -> dict[str, list[str]]:
    """Return the hashes of what looks like a secret, by file of the repository."""
    listed = subprocess.run(
        ["git", "ls-files"],  # noqa: S607 - the user's git
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    secrets = SecretsCollection(root=str(ROOT))
    with default_settings():
        for name in listed.stdout.splitlines():
            if name not in HASHES_ONLY and not name.endswith("go.sum") and (ROOT / name).exists():
                secrets.scan_file(name)
    hashes: dict[str, set[str]] = {}
    for name, secret in secrets:
        hashes.setdefault(name, set()).add(secret.secret_hash)
    return {name: sorted(found) for name, found in sorted(hashes.items())}


def licence(metadata: PackageMetadata) -> str:
    """Return what a package says of its licence: expression, classifiers, or free text."""
    expression = metadata.get("License-Expression")
    classified = [text for text in metadata.get_all("Classifier", []) if "License ::" in text]
    return expression or ", ".join(classified) or (metadata.get("License") or "")[:200]


def refused_licences() -> dict[str, str]:
    """Return the licence of each installed package that is not permitted or not recognised."""
    said = {each.metadata["Name"]: licence(each.metadata) for each in distributions()}
    return {
        name: text or "no licence named"
        for name, text in said.items()
        if COPYLEFT.search(text) or not PERMITTED.search(text)
    }


def main(*, accept: bool) -> int:
    """Print what was found, and return the exit code."""
    found = found_secrets()
    if accept:
        KNOWN.write_text(json.dumps(found, indent=2) + "\n")
    known = json.loads(KNOWN.read_text())
    new = [name for name in found if set(found[name]) - set(known.get(name, ()))]
    refused = refused_licences()
    lines = [
        *(f"{name}: a value looks like a secret" for name in new),
        *(
            f"{name}: licence not permitted or not recognised: {text}"
            for name, text in refused.items()
        ),
        f"secrets: {sum(map(len, found.values()))} values look like one, new in {len(new)} files",
        f"licences: {len(list(distributions()))} packages, {len(refused)} refused",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if new or refused else 0


if __name__ == "__main__":
    sys.exit(main(accept=sys.argv[1:] == ["--accept"]))

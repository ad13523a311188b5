"""Writes the folder of a new scorer from templates.

Each template is a scorer that works under the name `my-scorer`; its files are in `templates`.
"""

from collections.abc import Mapping
from pathlib import Path

TEMPLATES = Path(__file__).with_name("templates")
LANGUAGES: Mapping[str, tuple[str, ...]] = {
    "python": ("deployment", "python_http", "python"),
    "go": ("deployment", "go"),
    "node": ("deployment", "node"),
    "shell": ("deployment", "python_http", "shell"),
}
"""The folders of templates that make a scorer, by its language."""

_NAME, _SCORE_NAME = "my-scorer", "my_scorer"
_LANGUAGE_PAGE = "language.md"
_LANGUAGE_MARK = "<!-- language -->\n"
_SCRIPT = "#!"


class FolderExists(OSError):
    """The folder of a new scorer has files already."""


def files_of(language: str, name: str) -> dict[str, str]:
    """Return the text of each file of a scorer, by its path in the folder."""
    texts = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for folder in (TEMPLATES / part for part in LANGUAGES[language])
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }
    page = texts.pop(_LANGUAGE_PAGE)
    texts["README.md"] = texts["README.md"].replace(_LANGUAGE_MARK, page)
    return {path: _renamed(text, name) for path, text in sorted(texts.items())}


def write(folder: Path, files: Mapping[str, str], *, overwrite: bool) -> None:
    """Write files into a folder, scripts as executable ones. Raises FolderExists, OSError."""
    if not overwrite and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderExists(f"{folder} exists and is not an empty folder")
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        if text.startswith(_SCRIPT):
            target.chmod(0o755)


def _renamed(text: str, name: str) -> str:
    return text.replace(_NAME, name).replace(_SCORE_NAME, name.replace("-", "_"))

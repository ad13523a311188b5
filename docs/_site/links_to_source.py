"""Links from pages to files of the repository outside docs/ become the path, as code.

A reader of the site has no checkout. A file that does not exist stays a link: Sphinx warns of it.
"""

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import download_reference, pending_xref
from sphinx.transforms import SphinxTransform


class LinksToSource(SphinxTransform):
    """Replaces links to files that are not pages."""

    default_priority = 5

    def apply(self) -> None:
        """Put the path of the file behind the text of each such link."""
        docs = Path(self.app.srcdir)
        for link in list(self.document.findall(_leads_to_a_file)):
            path = _target(link, docs, docs / self.env.docname)
            if path.exists() and (path.suffix != ".md" or not path.is_relative_to(docs)):
                shown, text = path.relative_to(docs.parent).as_posix(), link.astext()
                link.replace_self(
                    nodes.literal("", shown if text in shown else f"{text} ({shown})")
                )


def _leads_to_a_file(node: nodes.Node) -> bool:
    return isinstance(node, download_reference | pending_xref)


def _target(link: Any, docs: Path, page: Path) -> Path:
    """Return the file: MyST names a page without its suffix, relative to docs."""
    target = link.get("reftarget", "")
    if link.get("refdomain") == "doc":
        return (docs / f"{target}.md").resolve()
    return (page.parent / target).resolve()


def setup(app: Any) -> dict[str, bool]:
    """Add the transform to Sphinx."""
    app.add_transform(LinksToSource)
    return {"parallel_read_safe": True}

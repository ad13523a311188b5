"""Fences of Mermaid become SVG when a page is built: it fetches no JavaScript.

A diagram with a syntax error is a warning, and a warning ends the build.
"""

from typing import Any

import mermaidx
from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class MermaidDiagram(SphinxDirective):
    """A fence of Mermaid."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the diagram as SVG, or the warning why there is none."""
        try:
            svg = mermaidx.render("\n".join(self.content)).svg()
        except RuntimeError as error:
            where = {"line": self.lineno}
            return [self.state.document.reporter.warning(str(error), **where)]
        return [nodes.raw("", f'<div class="mermaid">{self._own_ids(svg)}</div>', format="html")]

    def _own_ids(self, svg: str) -> str:
        """Return the picture with ids of its own: its style sheet must not reach the next one."""
        return svg.replace("my-svg", f"diagram-{self.env.new_serialno('mermaid')}")


def setup(app: Any) -> dict[str, bool]:
    """Add the directive to Sphinx."""
    app.add_directive("mermaid", MermaidDiagram)
    return {"parallel_read_safe": True}

"""The documentation site: every page below docs/, as HTML that needs no network."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_site"))

project = "Dynamic Scoring Framework"
author = "The maintainers"
copyright = ""  # noqa: A001 - the name is Sphinx's; the licence says who owns what
html_show_copyright = False
html_show_sphinx = False

extensions = ["myst_parser", "mermaid_svg", "links_to_source"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_site", "examples", "scoring-api"]
suppress_warnings = ["myst.header"]  # a few pages start sections two levels down

# Headings of these levels can be linked to, and links to headings that are not there are warnings.
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

html_theme = "furo"
html_title = project
html_copy_source = False
html_theme_options = {"top_of_page_buttons": []}

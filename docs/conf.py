"""Configuration of the site: `make site` builds it into out/site."""

import shutil
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from _ext import api, catalogue, commands, figure, links, notebooks, places, terms  # noqa: E402

import owkg  # noqa: E402

project, author, version = "owkg", "The owkg developers", owkg.__version__
release = version
copyright = author  # noqa: A001
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx-mathjax-offline"]
exclude_patterns = ["reproduction/*", "images/*", "_ext/*"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
# Notebooks hold their outputs: they are not run.
nb_execution_mode = "off"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_attr_annotations = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
default_role = "code"
# "owkg --help" keeps its two hyphens.
smartquotes = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/owkg.svg"
html_theme = "furo"
html_title = "owkg"
html_theme_options: dict[str, Any] = {"source_directory": "docs/"}
html_show_sourcelink = False
suppress_warnings = ["misc.highlighting_failure", "ref.python"]


def _tutorials() -> str:
    """The list of the tutorials, by their numbers."""
    names = sorted(path.stem for path in (HERE / "get_started").glob("[0-9]*.md"))
    return "\n".join(["```{toctree}", ":maxdepth: 1", "install", *names, "```"])


# Parts of pages that are made, by the comment in their place.
_PARTS = {
    "catalogue": catalogue.text,
    "downloads": notebooks.downloads,
    "incomplete": figure.text,
    "lessons": notebooks.lessons,
    "tutorials": _tutorials,
}


def _parts(_app: Any, _page: str, source: list[str]) -> None:
    """Puts the parts that are made into the pages that have a place for them."""
    for name, text in _PARTS.items():
        mark = f"<!-- {name} -->"
        if mark in source[0]:
            source[0] = source[0].replace(mark, text())


def setup(app: Any) -> None:
    """Connects the parts of the site; Sphinx calls it first."""
    for folder in places.MADE:
        shutil.rmtree(HERE / folder, ignore_errors=True)
        (HERE / folder).mkdir(parents=True)
    notebooks.write()
    api.write()
    commands.write()
    app.add_object_type("metric", "metric", objname="metric")
    app.connect("source-read", _parts, priority=400)
    app.connect("source-read", links.read)
    app.connect("doctree-read", terms.collect)
    app.connect("doctree-resolved", terms.link)
    app.connect("autodoc-process-signature", api.signature)
    # Before napoleon, which reads sections into reStructuredText.
    app.connect("autodoc-process-docstring", api.returns, priority=390)
    app.connect("autodoc-process-docstring", api.plain, priority=400)

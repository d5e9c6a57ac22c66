"""Configuration of the site: `make site` builds it into out/site."""

import dataclasses
import re
import shutil
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_origin

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))

import owkg  # noqa: E402

project, author, version = "owkg", "The owkg developers", owkg.__version__
release = version
copyright = author  # noqa: A001
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx-mathjax-offline"]
exclude_patterns = ["reproduction/*", "images/*"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
# Notebooks hold their outputs: they are not run.
nb_execution_mode = "off"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_attr_annotations = False
python_use_unqualified_type_names = True
default_role = "code"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/owkg.svg"
html_theme = "furo"
html_title = "owkg"
html_theme_options: dict[str, Any] = {"source_directory": "docs/"}
html_show_sourcelink = False
suppress_warnings = ["misc.highlighting_failure", "ref.python"]

# Written by this file, and not kept.
_MADE = ("_notebooks", "api")


def _notebooks() -> None:
    """The notebooks, beside the pages."""
    folder = HERE / "_notebooks"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        shutil.copy(path, folder / path.name)


def _reference() -> None:
    """A page for each room, of what its `__all__` names; and one of the front doors."""
    folder = HERE / "api"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    doors = [name for name in owkg.__all__ if callable(getattr(owkg, name))]
    rooms = [name for name in owkg.__all__ if name not in doors and name != "__version__"]
    pages = {"owkg": ("owkg", doors)} | {
        room: (f"owkg.{room}", list(getattr(import_module(f"owkg.{room}"), "__all__", ()))) for room in rooms
    }
    for page, (module, names) in pages.items():
        first = (import_module(module).__doc__ or "").strip()
        lines = [f"# {module}", "", first, "", "```{eval-rst}"]
        for name in names:
            what = getattr(import_module(module), name)
            kind = "autoclass" if isinstance(what, type) else "autofunction"
            if isinstance(what, ModuleType):
                kind = "automodule"
            elif not callable(what) or get_origin(what) or dataclasses.is_dataclass(type(what)):
                lines += [
                    f".. py:data:: {module}.{name}",
                    "   :no-index:",
                    "",
                    f"   {type(what).__name__}",
                    "",
                ]
                continue
            lines += [f".. {kind}:: {module}.{name}", "   :no-index:"]
            fields = getattr(what, "_fields", ())
            own = (
                [key for key in vars(what) if not key.startswith("_") and key not in fields] if fields else []
            )
            if kind != "autofunction" and (own or not fields):
                lines += [f"   :members: {', '.join(own)}".rstrip()]
            lines += [""]
        (folder / f"{page}.md").write_text("\n".join([*lines, "```", ""]), encoding="utf-8")
    listed = "\n".join(pages)
    text = f"# Reference\n\nThe front doors, and the rooms behind them.\n\n```{{toctree}}\n{listed}\n```\n"
    (folder / "index.md").write_text(text, encoding="utf-8")


def _plain(_app: Any, _what: str, _name: str, _of: Any, _options: Any, lines: list[str]) -> None:
    """Docstrings are plain text: what reStructuredText would read into it is taken as it stands."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = re.sub(r"(\||(?<!`)\*(?!`))|(?<=\w)(_)(?=\W|$)", r"\\\1\2", line)


def _links(_app: Any, _name: str, source: list[str]) -> None:
    """Links to notebooks go to their pages; to other files of the repository, there is no page."""
    source[0] = source[0].replace("](../notebooks/", "](_notebooks/")
    source[0] = re.sub(r"\[([^\]]+)\]\(\.\./[^)]*\)", r"\1", source[0])
    source[0] = re.sub(r"(?<!!)\[([^\]]+)\]\(reproduction/[^)]*\)", r"\1", source[0])


def setup(app: Any) -> None:
    """What Sphinx calls first."""
    _notebooks()
    _reference()
    app.connect("source-read", _links)
    # Before napoleon, which reads sections into reStructuredText.
    app.connect("autodoc-process-docstring", _plain, priority=400)

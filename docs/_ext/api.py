"""Pages of the Python interface: each public package, of what its `__all__` names."""

import dataclasses
import inspect
import re
from importlib import import_module
from types import ModuleType
from typing import Any, get_origin

from sphinx.util.typing import stringify_annotation

import owkg
from _ext.places import API, DOCS


def packages() -> dict[str, list[str]]:
    """By module, the public names; those of `owkg` itself are functions and classes."""
    own = [name for name in owkg.__all__ if callable(getattr(owkg, name))]
    rest = [name for name in owkg.__all__ if name not in own and name != "__version__"]
    pages = {"owkg": own}
    for name in rest:
        pages[f"owkg.{name}"] = list(getattr(import_module(f"owkg.{name}"), "__all__", ()))
    return pages


def _directive(module: str, name: str, seen: dict[int, str]) -> list[str]:
    """The lines that Sphinx reads of one name; `seen` has the names of what stands elsewhere."""
    what = getattr(import_module(module), name)
    own = f"{module}.{name}"
    if (inspect.isclass(what) or inspect.isfunction(what)) and seen.setdefault(id(what), own) != own:
        kind = "class" if inspect.isclass(what) else "function"
        return [f".. py:{kind}:: {own}", "", f"   The same as :py:obj:`{seen[id(what)]}`.", ""]
    if isinstance(what, ModuleType):
        return [f".. automodule:: {module}.{name}", "   :members:", ""]
    if not callable(what) or get_origin(what) or dataclasses.is_dataclass(type(what)):
        return [f".. py:data:: {module}.{name}", f"   :type: {type(what).__name__}", ""]
    kind = "autoclass" if isinstance(what, type) else "autofunction"
    lines = [f".. {kind}:: {module}.{name}"]
    fields = getattr(what, "_fields", ())
    own = [key for key in vars(what) if not key.startswith("_") and key not in fields] if fields else []
    if kind == "autoclass" and (own or not fields):
        lines += [f"   :members: {', '.join(own)}".rstrip()]
    return [*lines, ""]


def write() -> None:
    """Writes the pages, and one that lists them."""
    folder, seen = DOCS / API, {}
    for module, names in packages().items():
        about = (import_module(module).__doc__ or "").strip()
        lines = [f"# {module}", "", about, "", "```{eval-rst}"]
        for name in names:
            lines += _directive(module, name, seen)
        page = module.removeprefix("owkg.")
        (folder / f"{page}.md").write_text("\n".join([*lines, "```", ""]), encoding="utf-8")
    listed = "\n".join(module.removeprefix("owkg.") for module in packages())
    text = f"# Python API\n\nFunctions of `owkg` itself, and its packages.\n\n```{{toctree}}\n{listed}\n```\n"
    (folder / "index.md").write_text(text, encoding="utf-8")


def plain(_app: Any, _what: str, _name: str, _of: Any, _options: Any, lines: list[str]) -> None:
    """Docstrings are plain text: characters that mean something in reStructuredText are escaped."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = re.sub(r"(\||(?<!`)\*(?!`))|(?<=\w)(_)(?=\W|$)", r"\\\1\2", line)


def signature(
    _app: Any, _what: str, _name: str, _of: Any, _options: Any, words: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """A signature that can be read: a default that is made for each call is three dots."""
    return (words and words.replace("<factory>", "...")), returned


def returns(_app: Any, what: str, _name: str, of: Any, _options: Any, lines: list[str]) -> None:
    """Adds the type of what is returned where a docstring has no section on it."""
    if what not in ("function", "method") or any(line.strip() in ("Returns:", "Yields:") for line in lines):
        return
    try:
        kind = inspect.signature(of).return_annotation
    except (TypeError, ValueError):
        return
    if kind in (inspect.Signature.empty, None, "None"):
        return
    about = kind if isinstance(kind, str) else stringify_annotation(kind, "smart", short_literals=True)
    about = f"`{_short(about)}`"
    if getattr(kind, "__module__", "").startswith("owkg"):
        about += ": " + " ".join((kind.__doc__ or "").strip().split("\n\n")[0].split())
    lines += ["", "Returns:", f"    {about}"]


def _short(annotation: str) -> str:
    """An annotation without the modules of its names."""
    return re.sub(r"~?\b(?:\w+\.)+(?=\w)", "", annotation)

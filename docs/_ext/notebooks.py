"""Pages of the notebooks, which hold their outputs, and the list of files to download."""

from pathlib import Path

import nbformat

from _ext.links import relinked
from _ext.places import DOCS, LESSONS, NOTEBOOKS, ROOT

_PROOFS = """# Proofs

Each of these notebooks checks formulas and algorithms step by step against an independent computation. To
learn how to use owkg, read the [lessons](../../get_started/index.md#lessons-in-python).

"""


def write() -> None:
    """Copies the proofs and the lessons, with links that lead to pages, and writes the page of the proofs."""
    proofs = _copied(ROOT / "notebooks", NOTEBOOKS)
    _copied(ROOT / "notebooks" / "lessons", LESSONS)
    (DOCS / NOTEBOOKS / "index.md").write_text(_PROOFS + _listed(proofs), encoding="utf-8")


def lessons() -> str:
    """The list of the lessons, by their numbers, as Markdown."""
    folder = LESSONS.rpartition("/")[2]
    return _listed([f"{folder}/{path.stem}" for path in sorted((DOCS / LESSONS).glob("*.ipynb"))])


def _copied(folder: Path, to: str) -> list[str]:
    """Copies the notebooks of a folder, and returns their names."""
    paths = sorted(folder.glob("*.ipynb"))
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = relinked(cell.source, path, f"{to}/{path.stem}")
        nbformat.write(notebook, DOCS / to / path.name)
    return [path.stem for path in paths]


def _listed(pages: list[str]) -> str:
    return "\n".join(["```{toctree}", ":maxdepth: 1", *pages, "```"]) + "\n"


def downloads() -> str:
    """A table of the files of docs/reproduction, as Markdown."""
    rows = [
        f"| [{path.name}](../reproduction/{path.name}) | {path.stat().st_size / 1e3:,.0f} kB |"
        for path in sorted((DOCS / "reproduction").iterdir())
    ]
    return "\n".join(["| file | size |", "|---|---:|", *rows])

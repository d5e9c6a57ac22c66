"""Pages of the notebooks, which hold their outputs, and the list of files to download."""

import shutil

from _ext.places import DOCS, NOTEBOOKS, ROOT


def write() -> None:
    """Copies the notebooks, and writes the page that lists them."""
    folder = DOCS / NOTEBOOKS
    paths = sorted((ROOT / "notebooks").glob("*.ipynb"))
    for path in paths:
        shutil.copy(path, folder / path.name)
    listed = "\n".join(path.stem for path in paths)
    text = (
        f"# Notebooks\n\nEach checks formulas step by step.\n\n```{{toctree}}\n:maxdepth: 1\n{listed}\n```\n"
    )
    (folder / "index.md").write_text(text, encoding="utf-8")


def downloads() -> str:
    """A table of the files of docs/reproduction, as Markdown."""
    rows = [
        f"| [{path.name}](../reproduction/{path.name}) | {path.stat().st_size / 1e3:,.0f} kB |"
        for path in sorted((DOCS / "reproduction").iterdir())
    ]
    return "\n".join(["| file | size |", "|---|---:|", *rows])

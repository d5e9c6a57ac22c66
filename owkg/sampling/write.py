"""Open worlds as folders with files, layouts and a card, written whole or not at all."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.files.lines import first_row
from owkg.files.storage import checksum, checksums, made_folder, versions, write_metadata
from owkg.sampling.card import describe, shared_queries
from owkg.sampling.layouts import (
    LAYOUTS,
    write_judged_files,
    write_labelled_files,
    write_libkge_files,
    write_openke_files,
)
from owkg.sampling.readme import readme, readme_of_several
from owkg.sampling.sample import OpenWorld

_MADE_BY = "owkg sample"
_FIGURE = "card.png"
# Characters that would end a column or a line, be taken as a byte order mark, or be stripped from a column.
_BREAKS = r"[\t\n\r]|^\x{feff}|^ | $|^$"
# A query is "head|relation|?" or "?|relation|tail".
_BARS = r"\||^\?$"
_WRITERS = {"openke": write_openke_files, "libkge": write_libkge_files}


def write_worlds(
    worlds: Iterable[OpenWorld],
    folder: StrPath,
    *,
    source: Path | None = None,
    layouts: Sequence[str] = LAYOUTS,
    draw: Callable[[OpenWorld, dict[str, Any], Path], None] | None = None,
    overwrite: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Writes one world into `folder`, or several worlds of different densities into `folder/d0.75`, ...

    Args:
        worlds: at least one world. An iterator is run after `folder` has been checked and before writing.
        folder: new folder, or an earlier result that `overwrite` replaces as a whole.
        source: file from which the closed world was read, named in the cards. Default: none.
        layouts: layouts in addition to the labelled files, from `LAYOUTS`. Default: all.
        draw: function that draws the figure of a world with its card into a path. Default: no figure.
        overwrite: whether an existing folder is replaced. Default False.
        on_progress: function called with (written, total) worlds.

    Returns:
        Cards, the contents of `metadata.json` of each world.

    Raises:
        ValueError: if `folder` exists, two worlds have the same density, or a label cannot be written.
    """
    if len(set(layouts)) < len(layouts):
        raise ArgumentError("layouts", f"must name each layout once, got {', '.join(layouts)}.")
    if unknown := set(layouts) - set(LAYOUTS):
        raise ArgumentError("layouts", f"must be among {', '.join(LAYOUTS)}, got {sorted(unknown)[0]!r}.")
    inputs = () if source is None else (source,)
    with made_folder(Path(folder), made_by=_MADE_BY, inputs=inputs, overwrite=overwrite) as aside:
        found = list(worlds)
        _require_one_graph(found)
        file = None if source is None else {"file": source.name, "sha256": checksum(source)}
        names = [f"d{world.design.density}" for world in found]
        if not found or len(set(names)) < len(names):
            raise ArgumentError("worlds", f"must have different densities, got {', '.join(names) or 'none'}.")
        _check_labels(found[0])
        cards = {}
        for done, (name, world) in enumerate(zip(names, found, strict=True)):
            if on_progress is not None:
                on_progress(done, len(found))
            place = aside if len(found) == 1 else aside / name
            cards[name] = _write(world, place, file, layouts, draw)
        if len(found) > 1:
            _write_comparison(cards, shared_queries(found), aside)
    return list(cards.values())


def _require_one_graph(worlds: Sequence[OpenWorld]) -> None:
    """ValueError if `worlds` have different closed worlds."""
    for world in worlds[1:]:
        first = worlds[0]
        same = world.entities == first.entities and world.relations == first.relations
        if not (same and np.array_equal(world.facts, first.facts)):
            raise ArgumentError("worlds", "must have the same closed world, got different facts.")


def _check_labels(world: OpenWorld) -> None:
    """ValueError naming the first label that cannot be written."""
    for kind, labels in (("entity", world.entities), ("relation", world.relations)):
        _refuse(
            labels, _BREAKS, f"{kind} labels must not hold tabs or line ends, or begin or end with a space"
        )
    _refuse(world.entities, _BARS, 'entity labels must not hold a bar or be "?", which qrels use')


def _refuse(labels: Sequence[str], pattern: str, must: str) -> None:
    """ValueError naming the first label that matches a pattern."""
    column = pl.Series(labels)
    if (row := first_row(column.str.contains(pattern))) is not None:
        raise ValueError(f"{must}, got {column[row]!r}.")


def _write(
    world: OpenWorld,
    folder: Path,
    source: dict[str, str] | None,
    layouts: Sequence[str],
    draw: Callable[[OpenWorld, dict[str, Any], Path], None] | None,
) -> dict[str, Any]:
    """Writes one world and returns its card."""
    folder.mkdir(exist_ok=True)
    write_labelled_files(world, folder)
    write_judged_files(world, folder)
    for name in layouts:
        _WRITERS[name](world, folder / name)
    card = {"made_by": _MADE_BY, "versions": versions(), "source": source, **describe(world)}
    if draw is not None:
        draw(world, card, folder / _FIGURE)
    text = readme(card, layouts=layouts, figure=None if draw is None else _FIGURE)
    (folder / "README.md").write_text(text, encoding="utf-8")
    card |= {"sha256": checksums(folder)}
    write_metadata(folder, card)
    return card


def _write_comparison(cards: dict[str, dict[str, Any]], shared: int, folder: Path) -> None:
    """Writes the card that compares several worlds."""
    (folder / "README.md").write_text(readme_of_several(cards, shared), encoding="utf-8")
    first = next(iter(cards.values()))
    said = {name: first[name] for name in ("made_by", "versions", "source", "counts")}
    of_each = ("parameters", "splits", "density", "alpha", "queries")
    worlds = {name: {key: card[key] for key in of_each} for name, card in cards.items()}
    said |= {"shared_queries": shared, "worlds": worlds, "sha256": checksums(folder)}
    write_metadata(folder, said)

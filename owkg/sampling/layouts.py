"""The files of an open world: labelled triples and id maps, and the layouts of OpenKE and LibKGE."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from owkg.kg import KnowledgeGraph, write_openke
from owkg.kg.triples import COLUMNS
from owkg.sampling.sample import OpenWorld

# Beside the labelled files, each in a folder of its name.
LAYOUTS = ("openke", "libkge")
# Neither loader survives a validation set without triples: OpenKE reads outside its arrays, LibKGE
# needs two lines to see a table.
_STAND_IN = 2


def splits(world: OpenWorld) -> dict[str, np.ndarray]:
    """The sets of facts by the names of their files; one that has no facts is not there."""
    found = {name: getattr(world, name) for name in ("train", "valid", "test_sparse", "test_full", "missing")}
    return {name: facts for name, facts in found.items() if len(facts)}


def write_table(table: pl.DataFrame, path: Path, *, header: bool = False) -> None:
    """Writes lines of columns, separated by tabs."""
    table.write_csv(path, include_header=header, separator="\t", quote_style="never")


def labelled(world: OpenWorld, facts: np.ndarray) -> pl.DataFrame:
    """`facts` with their labels, columns head, relation, tail."""
    entities, relations = pl.Series(world.entities), pl.Series(world.relations)
    labels = (entities, relations, entities)
    columns = zip(COLUMNS, labels, facts.T, strict=True)
    return pl.DataFrame({name: of.gather(ids) for name, of, ids in columns})


def write_labelled_files(world: OpenWorld, folder: Path) -> None:
    """Writes `train.txt`, ..., and all ids in `entities.dict` and `relations.dict`."""
    for name, facts in splits(world).items():
        write_table(labelled(world, facts), folder / f"{name}.txt")
    for kind in ("entities", "relations"):
        _write_ids(getattr(world, kind), folder / f"{kind}.dict")


def write_openke_files(world: OpenWorld, folder: Path) -> None:
    """Writes OpenKE's files, the test set being the sparse one, and `type_constrain.txt`.

    The types are those of the known facts: the heads and tails that each relation has among them.
    """
    graph = KnowledgeGraph(world.entities, world.relations, _with_stand_in(world))
    write_openke(graph, folder)
    known = pl.DataFrame(
        np.concatenate([world.train, world.valid, world.test_sparse]), schema=list(COLUMNS), orient="row"
    )
    relations = pl.DataFrame({"relation": np.arange(len(world.relations), dtype=np.int32)})
    lines = []
    for column in ("head", "tail"):
        ids = known.group_by("relation").agg(pl.col(column).unique().sort().cast(pl.String))
        ids = relations.join(ids, on="relation", how="left", maintain_order="left")
        fields = pl.concat_str(
            "relation", pl.col(column).list.len().fill_null(0), pl.col(column).list.join("\t"),
            separator="\t", ignore_nulls=True,
        )  # fmt: skip
        lines.append(ids.select(fields).to_series())
    table = pl.DataFrame({"head": lines[0], "tail": lines[1]})
    with (folder / "type_constrain.txt").open("wb") as file:
        file.write(b"%d\n" % len(table))
        table.write_csv(file, include_header=False, separator="\n", quote_style="never")


def write_libkge_files(world: OpenWorld, folder: Path) -> None:
    """Writes LibKGE's files, the test set being the sparse one, and `dataset.yaml`."""
    folder.mkdir()
    lines = ["dataset:", f"  num_entities: {len(world.entities)}", f"  num_relations: {len(world.relations)}"]
    for kind, labels in (("entity", world.entities), ("relation", world.relations)):
        _write_ids(labels, folder / f"{kind}_ids.del")
        lines += [f"  files.{kind}_ids.filename: {kind}_ids.del", f"  files.{kind}_ids.type: map"]
    for name, facts in _with_stand_in(world).items():
        write_table(pl.DataFrame(facts, schema=list(COLUMNS), orient="row"), folder / f"{name}.del")
        lines += [f"  files.{name}.filename: {name}.del", f"  files.{name}.type: triples"]
        lines += [f"  files.{name}.size: {len(facts)}"]
    (folder / "dataset.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _with_stand_in(world: OpenWorld) -> dict[str, np.ndarray]:
    """The sets that other tools know; where no fact validates, the first training facts stand in."""
    valid = world.valid if len(world.valid) else world.train[:_STAND_IN]
    return {
        "train": world.train,
        "valid": valid,
        "test": world.test_sparse,
        "test_full": world.test_full,
    }


def _write_ids(labels: Sequence[str], path: Path) -> None:
    write_table(pl.DataFrame({"id": range(len(labels)), "label": labels}), path)

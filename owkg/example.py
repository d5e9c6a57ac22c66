"""A small example: three systems on an incomplete graph, of which every missing fact is known."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Int32

from family_tree import closed_graph, sample_people
from owkg import checks
from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.files.lines import first_row
from owkg.files.storage import METADATA_FILE, checksums, made_folder, read_metadata, versions, write_metadata
from owkg.judge import qrels_from_graph, write_judgements, write_run
from owkg.judge.lists import lists_of_rows
from owkg.kg import KnowledgeGraph, entity_popularity, joined_splits, seen_part, write_labelled
from owkg.kg.triples import labelled
from owkg.openworld import PopularityBased
from owkg.pools.annotation import SHEET, SOURCE, sheet_rows, write_cells
from owkg.ranks import rank_table, write_ranks
from owkg.ranks.table import SIDES
from owkg.sampling import read_facts, sample
from owkg.sampling.layouts import write_columns

_MADE_BY = "owkg example"
_WORLD = "world.tsv"
# How far each system scores true answers above wrong ones, in standard deviations of the noise; and how much
# further where the popularity of the fact is a standard deviation above the mean.
_SYSTEMS = {"a": (2.2, 0.0), "b": (0.6, 2.5), "c": (2.0, 0.0)}
_SHARED = 0.6  # share of the noise's variance that the systems have in common
_SEEDS = (1, 2, 3)
_SEVERAL = ("a", "c")  # systems with several seeds
_DEPTH = 20
_README = """Three systems, a, b and c, answer the queries of an incomplete graph of families.

The families are invented and the systems are simulated, so that every missing fact is known. The graph knows
people with many facts better than others. So does system b: it retrieves facts about these people more often.
Their strengths were chosen so that, with seed 0, one comparison holds, one is open, and one is reversed by
missing facts. Other seeds may not show all three.

  graph/          the graph: train.txt and test.txt
  a.parquet, ...  ranks of the test answers, one file for each system
  a.run, ...      the {depth} best answers of each system to each query of the test
  seeds.parquet   ranks of a and c under three seeds each
  complete/       ranks of all true answers to the same queries, which are unknown in practice
  complete.qrels  all true answers to these queries, as TREC judgements
  {world}       every true fact: head, relation, tail
  metadata.json   seed, sizes, versions and checksums

Commands to type in this folder:

  owkg metrics a.parquet b.parquet c.parquet --metric mrr,amri
  owkg compare a.parquet b.parquet c.parquet --metric mrr
  owkg audit a.parquet b.parquet c.parquet --metric mrr --sparsity 0.2,0.4
  owkg pool a.run b.run c.run --kg graph --depth 10 --draw queries:150 --strata size --seed 7 --out pool
  owkg example . --judge pool/sheet.tsv
  owkg estimate --pool pool --metric mrr
  owkg compare complete/a.parquet complete/b.parquet complete/c.parquet --metric mrr
"""


class Example(NamedTuple):
    """An open world, and how three simulated systems answer its test.

    Attributes:
        world: the closed world, split into train, test and missing.
        graph: train and test, the known facts.
        ranks: by system, the rank table of the test.
        complete: by system, the rank table of all true answers to the queries of the test.
        lists: by system, the run of its best answers to the queries of the test.
        truth: all true answers to the queries of the test, as judgements.
        seeds: the rank table of two systems under three seeds each.
    """

    world: KnowledgeGraph
    graph: KnowledgeGraph
    ranks: dict[str, pl.DataFrame]
    complete: dict[str, pl.DataFrame]
    lists: dict[str, pl.DataFrame]
    truth: pl.DataFrame
    seeds: pl.DataFrame


def example(seed: int = 0) -> Example:
    """The example in memory; equal seeds give equal tables.

    Half of the facts of a closed world of families are known, more of those about people with many facts
    (`owkg.openworld.PopularityBased`). 40 % of the known facts train, and the others are the test. A system
    scores an answer by whether it is true, plus noise. People without a training fact leave the world.

    The strengths of the systems were chosen so that, by MRR and with seed 0, a > c holds on the complete
    test, a and b do not differ significantly on the test, and b > c is reversed on the complete test. Other
    seeds may not show all three.

    Args:
        seed: a whole number, at least 0.

    Raises:
        ValueError: if `seed` is out of its range.
    """
    seed = checks.seed("seed", seed)
    world = _world(seed)
    train, test = (world.splits[name] for name in ("train", "test"))
    graph = world._replace(splits={"train": train, "test": test})
    every = world._replace(splits={"train": train, "test": joined_splits(world, ["test", "missing"])})
    rng = np.random.default_rng(seed)
    parts: dict[str, dict[str, list[pl.DataFrame]]] = {
        kind: {name: [] for name in _SYSTEMS} for kind in ("ranks", "complete", "lists")
    }
    seeds = {name: [] for name in _SEVERAL}
    truth = []
    for side in SIDES:
        asked = np.unique(_queries(test, side, graph))
        row = np.searchsorted(asked, _queries(test, side, graph))
        full = every.splits["test"][np.isin(_queries(every.splits["test"], side, graph), asked)]
        full_row = np.searchsorted(asked, _queries(full, side, graph))
        truth.append(qrels_from_graph(every._replace(splits={"test": full}), "test", sides=[side]))
        for (name, number), scores in _scores(world, side, asked, rng).items():
            ranks = _ranked(graph, scores[row], test, side, name)
            if number == _SEEDS[0]:
                parts["ranks"][name].append(ranks)
                parts["complete"][name].append(_ranked(every, scores[full_row], full, side, name))
                lists = lists_of_rows(graph, scores[row], test, side, depth=_DEPTH, model=name, split="test")
                parts["lists"][name].append(lists)
            if name in _SEVERAL:
                seeds[name].append(ranks.with_columns(seed=pl.lit(number, pl.Int64)))
    joined = {kind: {name: pl.concat(tables) for name, tables in of.items()} for kind, of in parts.items()}
    several = pl.concat(table for tables in seeds.values() for table in tables)
    return Example(world, graph, **joined, truth=pl.concat(truth), seeds=several)


def _world(seed: int) -> KnowledgeGraph:
    """A closed world of families, split into train, test and missing; every person has a fact in train."""
    people = sample_people(num_trees=6, max_tree_size=50, seed=seed)
    world = sample(
        closed_graph(people, "published"),
        density=0.5,
        train_rate=0.4,
        min_answers=1,
        num_queries=None,
        missing=PopularityBased(4.0),
        seed=seed,
    )
    splits = {"train": world.train, "test": world.test_sparse, "missing": world.missing}
    entities, relations = (
        [labels[i] for i in np.unique(world.train[:, columns])]
        for labels, columns in ((world.entities, [0, 2]), (world.relations, [1]))
    )
    return seen_part(KnowledgeGraph(world.entities, world.relations, splits), entities, relations)


def _queries(facts: Int32[np.ndarray, "facts 3"], side: Any, graph: KnowledgeGraph) -> np.ndarray:
    """A number for the query that each fact answers."""
    known = facts[:, 0 if side == "tail" else 2].astype(np.int64)
    return known * graph.num_relations + facts[:, 1]


def _scores(
    world: KnowledgeGraph, side: Any, asked: np.ndarray, rng: np.random.Generator
) -> dict[tuple[str, int], np.ndarray]:
    """By system and seed, the scores of all entities for each query, [queries, entities]."""
    facts = joined_splits(world, list(world.splits))
    query = _queries(facts, side, world)
    is_asked = np.isin(query, asked)
    place = np.searchsorted(asked, query[is_asked]), facts[is_asked, 2 if side == "tail" else 0]
    log = np.log(entity_popularity(facts, world.num_entities))
    popularity = log[facts[:, 0]] + log[facts[:, 2]]
    popularity = ((popularity - popularity.mean()) / popularity.std())[is_asked]
    shape = (len(asked), world.num_entities)
    shared = np.sqrt(_SHARED) * rng.standard_normal(shape)
    found = {}
    for name, (strength, more) in _SYSTEMS.items():
        for seed in _SEEDS if name in _SEVERAL else _SEEDS[:1]:
            scores = shared + np.sqrt(1 - _SHARED) * rng.standard_normal(shape)
            scores[place] += strength + more * popularity
            found[name, seed] = scores.round(4)
    return found


def _ranked(
    graph: KnowledgeGraph, scores: np.ndarray, triples: np.ndarray, side: Any, name: str
) -> pl.DataFrame:
    return rank_table(graph, scores, triples, side, model=name, filter_splits=["train", "test"], score=True)


def write_example(out: StrPath, *, seed: int = 0, overwrite: bool = False) -> dict[str, Any]:
    """Writes the example into a folder, with a README.txt that says what each file is.

    Args:
        out: folder, not there or empty; or one that was written here and that `overwrite` replaces.
        seed: as `example`; equal seeds give equal bytes.
        overwrite: whether to replace the folder of an earlier example. Default False. A folder that holds
            any other file, such as a judged sheet, is never replaced.

    Returns:
        The content of metadata.json: seed, and numbers of entities, relations, facts, answers and queries.

    Raises:
        ValueError: if `out` is there and may not be replaced, or `seed` is out of its range.
        OSError: if `out` cannot be written.
    """
    place, number = checks.path("out", out), checks.seed("seed", seed)
    replaced = checks.flag("overwrite", overwrite)
    is_empty = place.is_dir() and not any(place.iterdir())
    with made_folder(place, made_by=_MADE_BY, overwrite=replaced or is_empty) as folder:
        _require_own(place)
        made = example(number)
        write_labelled(made.graph, folder / "graph")
        for name in _SYSTEMS:
            write_ranks(made.ranks[name], folder / f"{name}.parquet")
            write_ranks(made.complete[name], folder / "complete" / f"{name}.parquet")
            write_run(made.lists[name], folder / f"{name}.run")
        write_ranks(made.seeds, folder / "seeds.parquet")
        write_judgements(made.truth, folder / "complete.qrels")
        facts = joined_splits(made.world, list(made.world.splits))
        table = labelled(facts, made.world.entities, made.world.relations)
        write_columns(table.sort(table.columns), folder / _WORLD)
        (folder / "README.txt").write_text(_README.format(depth=_DEPTH, world=_WORLD), encoding="utf-8")
        content = {
            "made_by": _MADE_BY,
            "versions": versions(),
            "seed": number,
            "entities": made.graph.num_entities,
            "relations": made.graph.num_relations,
            **{name: len(facts) for name, facts in made.world.splits.items()},
            "queries": made.truth["query"].n_unique(),
            "test_answers": len(made.ranks["a"]),
            "true_answers": len(made.truth),
            "sha256": checksums(folder),
        }
        write_metadata(folder, content)
    return content


def _require_own(folder: Path) -> None:
    """Raises ValueError if a folder, which an example may replace, holds a file that no example wrote."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    own = {METADATA_FILE, *read_metadata(folder)["sha256"]}
    files = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    others = sorted({path.relative_to(folder).as_posix() for path in files} - own)
    if others:
        more = f" and {len(others) - 1:,} more" if others[1:] else ""
        raise ValueError(
            f"{folder}: holds {others[0]}{more}, which {_MADE_BY} did not write; it is not replaced. "
            "Write into another folder, or move these files away."
        )


def judge_by_truth(folder: StrPath, sheet: StrPath) -> int:
    """Fills in the labels of an annotation sheet by the truth of an example, as an annotator would.

    Args:
        folder: of an example.
        sheet: that `owkg pool`, `owkg audit` or `owkg accept` wrote for the graph of this example.

    Returns:
        How many answers of the sheet are true.

    Raises:
        ValueError: if `folder` holds no example, or the sheet is malformed or asks about other entities.
        OSError: if a file cannot be opened or written.
    """
    world = checks.path("folder", folder) / _WORLD
    if not world.is_file():
        raise ArgumentError("folder", f"must be one that owkg example wrote, but there is no {world}.")
    return fill_in(sheet, qrels_from_graph(read_facts(world), "facts"))


def fill_in(sheet: StrPath, truth: pl.DataFrame) -> int:
    """Fills in the labels of an annotation sheet: 1 for answers that judgements call relevant, otherwise 0.

    Args:
        sheet: to fill in; labels that it has are replaced, a column source is left out.
        truth: judgements with every relevant answer to every query of the sheet.

    Returns:
        How many answers are relevant.

    Raises:
        ValueError: naming file and line, if the sheet is malformed or has a query that `truth` lacks.
        OSError: if the sheet cannot be opened or written.
    """
    path = checks.path("sheet", sheet)
    rows, place = sheet_rows(path)
    unknown = ~rows["question_id"].is_in(truth["query"].unique().implode())
    if (first := first_row(unknown)) is not None:
        query = rows["question_id"][first]
        raise ValueError(f"{place(first)}: the query {query!r} has no true answer in the example.")
    right = truth.filter(pl.col("relevance") > 0).select("query", "answer", right=pl.lit("1"))
    found = rows.join(
        right, left_on=["question_id", "answer_id"], right_on=["query", "answer"], how="left",
        maintain_order="left",
    )  # fmt: skip
    filled = rows.with_columns(label=found["right"].fill_null("0")).drop(SOURCE)
    write_cells(filled, path, SHEET[:4])
    return int((filled["label"] == "1").sum())

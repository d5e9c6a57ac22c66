"""Berrendorf et al. (2020), section 5: the effect of a smaller test alignment on each metric.

GCN-Align is trained with growing numbers of pairs of zh_en of DBP15k, on several random splits, and each
model is ranked on shrinking parts of its test pairs (Figure 3). MR and Hits@k improve with every pair that
leaves the test set, though the model stays the same; AMRI does not. The script also measures random
embeddings without a graph, the degrees of matched entities (Figure 4), and the correlation between an
entity's degree and the length of its untrained embedding. Without DBP15k, it uses two views of a generated
world.

    python -m simulations.berrendorf2020 alignment --out out
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from scipy.stats import spearmanr

import owkg
from family_tree import closed_graph, ontology, sample_people
from owkg import align
from owkg.align.gcn import NORMALISATIONS, adjacency
from owkg.files.parquet import read_parquet
from owkg.files.storage import writable_folder, written_aside
from owkg.kg import KnowledgeGraph
from owkg.plots.figure import COLOURS, figure
from owkg.terminal.progress import progress
from simulations.script import Out, Quick, Seed, data_folder, save_figure, save_table

METRICS = ("mr", "hits@1", "hits@10", "amri", "amrr")
TRAINED, RAW = "gcn-align", "raw"


@dataclass(frozen=True)
class Study:
    """Settings of training and testing.

    Attributes:
        train_pairs: numbers of training pairs; 0 convolves random embeddings.
        test_pairs: numbers of test pairs; a model is tested on every number that its split has left.
        splits: number of random splits.
        dim, steps: dimension and steps of the training.
    """

    train_pairs: tuple[int, ...] = (0, 1500, 3000, 4500, 7500)
    test_pairs: tuple[int, ...] = (500, 1000, 2000, 4000, 7500, 10500)
    splits: int = 5
    dim: int = 200
    steps: int = 100


QUICK = Study(train_pairs=(0, 300), test_pairs=(50, 100, 200, 400), splits=2, dim=64, steps=30)


def two_views(seed: int) -> align.Alignment:
    """A closed world of families seen twice, under different names, each time without three of ten facts."""
    graph = closed_graph(sample_people(num_trees=10, max_tree_size=80, seed=seed), ontology("published"))
    facts, random = graph.splits["train"], np.random.default_rng(seed)
    views: list[KnowledgeGraph] = []
    for view in "ab":
        kept = facts[random.random(len(facts)) < 0.7]
        names = tuple(f"{view}:{name}" for name in graph.entities)
        views.append(KnowledgeGraph(names, graph.relations, {"train": kept}))
    pairs = np.stack([np.arange(graph.num_entities, dtype=np.int32)] * 2, axis=1)
    left, right = views
    return align.Alignment(left, right, pairs[:0], pairs)


def one_split(data: align.Alignment, study: Study, split: int, train_pairs: int, model: str) -> pl.DataFrame:
    """Metrics of one model on each number of test pairs of a split."""
    pairs = len(data.train) + len(data.test)
    own = align.split_pairs(data, train_pairs / pairs, split)
    config = align.Config(dim=study.dim, steps=study.steps, seed=split)
    left, right = (align.train_gcn if model == TRAINED else align.initial_embeddings)(own, config)
    rows = []
    for count in (n for n in study.test_pairs if n <= len(own.test)):
        # The last pairs, so that all models of this split are tested on the same pairs, whatever they train
        # on.
        part = own._replace(test=own.test[-count:])
        values = owkg.evaluate(align.rank_embeddings(part, left, right), METRICS, ci=None)
        rows += [
            {"model": model, "train_pairs": train_pairs, "test_pairs": count, "split": split} | row
            for row in values.select("metric", "value").to_dicts()
        ]
    return pl.DataFrame(rows)


def run(data: align.Alignment, study: Study, folder: Path) -> pl.DataFrame:
    """Metrics of all models; each is kept in `folder`, from which the same call resumes."""
    said = json.dumps(asdict(study) | {"left": data.left.num_entities, "right": data.right.num_entities})
    asked = [(TRAINED, n) for n in study.train_pairs] + [(RAW, 0)]
    jobs = [(split, n, model) for split in range(study.splits) for model, n in asked]
    tables = []
    with progress("Alignment", "models") as update:
        for done, (split, train_pairs, model) in enumerate(jobs, start=1):
            path = folder / f"{model}_{train_pairs}_{split}.parquet"
            if path.is_file():
                if pl.read_parquet_metadata(path).get("study") != said:
                    raise ValueError(
                        f"{path}: belongs to another study; choose another folder for the results."
                    )
                tables.append(read_parquet(path))
            else:
                tables.append(one_split(data, study, split, train_pairs, model))
                with written_aside(path) as aside:
                    tables[-1].write_parquet(aside, metadata={"study": said})
            update(done, len(jobs))
    return pl.concat(tables)


def summary(runs: pl.DataFrame) -> pl.DataFrame:
    """Mean and standard deviation over the splits."""
    keys = ["model", "train_pairs", "metric", "test_pairs"]
    value = pl.col("value")
    return (
        runs.group_by(keys, maintain_order=True)
        .agg(mean=value.mean(), deviation=value.std(ddof=1))
        .sort("model", "train_pairs", "metric", "test_pairs")
    )


def effect(table: pl.DataFrame) -> pl.DataFrame:
    """Each metric on a model's smallest and largest test; the change in deviations between splits."""
    keys = ["model", "train_pairs", "metric"]
    few, most = pl.col("test_pairs").arg_min(), pl.col("test_pairs").arg_max()
    mean, deviation = pl.col("mean"), pl.col("deviation")
    ends = table.group_by(keys, maintain_order=True).agg(
        few=pl.col("test_pairs").min(),
        most=pl.col("test_pairs").max(),
        of_few=mean.get(few),
        of_most=mean.get(most),
        deviation=pl.max_horizontal(deviation.get(few), deviation.get(most)),
    )
    change = (pl.col("of_few") - pl.col("of_most")) / pl.col("deviation")
    return ends.with_columns(change_in_deviations=change)


def degrees(graph: KnowledgeGraph) -> np.ndarray:
    """Number of triples in which each entity appears."""
    return np.bincount(graph.splits["train"][:, [0, 2]].ravel(), minlength=graph.num_entities)


def correlations(data: align.Alignment, dim: int, seed: int) -> pl.DataFrame:
    """Spearman correlations: length of untrained embeddings with degree; degrees of matched entities."""
    random = np.random.default_rng(seed)
    degree = np.concatenate([degrees(data.left), degrees(data.right)])
    table = random.standard_normal((len(degree), dim)) / np.sqrt(dim)
    embeddings = {"without messages": table}
    for how in NORMALISATIONS:
        matrix = adjacency(data, how)
        embeddings[f"two convolutions, {how}"] = matrix @ np.maximum(matrix @ table, 0)
    found = {
        f"length and degree, {name}": (np.linalg.norm(e, axis=1), degree) for name, e in embeddings.items()
    }
    pairs = np.concatenate([data.train, data.test])
    found["degrees of matched entities"] = (degrees(data.left)[pairs[:, 0]], degrees(data.right)[pairs[:, 1]])
    rows = [(name, *map(float, spearmanr(*both))) for name, both in found.items()]
    return pl.DataFrame(rows, schema=["of", "spearman", "p_value"], orient="row")


def draw(table: pl.DataFrame, data: align.Alignment, out: Path) -> None:
    """Plots metrics against the number of test pairs, and degrees of matched entities."""
    kinds = table.select("model", "train_pairs").unique(maintain_order=True).rows()
    shown = ("mr", "hits@1", "hits@10", "amri")
    with figure(1, len(shown), (11, 2.9), sharex=True) as (fig, axes):
        for axis, metric in zip(axes, shown, strict=True):
            for i, (model, train_pairs) in enumerate(kinds):
                own = table.filter(model=model, train_pairs=train_pairs, metric=metric)
                x, mean, deviation = (own[c].to_numpy() for c in ("test_pairs", "mean", "deviation"))
                label = "no graph" if model == RAW else f"{train_pairs:,}"
                axis.plot(x, mean, "o-", ms=3, color=COLOURS[i % len(COLOURS)], label=label)
                axis.fill_between(
                    x, mean - deviation, mean + deviation, alpha=0.2, color=COLOURS[i % len(COLOURS)]
                )
            axis.set(
                xscale="log", xlabel="test pairs", title=metric, yscale="log" if metric == "mr" else "linear"
            )
        axes[-1].legend(title="training pairs", fontsize=7, loc="center right")
        save_figure(fig, out / "alignment_test_size")
    pairs = np.concatenate([data.train, data.test])
    with figure(1, 1, (3.4, 3.2)) as (fig, axis):
        axis.plot(degrees(data.left)[pairs[:, 0]], degrees(data.right)[pairs[:, 1]], ".", ms=2, alpha=0.3)
        axis.set(
            xscale="log", yscale="log", xlabel="degree in the left graph", ylabel="degree in the right graph"
        )
        save_figure(fig, out / "alignment_degrees")


def main(
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of two graphs and their pairs, as in DBP15k.",
            show_default="dbp15k/zh_en under OWKG_DATA; if it is not set, a generated world",
        ),
    ] = None,
    out: Out = Path("out"),
    quick: Quick = False,
    splits: Annotated[
        int | None, typer.Option(min=2, help="Number of random splits.", show_default="5; 2 quick")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Metrics of entity alignment against the number of test pairs (Figures 3 and 4, correlations).

    If the command is interrupted, run it again and it resumes where it stopped.
    """
    writable_folder(out)
    folder = data if data is not None else None if quick else data_folder("dbp15k", "zh_en")
    given: dict[str, Any] = {} if splits is None else {"splits": splits}
    if folder is None:
        pairs, study = two_views(seed), Study(**asdict(QUICK) | given)
        print("a generated world of families, seen twice")
    else:
        pairs, study = align.read_alignment(folder), Study(**(asdict(QUICK) if quick else {}) | given)
    there, most = len(pairs.train) + len(pairs.test), max(study.train_pairs) + min(study.test_pairs)
    if most > there:
        what = folder or "the generated world"
        raise ValueError(f"{what}: must hold at least {most:,} pairs, got {there:,}.")
    runs = run(pairs, study, writable_folder(out / "alignment_runs"))
    table = summary(runs)
    changes, tests = effect(table), correlations(pairs, study.dim, seed)
    save_table(table, out / "alignment_test_size.csv")
    save_table(changes, out / "alignment_effect.csv")
    save_table(tests, out / "alignment_correlations.csv")
    draw(table, pairs, out)
    with pl.Config(
        tbl_rows=-1,
        tbl_hide_dataframe_shape=True,
        float_precision=4,
        tbl_width_chars=110,
        tbl_cols=-1,
        fmt_str_lengths=60,
    ):
        print(changes, tests, sep="\n")

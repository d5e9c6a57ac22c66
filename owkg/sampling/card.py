"""Benchmark card of an open world, in numbers for programs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl

from owkg.kg import CATEGORIES, entity_popularity, relation_categories, relation_popularity
from owkg.openworld import Independent, NodeBased, PopularityBased, RelationBased
from owkg.sampling.layouts import splits
from owkg.sampling.queries import PARTS, SampledQueries
from owkg.sampling.sample import OpenWorld, SamplingDesign, alpha, alpha_of
from owkg.sampling.survival import FactModel

MISSING_MODELS: dict[str, type[FactModel]] = {
    "independent": Independent,
    "node": NodeBased,
    "relation": RelationBased,
    "popularity": PopularityBased,
}

# The default filter of `owkg rank` is train, valid and the split itself. `owkg compare --qrels` needs the
# score to order answers of equal rank.
_COMMAND = "owkg rank run --kg . --split test_{name} --queries queries.tsv --score --out {name}.parquet"


def describe(world: OpenWorld) -> dict[str, Any]:
    """Contents of the card of one world, as plain numbers, ready for JSON.

    Returns:
        - `parameters`: arguments of `sample`, with the missing-fact model by name with its parameter.
        - `counts`: `facts`, `entities`, `relations` of the closed world. `untrained`: number of `entities`
          and `relations` without a training fact.
        - `splits`: number of facts by set; sets without facts have no file.
        - `density`: `expected`, `realised`. `alpha`: `expected`, `deviation`, `realised`, `z`.
        - `queries`: `eligible`, `drawn`, `tail`, `head`; and for the answers of a query in `full`, `sparse`
          and `train`: `mean`, `min`, `quartile_1`, `median`, `quartile_3`, `max`.
        - `relation_categories`: numbers of `relations` and `facts` of the training set by category; "" is
          none.
        - `relations`: for each relation its `category`, facts by part, `alpha` and `z` (None without
          full-test facts).
        - `commands`: commands that evaluate a model on the `sparse` and the `full` test, in the world's
          folder.
        - `notes`: notes on labels that some tool cannot read.
    """
    train = world.train
    categories = relation_categories(train, len(world.relations))
    popularity = relation_popularity(train, len(world.relations))
    return {
        "parameters": sampling_parameters(world.design),
        "counts": {
            "facts": len(world.facts),
            "entities": len(world.entities),
            "relations": len(world.relations),
        },
        "untrained": {
            "entities": _zeros(entity_popularity(train, len(world.entities))),
            "relations": _zeros(popularity),
        },
        "splits": {name: len(facts) for name, facts in splits(world).items()},
        "density": {"expected": world.design.density, "realised": 1 - len(world.missing) / len(world.facts)},
        "alpha": alpha(world)._asdict(),
        "queries": _queries(world.queries, world.num_eligible),
        "relation_categories": {
            name: {
                "relations": int(np.count_nonzero(categories == name)),
                "facts": int(popularity[categories == name].sum()),
            }
            for name in (*CATEGORIES, "")
        },
        "relations": _relations(world, categories),
        "commands": {name: _COMMAND.format(name=name) for name in ("sparse", "full")},
        "notes": _label_notes(world),
    }


def sampling_parameters(design: SamplingDesign) -> dict[str, Any]:
    """Arguments of `sample` as plain values."""
    names = {model: name for name, model in MISSING_MODELS.items()}
    missing = {"model": names[type(design.missing)]} | asdict(design.missing)
    return design._asdict() | {"missing": missing}


def shared_queries(worlds: Sequence[OpenWorld]) -> int:
    """Number of queries that were drawn in every one of `worlds`."""
    drawn = [set(zip(*(q.tolist() for q in world.queries[:3]), strict=True)) for world in worlds]
    return len(set.intersection(*drawn))


def _label_notes(world: OpenWorld) -> list[str]:
    """Notes on labels for users of some tools, one sentence each."""
    labels = pl.concat([pl.Series(world.entities), pl.Series(world.relations)])
    notes = {
        r"\s": "labels hold white space: trec_eval cannot read them in qrels, owkg can",
        '^"': "labels begin with a quotation mark, which PyKEEN's reader takes as its own",
    }
    counts = {what: int(labels.str.contains(pattern).sum()) for pattern, what in notes.items()}
    return [f"{count:,} {what}." for what, count in counts.items() if count]


def _zeros(counts: np.ndarray) -> int:
    """Number of zeros."""
    return int(np.count_nonzero(counts == 0))


def _queries(queries: SampledQueries, eligible: int) -> dict[str, Any]:
    """Numbers of queries, and distributions of the numbers of their answers."""
    sides = {"tail": queries.asks_tail, "head": ~queries.asks_tail}
    counts = {"eligible": eligible, "drawn": len(queries.entity)}
    counts |= {side: int(np.count_nonzero(mask)) for side, mask in sides.items()}
    return counts | {name: _spread(getattr(queries, name)) for name in ("full", "sparse", "train")}


def _spread(counts: np.ndarray) -> dict[str, float]:
    """Mean, quartiles and extremes."""
    names = ("min", "quartile_1", "median", "quartile_3", "max")
    quantiles = np.quantile(counts, [0, 0.25, 0.5, 0.75, 1]).tolist()
    return {"mean": float(counts.mean())} | dict(zip(names, quantiles, strict=True))


def _relations(world: OpenWorld, categories: np.ndarray) -> dict[str, dict[str, Any]]:
    """Category, facts by part, and alpha of each relation."""
    cell = world.facts[:, 1].astype(np.int64) * len(PARTS) + world.part
    shape = (len(world.relations), len(PARTS))
    counts = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    rows = {}
    for name, category, parts in zip(world.relations, categories.tolist(), counts.tolist(), strict=True):
        row = {"category": category} | dict(zip(PARTS, parts, strict=True))
        full = row["test_sparse"] + row["missing"]
        found = alpha_of(row["test_sparse"], full, world.design) if full else None
        rows[name] = row | {"alpha": found and found.realised, "z": found and found.z}
    return rows

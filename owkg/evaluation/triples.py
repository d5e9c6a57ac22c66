"""Scores of triples under a model, also for the labelled triples of a graph."""

import jax
import numpy as np
import polars as pl
from jaxtyping import Array, Float64, Int32
from numpy.typing import ArrayLike

from owkg.classification.negatives import NEGATIVES, drawn_negatives
from owkg.errors import ArgumentError, naming
from owkg.keys import settled
from owkg.kg import KnowledgeGraph, joined_splits, relation_categories
from owkg.kg.triples import labelled, triples_checked
from owkg.models import Trained, score
from owkg.models.kinds import unscored

# Largest number of triples to score at a time, and largest number of numbers in their queries.
_BLOCK, _NUMBERS = 2**14, 2**26


@settled()
def score_triples(trained: Trained, triples: ArrayLike) -> Float64[np.ndarray, "triples"]:
    """Scores of triples, int [triples, 3], from the query for their tails, one block at a time.

    Raises:
        ValueError: if an id is out of range.
    """
    triples = triples_checked(triples, trained.num_entities, trained.num_relations)
    trained = trained.encoded()
    # A row of a query may have as many numbers as there are entities.
    row = jax.eval_shape(
        lambda own: own.queries(np.zeros(1, np.int32), np.zeros(1, np.int32), "tail"), trained
    )
    size = max(1, min(_BLOCK, _NUMBERS // row.shape[-1]))
    blocks = [triples[at : at + size] for at in range(0, len(triples), size)]
    found = [np.asarray(_block(trained, _padded(part, size)))[: len(part)] for part in blocks]
    return np.concatenate([np.empty(0), *found]).astype(np.float64)


@jax.jit
def _block(trained: Trained, triples: Array) -> Array:
    return score(trained, *triples.T)


def _padded(triples: Int32[np.ndarray, "n 3"], most: int) -> Int32[np.ndarray, "block 3"]:
    """Triples padded to a power of two, at most `most`, so that few shapes are compiled."""
    size = min(most, 1 << (len(triples) - 1).bit_length())
    return np.concatenate([triples, np.zeros((size - len(triples), 3), np.int32)])


def scored_triples(
    trained: Trained,
    graph: KnowledgeGraph,
    *,
    split: str = "test",
    fit: str = "valid",
    negatives: str | None = None,
    seed: int = 0,
    name: str | None = None,
) -> pl.DataFrame:
    """Scored triples of two splits with their labels, as the input of `owkg.classify`.

    The triples of `split` and `fit` are positive. The splits `{split}_negatives` (and `{fit}_negatives`), if
    the graph has them as CoDEx does, give the negative triples, and the splits ending in `_unknown` give the
    unknown ones. A triple listed twice in such a split counts once.

    Args:
        trained: model with its parameters.
        graph: graph with the splits.
        split: split to measure. Default "test".
        fit: split for fitting the thresholds. Default "valid".
        negatives: source of negative triples. "uniform" or "frequency": drawn as in
            `owkg.classification.drawn_negatives`. None (default): the negatives of the graph, or "uniform" if
            it has none.
        seed: seed of drawn negatives.
        name: value of the column model. None: no such column.

    Returns:
        Columns split, head, relation, tail, label, score and category (of the relation).

    Raises:
        ValueError: if a split has no triples, a triple is both positive and negative, or a score is not
            finite; the message names the argument, and the triple where one is at fault.
    """
    if negatives is not None and negatives not in NEGATIVES:
        raise ArgumentError("negatives", f"must be one of {', '.join(NEGATIVES)}, got {negatives!r}.")
    if split == fit:
        raise ArgumentError("fit", f"must be another split than is measured, got {fit!r} twice.")
    categories = np.asarray(relation_categories(graph.splits["train"], graph.num_relations))
    parts, drawn = [], []
    for number, (name_of_part, part) in enumerate((("fit", fit), ("split", split))):
        with naming({"split": f"`{name_of_part}`"}):
            own = {"positive": joined_splits(graph, [part])}
        if not len(own["positive"]):
            raise ArgumentError(name_of_part, f"must have triples to classify, got {part!r}, which has none.")
        for label, ending in (("negative", "_negatives"), ("unknown", "_unknown")):
            if f"{part}{ending}" in graph.splits and not (negatives and label == "negative"):
                own[label] = graph.splits[f"{part}{ending}"]
        if "negative" not in own:
            key = np.random.SeedSequence([seed, number]).generate_state(1)[0]
            how = negatives or "uniform"
            own["negative"] = drawn_negatives(graph, part, how, seed=int(key), avoid=drawn or None)
            drawn.extend(own["negative"].tolist())
        every = np.concatenate(list(own.values()))
        label = np.repeat(list(own), list(map(len, own.values())))
        table = labelled(every, graph.entities, graph.relations).with_columns(
            pl.Series("label", label, dtype=pl.String),
            pl.Series("score", score_triples(trained, every)),
            pl.Series("category", categories[every[:, 1]], dtype=pl.String),
        )
        table = table.unique(["head", "relation", "tail", "label"], keep="first", maintain_order=True)
        twice = table.filter(pl.struct("head", "relation", "tail").is_duplicated())
        if twice.height:
            triple = " ".join(twice.select("head", "relation", "tail").row(0))
            labels = " and ".join(twice["label"].unique(maintain_order=True))
            raise ArgumentError(
                "graph", f"must give each triple of {part} one label, got {triple!r} as {labels}."
            )
        parts.append(table.select(pl.lit(part).alias("split"), pl.all()))
    found = pl.concat(parts)
    bad = ~found["score"].is_finite()
    if bad.any():
        triple = " ".join(found.filter(bad).select("head", "relation", "tail").row(0))
        raise unscored(trained.model, repr(triple))
    return found if name is None else found.select(pl.lit(name).alias("model"), pl.all())

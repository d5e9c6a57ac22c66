"""Adapter of owkg itself."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from owkg import ir
from owkg.conformance.runner import Vector
from owkg.files.storage import __version__
from owkg.keys import require_device
from owkg.metrics.front import evaluate
from owkg.ranks import ranks_from_scores, realistic

_MEASURES = {
    "AP": ir.average_precision,
    "nDCG": ir.ndcg,
    "P": ir.precision,
    "R": ir.recall,
    "Success": ir.success,
    "RR": ir.reciprocal_rank,
    "Bpref": ir.bpref,
    "Rprec": ir.r_precision,
}


class Owkg:
    """Adapter of owkg: `ranks_from_scores`, `evaluate` and the measures of `owkg.ir`."""

    name = "owkg"
    version = __version__

    def __init__(self) -> None:
        import jax  # noqa: F401

        require_device()  # fails here, because an error on every vector would look like wrong numbers

    def supports(self, vector: Vector) -> bool:
        """Whether owkg supports the vector; it supports all vectors."""
        return True

    def run(self, vector: Vector) -> Mapping[str, float | None]:
        """owkg's numbers by the vector's names."""
        return {"ranks": _ranks, "metrics": _metrics, "ir": _measures}[vector.kind](vector)


def _ranks(vector: Vector) -> Mapping[str, float | None]:
    queries = vector.input["queries"]
    dtype = "float32" if vector.input["dtype"] == "float32" else "float64"
    scores = np.array([[float(value) for value in one["scores"]] for one in queries], dtype)
    left_out, ranked = np.zeros((2, *scores.shape), bool)
    for i, query in enumerate(queries):
        for name in vector.protocol["filter"]:
            left_out[i, query["known"].get(name, [])] = True
        ranked[i, query.get("candidates", slice(None))] = True
    answers = [one["answer"] for one in queries]
    found = ranks_from_scores(scores, answers, known=left_out, candidates=None if ranked.all() else ranked)
    columns = found._asdict() | {"realistic": realistic(found.optimistic, found.pessimistic)}
    several = len(queries) > 1
    return {
        f"{name}[{i}]" if several else name: float(column[i])
        for name, column in columns.items()
        for i in range(len(queries))
    }


def _metrics(vector: Vector) -> Mapping[str, float | None]:
    given = vector.input
    low = given["optimistic"]
    number = len(low)
    sides, queries = given.get("side", ["tail"] * number), given.get("query", range(number))
    names = [(f"query {query}", f"answer {i}") for i, query in enumerate(queries)]
    pairs = [pair if side == "tail" else pair[::-1] for pair, side in zip(names, sides, strict=True)]
    columns = {
        "head": [head for head, _ in pairs],
        "relation": ["r"] * number,
        "tail": [tail for _, tail in pairs],
        "side": sides,
        "optimistic": low,
        "pessimistic": given.get("pessimistic", low),
        "candidates": given["candidates"],
        "filtered": [True] * number,
    }
    protocol = vector.protocol
    found = evaluate(
        pl.DataFrame(columns), list(vector.expected), side=protocol["side"], ties=protocol["ties"], ci=None
    )
    return dict(zip(found["metric"], found["value"], strict=True))


def _measures(vector: Vector) -> Mapping[str, float | None]:
    run, qrels = (
        _frame(vector.input[name], column) for name, column in (("run", "score"), ("qrels", "relevance"))
    )
    found: dict[str, float | None] = {}
    for _ in range(vector.protocol["evaluations"]):
        judged = ir.judge(run, qrels)
        for name in vector.expected:
            base, _, k = name.partition("@")
            found[name] = float(np.mean(_MEASURES[base](judged, *([int(k)] if k else []))))
    return found


def _frame(of: Mapping[str, Mapping[str, float]], column: str) -> pl.DataFrame:
    rows = [(query, answer, value) for query, one in of.items() for answer, value in one.items()]
    return pl.DataFrame(rows, schema=["query", "answer", column], orient="row")

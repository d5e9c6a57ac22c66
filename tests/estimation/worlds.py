"""A small world of queries with known and missing answers, and systems of growing strength."""

import numpy as np
import polars as pl

from owkg.estimation.population import Population, population
from owkg.kg.names import query_text


def world(seed=0, *, queries=60, systems=3, depth=5, answers=40, known=0.5):
    """(run, known judgements, all judgements)."""
    rng = np.random.default_rng(seed)
    count = np.minimum(1 + rng.geometric(0.3, queries), 8)
    lists, before, truth = [], [], []
    for q in range(queries):
        true = rng.choice(answers, count[q], replace=False)
        is_known = rng.random(count[q]) < known
        is_known[0] = True
        quality = np.zeros(answers)
        quality[true] = 1
        shared = rng.normal(0, 0.6, answers)
        for s in range(systems):
            score = quality * (1 + 0.5 * s) + shared + rng.normal(0, 0.6, answers)
            best = np.argsort(-score)[: depth + q % 2]
            lists += [(f"m{s}", q, int(a), float(score[a])) for a in best]
        truth += [(q, int(a), 1) for a in true]
        before += [(q, int(a), 1) for a, keep in zip(true, is_known, strict=True) if keep]

    def asked(rows, names):
        frame = pl.DataFrame(rows, names, orient="row")
        frame = frame.with_columns(
            side=pl.lit("tail"),
            entity=pl.format("e{}", "q"),
            relation=pl.format("r{}", pl.col("q") % 3),
            answer=pl.format("a{}", "answer"),
        )
        return frame.with_columns(query_text()).drop("q")

    run = asked(lists, ["model", "q", "answer", "score"])
    names = ["q", "answer", "relevance"]
    return run, asked(before, names), asked(truth, names)


def populated(seed=0, **options) -> tuple[Population, np.ndarray]:
    """The population, and the true label of each candidate."""
    depth = options.get("depth", 5)
    run, before, truth = world(seed, **options)
    people = population(run, depth, before)
    return people, np.where(people.label == 1, 1, np.maximum(people.labelled(truth), 0)).astype(float)

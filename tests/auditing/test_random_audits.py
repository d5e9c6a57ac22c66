"""Audits of random small worlds, none of which dies: `python tests/auditing/test_random_audits.py 1000`."""

import json
import sys
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest

from owkg.auditing import audit
from owkg.errors import ArgumentError

METRICS = ("mrr", "hits@1", "hits@10", "p-mrr@1/2", "p-mrr@0.3")


def random_audit(seed: int) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """The systems and the options of an audit: few queries, some of many answers, ranks of every kind."""
    rng = np.random.default_rng(seed)
    queries, entities = int(rng.integers(2, 40)), int(rng.choice([3, 12, 60, 1000, 14541]))
    sizes = np.minimum(np.ceil(rng.pareto(rng.choice([0.5, 1.3, 3.0]), queries)), 100).astype(int)
    sizes = np.clip(sizes, 1, entities - 1)
    query = np.repeat(np.arange(queries), sizes)
    candidates = entities - sizes[query] + 1
    base = pl.DataFrame(
        {"head": [f"h{q}" for q in query], "relation": "r", "tail": [f"t{i}" for i in range(len(query))]}
    ).with_columns(side=pl.lit("tail"), candidates=pl.Series(candidates))
    depth = rng.uniform(0, np.log(entities) + 1)
    first, systems = np.zeros(0), {}
    for i in range(int(rng.integers(2, 4))):
        kind = rng.choice(["spread", "near", "constant", "worst", "tied"])
        rank = np.exp(depth * rng.random(len(query)))
        if kind == "near" and i:
            rank = first + rng.integers(-1, 2, len(query))
        elif kind == "constant":
            rank = np.full(len(query), rng.integers(1, entities))
        elif kind == "worst":
            rank = candidates
        low = np.clip(rank, 1, candidates).astype(int)
        high = np.minimum(low + rng.integers(0, 5, len(query)), candidates) if kind == "tied" else low
        first = low if i == 0 else first
        systems[f"s{i}"] = base.with_columns(optimistic=pl.Series(low), pessimistic=pl.Series(high))
    low, high = np.sort(rng.uniform(0, 0.9, 2))
    averages = [["answers"], ["queries"], ["answers", "queries"]]
    options = {
        "metrics": list(rng.choice(METRICS, int(rng.integers(1, 3)), replace=False)),
        "average": averages[rng.integers(3)],
        "sparsity": [None, float(low), (float(low), float(high))][rng.integers(3)],
        "correlation": [None, 0.1, (-0.2, 0.2)][rng.integers(3)],
        "ties": str(rng.choice(["optimistic", "realistic", "pessimistic", "exact"])),
        "test": str(rng.choice(["t", "t", "wilcoxon", "randomisation"])),
        "seed": seed,
    }
    return systems, options


def outcome(seed: int) -> str:
    """What becomes of a random audit: "audit", or "refused" where no system may have the stated sparsity."""
    systems, options = random_audit(seed)
    try:
        found = audit(systems, **options)
    except ArgumentError as error:
        if error.name != "sparsity" or "impossible for every system" not in error.message:
            raise
        return "refused"
    json.dumps(found.payload(), allow_nan=False)
    assert not any("could not be computed" in note for note in found.assumptions["notes"])
    return "audit"


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 6])
def test_no_audit_of_a_small_world_dies(seed):
    assert outcome(seed) in ("audit", "refused")


def test_what_nobody_asked_for_takes_no_audit_down(monkeypatch):
    """Rows of required queries are null, and a note says so."""

    def fails(*_, **__):
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr("owkg.auditing.focus.best_weights_of", fails)
    rows = {"relation": "r", "tail": "t", "side": "tail", "candidates": 99}
    a, b = (
        pl.DataFrame([rows | {"head": f"h{i}", "optimistic": r, "pessimistic": r} for i in range(9)])
        for r in (1, 4)
    )
    found = audit({"a": a, "b": b}, "mrr", test="t")
    assert found.weights["metric"].to_list()[-1] == "best weight"
    assert found.weights["required_queries"].is_null().all()
    assert found.weights["least_focus"].drop_nulls().len() == 8
    assert any("could not be computed for a and b (singular)" in note for note in found.assumptions["notes"])


if __name__ == "__main__":
    seen: Counter[str] = Counter()
    for number in range(int(sys.argv[1])):
        try:
            seen[outcome(number)] += 1
        except Exception as error:
            seen["died"] += 1
            sys.stdout.write(f"{number} {error!r}\n")
    sys.stdout.write(f"{dict(seen)}\n")

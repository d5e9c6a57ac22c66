"""Both sides, added from heads and from tails, against all of their tasks at once."""

from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from owkg.metrics import metric, report
from owkg.metrics.gathered import Together

NAMES = ("mrr", "hits@10", "amri", "gmr", "zgmr", "median_rank", "std", "probe@0.5,0.5", "wgmr")


def table(*, ties=0.2, weights=None, seeds=1, tails=True, seed=0):
    rng = np.random.default_rng(seed)
    triples = pl.DataFrame(
        {
            "head": rng.integers(0, 30, 200),
            "relation": rng.integers(0, 3, 200),
            "tail": rng.integers(0, 40, 200),
        }
    ).unique(maintain_order=True)
    sides = ("head", "tail") if tails else ("head",)
    rows = pl.concat(
        [triples.with_columns(side=pl.lit(side), seed=s) for side in sides for s in range(seeds)]
    )
    low = rng.integers(1, 40, len(rows))
    high = low + np.where(rng.random(len(rows)) < ties, rng.integers(1, 9, len(rows)), 0)
    # As after filtering, all answers of a query have equally many candidates.
    known = pl.when(side="head").then("tail").otherwise("head")
    rows = rows.with_columns(
        candidates=60 - known % 5, optimistic=low, pessimistic=high, popularity=1 + pl.col("tail") % 7
    )
    if weights is not None:
        rows = rows.with_columns(weight=pl.Series(weights(rng, rows)))
    return rows if seeds > 1 else rows.drop("seed")


CASES = {
    "ties": {},
    "no ties": {"ties": 0},
    "weights": {"weights": lambda rng, rows: rng.integers(0, 3, len(rows)).astype(float)},
    "heads without weight": {"weights": lambda _, rows: (rows["side"] == "tail").cast(pl.Float64)},
    "extreme weights": {"weights": lambda _, rows: 1e-150 ** (rows["side"] == "tail").cast(pl.Float64)},
    "seeds": {"seeds": 3},
    "heads alone": {"tails": False},
}


@pytest.mark.parametrize("case", CASES)
def test_both_sides_are_as_if_computed_at_once(case):
    rows = table(**CASES[case])
    asked = {
        "metrics": [metric(name) for name in (*NAMES, "macro-mrr", "macro-map@20")],
        "by": "relation",
        "ties": ("optimistic", "realistic", "pessimistic", "exact"),
    }
    alone = report(rows, sides=["both"], **asked)
    with patch.object(Together, "moments", autospec=True, side_effect=Together.moments) as used:
        found = report(rows, **asked).filter(pl.col("side") == "both")
    assert_frame_equal(found, alone, rel_tol=1e-9, abs_tol=1e-12)
    assert bool(used.call_count) == (case not in ("heads without weight", "extreme weights"))

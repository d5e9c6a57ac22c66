"""Public functions answer what they cannot take with the name of the argument."""

import polars as pl
import pytest

from owkg import ir, metrics, ranks
from owkg.rank_weights import MRR, tie_expectation

ROW = {"head": "a", "relation": "r", "tail": "b", "side": "tail", "optimistic": 1, "pessimistic": 1}
TABLE = pl.DataFrame([ROW | {"candidates": 9}])
MEASURES = ("average_precision", "ndcg", "r_precision", "bpref", "inf_ap", "reciprocal_rank")


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: metrics.micro("mrr"), "metric"),
        (lambda: metrics.macro("mrr"), "metric"),
        (lambda: metrics.stratified("mrr", 1), "metric"),
        (lambda: metrics.adjusted(None, "z"), "metric"),
        (lambda: metrics.adjusted(metrics.metric("mrr"), "y"), "adjustment"),
        (lambda: metrics.pykeen_key("mrr"), "metric"),
        (lambda: metrics.part_of(None, [0]), "tasks"),
        (lambda: tie_expectation(MRR, [0], [1]), "optimistic"),
        (lambda: tie_expectation(MRR, [2], [1]), "pessimistic"),
        (lambda: tie_expectation(MRR, [1, 1], [1]), "pessimistic"),
        (lambda: ranks.reweighted(TABLE, [1]), "shares"),
        (lambda: ranks.reweighted(TABLE, {"r": "x"}), "shares"),
        (lambda: ranks.reweighted(None), "table"),
        (lambda: metrics.report(None), "table"),
        (lambda: metrics.report(TABLE, ["mrr"]), "metrics"),
        (lambda: ir.precision(None, 3), "judged"),
        (lambda: ir.rbp(None, 0.8), "judged"),
        (lambda: ir.rbp_residual(None, 0.8), "judged"),
        *((lambda name=name: getattr(ir, name)(None), "judged") for name in MEASURES),
    ],
)
def test_the_argument_is_named(call, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        call()

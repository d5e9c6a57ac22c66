"""Only lists with ties are computed again under another tie rule, and nothing differs from one rule alone."""

import numpy as np
import pytest

from owkg.metrics import Ties, evaluate, metric, tasks
from owkg.metrics.blocks import whole_block

NAMES = ("mrr", "hits@10", "amri", "zmrr", "probe@0.5", "macro-mrr", "macro-map@20", "macro-ndcg@5")


def some_tasks(share, seed=0):
    """Answers of 300 queries, a share of which is tied, with weights."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(300), rng.integers(1, 6, 300))
    low = rng.integers(1, 80, len(query))
    high = low + np.where(rng.random(len(query)) < share, rng.integers(1, 15, len(query)), 0)
    return tasks(low, high, candidates=100, query=query)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.15, 0.9])
def test_each_rule_has_the_values_that_it_has_alone(share):
    of = some_tasks(share)
    chosen = [metric(name) for name in NAMES]
    together = evaluate(of, chosen)
    assert len(together[Ties.EXACT]) == len(NAMES)
    for rule in Ties:
        alone = evaluate(of, chosen, ties=rule)[rule]
        for name in alone:
            np.testing.assert_allclose(
                together[rule][name], alone[name], rtol=1e-12, err_msg=f"{rule} {name}"
            )
    differ = together[Ties.OPTIMISTIC]["mrr"].value > together[Ties.PESSIMISTIC]["mrr"].value
    assert differ == (share > 0)


def test_lists_with_ties_are_few_or_not_worth_it():
    block = whole_block(some_tasks(0.02))
    low, high = block.tasks.optimistic, block.tasks.pessimistic
    own = block.tied
    assert own is not None
    assert set(own.lists) == set(block.list_of[low < high])
    np.testing.assert_array_equal(own.block.tasks.pessimistic, high[own.tasks])
    assert 0 < len(own.lists) < len(block.first) / 4
    assert whole_block(some_tasks(0.9)).tied is None

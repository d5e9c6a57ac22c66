"""Blocks of queries: every triple once, and never a query by itself."""

import numpy as np
import pytest

from owkg.evaluation.blocks import query_blocks


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_every_triple_once_and_no_query_alone(most):
    triples = np.array([[0, 0, 1], [0, 0, 2], [3, 1, 1], [4, 0, 4], [3, 1, 0]], np.int32)
    shares = query_blocks(triples, "tail", None, most=most)
    assert sorted(np.concatenate([rows for rows, _ in shares]).tolist()) == [0, 1, 2, 3, 4]
    for rows, block in shares:
        # The product of a single row is rounded otherwise than the same row among others.
        assert max(2, min(most, 3)) >= len(block.entity) >= 2
        asked = np.stack([block.entity[block.row], block.relation[block.row], block.answer], axis=1)
        np.testing.assert_array_equal(asked[: len(rows)], triples[rows])

"""The free proxy in a world where few candidates are known answers."""

import numpy as np
import polars as pl
import pytest

from owkg.estimation import free_proxy, population
from owkg.estimation.measures import measure, values
from owkg.judge import qrels_from_graph
from simulations.example_campaign import Config, campaign


def test_the_free_proxy_is_calibrated_where_few_answers_are_known():
    """Steps of Newton's method that overshoot would say .6 of candidates of which .07 are true."""
    made = campaign(Config(), 0)
    people = population(pl.concat(made.runs.values()), 10, qrels_from_graph(made.graph, "test"))
    true, unknown = np.maximum(people.labelled(made.truth), 0).astype(float), people.unknown
    proxy = free_proxy(people)
    assert proxy[unknown].mean() == pytest.approx(true[unknown].mean(), rel=0.5)
    parts = np.array_split(np.argsort(proxy[unknown]), 5)
    assert [true[unknown][part].mean() > 0.15 for part in parts] == [False] * 4 + [True]
    found, expected = (values(measure("rr", 10), people, one) for one in (true, proxy))
    assert min(np.corrcoef(found[s], expected[s])[0, 1] for s in range(3)) > 0.6

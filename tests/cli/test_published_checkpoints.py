"""The published checkpoints of the ranking-metrics work (Hoyt et al. 2022), evaluated by the command line."""

import json

import numpy as np
import pytest

from owkg.cli.main import main
from owkg.ranks import read_ranks

AMRR = "adjusted_inverse_harmonic_mean_rank"
SIDES, TIES = ("head", "tail", "both"), ("optimistic", "pessimistic", "realistic")


@pytest.fixture(scope="module", params=["nations", "kinships"])
def found(request, owkg_data, tmp_path_factory):
    """(rank table, metrics by PyKEEN's keys, published metrics) of a TransE checkpoint."""
    name = request.param
    folder = tmp_path_factory.mktemp(name)
    checkpoint, ranks = owkg_data / "checkpoints" / f"{name}_transe", folder / "ranks.parquet"
    file = ["--embeddings", f"{checkpoint}.npz", "--model", "transe", "--norm", "1"]
    assert main(["rank", *file, "--kg", str(owkg_data / name), "--out", str(ranks)]) == 0
    published = json.loads((owkg_data / "checkpoints" / f"{name}_transe.expected.json").read_text())
    names = [part for key in published["both"]["realistic"] for part in ("--metric", key)]
    with pytest.MonkeyPatch.context() as patch:
        printed = []

        def heard(*words, file=None, **_):
            if file is None:  # not a note on standard error
                printed.append(" ".join(map(str, words)))

        patch.setattr("builtins.print", heard)
        assert main(["metrics", str(ranks), "--format", "json", "--json-keys", "pykeen", *names]) == 0
    own = json.loads("\n".join(printed))
    return read_ranks(ranks).frame, own, published


def test_every_published_metric_is_reproduced(found):
    _, own, published = found
    assert set(published) == set(SIDES)
    for side, by_ties in published.items():
        assert set(by_ties) == set(TIES)
        for ties, by_key in by_ties.items():
            assert {"adjusted_hits_at_10", "arithmetic_mean_rank", "hits_at_1"} < set(by_key)
            for key, value in by_key.items():
                if key != AMRR:  # below
                    where = f"{side}.{ties}.{key}"
                    np.testing.assert_allclose(own[where], value, rtol=1e-5, err_msg=where)


def test_the_amrr_follows_the_published_chance(found):
    table, own, published = found
    for side, by_ties in published.items():
        rows = table if side == "both" else table.filter(side=side)
        mean = rows["candidates"].mean()
        continuous = np.log(mean) / (mean - 1)
        for ties, by_key in by_ties.items():
            mrr = own[f"{side}.{ties}.inverse_harmonic_mean_rank"]
            np.testing.assert_allclose((mrr - continuous) / (1 - continuous), by_key[AMRR], rtol=1e-5)
            # Ours has the sum of 1 / r of each task, which is more.
            assert own[f"{side}.{ties}.{AMRR}"] < by_key[AMRR]

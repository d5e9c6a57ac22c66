"""Wrong orders on one half of the queries, looked for on the other: by loops, and by known truth."""

import jax
import numpy as np
import pytest

from simulations.open_world.curves import Curves
from simulations.yang2022.halves import confirmed

KEY = jax.random.key(0)


def curves_of(full, sparse, config):
    labels = tuple(f"c{i}" for i in range(max(config) + 1))
    values = {"full": full[None].astype(np.float32), "sparse": sparse[None].astype(np.float32)}
    steps = np.arange(len(config), dtype=np.int64)
    return Curves(0.75, ("mrr",), labels, labels, np.array(config, np.int32), steps, values)


def test_against_loops_over_pairs():
    rng = np.random.default_rng(0)
    config = [0, 0, 0, 1, 1, 2]
    full, sparse = (0.02 * np.arange(6)[:, None] + 0.1 * rng.normal(size=(6, 30)) for _ in range(2))
    sparse = sparse[::-1]
    found = confirmed(KEY, curves_of(full, sparse, config), "mrr", "sparse", z=1.0, splits=3)
    full, sparse = full.astype(np.float32), sparse.astype(np.float32)
    seen = wrong = sure = pairs = 0
    for split in jax.random.split(KEY, 3):
        order = np.asarray(jax.random.permutation(split, 30))
        for one, other in ((order[:15], order[15:]), (order[15:], order[:15])):
            for i in range(6):
                for j in range(i + 1, 6):
                    if config[i] == config[j]:
                        continue
                    pairs += 1
                    here = [v[i, one].astype(float) - v[j, one] for v in (full, sparse)]
                    there = [v[i, other].astype(float) - v[j, other] for v in (full, sparse)]
                    if here[0].mean() * here[1].mean() >= 0:
                        continue
                    wrong += 1
                    if any(abs(d.mean()) <= d.std(ddof=1) / 15**0.5 for d in here):
                        continue
                    sure += 1
                    seen += all(a.mean() * b.mean() > 0 for a, b in zip(here, there, strict=True))
    assert 0 < seen < sure < wrong < pairs
    assert found.share == pytest.approx(seen / sure)
    assert found.chance == pytest.approx(wrong / pairs)
    assert found.found == pytest.approx(sure / 6)


def test_what_is_there_is_confirmed_and_chance_is_not():
    rng = np.random.default_rng(1)
    config = np.repeat([0, 1], 40)
    better = 0.3 + 0.2 * (config == 1)[:, None]
    noise = [0.05 * rng.normal(size=(80, 100)) for _ in range(2)]
    there = confirmed(KEY, curves_of(better + noise[0], 1 - better + noise[1], config), "mrr", "sparse")
    assert (there.share, there.chance, there.found) == (1.0, 1.0, 1600.0)
    # All are equal: what contradicts beyond error does so by chance, and one in four does again.
    equal = confirmed(KEY, curves_of(0.5 + noise[0], 0.5 + noise[1], config), "mrr", "sparse", z=1.0)
    assert equal.found > 20
    assert equal.share < 0.4
    same = confirmed(KEY, curves_of(better + noise[0], better + noise[0], config), "mrr", "sparse")
    assert np.isnan(same.share)
    assert (same.chance, same.found) == (0.0, 0.0)


def test_too_few_queries():
    with pytest.raises(ValueError, match="at least four queries to halve, got 3"):
        confirmed(KEY, curves_of(np.ones((2, 3)), np.ones((2, 3)), [0, 1]), "mrr", "sparse")

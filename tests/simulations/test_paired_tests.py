"""Sizes of paired tests: systems equal by micro MRR that are not exchangeable."""

import pytest

from simulations.paired_tests import SETTINGS, Config, advantage, mean_reciprocal_rank, of_setting


def test_both_systems_are_equal_by_the_metric():
    for setting in SETTINGS:
        ahead = advantage(setting)
        assert ahead[0] == setting.better >= 0
        answers = range(1, setting.most + 1)
        share = [n**-1.3 - (n + 1) ** -1.3 if n < setting.most else n**-1.3 for n in answers]
        gaps = {x: mean_reciprocal_rank(-x / 2) - mean_reciprocal_rank(x / 2) for x in set(ahead.tolist())}
        gap = sum(p * n * gaps[x] for p, n, x in zip(share, answers, ahead.tolist(), strict=True))
        assert gap == pytest.approx(0, abs=1e-8)


def test_p_values_of_equal_systems_that_are_not_exchangeable():
    """Four standard errors of a share of 0.05 among 300 samples are 0.05; the plain tests reject 0.15."""
    row = of_setting(SETTINGS[1], 60, Config(samples=300, draws=199))
    assert row["t"] < 0.1 < row["plain t"]
    assert row["randomisation"] < 0.1 < row["plain flips"]
    assert row["wilcoxon"] > 0.5
    assert row["coverage"] > 0.9
    # The t test rejects where the interval excludes the true difference, 0.
    assert row["t"] == pytest.approx(1 - row["coverage"])

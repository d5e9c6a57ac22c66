"""The difference estimator against prediction-powered inference: ppi-python 0.2.3, numbers and code."""

import numpy as np
import pytest

from owkg.estimation.candidates import Drawn, of_candidates
from owkg.estimation.regression import Sample, fitted

Y = np.array([0.2, 1.0, 0.5, 0.333, 0.0, 1.0, 0.25, 0.5])
GUESSED = np.array([0.3, 0.8, 0.45, 0.2, 0.1, 0.9, 0.4, 0.35])
OTHERS = np.array([0.6, 0.15, 0.7, 0.25, 0.05, 0.95, 0.5, 0.1, 0.85, 0.3, 0.4, 0.75])
# ppi_mean_ci(Y, GUESSED, OTHERS, lam=lam, alpha=0.05) of ppi-python 0.2.3.
PUBLISHED = {
    0.0: (0.2373092009409238, 0.7084407990590762),
    0.5: (0.31380138460623686, 0.6611152820604298),
    1.0: (0.3155790150287118, 0.6885043183046214),
}
OPTIMAL = (0.3215307683043236, 0.6597856889671004)  # at the lambda that it chooses
Z = 1.959963984540054


def difference(y, x, others, slope):
    """Mean and variance of y + slope (X - x), and the variance of the mean X."""
    sample = Sample(np.arange(len(y)), np.zeros(len(y), int), np.array([len(y) + len(others)]))
    values = (y - slope * x + slope * others.mean())[None]
    found = fitted(values, np.zeros((0, 1, len(y))), sample, np.zeros(1))
    # ppi-python divides squares by n and has no correction for a finite population.
    rest = 1 - len(y) / sample.sizes[0]
    variance = found.variance[0] / rest * (len(y) - 1) / len(y)
    return found.mean[0], variance, slope**2 * others.var() / len(others)


def interval(y, x, others, slope):
    mean, variance, of_others = difference(y, x, others, slope)
    half = Z * np.sqrt(variance + of_others)
    return mean - half, mean + half


def chosen(y, x, others):
    """The lambda of PPI++ (Angelopoulos, Duchi and Zrnic 2023, section 6.1), as ppi-python divides."""
    everything = np.concatenate([x, others])
    ratio = 1 + len(y) / len(others)
    return float(np.clip(np.cov(y, x, ddof=0)[0, 1] / ratio / everything.var(ddof=1), 0, 1))


@pytest.mark.parametrize("slope", PUBLISHED)
def test_at_a_slope_it_is_the_published_estimate(slope):
    assert interval(Y, GUESSED, OTHERS, slope) == pytest.approx(PUBLISHED[slope], abs=1e-12)


def test_at_the_chosen_slope_it_is_the_published_estimate():
    slope = chosen(Y, GUESSED, OTHERS)
    assert interval(Y, GUESSED, OTHERS, slope) == pytest.approx(OPTIMAL, abs=1e-12)


def test_leaving_queries_out_is_a_mean_of_estimates_from_one_label_each():
    """Estimate i has label i and the slope of the other labels, of the whole population as predictions."""
    population = np.concatenate([GUESSED, OTHERS])
    n = len(Y)
    sample = Sample(np.arange(n), np.zeros(n, int), np.array([len(population)]))
    found = fitted(Y[None], (GUESSED - population.mean())[None, None], sample, np.zeros(1))
    rest = [np.delete(np.arange(n), i) for i in range(n)]
    slopes = [np.polyfit(GUESSED[some], Y[some], 1)[0] for some in rest]
    each = [difference(Y[[i, i]], GUESSED[[i, i]], population, slopes[i])[0] for i in range(n)]
    assert found.mean[0] == pytest.approx(np.mean(each), abs=1e-12)


def test_sums_of_candidates_of_one_stratum_are_the_estimate_at_their_slope():
    population = np.concatenate([GUESSED, OTHERS])
    size, n = len(population), len(Y)
    drawn = Drawn(np.arange(size), np.zeros(size, int), np.arange(n))
    labels = (Y > 0.4).astype(float)
    found = of_candidates(np.full((1, size), 1 / size), labels, population[None], drawn)
    slope = np.polyfit(GUESSED, labels, 1)[0]
    assert found.value[0] == pytest.approx(difference(labels, GUESSED, population, slope)[0], abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_ppi_python_gives_the_same(seed):
    peer = pytest.importorskip("ppi_py", reason="ppi-python is not installed: pip install ppi-python")
    rng = np.random.default_rng(seed)
    x, others = rng.random(30), rng.random(170)
    y = np.clip(x + rng.normal(0, 0.3, 30), 0, 1)
    slope = chosen(y, x, others)
    low, high = peer.ppi_mean_ci(y, x, others, alpha=0.05)
    assert interval(y, x, others, slope) == pytest.approx((low[0], high[0]), abs=1e-12)
    assert difference(y, x, others, 1.0)[0] == pytest.approx(
        float(peer.ppi_mean_pointestimate(y, x, others, lam=1)[0]), abs=1e-12
    )

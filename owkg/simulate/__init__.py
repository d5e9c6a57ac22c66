"""Monte Carlo under missing facts: an independent check of every closed form, and thinning of real ranks."""

from owkg.simulate.estimate import MonteCarloEstimate, estimate, estimate_pair
from owkg.simulate.full_test import FullTest, full_test, thin
from owkg.simulate.missingness import Correlated, ThinningModel
from owkg.simulate.resample import Inversions, Resampled, inversions, quantiles, resample

__all__ = [
    "Correlated",
    "FullTest",
    "Inversions",
    "MonteCarloEstimate",
    "Resampled",
    "ThinningModel",
    "estimate",
    "estimate_pair",
    "full_test",
    "inversions",
    "quantiles",
    "resample",
    "thin",
]

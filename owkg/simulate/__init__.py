"""Monte Carlo under missing facts: an independent witness for every closed form, and real ranks thinned."""

from owkg.simulate.estimate import Estimate, estimate, estimate_pair
from owkg.simulate.full_test import FullTest, full_test
from owkg.simulate.misordered import Misordered, misordered
from owkg.simulate.redraw import Redrawn, quantiles, redraw
from owkg.simulate.thinning import thin
from owkg.simulate.vanishing import Correlated, ThinningModel

__all__ = [
    "Correlated",
    "Estimate",
    "FullTest",
    "Misordered",
    "Redrawn",
    "ThinningModel",
    "estimate",
    "estimate_pair",
    "full_test",
    "misordered",
    "quantiles",
    "redraw",
    "thin",
]

"""Monte Carlo under missing facts: an independent witness for every closed form."""

from owkg.simulate.estimate import Estimate, estimate, estimate_pair

__all__ = ["Estimate", "estimate", "estimate_pair"]

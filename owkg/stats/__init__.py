"""Statistics independent of graphs: intervals, paired tests, corrections, rank correlation, power."""

from owkg.stats.bootstrap import resampled_sums
from owkg.stats.corrections import benjamini_hochberg, holm
from owkg.stats.divergence import divergence
from owkg.stats.interval import IntervalMethod, intervals
from owkg.stats.power import detectable_difference, queries_needed, t_test_power
from owkg.stats.rank_correlation import kendall_tau, spearman, symmetric_tau_ap, tau_ap
from owkg.stats.sign_flips import randomisation
from owkg.stats.sure_tau import sure_tau

__all__ = [
    "IntervalMethod",
    "benjamini_hochberg",
    "detectable_difference",
    "divergence",
    "holm",
    "intervals",
    "kendall_tau",
    "queries_needed",
    "randomisation",
    "resampled_sums",
    "spearman",
    "sure_tau",
    "symmetric_tau_ap",
    "t_test_power",
    "tau_ap",
]

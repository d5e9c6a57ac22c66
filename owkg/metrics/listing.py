"""Every metric in a table for people: name, formula, range, direction, chance level, source."""

from typing import NamedTuple

from owkg.metrics.list_gains import GAINS


class Entry(NamedTuple):
    """A line of `owkg metrics --list`.

    Attributes:
        name: with letters for parameters.
        example: a name that `owkg.metrics.metric` takes.
        formula: r ranks, N candidates, n tasks, w weights, Q queries, M plain metric, E and V its mean and
            variance under random ranking, B its best value.
        range: of the values.
        better: larger or smaller; - for none.
        chance: how its chance level is had.
        source: where it is from.
    """

    name: str
    example: str
    formula: str
    range: str
    better: str
    chance: str
    source: str


_HOYT = "Hoyt et al. 2022"
_BERRENDORF = "Berrendorf et al. 2020"
_ZHOU = "Zhou et al. 2022"
_YANG = "Yang et al. 2022"

LISTING = (
    Entry("mrr", "mrr", "sum w/r / sum w", "(0, 1]", "larger", "closed", _HOYT),
    Entry("hits@K", "hits@10", "share of r <= K", "[0, 1]", "larger", "closed", _HOYT),
    Entry("mr", "mr", "sum w r / sum w", "[1, N]", "smaller", "closed", _HOYT),
    Entry("imr", "imr", "1 / mr", "(0, 1]", "larger", "quadrature", _HOYT),
    Entry("hmr", "hmr", "1 / mrr", "[1, N]", "smaller", "quadrature", _HOYT),
    Entry("gmr", "gmr", "exp(sum w ln r / sum w)", "[1, N]", "smaller", "closed", _HOYT),
    Entry("igmr", "igmr", "1 / gmr", "(0, 1]", "larger", "closed", _HOYT),
    Entry(
        "median_rank", "median_rank", "median of r", "[1, N]", "smaller", "normal distribution, drawn", _HOYT
    ),
    Entry(
        "inverse_median_rank",
        "inverse_median_rank",
        "1 / median_rank",
        "(0, 1]",
        "larger",
        "normal distribution, drawn",
        _HOYT,
    ),
    Entry(
        "power-mean@P",
        "power-mean@2",
        "(sum w r^P / sum w)^(1/P)",
        "[1, N]",
        "smaller",
        "quadrature P<0, drawn P>0",
        f"{_HOYT}, Table 3",
    ),
    Entry("p-mrr@P", "p-mrr@1/2", "sum w r^-P / sum w", "(0, 1]", "larger", "closed", _YANG),
    Entry("log-mrr", "log-mrr", "mean of 1/log2(1+r)", "(0, 1]", "larger", "closed", _YANG),
    Entry(
        "wgmr",
        "wgmr",
        "gmr with weights w (N-1)",
        "[1, N]",
        "smaller",
        "closed",
        "Tiwari et al. 2021",
    ),
    Entry(
        "strat-M@B",
        "strat-mrr@0.5",
        "M with weights w (popularity+1)^-B",
        "as M",
        "as M",
        "as M",
        "Mohamed et al. 2020",
    ),
    Entry(
        "probe@A,B[,C]",
        "probe@0.5,0.5",
        "mean of (r^-A - N^-A)/(1 - N^-A), weights w (popularity+1)^-B (relation popularity+1)^-C",
        "[0, 1]",
        "larger",
        "closed",
        "PROBE 2026",
    ),
    Entry("aM", "amr", "M / E, of M better small", "[0, inf)", "smaller", "as M", _BERRENDORF),
    Entry("aM", "amrr", "(M - E)/(B - E), of M better large", "(-inf, 1]", "larger", "as M", _HOYT),
    Entry(
        "aMi",
        "amri",
        "(M - E)/(B - E), of M better small",
        "(-inf, 1]",
        "larger",
        "as M",
        f"{_BERRENDORF}, {_HOYT}",
    ),
    Entry("zM", "zmrr", "+-(M - E)/sqrt(V)", "(-inf, inf)", "larger", "as M", _HOYT),
    Entry(
        "macro-M",
        "macro-mrr",
        "mean over queries of h(best answer's r)",
        "as M",
        "as M",
        "closed",
        _ZHOU,
    ),
    Entry(
        "macro-map@K",
        "macro-map@20",
        "mean over queries of sum of i/p_i over p_i <= K, over the answers; p_i position of the i-th",
        "[0, 1]",
        "larger",
        "closed",
        f"{_ZHOU}, trec_eval",
    ),
    *(
        Entry(
            f"macro-{gain.name}@K",
            f"macro-{gain.name}@20",
            gain.formula,
            "[0, 1]",
            "larger",
            "closed",
            gain.source,
        )
        for gain in GAINS.values()
    ),
    Entry("count", "count", "n", "[1, inf)", "-", "-", "PyKEEN"),
    Entry("standard_deviation", "standard_deviation", "of r", "[0, inf)", "-", "-", "PyKEEN"),
    Entry("variance", "variance", "of r", "[0, inf)", "-", "-", "PyKEEN"),
    Entry(
        "median_absolute_deviation",
        "median_absolute_deviation",
        "1.4826 median of |r - median|",
        "[0, inf)",
        "-",
        "-",
        "PyKEEN",
    ),
)
"""All metrics; M stands for any plain one."""

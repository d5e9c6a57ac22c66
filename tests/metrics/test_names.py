"""Names of metrics: aliases, PyKEEN's synonyms, round trips, near names, bad parameters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.metrics import Adjustment, adjusted, measures, metric, pykeen_key
from owkg.metrics.measures import Dispersion, Spread
from owkg.rank_weights import GMR, MRR, hits_at

# PyKEEN 1.11.1: key, and the synonyms that its resolver knows, with 10 for k.
PYKEEN = {
    "adjusted_arithmetic_mean_rank": ["aamr", "adjusted_mean_rank", "amr"],
    "adjusted_arithmetic_mean_rank_index": ["aamri", "adjusted_mean_rank_index", "amri"],
    "adjusted_geometric_mean_rank_index": ["agmri", "gmri"],
    "adjusted_hits_at_10": ["ah@10", "ah_at_10", "ahits@10", "ahits_at_10", "ah10"],
    "adjusted_inverse_harmonic_mean_rank": ["adjusted_mean_reciprocal_rank", "adjusted_mrr", "aihmr", "amrr"],
    "arithmetic_mean_rank": ["mean_rank", "mr"],
    "count": ["rank_count"],
    "geometric_mean_rank": ["gmr"],
    "harmonic_mean_rank": ["hmr"],
    "hits_at_10": ["h@10", "h_at_10", "hits@10"],
    "inverse_arithmetic_mean_rank": ["iamr"],
    "inverse_geometric_mean_rank": ["igmr"],
    "inverse_harmonic_mean_rank": ["mean_reciprocal_rank", "mrr"],
    "inverse_median_rank": [],
    "median_absolute_deviation": ["mad", "rank_mad"],
    "median_rank": [],
    "standard_deviation": ["rank_std", "std"],
    "variance": ["rank_var", "var"],
    "z_arithmetic_mean_rank": ["zamr", "zmr"],
    "z_geometric_mean_rank": ["zgmr"],
    "z_hits_at_10": ["zhits@10", "zhits_at_10"],
    "z_inverse_harmonic_mean_rank": ["zihmr", "zmrr"],
}
# Class names of PyKEEN, as its resolver takes them too, but for the capitals.
TITLES = ["Mean Rank", "mean reciprocal rank", "Adjusted Hits at 10", "Z-Geometric-Mean-Rank", "Median Rank"]

NAMES = [
    *("mr", "mrr", "imr", "hmr", "gmr", "igmr", "log-mrr", "median_rank", "inverse_median_rank", "wgmr"),
    *("hits@1", "hits@10", "p-mrr@0.5", "p-mrr@1/3", "power-mean@2", "power-mean@-1/3"),
    *("amr", "amri", "amrr", "agmr", "agmri", "ahits@10", "awgmri", "ahmr", "ahmri", "aimr", "aigmr"),
    *("amedian_rank", "amedian_ranki", "ainverse_median_rank", "zmedian_rank", "zinverse_median_rank"),
    *("zmr", "zmrr", "zgmr", "zhits@1", "zhits@10", "zimr", "zhmr", "zigmr", "zwgmr"),
    *("probe@0.5,0.5", "probe@0,0", "probe@inf,0", "probe@2,0.25,0.75", "aprobe@1,0", "zprobe@1,0.5"),
    *("strat-mrr@0.5", "strat-hits@10@1/3", "strat-gmr@1", "astrat-mrr@1", "zstrat-mrr@0.5", "strat-mr@0"),
    *("macro-mrr", "macro-hits@10", "macro-map@20", "macro-ndcg@20", "amacro-mrr", "zmacro-ndcg@5"),
    *("macro-mr", "amacro-mri", "apower-mean@2i", "zpower-mean@2", "zlog-mrr", "ap-mrr@0.5"),
    *("count", "standard_deviation", "variance", "median_absolute_deviation", "max_rank", "min_rank"),
    *("cdf-zmrr", "cdf-zmr", "cdf-zhits@10", "cdf-zmedian_rank"),
]


@pytest.mark.parametrize("name", NAMES)
def test_the_name_leads_back(name):
    found = metric(name)
    assert found.name == name
    assert str(found) == name
    assert metric(found.name) == found
    assert metric(name.upper().replace("-", "_").replace("P_MRR@_", "P_MRR@-")) == found or "@-" in name


def test_different_names_are_different_metrics():
    found = [metric(name) for name in NAMES if name != "strat-mr@0"]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(("key", "synonyms"), PYKEEN.items())
def test_pykeen_names(key, synonyms):
    found = metric(key)
    assert pykeen_key(found) == key
    for name in synonyms:
        assert metric(name) == found, name


@pytest.mark.parametrize("title", TITLES)
def test_titles(title):
    assert pykeen_key(metric(title)) is not None


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("inverse mean rank", "imr"),
        ("inverse-arithmetic-mean-rank", "imr"),
        ("ihmr", "mrr"),
        ("median", "median_rank"),
        ("weighted_geometric_mean_rank", "wgmr"),
        ("adjusted-geometric-mean-rank", "agmr"),
        ("stratified-mrr@0.5", "strat-mrr@0.5"),
        ("macro-ap@20", "macro-map@20"),
        ("PROBE@ 1/2 , 0.5", "probe@0.5,0.5"),
        ("probe@0.5", "probe@0.5,0"),
        ("probe@1,0.5,0", "probe@1,0.5"),
        ("probe-at-1,1", "probe@1,1"),
        ("adjusted-mr-index", "amri"),
        ("z-mrr", "zmrr"),
        ("power-mean@0", "gmr"),
        ("power-mean@inf", "max_rank"),
        ("Power-Mean@-inf", "min_rank"),
        ("p-mrr@1.0", "p-mrr@1"),
    ],
)
def test_aliases(name, meant):
    assert metric(name) == metric(meant)
    assert metric(name).name == meant


def test_names_say_what_is_computed():
    assert metric("strat-gmr@1").weighting.popularity == 1
    assert metric("wgmr").weighting.negatives == 1
    assert metric("wgmr").measure == GMR
    probe = metric("probe@2,0.25,0.75")
    assert probe.measure == measures.Probe(2.0)
    assert probe.weighting == measures.Weighting(popularity=0.25, relation_popularity=0.75)
    assert metric("amr").adjustment is Adjustment.RATIO
    assert metric("amri").adjustment is metric("amrr").adjustment is Adjustment.INDEX
    assert metric("zgmr").adjustment is Adjustment.Z
    assert metric("macro-map@7").measure == measures.AveragePrecision(7)
    assert metric("macro-ndcg@7").measure == measures.DiscountedGain(7)
    assert metric("macro-hits@3").measure == measures.BestAnswer(hits_at(3))
    assert metric("hits@3").measure == hits_at(3)
    assert metric("variance").measure == Dispersion(Spread.VARIANCE)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("mmr", "mrr"),
        ("amrii", "amri"),
        ("zmrrr", "zmrr"),
        ("median-rnak", "median-rank"),
        ("prob@0.5,0.5", "probe@0.5,0.5"),
        ("macro-mpa@20", "macro-map@20"),
        ("strat-mmr@0.5", "strat-mrr@0.5"),
        ("adjusted-mean-rnk", "adjusted-mean-rank"),
        ("hits", "hits@"),
        ("map", "macro-map@10"),
        ("nDCG@5", "macro-ndcg@5"),
        ("P@1", "macro-precision@1"),
        ("hit_rate", "hits@10"),
    ],
)
def test_unknown_names_answer_with_near_ones(name, near):
    with pytest.raises(ValueError, match="did you mean") as error:
        metric(name)
    assert repr(name) in str(error.value)
    assert near in str(error.value).partition("did you mean")[2]


@pytest.mark.parametrize("name", ["", " ", "xyzzy", "@", "42", "z", "a", "macro-", "strat-@1", "ai"])
def test_strange_names_are_refused(name):
    with pytest.raises(ValueError, match="metric") as error:
        metric(name)
    assert repr(name) in str(error.value)


@pytest.mark.parametrize("name", [None, 3, b"mrr", ["mrr"], MRR])
def test_names_that_are_no_text(name):
    with pytest.raises(ValueError, match="must be text"):
        metric(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hits@0", "whole number"),
        ("ahits@0", "whole number"),
        ("zhits@1.5", "whole number"),
        ("macro-map@0", "whole number"),
        ("macro-ndcg@2.5", "whole number"),
        ("macro-hits@0", "whole number"),
        ("probe@-2,0", "at least -1"),
        ("probe@1,-1", "at least 0"),
        ("probe@1,inf", "at least 0"),
        ("probe@nan,0", "not a number"),
        ("probe@1/0,0", "not a number"),
        ("strat-mrr@-1", "at least 0"),
        ("strat-mrr@inf", "at least 0|not a number"),
        ("strat-hits@0@1", "whole number"),
        ("power-mean@nan", "finite|not a number"),
        ("p-mrr@0", "above 0"),
        ("macro-gmr", "mean of a rank weight"),
        ("macro-imr", "mean of a rank weight"),
        ("acount", "cannot be adjusted"),
        ("zvariance", "cannot be adjusted"),
        ("amad", "metric"),
    ],
)
def test_bad_parameters(name, expected):
    with pytest.raises(ValueError, match=expected) as error:
        metric(name)
    assert repr(name) in str(error.value)


_STARTS = st.sampled_from(["", *NAMES, "z", "a", "probe@", "strat-", "macro-", "adjusted "])
_ENDS = st.one_of(st.text(max_size=6), st.text("0123456789eE./+-_@, naifm", max_size=8))


@given(name=st.builds(str.__add__, _STARTS, _ENDS))
def test_any_text_is_a_metric_or_a_value_error(name):
    try:
        found = metric(name)
    except ValueError as error:
        assert repr(name) in str(error)  # noqa: PT017 - either end is fine
    else:
        assert metric(found.name) == found


@given(a=st.floats(-1, 1e6), b=st.floats(0, 1e3), c=st.floats(0, 1e3), e=st.floats(1e-9, 9) | st.just(1.0))
def test_probe_names_keep_their_numbers(a, b, c, e):
    made = measures.probe(a, b, c, e)
    assert metric(made.name) == made


# --- adjusted


@pytest.mark.parametrize(
    ("plain", "adjustment", "name"),
    [
        ("mrr", Adjustment.INDEX, "amrr"),
        ("mr", Adjustment.INDEX, "amri"),
        ("mr", Adjustment.RATIO, "amr"),
        ("mr", Adjustment.Z, "zmr"),
        ("mr", Adjustment.CDF, "cdf-zmr"),
        ("mr", Adjustment.NONE, "mr"),
        ("probe@1,0", Adjustment.INDEX, "aprobe@1,0"),
        ("median_rank", Adjustment.INDEX, "amedian_ranki"),
        ("macro-mr", Adjustment.INDEX, "amacro-mri"),
    ],
)
def test_adjusted(plain, adjustment, name):
    made = adjusted(metric(plain), adjustment)
    assert made == metric(name)
    assert made.name == name


@pytest.mark.parametrize(
    ("plain", "adjustment"),
    [
        ("amri", Adjustment.INDEX),
        ("zmrr", Adjustment.NONE),
        ("count", Adjustment.Z),
        ("cdf-zmrr", Adjustment.CDF),
        ("max_rank", Adjustment.INDEX),
        ("mrr", Adjustment.RATIO),
        ("macro-mrr", Adjustment.RATIO),
        ("inverse_median_rank", Adjustment.RATIO),
    ],
)
def test_what_cannot_be_adjusted(plain, adjustment):
    with pytest.raises(ValueError, match=plain):
        adjusted(metric(plain), adjustment)


@pytest.mark.parametrize(
    "name",
    [
        "wgmr",
        "probe@1,0",
        "strat-mrr@1",
        "macro-mrr",
        "macro-map@3",
        "agmr",
        "aimr",
        "zhmr",
        "zmedian_rank",
        "cdf-zmrr",
        "max_rank",
        "log-mrr",
        "p-mrr@0.5",
        "power-mean@2",
        "ahmri",
    ],
)
def test_what_pykeen_does_not_have(name):
    assert pykeen_key(metric(name)) is None


@pytest.mark.parametrize("k", [1, 3, 5, 10, 100])
def test_hits_of_every_k_have_a_key(k):
    keys = [pykeen_key(metric(f"{start}hits@{k}")) for start in ("", "a", "z")]
    assert keys == [f"hits_at_{k}", f"adjusted_hits_at_{k}", f"z_hits_at_{k}"]

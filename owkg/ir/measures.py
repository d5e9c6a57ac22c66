"""Measures of ranked lists from information retrieval, with one number for each query.

These measures agree with trec_eval: `average_precision` (its map, map_cut), `ndcg` (ndcg, ndcg_cut),
`precision` (P), `recall`, `r_precision` (Rprec), `reciprocal_rank` (recip_rank), `success`, `bpref` and
`inf_ap` (infAP). So do these conventions:

- A query without a relevant answer, or with an empty list, scores 0 (except in `rbp_residual`).
- An unjudged answer counts as not relevant, except that `bpref` leaves it out, and `inf_ap` infers the
  relevance of `POOLED` answers.
- A list shorter than k is treated as if unjudged answers filled it up.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

from owkg import checks
from owkg.errors import ArgumentError
from owkg.ir.judged import POOLED, Judged

# Added to both counts of a proportion of relevant answers, as in trec_eval, to avoid 0/0.
_SMOOTHING = 1e-5
# Cut-off that means "no cut-off", because no list is longer.
_NO_CUT = 2**53


def _ratio(over: np.ndarray, under: np.ndarray) -> Float[np.ndarray, "..."]:
    """over / under, 0 if `under` is 0."""
    return np.divide(over, under, out=np.zeros(np.shape(over)), where=np.asarray(under) > 0)


def _total(
    judged: Judged, values: np.ndarray, row: np.ndarray | slice = slice(None)
) -> Float[np.ndarray, "queries"]:
    """Sum over each query's list, or over some rows of it."""
    return _sums(judged, judged.query[row], values)


def _sums(judged: Judged, query: Int[np.ndarray, "n"], values: np.ndarray) -> Float[np.ndarray, "queries"]:
    """Sum over each query, always as floats (without any values, NumPy's sums are whole numbers)."""
    return np.bincount(query, values, len(judged.retrieved)).astype(float)


def _so_far(judged: Judged, flag: Bool[np.ndarray, "answers"]) -> Int[np.ndarray, "answers"]:
    """Number of flagged answers in the same list, down to and including each answer."""
    counted = np.concatenate([np.zeros(1, np.int64), np.cumsum(flag)])
    first = np.cumsum(judged.retrieved) - judged.retrieved
    return counted[1:] - counted[first][judged.query]


def _relevant_rows(judged: Judged) -> tuple[Int[np.ndarray, "relevant"], Int[np.ndarray, "relevant"]]:
    """(row of each relevant answer in a list, its number among its list's relevant answers: 1, 2, ...)."""
    row = np.flatnonzero(_is_relevant(judged))
    query = judged.query[row]
    return row, np.arange(1, len(row) + 1) - np.searchsorted(query, query)


def _is_relevant(judged: Judged) -> Bool[np.ndarray, "answers"]:
    return judged.relevance >= judged.relevance_level


def _is_nonrelevant(judged: Judged) -> Bool[np.ndarray, "answers"]:
    return (judged.relevance >= 0) & (judged.relevance < judged.relevance_level)


def _hits(judged: Judged, k: int | np.ndarray) -> Float[np.ndarray, "queries"]:
    """Number of relevant answers up to rank k."""
    return _total(judged, _is_relevant(judged) & (judged.rank <= k))


def _checked(judged: object) -> Judged:
    if not isinstance(judged, Judged):
        raise ArgumentError("judged", f"must be a result of owkg.ir.judge, got {type(judged).__name__}.")
    return judged


def _whole(k: object) -> int:
    return checks.whole("k", k, 1)


def _cut(k: object) -> int:
    return _NO_CUT if k is None else _whole(k)


def _share(persistence: object) -> float:
    return checks.real_number("persistence", persistence, 0, 1, closed=False)


def average_precision(judged: Judged, k: int | None = None) -> Float[np.ndarray, "queries"]:
    """AP@k = (1/R) sum over the relevant answers at ranks r <= k of P@r, with R known relevant answers.

    Args:
        judged: judged lists, from `owkg.ir.judge`.
        k: cut-off, a whole number of at least 1. None: the whole list.

    Raises:
        ValueError: if `k` is not a whole number of at least 1.

    Examples:
        >>> import polars as pl
        >>> from owkg.ir import judge
        >>> run = pl.DataFrame(
        ...     {"query": ["q"] * 3, "answer": ["a", "b", "c"], "score": [3, 2, 1]}
        ... )
        >>> qrels = pl.DataFrame(
        ...     {"query": ["q"] * 2, "answer": ["a", "c"], "relevance": [1, 1]}
        ... )
        >>> average_precision(judge(run, qrels)).round(4).tolist()
        [0.8333]
    """
    judged, k = _checked(judged), _cut(k)
    row, number = _relevant_rows(judged)
    rank = judged.rank[row]
    precision = np.where(rank <= k, number / rank, 0.0)
    return _ratio(_total(judged, precision, row), judged.relevant)


def ndcg(judged: Judged, k: int | None = None) -> Float[np.ndarray, "queries"]:
    """nDCG@k: sum of relevance / log2(1 + rank) over ranks up to k, divided by the ideal list's sum.

    The gain is the relevance itself; `relevance_level` has no effect.

    Args:
        judged: judged lists, from `owkg.ir.judge`.
        k: cut-off, a whole number of at least 1. None: the whole list.

    Raises:
        ValueError: if `k` is not a whole number of at least 1.

    References:
        Järvelin and Kekäläinen (TOIS 2002), with trec_eval's discount.
    """
    judged, k = _checked(judged), _cut(k)

    def discounted(relevance: np.ndarray, rank: np.ndarray) -> np.ndarray:
        return np.where(rank <= k, relevance / np.log2(1.0 + rank), 0.0)

    row = np.flatnonzero(judged.relevance > 0)
    best = _sums(judged, judged.ideal_query, discounted(judged.ideal_relevance, judged.ideal_rank))
    return _ratio(_total(judged, discounted(judged.relevance[row], judged.rank[row]), row), best)


def precision(judged: Judged, k: int) -> Float[np.ndarray, "queries"]:
    """P@k: number of relevant answers among the first k, divided by k, even if the list is shorter.

    Args:
        judged: judged lists, from `owkg.ir.judge`.
        k: cut-off, a whole number of at least 1.

    Raises:
        ValueError: if `k` is not a whole number of at least 1.
    """
    judged, k = _checked(judged), _whole(k)
    return _hits(judged, k) / k


def recall(judged: Judged, k: int) -> Float[np.ndarray, "queries"]:
    """Recall@k: number of relevant answers among the first k, divided by all known relevant answers.

    Args:
        judged: judged lists, from `owkg.ir.judge`.
        k: cut-off, a whole number of at least 1.

    Raises:
        ValueError: if `k` is not a whole number of at least 1.
    """
    judged, k = _checked(judged), _whole(k)
    return _ratio(_hits(judged, k), judged.relevant)


def success(judged: Judged, k: int) -> Float[np.ndarray, "queries"]:
    """Success@k: 1 if one of the first k answers is relevant, else 0 (hits@k of the query's best answer).

    Args:
        judged: judged lists, from `owkg.ir.judge`.
        k: cut-off, a whole number of at least 1.

    Raises:
        ValueError: if `k` is not a whole number of at least 1.
    """
    judged, k = _checked(judged), _whole(k)
    return (_hits(judged, k) > 0).astype(float)


def judged_at(judged: Judged, k: int) -> Float[np.ndarray, "queries"]:
    """Judged@k: number of judged answers among the first k, divided by k; `POOLED` answers are not judged.

    Args:
        judged: judged lists, from `owkg.ir.judge`.
        k: cut-off, a whole number of at least 1.

    Raises:
        ValueError: if `k` is not a whole number of at least 1.
    """
    judged, k = _checked(judged), _whole(k)
    return _total(judged, (judged.relevance >= 0) & (judged.rank <= k)) / k


def r_precision(judged: Judged) -> Float[np.ndarray, "queries"]:
    """R-precision: P@R, where R is the number of known relevant answers."""
    judged = _checked(judged)
    return _ratio(_hits(judged, judged.relevant[judged.query]), judged.relevant)


def reciprocal_rank(judged: Judged, k: int | None = None) -> Float[np.ndarray, "queries"]:
    """1/rank of the first relevant answer; 0 if the list, or its first k answers, have none.

    In contrast to the rank metric MRR, each query counts once, whatever its number of answers, and relevant
    answers are not filtered from each other's lists.

    Args:
        judged: judged lists, from `owkg.ir.judge`.
        k: cut-off, a whole number of at least 1. None: the whole list.

    Raises:
        ValueError: if `k` is not a whole number of at least 1.
    """
    judged, k = _checked(judged), _cut(k)
    row, number = _relevant_rows(judged)
    row = row[(number == 1) & (judged.rank[row] <= k)]
    return _total(judged, 1 / judged.rank[row], row)


def rbp(
    judged: Judged, persistence: float, *, largest_relevance: int | None = None
) -> Float[np.ndarray, "queries"]:
    """Rank-biased precision: (1 - p) sum of gain p^(rank - 1).

    Args:
        judged: judged lists, from `owkg.ir.judge`.
        persistence: p, probability of looking at the next answer, in (0, 1).
        largest_relevance: if given, the gain is relevance / largest_relevance. None: the gain is 1 for
            relevant answers and 0 for all other answers.

    Raises:
        ValueError: if `persistence` is not in (0, 1), or `largest_relevance` is not a whole number or is
            below a relevance that occurs.

    References:
        Moffat and Zobel (TOIS 2008).
    """
    judged, p = _checked(judged), _share(persistence)
    gain = _is_relevant(judged).astype(float)
    if largest_relevance is not None:
        known = int(judged.ideal_relevance.max(initial=1))
        largest = checks.whole("largest_relevance", largest_relevance, known)
        gain = np.maximum(judged.relevance, 0) / largest
    return (1 - p) * _total(judged, gain * p ** (judged.rank - 1))


def rbp_residual(judged: Judged, persistence: float) -> Float[np.ndarray, "queries"]:
    """Increase of `rbp` if every unjudged answer, in the list or below it, were relevant.

    It is (1 - p) sum over unjudged answers of p^(rank - 1), plus p^n for the answers below a list of n.

    Args:
        judged: judged lists, from `owkg.ir.judge`.
        persistence: p, in (0, 1).

    Raises:
        ValueError: if `persistence` is not in (0, 1).

    References:
        Moffat and Zobel (TOIS 2008), section 3.3.
    """
    judged, p = _checked(judged), _share(persistence)
    unknown = np.where(judged.relevance < 0, p ** (judged.rank - 1), 0.0)
    return (1 - p) * _total(judged, unknown) + p**judged.retrieved


def bpref(judged: Judged) -> Float[np.ndarray, "queries"]:
    """bpref = (1/R) sum over retrieved relevant answers of 1 - min(n, R) / min(N, R).

    R answers are judged relevant and N judged not relevant; n of these N are ranked above the answer.
    Unjudged answers are ignored.

    References:
        Buckley and Voorhees (SIGIR 2004), as implemented in trec_eval (with N in the denominator).
    """
    judged = _checked(judged)
    relevant = _is_relevant(judged)
    above = np.minimum(_so_far(judged, _is_nonrelevant(judged)), judged.relevant[judged.query])
    most = np.minimum(judged.nonrelevant, judged.relevant)[judged.query]
    return _ratio(_total(judged, np.where(relevant, 1 - _ratio(above, most), 0.0)), judged.relevant)


def inf_ap(judged: Judged) -> Float[np.ndarray, "queries"]:
    """Inferred AP: expected average precision if the judged answers are a random sample of the pool.

    (1/R) sum over retrieved relevant answers of 1/r + (d/r) (a + ε) / (a + n + 2ε), ε = 1e-5, where a
    relevant, n nonrelevant and d pooled answers, judged or not, are above rank r. Answers outside the pool
    are not relevant. If no relevance is `POOLED`, the measure is AP up to ε.

    References:
        Yilmaz and Aslam (CIKM 2006), with trec_eval's smoothing.
    """
    judged = _checked(judged)
    is_relevant = _is_relevant(judged)
    relevant = _so_far(judged, is_relevant) - 1  # above the answer itself
    nonrelevant = _so_far(judged, _is_nonrelevant(judged))
    pooled = _so_far(judged, judged.relevance == POOLED)
    share = (relevant + _SMOOTHING) / (relevant + nonrelevant + 2 * _SMOOTHING)
    expected = (1 + (relevant + nonrelevant + pooled) * share) / judged.rank
    return _ratio(_total(judged, np.where(is_relevant, expected, 0.0)), judged.relevant)

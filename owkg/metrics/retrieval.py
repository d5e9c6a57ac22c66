"""Measures of ranked lists from information retrieval, one number a question.

Those that trec_eval has agree with it: `average_precision` (its map, map_cut), `ndcg` (ndcg, ndcg_cut),
`precision` (P), `recall`, `r_precision` (Rprec), `reciprocal_rank` (recip_rank), `success`, `bpref` and
`inf_ap` (infAP). So do these conventions:

- A question without a relevant answer, or with an empty list, scores 0 (`rbp_residual` aside).
- An answer that is not judged counts as not relevant; `bpref` leaves it out, and `inf_ap` infers the
  relevance of those that are `POOLED`.
- A list shorter than k is taken as if unjudged answers filled it up.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from owkg import checks
from owkg.metrics.judged import POOLED
from owkg.metrics.lists import Lists, by_question, evaluated

# Added to each of the two counts behind a proportion of relevant answers, as in trec_eval: no 0/0.
_SMOOTHING = 1e-5
# Stands for "no cut-off": no list is longer.
_NO_CUT = 2**53


def _ratio(over: Array, under: Array) -> Array:
    """over / under, 0 where `under` is 0."""
    return jnp.where(under > 0, over / jnp.where(under > 0, under, 1), 0.0)


def _average_precision(lists: Lists, k: Array) -> Array:
    hits = lists.so_far(lists.is_relevant)
    precision = jnp.where(lists.is_relevant & (lists.rank <= k), hits / lists.rank, 0.0)
    return _ratio(lists.total(precision), lists.relevant)


def _ndcg(lists: Lists, k: Array) -> Array:
    def discounted(grade: Array, rank: Array) -> Array:
        return jnp.where(rank <= k, jnp.maximum(grade, 0) / jnp.log2(1.0 + rank), 0.0)

    ideal = discounted(lists.ideal_grade, lists.ideal_rank)
    best = by_question(ideal, lists.ideal_question, lists.retrieved.size)
    return _ratio(lists.total(discounted(lists.grade, lists.rank)), best)


def _hits(lists: Lists, k: Array) -> Array:
    return lists.total(lists.is_relevant & (lists.rank <= k))


def _precision(lists: Lists, k: Array) -> Array:
    return _hits(lists, k) / k


def _recall(lists: Lists, k: Array) -> Array:
    return _ratio(_hits(lists, k), lists.relevant)


def _success(lists: Lists, k: Array) -> Array:
    return (_hits(lists, k) > 0).astype(jnp.float64)


def _judged_at(lists: Lists, k: Array) -> Array:
    return lists.total((lists.grade >= 0) & (lists.rank <= k)) / k


def _r_precision(lists: Lists) -> Array:
    return _ratio(_hits(lists, lists.relevant[lists.question]), lists.relevant)


def _reciprocal_rank(lists: Lists, k: Array) -> Array:
    first = lists.is_relevant & (lists.so_far(lists.is_relevant) == 1)
    return lists.total(jnp.where(first & (lists.rank <= k), 1 / lists.rank, 0.0))


def _rbp(lists: Lists, persistence: Array, largest_grade: Array) -> Array:
    binary = lists.is_relevant.astype(jnp.float64)
    gain = jnp.where(largest_grade > 0, jnp.maximum(lists.grade, 0) / jnp.maximum(largest_grade, 1), binary)
    return (1 - persistence) * lists.total(gain * persistence ** (lists.rank - 1))


def _rbp_residual(lists: Lists, persistence: Array) -> Array:
    unknown = jnp.where(lists.grade < 0, persistence ** (lists.rank - 1), 0.0)
    return (1 - persistence) * lists.total(unknown) + persistence**lists.retrieved


def _bpref(lists: Lists) -> Array:
    above = jnp.minimum(lists.so_far(lists.is_nonrelevant), lists.relevant[lists.question])
    most = jnp.minimum(lists.nonrelevant, lists.relevant)[lists.question]
    return _ratio(lists.total(jnp.where(lists.is_relevant, 1 - _ratio(above, most), 0.0)), lists.relevant)


def _inf_ap(lists: Lists) -> Array:
    relevant = lists.so_far(lists.is_relevant) - 1  # above the answer itself
    nonrelevant = lists.so_far(lists.is_nonrelevant)
    pooled = lists.so_far(lists.grade == POOLED)
    share = (relevant + _SMOOTHING) / (relevant + nonrelevant + 2 * _SMOOTHING)
    expected = (1 + (relevant + nonrelevant + pooled) * share) / lists.rank
    return _ratio(lists.total(jnp.where(lists.is_relevant, expected, 0.0)), lists.relevant)


def _whole(k: Any) -> np.int64:
    return np.int64(checks.scalar("k", checks.integer("k", k, 1)))


def _cut(k: Any) -> np.int64:
    return np.int64(_NO_CUT) if k is None else _whole(k)


def _share(persistence: Any) -> np.float64:
    share = checks.real("persistence", persistence, 0, 1, closed=False)
    return np.float64(checks.scalar("persistence", share))


def average_precision(judged: Any, k: Any = None) -> Float[np.ndarray, "questions"]:
    """AP@k = (1/R) sum over the relevant answers at ranks r <= k of P@r; R relevant ones are known.

    Args:
        judged: from `owkg.metrics.judge`.
        k: cut-off, a whole number of at least 1; the whole list when None.

    Raises:
        ValueError: if `k` is no whole number of at least 1.

    Examples:
        >>> import polars as pl
        >>> from owkg.metrics import judge
        >>> run = pl.DataFrame(
        ...     {"question": ["q"] * 3, "answer": ["a", "b", "c"], "score": [3, 2, 1]}
        ... )
        >>> qrels = pl.DataFrame(
        ...     {"question": ["q"] * 2, "answer": ["a", "c"], "grade": [1, 1]}
        ... )
        >>> average_precision(judge(run, qrels)).round(4).tolist()
        [0.8333]
    """
    return evaluated(_average_precision, judged, _cut(k))


def ndcg(judged: Any, k: Any = None) -> Float[np.ndarray, "questions"]:
    """nDCG@k: sum of grade / log2(1 + rank) over ranks up to k, divided by that of the ideal list.

    The gain is the grade itself, and `relevance_level` has no part in it.

    Args:
        judged: from `owkg.metrics.judge`.
        k: cut-off, a whole number of at least 1; the whole list when None.

    Raises:
        ValueError: if `k` is no whole number of at least 1.

    References:
        Järvelin and Kekäläinen (TOIS 2002), with the discount as trec_eval has it.
    """
    return evaluated(_ndcg, judged, _cut(k))


def precision(judged: Any, k: Any) -> Float[np.ndarray, "questions"]:
    """P@k: relevant answers among the first k, divided by k, however short the list.

    Args:
        judged: from `owkg.metrics.judge`.
        k: cut-off, a whole number of at least 1.

    Raises:
        ValueError: if `k` is no whole number of at least 1.
    """
    return evaluated(_precision, judged, _whole(k))


def recall(judged: Any, k: Any) -> Float[np.ndarray, "questions"]:
    """Recall@k: relevant answers among the first k, divided by all that are known.

    Args:
        judged: from `owkg.metrics.judge`.
        k: cut-off, a whole number of at least 1.

    Raises:
        ValueError: if `k` is no whole number of at least 1.
    """
    return evaluated(_recall, judged, _whole(k))


def success(judged: Any, k: Any) -> Float[np.ndarray, "questions"]:
    """Success@k: 1 if one of the first k answers is relevant, else 0 (hits@k of the question's best answer).

    Args:
        judged: from `owkg.metrics.judge`.
        k: cut-off, a whole number of at least 1.

    Raises:
        ValueError: if `k` is no whole number of at least 1.
    """
    return evaluated(_success, judged, _whole(k))


def judged_at(judged: Any, k: Any) -> Float[np.ndarray, "questions"]:
    """Judged@k: judged answers among the first k, divided by k; `POOLED` ones are not judged.

    Args:
        judged: from `owkg.metrics.judge`.
        k: cut-off, a whole number of at least 1.

    Raises:
        ValueError: if `k` is no whole number of at least 1.
    """
    return evaluated(_judged_at, judged, _whole(k))


def r_precision(judged: Any) -> Float[np.ndarray, "questions"]:
    """R-precision: P@R, where R is the number of relevant answers that are known."""
    return evaluated(_r_precision, judged)


def reciprocal_rank(judged: Any, k: Any = None) -> Float[np.ndarray, "questions"]:
    """1/rank of the first relevant answer; 0 if there is none in the list (or its first k).

    Unlike the rank metric MRR, a question counts once, whatever the number of its answers, and the
    relevant answers are not filtered out of each other's way.

    Args:
        judged: from `owkg.metrics.judge`.
        k: cut-off, a whole number of at least 1; the whole list when None.

    Raises:
        ValueError: if `k` is no whole number of at least 1.
    """
    return evaluated(_reciprocal_rank, judged, _cut(k))


def rbp(judged: Any, persistence: Any, *, largest_grade: Any = None) -> Float[np.ndarray, "questions"]:
    """Rank-biased precision: (1 - p) sum of gain p^(rank - 1).

    Args:
        judged: from `owkg.metrics.judge`.
        persistence: p, the probability of looking at the next answer, in (0, 1).
        largest_grade: given, the gain is grade / largest_grade; when None, it is 1 for relevant answers.

    Raises:
        ValueError: if `persistence` is not in (0, 1), or `largest_grade` is no whole number or below a
            grade that occurs.

    References:
        Moffat and Zobel (TOIS 2008).
    """
    largest = np.int64(0)
    if largest_grade is not None:
        known = int(judged.ideal_grade.max(initial=1))
        largest = np.int64(
            checks.scalar("largest_grade", checks.integer("largest_grade", largest_grade, known))
        )
    return evaluated(_rbp, judged, _share(persistence), largest)


def rbp_residual(judged: Any, persistence: Any) -> Float[np.ndarray, "questions"]:
    """What `rbp` would gain if every answer that is not judged, in the list or below it, were relevant.

    (1 - p) sum over unjudged answers of p^(rank - 1), and p^n for what lies below a list of n.

    Args:
        judged: from `owkg.metrics.judge`.
        persistence: p, in (0, 1).

    Raises:
        ValueError: if `persistence` is not in (0, 1).

    References:
        Moffat and Zobel (TOIS 2008), section 3.3.
    """
    return evaluated(_rbp_residual, judged, _share(persistence))


def bpref(judged: Any) -> Float[np.ndarray, "questions"]:
    """bpref = (1/R) sum over retrieved relevant answers of 1 - min(n, R) / min(N, R).

    n judged answers that are not relevant stand above; R and N answers are judged relevant and not
    relevant. Answers that are not judged do not count.

    References:
        Buckley and Voorhees (SIGIR 2004), as trec_eval has it (with N in the denominator).
    """
    return evaluated(_bpref, judged)


def inf_ap(judged: Any) -> Float[np.ndarray, "questions"]:
    """Inferred AP: average precision expected if the judged answers are a random sample of the pool.

    (1/R) sum over retrieved relevant answers of 1/r + (d/r) (a + ε) / (a + n + 2ε), ε = 1e-5: above rank r
    stand a relevant, n not relevant, and d pooled answers, judged or not. Answers outside the pool are
    not relevant. Where no grade is `POOLED`, this is AP up to ε.

    References:
        Yilmaz and Aslam (CIKM 2006), with the smoothing as trec_eval has it.
    """
    return evaluated(_inf_ap, judged)

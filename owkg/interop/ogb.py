"""OGB and TGB: candidate lists of link prediction, scored by their own models, as rank tables."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from owkg.errors import ArgumentError
from owkg.ranks import RankTable, validated
from owkg.ranks.scores import ranks_from_scores


def ranks(
    positive: ArrayLike,
    negative: ArrayLike,
    *,
    head: ArrayLike | None = None,
    relation: ArrayLike | None = None,
    tail: ArrayLike | None = None,
    side: str = "tail",
) -> RankTable:
    """The ranks of answers among given candidates, as the inputs of OGB's and TGB's evaluators give them.

    Args:
        positive: scores of the answers, [queries]: `y_pred_pos`.
        negative: scores of the other candidates of each, [queries, candidates]: `y_pred_neg`.
        head, relation, tail: ids or labels of the triples, [queries]; None: their numbers.
        side: that the candidates replace: head (`head_neg`) or tail (`tail_neg`).

    Returns:
        A rank table. It is not marked as filtered: which candidates there are the data set has decided.

    Raises:
        ValueError: if shapes do not fit, a score is NaN, or the side is another one.

    Examples:
        >>> table = ranks([0.7, 0.2], [[0.1, 0.9], [0.2, 0.1]])
        >>> table.frame.select("optimistic", "pessimistic", "candidates").rows()
        [(2, 2, 3), (1, 2, 3)]
    """
    one, others = _numbers("positive", positive), _numbers("negative", negative)
    one = one.reshape(-1) if one.ndim == 2 and one.shape[1] == 1 else one
    if one.ndim != 1 or others.ndim != 2 or len(one) != len(others) or not len(one):
        raise ArgumentError(
            "negative",
            f"must be [queries, candidates] of positive [queries], got {others.shape} of {one.shape}.",
        )
    if side not in ("head", "tail"):
        raise ArgumentError("side", f"must be head or tail, got {side!r}.")
    if not others.shape[1]:
        raise ArgumentError("negative", "must be one candidate at least, got none.")
    scores = np.concatenate([one[:, None], others], 1)
    found = ranks_from_scores(scores, np.zeros(len(one), np.int64))
    columns: dict[str, Any] = {}
    for name, labels in (("head", head), ("relation", relation), ("tail", tail)):
        given = np.arange(len(one)) if labels is None and name != "relation" else labels
        given = np.zeros(len(one), np.int64) if given is None else np.asarray(given)
        if given.shape != one.shape:
            raise ArgumentError(name, f"must be one of each of {len(one)} queries, got shape {given.shape}.")
        columns[name] = pl.Series(given).cast(pl.String)
    columns["side"] = [side] * len(one)
    for name in ("optimistic", "pessimistic", "candidates"):
        columns[name] = np.broadcast_to(np.asarray(getattr(found, name), np.int64), one.shape)
    return RankTable.trusted(validated(pl.DataFrame(columns).with_columns(filtered=pl.lit(False))))


def _numbers(name: str, given: ArrayLike) -> np.ndarray:
    """An array of scores; a tensor of torch, of whatever precision, is taken off its device."""
    try:
        detach = getattr(given, "detach", None)
        return np.asarray(given if detach is None else detach().cpu().double(), float)
    except (TypeError, ValueError):
        raise ArgumentError(name, f"must be an array of numbers, got {type(given).__name__}.") from None

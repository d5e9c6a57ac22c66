"""Thresholds of scores, one for each relation, that classify validation triples best."""

import numpy as np
import polars as pl

from owkg.errors import ArgumentError

THRESHOLDS = ("relation", "global")


def fitted(triples: pl.DataFrame, thresholds: str = "relation") -> pl.DataFrame:
    """Thresholds with the highest accuracy on labelled triples, by relation or for all relations together.

    A score of at least `upper` is classified as positive, a score below `lower` as negative, and a score
    between them as unknown. If no triple has the label unknown, both are equal. If a relation has several
    best thresholds, the global one is taken if it is among them, otherwise the middle of the nearest gap
    between scores. If there are several global ones, the narrowest band is taken, then the lowest.

    Args:
        triples: triples of the validation set, from `checked_triples`.
        thresholds: "relation" for each relation (default), or "global" for all relations together.

    Returns:
        A frame with the columns relation, lower, upper, triples: a first row for all triples, whose relation
        is null and which applies to relations without validation triples, then one row for each relation
        (only with "relation").

    Raises:
        ValueError: if there are no triples, or `thresholds` is another word.

    Examples:
        >>> labels = ["negative", "positive", "positive"]
        >>> rows = {"relation": ["r"] * 3, "label": labels, "score": [1.0, 2.0, 3.0]}
        >>> fitted(pl.DataFrame(rows)).rows()
        [(None, 1.5, 1.5, 3), ('r', 1.5, 1.5, 3)]
    """
    if thresholds not in THRESHOLDS:
        raise ArgumentError("thresholds", f"must be relation or global, got {thresholds!r}.")
    if not triples.height:
        raise ArgumentError("triples", "must hold validation triples, got none.")
    one = np.zeros(triples.height, np.int64)
    score, label = triples["score"].to_numpy(), triples["label"].to_numpy()
    lower, upper = _best(one, score, label, None)
    found = pl.DataFrame(
        {
            "relation": pl.Series([None], dtype=pl.String),
            "lower": lower,
            "upper": upper,
            "triples": [len(one)],
        }
    )
    if thresholds == "global":
        return found
    names, group, counts = np.unique(
        triples["relation"].to_numpy().astype(str), return_inverse=True, return_counts=True
    )
    low, high = _best(group, score, label, (lower[0], upper[0]))
    of = pl.DataFrame(
        {
            "relation": pl.Series(names.tolist(), dtype=pl.String),
            "lower": low,
            "upper": high,
            "triples": counts,
        }
    )
    return pl.concat([found, of])


def predicted(triples: pl.DataFrame, thresholds: pl.DataFrame) -> pl.Series:
    """Class of each triple (positive, negative or unknown) by thresholds from `fitted`."""
    whole = thresholds.row(0, named=True)
    each = triples.select("relation", "score").join(
        thresholds.select("relation", "lower", "upper"), on="relation", how="left", maintain_order="left"
    )
    lower, upper = (pl.col(name).fill_null(whole[name]) for name in ("lower", "upper"))
    return each.select(
        pl.when(pl.col("score") >= upper)
        .then(pl.lit("positive"))
        .when(pl.col("score") < lower)
        .then(pl.lit("negative"))
        .otherwise(pl.lit("unknown"))
        .alias("predicted")
    ).to_series()


def _best(
    group: np.ndarray, score: np.ndarray, label: np.ndarray, near: tuple[float, float] | None
) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) of each group, numbered from 0: the cuts i <= j of its scores with the highest accuracy.

    Cut c lies before the c-th distinct score. The number of correct triples is A(i) + B(j): A is the number
    of negative minus unknown triples below i, B the number of positive triples from j on plus unknown triples
    below j.
    """
    order = np.lexsort((score, group))
    group, score, label = group[order], score[order], label[order]
    new_group = np.diff(group, prepend=-1) != 0
    new = new_group | (np.diff(score, prepend=np.nan) != 0)
    # Cuts lie before each distinct score of a group, and one lies above all of them.
    first, starts = np.flatnonzero(new), np.flatnonzero(new_group)
    ends = np.append(starts[1:], len(group))
    place = np.sort(np.concatenate([first, ends]), kind="stable")
    # At the same place, the end of a group comes before the beginning of the next group.
    is_end = np.zeros(len(place), bool)
    is_end[np.searchsorted(place, ends)] = True
    owner = np.cumsum(np.concatenate([[0], is_end[:-1]]))
    begin, end = starts[owner], ends[owner]

    def before(kind: str) -> tuple[np.ndarray, np.ndarray]:
        total = np.concatenate([[0], np.cumsum(label == kind)])
        return total[place] - total[begin], total[end] - total[place]

    (negative, _), (unknown, _), (_, positive) = (
        before(kind) for kind in ("negative", "unknown", "positive")
    )
    low, high = negative - unknown, positive + unknown
    # The running maximum within a group, and the last cut that attains it.
    offset = owner * (2 * len(group) + 1)
    running = np.maximum.accumulate(low + offset)
    attained = np.maximum.accumulate(np.where(low + offset == running, np.arange(len(place)), 0))
    right = running - offset + high
    first_cut = np.concatenate([[0], np.flatnonzero(is_end)[:-1] + 1])
    best = right == np.maximum.reduceat(right, first_cut)[owner]
    padded = np.append(score, np.inf)
    under = np.where(place > begin, padded[place - 1], -np.inf)
    over = np.where(is_end, np.inf, padded[place])
    target = (None, None) if near is None else near
    value = [_between(under, over, aim) for aim in target]
    lower, upper = value[0][attained], value[1]
    far = np.zeros(len(place)) if near is None else _distance(upper, near[1]) + _distance(lower, near[0])
    width = np.arange(len(place)) - attained
    keys = (np.arange(len(place)), width, far) if near is None else (np.arange(len(place)), far, width)
    ranked = np.lexsort((*keys, ~best, owner))
    chosen = ranked[first_cut]
    return np.minimum(lower, upper)[chosen], upper[chosen]


def _between(under: np.ndarray, over: np.ndarray, aim: float | None) -> np.ndarray:
    """Threshold above `under` and at most `over`: `aim` if it fits, otherwise midway."""
    with np.errstate(invalid="ignore"):
        middle = under + (over - under) / 2
    # Exceptions: adjacent floats, which have no number between them, and the ends of the scale.
    middle = np.where((middle > under) & np.isfinite(middle), middle, over)
    middle = np.where(np.isinf(over) & (over > 0), np.nextafter(under, np.inf), middle)
    if aim is None:
        return middle
    return np.where((under < aim) & (aim <= over), aim, middle)


def _distance(value: np.ndarray, aim: float) -> np.ndarray:
    return np.where(value == aim, 0.0, np.abs(value - aim))

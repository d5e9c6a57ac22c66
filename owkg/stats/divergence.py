"""Kullback-Leibler divergence of two distributions given by counts."""

from numpy.typing import ArrayLike
from scipy import special

from owkg import checks
from owkg.errors import ArgumentError


def divergence(one: ArrayLike, other: ArrayLike, *, added: float = 1.0) -> float:
    """Divergence sum p ln(p / q) of the shares p and q of two rows of counts, in nats.

    Args:
        one: counts of each kind, which give p.
        other: counts of the same kinds, which give q.
        added: number added to each count, at least 0, so that every kind has a count. Default 1.

    Returns:
        The divergence; infinite if `other` lacks a kind of `one` and `added` is 0.

    Raises:
        ValueError: if the counts are negative, of different shapes, or all 0.

    Examples:
        >>> round(divergence([1, 3], [2, 2], added=0), 4), divergence([1, 0], [0, 1], added=0)
        (0.1308, inf)
    """
    extra = checks.real_number("added", added, 0, float("inf"))
    shares = []
    for name, counts in (("one", one), ("other", other)):
        total = checks.real(name, counts, 0, float("inf")) + extra
        if not total.sum():
            raise ArgumentError(name, "must have a count above 0, got none.")
        shares.append(total / total.sum())
    if shares[0].shape != shares[1].shape:
        raise ArgumentError("other", f"must be of shape {shares[0].shape}, got {shares[1].shape}.")
    return float(special.rel_entr(*shares).sum())

"""Fisher's randomisation test of all pairs of systems: questions swap the two systems at random."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float64

from owkg import checks
from owkg.keys import checked_key, reproducible

# Signs of one call, about a second on two CPU cores.
_CALL = 2**28
# Signs of one step of the enumeration.
_STEP = 2**20
# Statistics this near to the observed one, relative to the sums they are differences of, count as equal.
_NEAR = 1e-12


@reproducible
def randomisation(
    key: Any,
    contributions: Float64[np.ndarray, "systems questions"] | Any,
    *,
    draws: Any = 10_000,
    on_progress: Callable[[int, int], None] | None = None,
) -> Float64[np.ndarray, "pairs"]:
    """Two-sided p-values of all pairs of systems under random sign flips of the questions.

    If two systems do not differ, the sign of each difference d_q = a_q - b_q is a fair coin. Of B draws
    of all signs s, b have |sum s_q d_q| >= |sum d_q|, and p = (b + 1) / (B + 1): never 0, and at most alpha
    with probability at most alpha. Where all 2^questions sign patterns are no more than `draws`, they are
    enumerated: p is exact, the share of the patterns. All pairs share the signs of a draw.

    Args:
        key: of `jax.random.key`; consumed. Equal keys give equal results; not used by the enumeration.
        contributions: what each question adds to what a system reads; at least two systems.
        draws: B, at least 1.
        on_progress: called with (draws done, draws in all) after each call.

    Returns:
        Of the pairs in the order of np.triu_indices(systems, 1).

    Raises:
        ValueError: if a contribution is not finite, there is one system only, or an argument is out of range.

    Examples:
        >>> a, b = [0.5, 0.6, 0.9, 0.8], [0.4, 0.3, 0.4, 0.9]
        >>> import jax
        >>> randomisation(jax.random.key(0), [a, b]).tolist()
        [0.375]

    References:
        Fisher (1935), "The design of experiments", section 21; Phipson, Smyth (Statistical Applications in
        Genetics and Molecular Biology 9, 2010), section 4, "Permutation p-values should never be zero".
    """
    key = checked_key(key)
    each = checks.real("contributions", contributions, -np.inf, np.inf)
    if each.ndim != 2 or len(each) < 2:
        raise ValueError(
            f"`contributions` must be [at least two systems, questions], got shape {each.shape}."
        )
    draws = checks.scalar("draws", checks.integer("draws", draws, 1))
    if draws >= 2**31:
        raise ValueError(f"`draws` must be below 2**31, got {draws}.")
    questions = each.shape[1]
    # Without what the systems share, sums are smaller and so is the rounding of their differences.
    each = each - each.mean(0)
    if questions < 31 and 2**questions <= draws:
        return _enumerated(each)
    import jax

    from owkg.judge.kernels import BLOCK, far_flips

    words = -(-questions // 32)
    padded = np.zeros((32 * words, len(each)))
    padded[:questions] = each.T
    blocks = -(-draws // BLOCK)
    calls = -(-blocks * BLOCK * len(padded) // _CALL)
    in_a_call = -(-blocks // calls)
    found = np.zeros(len(each) * (len(each) - 1) // 2, np.int64)
    with jax.enable_x64(True):
        placed, near = jax.device_put((padded, _tolerance(padded)))
        for start in range(0, blocks, in_a_call):
            found += np.asarray(far_flips(key, start, draws, placed, near, blocks=in_a_call))
            if on_progress is not None:
                on_progress(min((start + in_a_call) * BLOCK, draws), draws)
    return (found + 1) / (draws + 1)


def _tolerance(each: np.ndarray) -> Float64[np.ndarray, "pairs"]:
    """Of the observed statistic of each pair, for contributions [questions, systems]."""
    first, second = np.triu_indices(each.shape[1], 1)
    size = np.abs(each).sum(0)
    return _NEAR * (size[first] + size[second])


def _enumerated(each: np.ndarray) -> Float64[np.ndarray, "pairs"]:
    """The share of all sign patterns at least as far from 0 as what was observed."""
    systems, questions = each.shape
    first, second = np.triu_indices(systems, 1)
    total = each.sum(1)
    observed = np.abs(total[first] - total[second]) - _tolerance(each.T)
    # A pattern and its opposite are as far from 0: half of them suffice, with the first sign kept.
    patterns = 2 ** (questions - 1)
    size = max(1, _STEP // questions)
    found = np.zeros(len(first), np.int64)
    for start in range(0, patterns, size):
        number = np.arange(start, min(start + size, patterns))
        signs = 1 - 2.0 * (number[:, None] >> np.arange(questions) & 1)
        sums = signs @ each.T
        found += (np.abs(sums[:, first] - sums[:, second]) >= observed).sum(0)
    return found / patterns

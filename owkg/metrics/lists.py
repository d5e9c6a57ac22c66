"""Ranked lists on the device: padded arrays, sums over each list, and running counts down each list."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from owkg.metrics.judged import UNJUDGED, Judged


class Lists(NamedTuple):
    """The arrays of `Judged` padded to round lengths; what comes from the padding belongs
    to a slot behind the last question."""

    question: Int[Array, "answers"]
    rank: Int[Array, "answers"]
    grade: Int[Array, "answers"]
    retrieved: Int[Array, "slots"]
    relevant: Int[Array, "slots"]
    nonrelevant: Int[Array, "slots"]
    ideal_question: Int[Array, "ideal"]
    ideal_rank: Int[Array, "ideal"]
    ideal_grade: Int[Array, "ideal"]
    relevance_level: Int[Array, ""]

    @property
    def is_relevant(self) -> Bool[Array, "answers"]:
        """Judged, and of a grade that counts as relevant."""
        return self.grade >= self.relevance_level

    @property
    def is_nonrelevant(self) -> Bool[Array, "answers"]:
        """Judged, and not relevant."""
        return (self.grade >= 0) & (self.grade < self.relevance_level)

    def total(self, values: Array) -> Float[Array, "slots"]:
        """The sum over each question's list."""
        return by_question(values, self.question, self.retrieved.size)

    def so_far(self, flag: Bool[Array, "answers"]) -> Int[Array, "answers"]:
        """How many are flagged in the same list down to and with each answer."""
        counted = jnp.concatenate([jnp.zeros(1, jnp.int64), jnp.cumsum(flag, dtype=jnp.int64)])
        first = jnp.cumsum(self.retrieved) - self.retrieved
        return counted[1:] - counted[first][self.question]


def by_question(values: Array, question: Array, slots: int) -> Float[Array, "slots"]:
    """The sum of `values` over each question; `question` ascends."""
    return jax.ops.segment_sum(
        values.astype(jnp.float64), question, num_segments=slots, indices_are_sorted=True
    )


@partial(jax.jit, static_argnames="kernel")
def _evaluated(kernel: Callable, lists: Lists, numbers: tuple) -> Array:
    return kernel(lists, *numbers)


def _padded(array: np.ndarray, fill: int, more: int = 0) -> Array:
    """`array` and at least `more` entries `fill`, of a length that is a power of two: few compilations."""
    size = max(1024, 1 << (array.size + more - 1).bit_length())
    return jnp.asarray(np.concatenate([array, np.full(size - array.size, fill)]), jnp.int64)


def _lists(judged: Judged) -> Lists:
    padding = judged.retrieved.size  # the question to which entries from the padding belong
    return Lists(
        question=_padded(judged.question, padding),
        rank=_padded(judged.rank, 1),
        grade=_padded(judged.grade, UNJUDGED),
        retrieved=_padded(judged.retrieved, 0, more=1),
        relevant=_padded(judged.relevant, 0, more=1),
        nonrelevant=_padded(judged.nonrelevant, 0, more=1),
        ideal_question=_padded(judged.ideal_question, padding),
        ideal_rank=_padded(judged.ideal_rank, 1),
        ideal_grade=_padded(judged.ideal_grade, 0),
        relevance_level=jnp.asarray(judged.relevance_level, jnp.int64),
    )


def evaluated(kernel: Callable, judged: Any, *numbers: Any) -> Float[np.ndarray, "questions"]:
    """The kernel's value for every question, in float64 whatever `jax_enable_x64` says.

    Raises:
        ValueError: if `judged` is no Judged.
    """
    if not isinstance(judged, Judged):
        raise ValueError(f"`judged` must be of owkg.metrics.judge, got {judged!r}.")
    with jax.enable_x64(True):
        return np.asarray(_evaluated(kernel, _lists(judged), numbers))[: judged.retrieved.size]

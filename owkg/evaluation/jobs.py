"""Scores of ranking tasks against some candidates, in jobs of one shape."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from owkg.errors import ArgumentError
from owkg.models import Trained

ROWS, COLUMNS = 64, 512
"""Maximum numbers of ranking tasks and of candidates in a job."""

_TOGETHER = 32


class Job(NamedTuple):
    """Some ranking tasks against some candidates.

    Attributes:
        rows: numbers of the tasks, [r], at most `ROWS`.
        columns: entity ids of the candidates, [c], at most `COLUMNS`.
        gone: pairs (place in rows, place in columns) to leave out of the candidates, [2, pairs].
    """

    rows: Int[np.ndarray, "r"]
    columns: Int[np.ndarray, "c"]
    gone: Int[np.ndarray, "2 pairs"]


class Found(NamedTuple):
    """Result of a job, one entry per row.

    Attributes:
        first_higher, first_tied: place of the first candidate that scores higher, or that ties; `COLUMNS` if
            none does.
        higher, tied: number of candidates that score higher, and number that tie.
    """

    first_higher: Int[np.ndarray, "r"]
    first_tied: Int[np.ndarray, "r"]
    higher: Int[np.ndarray, "r"]
    tied: Int[np.ndarray, "r"]


class JobScorer:
    """Scorer of jobs, with the model, the queries of the tasks and the scores of their answers.

    Args:
        trained: model with its parameters.
        side: side to rank, "head" or "tail".
        entity, relation, answer: ids of the tasks, [tasks].

    Raises:
        ValueError: if the score of an answer is not finite.
    """

    def __init__(
        self,
        trained: Trained,
        side: str,
        entity: Int[np.ndarray, "tasks"],
        relation: Int[np.ndarray, "tasks"],
        answer: Int[np.ndarray, "tasks"],
    ) -> None:
        self._entity, self._relation = entity.astype(np.int32), relation.astype(np.int32)
        fixed = (trained, side, trained.candidates())
        self._found = partial(_found, *fixed)
        parts = []
        for _, at in tiles(np.arange(len(answer)), _TOGETHER * ROWS):
            filled = np.resize(at, _TOGETHER * ROWS)
            own = (self._entity[filled], self._relation[filled], answer[filled].astype(np.int32))
            parts.append(np.asarray(_own(*fixed, *own))[: len(at)])
        self._own = np.concatenate(parts)
        _require_finite(np.isfinite(self._own).all())

    def __call__(
        self, jobs: Iterable[Job], excluded: UInt32[np.ndarray, "relations words"] | None = None
    ) -> Iterator[tuple[Job, Found]]:
        """Each job with its result.

        Args:
            jobs: jobs to score.
            excluded: entities to leave out of the candidates of each relation, as bits.

        Raises:
            ValueError: if a score is not finite.
        """
        bits = None if excluded is None else jnp.asarray(excluded)
        waiting = iter(jobs)
        while some := list(islice(waiting, _TOGETHER)):
            yield from zip(some, self._chunk(some, bits), strict=True)

    def _chunk(self, jobs: Sequence[Job], excluded: Array | None) -> Iterator[Found]:
        most = max(1, *(job.gone.shape[1] for job in jobs))
        gone = np.full((_TOGETHER, 2, 1 << (most - 1).bit_length()), ROWS, np.int32)
        rows, columns = np.full((_TOGETHER, ROWS), -1), np.full((_TOGETHER, COLUMNS), -1, np.int32)
        for i, job in enumerate(jobs):
            rows[i, : len(job.rows)], columns[i, : len(job.columns)] = job.rows, job.columns
            gone[i, :, : job.gone.shape[1]] = job.gone
        at = np.maximum(rows, 0)
        own = np.where(rows >= 0, self._own[at], np.inf).astype(self._own.dtype)
        count = np.int32(len(jobs))
        out = self._found(excluded, count, self._entity[at], self._relation[at], own, columns, gone)
        *found, finite = (np.asarray(part) for part in out)
        _require_finite(finite[: len(jobs)].all())
        for i, job in enumerate(jobs):
            yield Found(*(part[i, : len(job.rows)] for part in found))


def tiles(values: np.ndarray, size: int) -> Iterator[tuple[int, np.ndarray]]:
    """(Start, part) of consecutive parts of at most `size` values."""
    return ((begin, values[begin : begin + size]) for begin in range(0, len(values), size))


def _require_finite(good: bool | np.bool_) -> None:
    if not good:
        raise ArgumentError("trained", "must give scores that are finite, got NaN or infinity.")


@partial(jax.jit, static_argnums=1)
def _own(
    trained: Trained,
    side: str,
    candidates: Float[Array, "n d"],
    entity: Int[Array, "tasks"],
    relation: Int[Array, "tasks"],
    answer: Int[Array, "tasks"],
) -> Float[Array, "tasks"]:
    """Score of each answer, from a product of the shape of a job, so that equal scores tie exactly."""

    def tile(part: tuple[Array, Array, Array]) -> Array:
        queries = trained.queries(part[0], part[1], side)
        columns = candidates[jnp.resize(part[2], (COLUMNS,))]
        return jnp.diagonal(trained.model.similarity.all(queries, columns)[:, :ROWS])

    return jax.lax.map(tile, tuple(x.reshape(-1, ROWS) for x in (entity, relation, answer))).ravel()


@partial(jax.jit, static_argnums=1)
def _found(
    trained: Trained,
    side: str,
    candidates: Float[Array, "n d"],
    excluded: UInt32[Array, "relations words"] | None,
    count: Int[Array, ""],
    entity: Int[Array, "jobs r"],
    relation: Int[Array, "jobs r"],
    own: Float[Array, "jobs r"],
    columns: Int[Array, "jobs c"],
    gone: Int[Array, "jobs 2 pairs"],
) -> tuple[
    Int[Array, "jobs r"],
    Int[Array, "jobs r"],
    Int[Array, "jobs r"],
    Int[Array, "jobs r"],
    Bool[Array, "jobs"],
]:
    """Fields of `Found` for `count` jobs, and whether all scores of real rows and columns are finite."""

    def job(part: tuple[Array, ...]) -> tuple[Array, ...]:
        entity, relation, own, columns, gone = part
        queries = trained.queries(entity, relation, side)
        at = jnp.maximum(columns, 0)
        scores = trained.model.similarity.all(queries, candidates[at])
        inside = jnp.broadcast_to(columns >= 0, scores.shape)
        if excluded is not None:
            words = excluded[relation[:, None], at // 32]
            inside &= (words >> (at % 32).astype(jnp.uint32)) & 1 == 0
        inside = inside.at[gone[0], gone[1]].set(False, mode="drop")
        real = inside & jnp.isfinite(own)[:, None]
        flags = [real & (scores > own[:, None]), real & (scores == own[:, None])]
        first = [jnp.where(one.any(1), jnp.argmax(one, 1), COLUMNS) for one in flags]
        return *first, *(one.sum(1) for one in flags), (jnp.isfinite(scores) | ~real).all()

    parts = (entity, relation, own, columns, gone)
    shapes = jax.eval_shape(job, tuple(part[0] for part in parts))
    none = tuple(jnp.zeros((len(entity), *one.shape), one.dtype) for one in shapes)

    def step(i: Array, done: tuple[Array, ...]) -> tuple[Array, ...]:
        found = job(tuple(part[i] for part in parts))
        return tuple(before.at[i].set(one) for before, one in zip(done, found, strict=True))

    return jax.lax.fori_loop(0, count, step, none)

"""Sparse test sets resampled from the same scores."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np
import polars as pl
from jaxtyping import Float64

from owkg.keys import reproducible, seeded
from owkg.rank_weights import RankWeight
from owkg.rank_weights import rank_weight as metric_named
from owkg.simulate import FullTest, full_test, inversions, quantiles, resample
from simulations.open_world.curves import FULL, SPARSE, Curves
from simulations.open_world.query_values import joined
from simulations.open_world.record import Record
from simulations.open_world.world import ClosedWorld
from simulations.yang2022.predicted import measured_strength, predicted, predicted_inversions
from simulations.yang2022.selection import metric_index

_BAND = (0.025, 0.975)
# Pairs that theory is asked for, at most, and strengths of its curve.
_PAIRS, _STRENGTHS = 2000, 51


class ResampledTests(NamedTuple):
    """What the checkpoints of a world read on sparse test sets drawn again.

    Attributes:
        table: a row a checkpoint: density, configuration, model, step; `full`, `sparse` and others, what it
            reads on each test set, and `_error`, the standard error over queries; `resampled` mean,
            `resampled_deviation`, `resampled_lower` and `resampled_upper`, 95 % of the draws;
            `strength` that the full test measures, and with it `predicted`, the mean that theory expects;
            `permuted`, the mean on resampled tests when the same ranks are permuted anew among the answers to
            queries with equally many.
        band: lower and upper ends of these, [2, checkpoints].
        theory: what theory has models read on the full test and expects on the sparse one, by strength,
            [2, strengths].
        pairs: a row a pair of checkpoints of different configurations, of up to 2,000: first and second,
            numbers of checkpoints; `resampled`, the share of draws that contradict their order on the full
            test; `predicted`, the probability of that by theory.
        inversions: mean over all pairs of the share of draws; nan if there is no pair.
        num_pairs: how many pairs these are.
    """

    table: pl.DataFrame
    band: Float64[np.ndarray, "2 checkpoints"]
    theory: Float64[np.ndarray, "2 strengths"]
    pairs: pl.DataFrame
    inversions: float
    num_pairs: int


@reproducible
def resampled(
    world: ClosedWorld,
    records: Sequence[Record],
    curves: Curves,
    *,
    metric: str = "mrr",
    draws: int = 400,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> ResampledTests:
    """Draws sparse test sets again and again, facts missing independently, as often as in the world's own.

    Args:
        world: that was asked.
        records: of its runs.
        curves: of `readings` of the same records.
        metric: one of `curves.metrics`, a plain mean.
        draws: test sets.
        seed: of what is missing.
        on_progress: told draws done, and in all; as many are drawn for `permuted`.

    Raises:
        ValueError: if the metric is none of the curves.
    """
    at, measure = metric_index(curves, metric), metric_named(metric)
    sparsity = 1 - world.present[SPARSE].mean()
    full = joined(world, records)
    drawing = {"sparsity": sparsity, "draws": draws}
    keys = jax.random.split(seeded(seed))
    tell = on_progress or (lambda *_: None)
    drawn = resample(keys[0], full, measure, **drawing, on_progress=lambda n, _: tell(n, 2 * draws))
    permuted = _permuted(full, np.random.default_rng(seed))
    again = resample(
        keys[1], permuted, measure, **drawing, on_progress=lambda n, _: tell(draws + n, 2 * draws)
    )
    band = quantiles(drawn, _BAND)[:, :, 0]
    asked = np.bincount(world.query), world.graph.num_entities
    read = curves.values[FULL][at].mean(axis=1, dtype=np.float64)
    # A model that reads worse than chance is one of no strength.
    strength = np.clip(measured_strength(measure, read, *asked), 0, 1)
    columns: dict[str, object] = {
        "density": np.full(len(curves.step), curves.density),
        "configuration": np.array(curves.labels)[curves.config],
        "model": np.array(curves.models)[curves.config],
        "step": curves.step,
    }
    for name, values in sorted(curves.values.items(), key=lambda item: item[0] != FULL):
        own = values[at].astype(np.float64)
        columns[name] = own.mean(axis=1)
        columns[f"{name}_error"] = own.std(axis=1, ddof=1) / np.sqrt(own.shape[1])
    columns |= {
        "resampled": drawn.mean[:, 0],
        "resampled_deviation": drawn.standard_deviation[:, 0],
        "resampled_lower": band[0],
        "resampled_upper": band[1],
        "strength": strength,
        "predicted": predicted(measure, strength, sparsity, *asked).mean,
        "permuted": again.mean[:, 0],
    }
    first, second = np.nonzero(np.triu(curves.config[:, None] != curves.config[None, :]))
    share = inversions(drawn).probability[0][first, second]
    ordered = np.isfinite(share) & (strength[first] != strength[second])
    first, second, share = first[ordered], second[ordered], share[ordered]
    some = np.sort(np.random.default_rng(seed).permutation(len(share))[:_PAIRS])
    by_theory = np.empty(0)
    if len(some):
        one, two = strength[first[some]], strength[second[some]]
        by_theory = predicted_inversions(measure, one, two, sparsity, *asked)
    columns_of_pairs = {
        "first": first[some],
        "second": second[some],
        "resampled": share[some],
        "predicted": by_theory,
    }
    return ResampledTests(
        table=pl.DataFrame(columns),
        band=band,
        theory=_curve(measure, sparsity, *asked),
        pairs=pl.DataFrame(columns_of_pairs),
        inversions=float(share.mean()) if len(share) else np.nan,
        num_pairs=len(share),
    )


def agreement(table: pl.DataFrame, *, least: float = 0.1) -> dict[str, float | str]:
    """How far a world's own sparse test and theory are from the resampled ones, over its checkpoints.

    Theory has one class of positives, all ranked first on the full test, and each answer is among them on its
    own. Models differ in both: their good answers are at small ranks beside the first, and the found answers
    of a query come together. Ranks that are permuted anew keep the first of these and undo the second.

    Args:
        table: of `resampled`, of one density.
        least: strength below which theory and resamples agree, as both are about 0; such checkpoints count
            for `in_band` alone.

    Returns:
        in_band: share of checkpoints whose sparse test reads within 95 % of the resampled ones.
        error: root mean square of resampled - predicted.
        lowest, highest: of resampled - predicted, and lowest_of, highest_of: whose.
        by_ranks: mean of permuted - predicted, what comes of positives elsewhere than first.
        by_queries: mean of resampled - permuted, what comes of found answers together.
    """
    inside = pl.col(SPARSE).is_between(pl.col("resampled_lower"), pl.col("resampled_upper"))
    strong = table.filter(pl.col("strength") >= least)
    gap = (strong["resampled"] - strong["predicted"]).to_numpy()
    found: dict[str, float | str] = {"in_band": float(table.select(inside.mean()).item())}
    if not len(strong):
        return found
    low, high = int(gap.argmin()), int(gap.argmax())
    return found | {
        "error": float(np.sqrt(np.mean(gap**2))),
        "lowest": float(gap[low]),
        "lowest_of": strong["configuration"][low],
        "highest": float(gap[high]),
        "highest_of": strong["configuration"][high],
        "by_ranks": float((strong["permuted"] - strong["predicted"]).to_numpy().mean()),
        "by_queries": float((strong["resampled"] - strong["permuted"]).to_numpy().mean()),
    }


def _permuted(full: FullTest, rng: np.random.Generator) -> FullTest:
    """The same ranks, permuted anew among the answers to queries with equally many answers.

    The metric of a model on the full test stays, but for ties; which ranks meet in a query is chance.
    """
    size = np.bincount(full.query)[full.query]
    by_size = np.argsort(size, kind="stable")
    shuffled = np.lexsort((rng.random(len(size)), size))
    source = np.empty_like(by_size)
    source[by_size] = shuffled
    low, high = full.optimistic[:, source], full.pessimistic[:, source]
    # Of ties of different width there may be no order; a tie is any of its ranks.
    rank = low + (rng.random(len(size)) * (high - low + 1)).astype(np.int64)
    # Answers at equal ranks stand in any order.
    return full_test(full.query, rank, rank, rng.random(len(size)) / 2 - rank)


def _curve(
    metric: RankWeight, sparsity: float, num_answers: np.ndarray, num_entities: int
) -> Float64[np.ndarray, "2 strengths"]:
    strengths = np.linspace(0, 1, _STRENGTHS)
    # What a strength reads on the full test is linear in it.
    ends = measured_strength(metric, np.array([0.0, 1.0]), num_answers, num_entities)
    read = (strengths - ends[0]) / (ends[1] - ends[0])
    return np.stack([read, predicted(metric, strengths, sparsity, num_answers, num_entities).mean])

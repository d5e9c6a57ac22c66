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
# Most pairs for which theory is computed, and number of strengths on its curve.
_PAIRS, _STRENGTHS = 2000, 51


class ResampledTests(NamedTuple):
    """Results of the checkpoints of a world on resampled sparse test sets.

    Attributes:
        table: a row for each checkpoint: density, configuration, model, step; `full`, `sparse` and others,
            its value on each test set, and `_error`, the standard error over queries; `resampled` mean,
            `resampled_deviation`, `resampled_lower` and `resampled_upper`, 95 % of the draws; `strength` as
            measured on the full test, and `predicted`, the mean that theory expects at this strength;
            `permuted`, the mean on resampled tests when the same ranks are permuted among the answers to
            queries with equally many answers.
        band: `resampled_lower` and `resampled_upper`, [2, checkpoints].
        theory: value on the full test and expected value on the sparse one, by strength, [2, strengths].
        pairs: a row for each of up to 2,000 pairs of checkpoints of different configurations: first and
            second, numbers of checkpoints; `resampled`, the share of draws that contradict their order on the
            full test; `predicted`, the probability of this contradiction by theory.
        inversions: mean of this share of draws over all pairs; nan if there is no pair.
        num_pairs: number of pairs.
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
    """Resampled sparse test sets: facts missing independently, at the rate of the world's own test.

    Args:
        world: world of the queries.
        records: records of its runs.
        curves: curves of the same records.
        metric: one of `curves.metrics`, a plain mean.
        draws: number of test sets.
        seed: seed of the missing facts.
        on_progress: called with draws done and draws in all; `permuted` takes as many draws again.

    Raises:
        ValueError: if the metric is not in the curves.
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
    # A model worse than random ranking is treated as one of strength 0.
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
    """Differences of a world's own sparse test and of theory from the resampled tests, over its checkpoints.

    Theory has one class of positives, which all rank first on the full test, and each answer is independently
    one of them. Models differ in both respects: their good answers are also at small ranks other than the
    first, and the retrieved answers of a query cluster. Permuted ranks keep the first difference and remove
    the second.

    Args:
        table: table from `resampled`, of one density.
        least: smallest strength of a compared checkpoint, because theory and resamples are both about 0 below
            it; weaker checkpoints count only for `in_band`.

    Returns:
        in_band: share of checkpoints whose sparse test is within 95 % of the resampled ones.
        error: root mean square of resampled - predicted.
        lowest, highest: extremes of resampled - predicted; lowest_of, highest_of: their configurations.
        by_ranks: mean of permuted - predicted, the effect of positives at ranks other than the first.
        by_queries: mean of resampled - permuted, the effect of retrieved answers that cluster.
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
    """The same ranks, permuted among the answers to queries with equally many answers.

    The metric of a model on the full test is unchanged except for ties; which ranks meet in a query is
    random.
    """
    size = np.bincount(full.query)[full.query]
    by_size = np.argsort(size, kind="stable")
    shuffled = np.lexsort((rng.random(len(size)), size))
    source = np.empty_like(by_size)
    source[by_size] = shuffled
    low, high = full.optimistic[:, source], full.pessimistic[:, source]
    # Ties of different widths may have no order, so that a tie takes any one of its ranks.
    rank = low + (rng.random(len(size)) * (high - low + 1)).astype(np.int64)
    # Answers at equal ranks are in random order.
    return full_test(full.query, rank, rank, rng.random(len(size)) / 2 - rank)


def _curve(
    metric: RankWeight, sparsity: float, num_answers: np.ndarray, num_entities: int
) -> Float64[np.ndarray, "2 strengths"]:
    strengths = np.linspace(0, 1, _STRENGTHS)
    # The metric on the full test is linear in the strength.
    ends = measured_strength(metric, np.array([0.0, 1.0]), num_answers, num_entities)
    read = (strengths - ends[0]) / (ends[1] - ends[0])
    return np.stack([read, predicted(metric, strengths, sparsity, num_answers, num_entities).mean])

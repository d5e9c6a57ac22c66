"""Per-query scores of systems whose rank tables do not fit in memory."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.files.storage import free_memory
from owkg.judge.scores import (
    QUERY,
    Run,
    Scores,
    asked,
    averaged,
    checked_rule,
    over_seeds,
    ratios,
    refuse_other_weights,
    weights_of,
)
from owkg.judge.systems import note
from owkg.kg.names import known_entity
from owkg.metrics import Metric, Tasks, Ties, part_of
from owkg.metrics.added import Added
from owkg.metrics.evaluate import Estimates, checked_options, estimates
from owkg.metrics.fold import refuse_extremes
from owkg.ranks import RankDataset
from owkg.ranks.dataset import is_dataset
from owkg.ranks.partitions import Partitions, in_parts, partitions, rows_of_part
from owkg.ranks.reading import PLAIN, TableReading
from owkg.ranks.table import RELATION, TRIPLE
from owkg.ranks.tasks import weighed
from owkg.ranks.together import read_datasets, whole_needed

# Approximate number of copies of all per-query scores that are in memory at a time.
_COPIES = 4


def dataset_of(
    systems: object,
    *,
    ties: str | None,
    needs: Mapping[str, bool],
    reading: TableReading = PLAIN,
    lacking: bool = False,
) -> RankDataset | None:
    """Systems as one dataset with a column model, if they are too large to be read at once; None otherwise.

    Args:
        systems, ties: as for `owkg.compare`.
        needs: whether each argument, by name, needs all ranks in memory.
        reading: options for the tables that are given as paths.
        lacking: whether the tables may lack candidates, because a graph will give them. Default False.

    Raises:
        ValueError: if there is a large dataset together with a system in memory, or an argument needs all
            ranks and they do not fit in memory; if systems have different columns or the same name; or if
            ranks are bounds and `ties` is None.
    """
    if isinstance(systems, str | PathLike | RankDataset) or not isinstance(systems, Iterable):
        return None
    by_name: Mapping[Any, Any] = systems if isinstance(systems, Mapping) else {}
    sources = list(by_name.values()) if by_name else list(systems)
    sets = [
        one if isinstance(one, RankDataset) else RankDataset.of(one, reading, lacking=lacking)
        for one in sources
        if _is_set(one)
    ]
    needed_by = next((name for name, value in needs.items() if value), None) or whole_needed(reading, sets)
    if not sets or not in_parts(sum(one.rows for one in sets), needed_by=needed_by):
        return None
    if bad := [one for one in sources if not (isinstance(one, RankDataset) or _is_path(one))]:
        raise ArgumentError(
            "systems", f"must all be paths or datasets if one is a dataset, got a {type(bad[0]).__name__}."
        )
    joined = RankDataset.joined(read_datasets(sources, list(by_name) or None, reading))
    if joined.averaged and ties not in (None, "realistic"):
        raise ArgumentError("ties", f"must be realistic, because {joined.source} has only realistic ranks.")
    if "bounded" in joined.columns and True in joined.unique("bounded"):
        if ties is None:
            raise ArgumentError(
                "ties",
                f"must state the rank of answers that are not listed: {joined.source} has ranks that are "
                "bounds (column bounded). pessimistic ranks them last, optimistic next.",
            )
        note(f"{joined.source} has ranks that are bounds: the tie rule {ties} selects the bounds that count.")
    return joined


def _is_set(one: object) -> bool:
    """Whether a source is a dataset, or a path of one."""
    return isinstance(one, RankDataset) or (isinstance(one, str | PathLike) and is_dataset(one))


def _is_path(one: object) -> bool:
    """Whether a source is a path."""
    return isinstance(one, str | PathLike)


def stream_scores(
    dataset: RankDataset,
    metrics: Metric | Sequence[Metric],
    *,
    ties: str = Ties.REALISTIC,
    level: float | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[Scores, dict[str, Estimates]]:
    """Scores of every system of a dataset, equal to `owkg.judge.scores` of its rows in memory.

    Memory grows with the number of queries, whose scores are kept, not with the number of rows.

    Args:
        dataset: dataset with a column model.
        metrics: metrics, as for `owkg.judge.scores`.
        ties: tie rule. Default "realistic".
        level: level of the confidence intervals of the values. Default: no intervals.
        on_progress: function called with (done, total) parts of the rows; every part is read twice.

    Returns:
        Scores, and the value of each metric by system.

    Raises:
        ValueError: as `owkg.judge.scores` and `owkg.metrics.report`.
    """
    chosen, rule = averaged(metrics), checked_rule(ties)
    options = checked_options(chosen, ties=rule, level=level)
    names, seeds = tuple(map(str, dataset.unique("model"))), {str(k): v for k, v in dataset.seeds().items()}
    owners: list[Run] = [(name, seed) for name in names for seed in seeds.get(name, (None,))]
    added = {run: Added(options) for run in owners}
    wholes = {name: Added(options) for name in seeds}
    frames: list[pl.DataFrame] = []
    values, weights = [], []
    size = rows_of_part(dataset.rows)

    def of_rows(done: int, total: int) -> None:
        if on_progress is not None:
            count = -(-total // size)
            on_progress(done * count // total, 2 * count)

    with partitions(dataset, rows_of_part=size, on_progress=of_rows) as parts:
        refuse_extremes(parts, options)
        if RELATION in parts.sides:
            raise ArgumentError("systems", f'must rank heads and tails, got the side "{RELATION}".')
        _refuse_raw_beside_filtered(parts, names)
        for number in range(parts.count):
            found = parts.tasks(number)
            if found is not None and (some := _by_run(parts, *found, owners)) is not None:
                of_runs, tasks, rows = some
                both = [ratios(own, chosen, rule) for own in of_runs.values()]
                values.append(np.array([[one[i][0] for one in both] for i in range(len(chosen))]))
                weights.append(
                    _shared_weights(np.array([[one[i][1] for one in both] for i in range(len(chosen))]))
                )
                for run, own in of_runs.items():
                    added[run].add(own)
                models = parts.labelled(rows["model"]).to_numpy() if wholes else None
                for name, whole in wholes.items():
                    whole.add(part_of(tasks, models == name))
                frames.append(_queries(parts, tasks, rows))
                if len(frames) == 1:
                    _require_memory(len(frames[0]) * dataset.rows / len(found[1]), values[0])
            if on_progress is not None:
                on_progress(parts.count + number + 1, 2 * parts.count)
    queries = pl.concat(frames)
    order = queries.select(pl.col(QUERY).cast(pl.String)).with_row_index("row").sort(QUERY)["row"].to_numpy()
    value, of_seeds = over_seeds(np.concatenate(values, axis=-1)[..., order], owners)
    read = Scores(
        systems=names,
        metrics=tuple(metric.name for metric in chosen),
        larger_is_better=tuple(metric.larger_is_better for metric in chosen),
        queries=queries[order],
        value=value,
        weight=np.concatenate(weights, axis=-1)[:, order],
        seeds=of_seeds,
    )
    return read, {
        name: estimates(wholes[name], options, [added[name, seed] for seed in seeds[name]])
        if name in seeds
        else estimates(added[name, None], options)
        for name in names
    }


def _by_run(
    parts: Partitions, tasks: Tasks, rows: pl.DataFrame, owners: list[Run]
) -> tuple[dict[Run, Tasks], Tasks, pl.DataFrame] | None:
    """Tasks of each system and seed, which rank the same answers to the same queries.

    Returns:
        Tasks of each run, all tasks, and their rows, with positive weight; None if a part has none.
    """
    key = [*TRIPLE, "side"]
    model = parts.labelled(rows["model"])
    several = any(seed is not None for _, seed in owners)
    seed = rows["seed"].to_numpy() if several else np.zeros(len(rows))
    names = model.to_numpy()
    masks = {run: (names == run[0]) & ((seed == run[1]) | (run[1] is None)) for run in owners}
    counted = rows.group_by(key).agg(pl.len().alias("rows"), *weights_of(rows.columns))
    lacking = counted.filter(pl.col("rows") < len(owners))
    if len(lacking):
        row = lacking.sort(key).row(0, named=True)
        here = np.flatnonzero(rows.select(pl.all_horizontal(pl.col(k) == row[k] for k in key)).to_series())
        name, own = min(run for run, mask in masks.items() if not mask[here].any())
        without = name if own is None else f"{name}, seed {own}"
        row = {name: parts.labelled(pl.Series(name, [row[name]]))[0] for name in key}
        raise ArgumentError(
            "systems",
            f"must rank the same answers to the same queries: {row[row['side']]!r} to {asked(row)} is not "
            f"ranked by {without}, and `intersect` needs rank tables in memory.",
        )
    if "weight" in rows.columns:
        labelled = counted.with_columns(parts.labelled(counted[name]) for name in TRIPLE)
        refuse_other_weights("systems", labelled)
        if not (kept := (rows["weight"] > 0).to_numpy()).all():
            if not kept.any():
                return None
            tasks, rows = weighed(tasks), rows.filter(kept)
            masks = {run: mask[kept] for run, mask in masks.items()}
    return {run: part_of(tasks, mask) for run, mask in masks.items()}, tasks, rows


def _queries(parts: Partitions, tasks: Tasks, rows: pl.DataFrame) -> pl.DataFrame:
    """Side, known entity and relation of each query, in the order of their ids."""
    first = rows if tasks.query is None else rows[np.unique(tasks.query, return_index=True)[1]]
    labelled = first.select("side").with_columns(parts.labelled(first[name]) for name in TRIPLE)
    return labelled.select("side", known_entity(), "relation")


def _shared_weights(weights: np.ndarray) -> np.ndarray:
    """Weights of the first system, [metrics, queries]; ArgumentError if another system has others."""
    if not np.allclose(weights, weights[:, :1], rtol=1e-9, atol=0):
        raise ArgumentError("systems", "must have the same candidates and weights in every system.")
    return weights[:, 0]


def _refuse_raw_beside_filtered(parts: Partitions, names: tuple[str, ...]) -> None:
    """ValueError if some systems have raw ranks and others have filtered ranks."""
    if "filtered" not in (parts.kind.names or ()):
        return
    raw: set[str] = set()
    for number in range(parts.count):
        frame = parts.frame(number)
        raw |= set(parts.labelled(frame.filter(~pl.col("filtered"))["model"].unique()))
    if raw and len(raw) < len(names):
        other = min(set(names) - raw)
        raise ValueError(
            f"`systems`: raw ranks of {min(raw)!r} cannot be compared with filtered ranks of {other!r}."
        )


def _require_memory(queries: float, value: np.ndarray) -> None:
    """ArgumentError if the scores of about `queries` queries, shaped like `value`, do not fit in memory."""
    metrics, systems = value.shape[:2]
    needed = 8 * metrics * (systems + 1) * _COPIES * queries
    what = f"the scores of about {queries:,.0f} queries (fewer metrics take less)"
    checks.memory("systems", needed, free_memory(), what)

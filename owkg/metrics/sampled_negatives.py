"""Bounds on values of full evaluation that are consistent with ranks among sampled negatives."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy import special

from owkg import checks
from owkg.errors import ArgumentError, naming
from owkg.rank_weights import RankWeight, rank_weight
from owkg.rank_weights.tables import rank_weights
from owkg.ranks import RankTable

# Number of first ranks that are all on the grid, and number of ranks behind them, with growing distances.
_DENSE, _POINTS = 300, 1000
# Number of sampled ranks at which the band is imposed, among the first ranks and among all.
_HELD = 40
_REFUSED = "must be a mean over ranks that is larger for better ranks, such as mrr, hits@10 or p-mrr@0.5"


def full_values(
    ranks: RankTable | pl.DataFrame,
    metrics: str | Sequence[str] = ("mrr", "hits@1", "hits@10"),
    *,
    num_entities: int,
    ci: float = 0.95,
) -> pl.DataFrame:
    """Values of full evaluation that are consistent with ranks among uniform negatives.

    If an answer has rank r among N candidates, the number of better candidates among K sampled negatives is
    hypergeometric. A distribution of r is possible if its distribution of sampled ranks lies within the
    Dvoretzky-Kiefer-Wolfowitz band around the observed one; a linear program finds the smallest and the
    largest value of a metric over these distributions. The range contains the population value with
    probability `ci`, at least if queries have equally many answers.

    Args:
        ranks: ranks among the answer and K negatives: `candidates` is K + 1 in every row. Half ranks are
            rounded down.
        metrics: means over ranks. Default: mrr, hits@1 and hits@10.
        num_entities: N, the number of candidates of full evaluation.
        ci: level of the band, on the effective number of queries (Kish). Default 0.95.

    Returns:
        One row for each metric: metric, sampled (its value among the negatives), full_low, full_high.

    Raises:
        ValueError: if the numbers of candidates differ, N is below them, or a metric is not a mean over
            ranks.
    """
    checks.level("ci", ci)
    table = RankTable.of_entities(ranks, source="ranks").frame
    among = table["candidates"].unique()
    if len(among) != 1:
        got = f"got {among.sort().to_list()[:3]} candidates"
        raise ArgumentError("ranks", f"must all be among the same number of negatives, {got}.")
    negatives = int(among[0]) - 1
    size = _sizes(num_entities, negatives)
    rank = (table["optimistic"].to_numpy() + table["pessimistic"].to_numpy()) // 2
    seen = np.bincount(rank - 1, minlength=negatives + 1) / len(rank)
    entity = pl.when(pl.col("side") == "tail").then("head").otherwise("tail")
    if "weight" in table.columns and (table["weight"] != 1).any():
        raise ArgumentError("ranks", "must not be weighted, because the band assumes equal weights.")
    counts = table.group_by("side", "relation", entity=entity).len()["len"].to_numpy().astype(float)
    # Answers to one query may be fully dependent, so the band uses the effective number of queries (Kish).
    band = np.sqrt(np.log(2 / (1 - ci)) / 2 * (counts**2).sum()) / counts.sum()
    grid = _grid(size, _weights(metrics))
    # The band is imposed at some places only, which can only widen the range and keeps the program small.
    places = np.unique(
        np.append(np.arange(min(_HELD, negatives)), np.geomspace(1, negatives, _HELD).astype(int) - 1)
    )
    steps = np.cumsum(_chances(grid, size, negatives), 0)[places]
    middle = np.cumsum(seen)[places]
    rows = []
    for weight in _weights(metrics):
        of_sampled = rank_weights(weight, np.arange(1.0, negatives + 2))
        low, high = _ends(weight, grid, steps, middle - band, middle + band)
        sampled = float(seen @ of_sampled)
        rows.append({"metric": weight.name, "sampled": sampled, "full_low": low, "full_high": high})
    return pl.DataFrame(rows)


def full_values_of_published(
    published: Mapping[str, float],
    metrics: str | Sequence[str] = ("mrr", "hits@1", "hits@10"),
    *,
    negatives: int,
    num_entities: int,
    rounding: float | Mapping[str, float] = 0.0005,
) -> pl.DataFrame:
    """Values of full evaluation that are consistent with published metrics of ranks among uniform negatives.

    Args:
        published: published values by metric, such as {"mrr": 0.98, "hits@10": 0.995}.
        metrics: metrics of full evaluation to bound. Default: mrr, hits@1 and hits@10.
        negatives: K, the number of negatives of each answer.
        num_entities: N, the number of candidates of full evaluation.
        rounding: half a unit of the last digit of the published values; one number, or a mapping from metric
            to number. Default 0.0005.

    Returns:
        One row for each metric: metric, full_low, full_high.

    Raises:
        ValueError: if no distribution of ranks has these metrics, or an argument is out of range.

    Examples:
        >>> found = full_values_of_published({"mrr": 0.9}, "mrr", negatives=500, num_entities=2_500_604)
        >>> low, high = found.select("full_low", "full_high").row(0)
        >>> low < 0.01, high > 0.85
        (True, True)
    """
    size = _sizes(num_entities, checks.whole("negatives", negatives, 1))
    if not published:
        raise ArgumentError("published", "must hold at least one metric, got none.")
    names = list(published)
    of_published, wanted = _weights(names, "published"), _weights(metrics)
    grid = _grid(size, [*wanted, *of_published])
    chances = _chances(grid, size, negatives)
    values = checks.real("published", [float(published[name]) for name in names], -np.inf, np.inf)
    if isinstance(rounding, Mapping) and (lacking := [name for name in names if name not in rounding]):
        raise ArgumentError("rounding", f"must have every published metric, but has no {lacking[0]!r}.")
    halves = [rounding[name] for name in names] if isinstance(rounding, Mapping) else rounding
    apart = checks.real("rounding", halves, 0, np.inf)
    drawn = np.stack([rank_weights(one, np.arange(1.0, negatives + 2)) for one in of_published])
    for name, value, own in zip(names, values - apart, drawn, strict=True):
        if value > own.max():
            hint = "; percentages are divided by 100" if own.max() == 1 else ""
            text = f"must be in [{own.min():.6g}, {own.max():.6g}] for {name}, got {published[name]!r}{hint}."
            raise ArgumentError("published", text)
    rows = []
    for weight in wanted:
        low, high = _ends(weight, grid, drawn @ chances, values - apart, values + apart)
        rows.append({"metric": weight.name, "full_low": low, "full_high": high})
    return pl.DataFrame(rows)


def _sizes(num_entities: ArrayLike, negatives: int) -> int:
    size = int(checks.whole("num_entities", num_entities, 1))
    if size <= negatives:
        raise ArgumentError("num_entities", f"must be more than the {negatives} negatives, got {size}.")
    return size


def _weights(metrics: str | Sequence[str], argument: str = "metrics") -> list[RankWeight]:
    found = []
    for name in checks.names(argument, metrics):
        with naming({}, f"`{argument}` must be valid: "):
            weight = rank_weight(name)
        if weight.link is not None or not weight.larger_is_better:
            raise ArgumentError(argument, f"{_REFUSED}, got {name}.")
        found.append(weight)
    if not found:
        raise ArgumentError(argument, "must name at least one metric, got none.")
    return found


def _grid(size: int, weights: Sequence[RankWeight]) -> Int[np.ndarray, "g"]:
    """Ranks of the grid: all first ranks, ranks at growing distances, the last, and K and K + 1 of Hits@K."""
    dense = np.arange(1, min(_DENSE, size) + 1)
    hits = [int(one.name.partition("@")[2]) for one in weights if one.name.startswith("hits@")]
    edges = [rank for k in hits for rank in (k, k + 1) if rank <= size]
    far = np.geomspace(dense[-1], size, _POINTS).astype(int)
    return np.unique(np.concatenate([dense, far, edges, [size]]).astype(int))


def _chances(grid: np.ndarray, size: int, negatives: int) -> Float[np.ndarray, "drawn g"]:
    """Probability of 0 .. K negatives ahead of the answer at each rank of full evaluation."""
    drawn, before = np.arange(negatives + 1)[:, None], grid[None] - 1
    behind = size - 1 - before
    possible = (drawn <= before) & (negatives - drawn <= behind)
    ways = _log_choose(before, np.minimum(drawn, before)) + _log_choose(
        behind, np.clip(negatives - drawn, 0, behind)
    )
    return np.where(possible, np.exp(ways - _log_choose(size - 1, negatives)), 0)


def _log_choose(n: int | np.ndarray, k: int | np.ndarray) -> float | np.ndarray:
    """Logarithm of n over k, exact to 1e-8 for millions; scipy's own distribution takes half a minute."""
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)


def _ends(
    weight: RankWeight, grid: np.ndarray, rows: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[float, float]:
    """Smallest and largest mean of the weight over distributions with low <= rows @ distribution <= high."""
    from scipy import sparse  # slow to import; few need it
    from scipy.optimize import linprog

    value = rank_weights(weight, grid.astype(float))
    bounds = np.concatenate([high, -low])
    # Bounds that no distribution can violate are dropped.
    both = np.concatenate([rows, -rows])
    tight = bounds < both.max(1)
    ends = []
    for sign in (1, -1):
        found = linprog(
            sign * value,
            A_ub=sparse.csr_matrix(both[tight]),
            b_ub=bounds[tight],
            A_eq=np.ones((1, len(grid))),
            b_eq=[1.0],
            bounds=(0, 1),
            method="highs",
        )
        if found.status == 2:
            raise ArgumentError(
                "published", "must be values that some distribution of ranks has, got values that none has."
            )
        if not found.success:
            raise RuntimeError(f"the linear program was not solved: {found.message}")
        ends.append(sign * float(found.fun))
    return ends[0], ends[1]

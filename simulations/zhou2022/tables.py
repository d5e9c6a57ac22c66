"""Tables of the published study of judged link prediction, computed from its files (Zhou et al. 2022)."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float64
from scipy import stats

from owkg.stats import divergence as divergence_of_counts
from owkg.stats.corrections import benjamini_hochberg, holm
from owkg.stats.discrimination import asl_area, discriminative_power
from owkg.stats.rank_correlation import COEFFICIENTS, kendall_tau
from simulations.zhou2022.published import CATEGORIES, POOLED, PRINTED_POOL, PRINTED_TAU, SC, O, S, Study

SMALLER = ("micro_mr", "macro_mr")
"""Metrics for which smaller is better."""

CELL_METRICS = ("micro_hits@1", "micro_hits@3", "micro_hits@10", "micro_mrr", "micro_mr")
"""Metrics of the tables by side and relation category."""

ALPHA = 0.05

# Sums of the same terms in another order differ by at most this rounding.
_DIGITS = 12
_ROUNDING = 1e-9
# Prefixes of the names of the other metrics.
_TREC = ("G", "P_", "R", "binG", "bpref", "gm_", "infAP", "map", "ndcg", "recall", "recip")


def strengths(
    table: pl.DataFrame, metrics: Sequence[str], by: str = "test_set"
) -> dict[Any, Float64[np.ndarray, "metrics systems"]]:
    """Metrics of systems, larger is better, by the values of a column; systems by name."""
    found = {}
    for (key,), part in table.group_by(by, maintain_order=True):
        values = part.sort("system").select(*metrics).to_numpy().T.astype(np.float64)
        found[key] = np.round(values, _DIGITS) * np.array([[-1.0 if m in SMALLER else 1.0] for m in metrics])
    return found


def pool_table(study: Study) -> pl.DataFrame:
    """Counts of pooled and judged triples, ours and the paper's (section 3): columns what, ours, paper."""
    pool = study.pool
    queries = {name: _queries(study.triples[name]) for name in (S, SC)}
    asked = _queries(pool).join(queries[S], on=["side", "entity", "relation"], how="semi")
    rows = {
        "pooled triples": len(pool),
        "entities": pl.concat([pool["head"], pool["tail"]]).n_unique(),
        "relations": pool["relation"].n_unique(),
        "pooled triples of no query of FB-Test-S": _strangers(pool, queries[S]),
        "queries of FB-Test-S": len(queries[S]),
        "queries of FB-Test-S with a pooled candidate": len(asked),
        "queries of FB-Test-S-C": len(queries[SC]),
        "queries of FB-Test-S-C that FB-Test-S has not": len(
            queries[SC].join(queries[S], on=["side", "entity", "relation"], how="anti")
        ),
        "filtered by rules": int(pool["filtered"].sum()),
        "judged by hand": int((~pool["filtered"]).sum()),
        **{f"triples of {name}": len(study.triples[name]) for name in (O, S, SC)},
    }
    for depth in range(1, 11):
        upto = pool.filter(pl.col("depth") <= depth)
        rows |= {f"pooled at depth {depth}": len(upto), f"filtered at depth {depth}": upto["filtered"].sum()}
        rows[f"positives at depth {depth}"] = upto["positive"].sum()
    found = pl.DataFrame({"what": list(rows), "ours": [int(count) for count in rows.values()]})
    return found.with_columns(paper=pl.col("what").replace_strict(PRINTED_POOL, default=None))


def most_pooled(study: Study, depth: int) -> int:
    """Largest number of candidates that a query of FB-Test-S has in the pool of a depth.

    Triples that answer two such queries, one on each side, are left out. Each system adds at most `depth`
    candidates, so that the pool of depth 1 shows how many systems there are.
    """
    query = ["side", "entity", "relation"]
    asked = _asked(study.pool.filter(pl.col("depth") <= depth).with_row_index("triple"))
    own = asked.join(_queries(study.triples[S]), on=query, how="semi").filter(pl.col("triple").is_unique())
    return int(own.group_by(query).len()["len"].to_numpy().max())


def ranking_table(study: Study) -> pl.DataFrame:
    """Agreement of the rankings by two test sets (Figure 3), a row for each metric and pair of test sets.

    The columns are metric, first, second, tau, tau-ap (the second is the truth), spearman and paper.
    """
    by_set = strengths(study.evaluation, study.metrics)
    rows = []
    for first, second in ((O, S), (S, SC), (O, SC)):
        found = {name: each(by_set[second], by_set[first]) for name, each in COEFFICIENTS.items()}
        printed = [PRINTED_TAU.get((first, second)) if m == "micro_mrr" else None for m in study.metrics]
        columns = {"metric": study.metrics} | found | {"paper": pl.Series(printed, dtype=pl.Float64)}
        rows.append(pl.DataFrame(columns).with_columns(first=pl.lit(first), second=pl.lit(second)))
    order = ["metric", "first", "second", *COEFFICIENTS, "paper"]
    return pl.concat(rows).select(order).fill_nan(None)


def cell_table(study: Study) -> pl.DataFrame:
    """Tau between FB-Test-S and FB-Test-S-C by asked side and relation category (Table 3).

    The columns are side, category, the triples of either test set, and each of `CELL_METRICS`.
    """
    counts = {name: _by_category(study, name) for name in (S, SC)}
    rows = []
    for side in ("head", "tail"):
        for category in CATEGORIES:
            part = study.cells.filter(pl.col("side") == side, pl.col("category") == category)
            by_set = strengths(part, CELL_METRICS)
            tau = kendall_tau(by_set[S], by_set[SC])
            sizes = {name: counts[name][category] for name in (S, SC)}
            row = {"side": side, "category": category} | sizes
            rows.append(row | dict(zip(CELL_METRICS, tau.tolist(), strict=True)))
    return pl.DataFrame(rows).fill_nan(None)


def reweighted_values(study: Study, test_set: str, shares: Mapping[str, float]) -> pl.DataFrame:
    """Micro metrics of a test set under other shares of the relations (Table 4).

    The value is the mean over the relations of the test set with weights `shares`; relations that the test
    set lacks are left out.

    Args:
        study: published files.
        test_set: FB-Test-O, FB-Test-S or FB-Test-S-C.
        shares: share of each relation.

    Returns:
        Columns system, and each micro metric, sorted by the name of the system.

    References:
        Zhou et al. (2022), equation 1.
    """
    weight = pl.col("relation").replace_strict(dict(shares), default=0.0, return_dtype=pl.Float64)
    metrics = [name for name in study.relations.columns if name.startswith("micro_")]
    part = study.relations.filter(pl.col("test_set") == test_set).with_columns(weight=weight)
    means = (pl.col(metrics) * pl.col("weight")).sum() / pl.col("weight").sum()
    return part.group_by("system").agg(means).sort("system")


def shares_of(study: Study, test_set: str) -> dict[str, float]:
    """Share of each relation among the triples of a test set."""
    counts = study.triples[test_set]["relation"].value_counts(normalize=True)
    return dict(counts.rows())


def reweighted_table(study: Study) -> pl.DataFrame:
    """Tau of FB-Test-S-C, under the relation distribution of each test set, to FB-Test-S and FB-Test-O.

    The columns are metric, shares (the test set whose shares are used), and tau to each of the two. Table 4
    is tau to FB-Test-S, by the shares of FB-Test-S-C (Complete) and of FB-Test-S (Sparse).
    """
    by_set = strengths(study.evaluation, CELL_METRICS)
    rows = []
    for name in (SC, S, O):
        values = reweighted_values(study, SC, shares_of(study, name)).with_columns(shares=pl.lit(name))
        found = strengths(values, CELL_METRICS, "shares")[name]
        tau = {f"tau to {other}": kendall_tau(found, by_set[other]) for other in (S, O)}
        rows.append(pl.DataFrame({"metric": CELL_METRICS} | tau).with_columns(shares=pl.lit(name)))
    return pl.concat(rows).select("metric", "shares", f"tau to {S}", f"tau to {O}").fill_nan(None)


def pooled_table(study: Study) -> pl.DataFrame:
    """Places that the pooled systems and the others gain from FB-Test-S to FB-Test-S-C, by metric.

    The columns are metric, pooled and others (mean gains, which sum to 0 over all systems), difference, p
    (two-sided, over all ways to choose as many systems), tau_pooled and tau_others (of the two rankings
    inside the group).
    """
    by_set = strengths(study.evaluation, study.metrics)
    systems = sorted(set(study.evaluation["system"]))
    of_pool = np.isin(systems, POOLED)
    gain = stats.rankdata(by_set[SC], axis=1) - stats.rankdata(by_set[S], axis=1)
    ways = np.array(list(combinations(range(len(systems)), int(of_pool.sum()))))
    # The gains sum to 0, so that the gains of one group determine the gains of the other.
    every, own = gain[:, ways].sum(2), gain[:, of_pool].sum(1)
    groups = {"pooled": of_pool, "others": ~of_pool}
    means = {name: gain[:, group].mean(1) for name, group in groups.items()}
    tau = {
        f"tau_{name}": kendall_tau(by_set[S][:, group], by_set[SC][:, group])
        for name, group in groups.items()
    }
    p = (np.abs(every) >= np.abs(own)[:, None] - _ROUNDING).mean(1)
    columns = {"metric": study.metrics} | means
    columns |= {"difference": means["pooled"] - means["others"], "p": p} | tau
    return pl.DataFrame(columns).fill_nan(None)


def divergence(one: pl.Series, other: pl.Series, relations: Sequence[str]) -> float:
    """Kullback-Leibler divergence of two relation distributions, in nats, from the relation of each triple.

    1 is added to the count of each of `relations`, so that no relation has zero triples. The paper prints
    neither this smoothing nor the order of the two distributions (section 3.2).
    """
    counts = (dict(column.value_counts().rows()) for column in (one, other))
    return divergence_of_counts(*([of.get(relation, 0) for relation in relations] for of in counts))


def spread_table(study: Study, system: str = "hitter") -> pl.DataFrame:
    """Micro MRR of a system over the relations of each test set (Figure 6).

    The columns are test_set, relations, and the quartiles lower, median, upper.
    """
    column = pl.col("micro_mrr")
    part = study.relations.filter(pl.col("system") == system)
    quartiles = {"lower": 0.25, "median": 0.5, "upper": 0.75}
    return part.group_by("test_set", maintain_order=True).agg(
        column.len().alias("relations"),
        *(column.quantile(q, interpolation="linear").alias(name) for name, q in quartiles.items()),
    )


def depth_table(study: Study) -> pl.DataFrame:
    """Tau of the rankings by pool depth, to the rankings of depth 0 and of depth 10 (Figures 4 and 5).

    The columns are metric, against, depth and tau.
    """
    by_depth = strengths(study.depths, study.metrics, "depth")
    depths = sorted(by_depth)
    values = np.stack([by_depth[depth] for depth in depths])
    rows = []
    for against in (depths[0], depths[-1]):
        tau = kendall_tau(by_depth[against], values)
        columns = {"depth": np.repeat(depths, len(study.metrics)), "tau": tau.ravel()}
        names = pl.Series("metric", list(study.metrics) * len(depths))
        rows.append(pl.DataFrame(columns).with_columns(names, against=pl.lit(against)))
    return pl.concat(rows).select("metric", "against", "depth", "tau").fill_nan(None)


def significance_table(study: Study) -> pl.DataFrame:
    """How well metrics tell systems apart by the published p-values (Figure 8).

    The columns are test_set, metric, pairs, area (of the ASL curve), and the shares of pairs significant at
    `ALPHA`: significant, and after Holm's and Benjamini and Hochberg's corrections over the pairs, holm and
    benjamini_hochberg.
    """
    rows = []
    for (name,), part in study.p_values.group_by("test_set", maintain_order=True):
        for metric in study.metrics:
            p = part[metric].to_numpy()
            shares = {
                "significant": discriminative_power(p, ALPHA),
                "holm": discriminative_power(holm(p), ALPHA),
                "benjamini_hochberg": discriminative_power(benjamini_hochberg(p), ALPHA),
            }
            row = {"test_set": name, "metric": metric, "pairs": len(p), "area": float(asl_area(p))}
            rows.append(row | {key: float(value) for key, value in shares.items()})
    return pl.DataFrame(rows)


def check_table(study: Study) -> pl.DataFrame:
    """Checks whether the published files agree with one another: columns check, of, difference (the largest).

    If the difference is more than rounding, there is one row for the system with the largest difference and
    one for the other systems.

    - Own shares of the relations give the totals, and the shares of FB-Test-S give the published re-weighted
      metrics.
    - The labels of depth 0 are FB-Test-S, and the labels of depth 10 are FB-Test-S-C.
    - The macro MRR is the reciprocal rank of the best answer (recip_rank); the difference varies by system.
    - P-values come from paired t tests whose units are answers (micro) or queries (macro): if so, the numbers
      of units on which hits of two systems differ, D = n (d^2 + (n - 1) d^2 / t^2), are whole; d is the
      difference of the metric, t the quantile of the p-value.
    """
    rows = []
    by_set = {name: part.sort("system") for (name,), part in study.evaluation.group_by("test_set")}
    for name in (O, S, SC):
        own = reweighted_values(study, name, shares_of(study, name))
        rows += _apart("own shares give the totals", name, own, by_set[name], own.columns[1:])
    other = reweighted_values(study, SC, shares_of(study, S))
    rows += _apart(f"shares of {S} give Table 4", SC, other, study.sparse.sort("system"), other.columns[1:])
    for depth, name in ((0, S), (10, SC)):
        at = study.depths.filter(pl.col("depth") == depth).sort("system")
        for family in ("micro", "macro", ""):
            metrics = [m for m in study.metrics if m.startswith(f"{family}_" if family else _TREC)]
            what = f"{name}, {family or 'other'} metrics"
            rows += _apart(f"depth {depth} is the file", what, at, by_set[name], metrics)
    for name, table in by_set.items():
        other = table.with_columns(macro_mrr="recip_rank")
        rows += _apart("macro MRR is recip_rank", str(name), table, other, ["macro_mrr"])
    for (name,), part in study.p_values.group_by("test_set", maintain_order=True):
        triples = study.triples[str(name)]
        for family, units in (("micro", 2 * len(triples)), ("macro", len(_queries(triples)))):
            off = max(_off_whole(part, by_set[name], f"{family}_hits@{k}", units) for k in range(1, 11))
            rows.append(("paired t over units", f"{name}, {family} hits, {units} units", off))
    columns = {"check": pl.String, "of": pl.String, "difference": pl.Float64}
    return pl.DataFrame(rows, schema=columns, orient="row")


def _apart(
    check: str, of: str, one: pl.DataFrame, two: pl.DataFrame, metrics: Sequence[str]
) -> list[tuple[str, str, float]]:
    """Largest difference; if it is not rounding, once for the system that has it, once for the rest."""
    by_system = np.abs(one.select(metrics).to_numpy() - two.select(metrics).to_numpy()).max(axis=1)
    if by_system.max() < _ROUNDING:
        return [(check, of, float(by_system.max()))]
    worst = int(by_system.argmax())
    others = float(np.delete(by_system, worst).max())
    return [
        (check, f"{of}, {one['system'][worst]}", float(by_system[worst])),
        (check, f"{of}, the others", others),
    ]


def _off_whole(pairs: pl.DataFrame, values: pl.DataFrame, metric: str, units: int) -> float:
    """Largest distance of the numbers of units that tell two systems apart from whole numbers."""
    read = dict(values.select("system", metric).rows())
    d = np.array([read[a] - read[b] for a, b in pairs.select("first", "second").rows()])
    p = pairs[metric].to_numpy()
    # A p-value of 1 does not determine the spread.
    told = (p > 0) & (p < 1)
    t = stats.t.isf(p[told] / 2, units - 1)
    apart = units * d[told] ** 2 * (1 + (units - 1) / t**2)
    return float(np.abs(apart - np.round(apart)).max())


def _by_category(study: Study, test_set: str) -> dict[str, int]:
    joined = study.triples[test_set].join(study.categories, on="relation", how="left")
    if joined["category"].null_count():
        lost = joined.filter(pl.col("category").is_null())["relation"][0]
        raise ValueError(f"`study` must have a category of every relation of {test_set}; none of {lost!r}.")
    counts = dict(joined.group_by("category").len().rows())
    return {category: counts.get(category, 0) for category in CATEGORIES}


def _queries(triples: pl.DataFrame) -> pl.DataFrame:
    """Queries that triples answer, each once: columns side, entity, relation."""
    return _asked(triples).select("side", "entity", "relation").unique()


def _asked(triples: pl.DataFrame) -> pl.DataFrame:
    """The two queries of each triple, with its other columns."""
    sides: Iterable[tuple[str, str]] = (("head", "tail"), ("tail", "head"))
    parts = [
        triples.select(pl.lit(side).alias("side"), pl.col(known).alias("entity"), pl.exclude("head", "tail"))
        for side, known in sides
    ]
    return pl.concat(parts)


def _strangers(pool: pl.DataFrame, queries: pl.DataFrame) -> int:
    """Number of pooled triples that answer none of the queries, on either side."""
    left = pool.with_columns(entity=pl.col("head"), side=pl.lit("tail"))
    left = left.join(queries, on=["side", "entity", "relation"], how="anti")
    left = left.with_columns(entity=pl.col("tail"), side=pl.lit("head"))
    return len(left.join(queries, on=["side", "entity", "relation"], how="anti"))

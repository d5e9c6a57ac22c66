"""Simulated judging campaigns in closed worlds: does an audit ever claim more than the judgements allow?

A world has true answers to queries, of which a test set knows a part. Systems rank by the truth, by noise and
by popularity, so that they retrieve missing answers more or less often than known ones. A campaign judges
some candidates with the truth: a pool to a depth, a pool within a budget, a pool of sampled queries, a sheet,
or sampled queries completely. Every audit of a campaign is compared with the truth.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl
import typer

from owkg.auditing import Audit, audit, judged_strengths
from owkg.auditing.result import HOLDS, HOLDS_IN_RANGE, REVERSED_IN_RANGE, no_stronger
from owkg.errors import ArgumentError
from owkg.ir import POOLED
from owkg.kg import KnowledgeGraph
from owkg.pools import pool, within_budget
from owkg.terminal.progress import progress
from owkg.terminal.tables import line, printed
from simulations.script import Out, Quick, command_line, run_package, save_table

_KEYS = ["query", "side", "entity", "relation", "answer"]
DESIGNS = ("pool", "budget", "sampled-pool", "sampled-budget", "complete", "sheet", "unknown")
_ENTITIES = 60
_LEVELS = (1 / 3, 2 / 3)


class World(NamedTuple):
    """A closed world with its test set and its systems.

    Attributes:
        graph: graph with the known answers as its test split.
        tables: ranks of the known answers, by system.
        lists: all candidates of each system.
        truth: every true answer to the queries, as judgements.
        full: MRR of each system among all true answers, and MRR among the known ones.
        sparsity: share of the true answers that the test set lacks.
    """

    graph: KnowledgeGraph
    tables: dict[str, pl.DataFrame]
    lists: dict[str, pl.DataFrame]
    truth: pl.DataFrame
    full: dict[str, float]
    sparsity: float


def world(
    seed: int, *, queries: int = 100, kind: str = "popularity", biases: tuple[float, ...] = ()
) -> World:
    """A world of one relation with queries for its tails.

    Args:
        seed: seed of all draws.
        queries: number of queries.
        kind: how facts go missing: independently, or by the popularity of their answers.
        biases: bias of each system towards popular entities. Default: drawn at random.
    """
    rng = np.random.default_rng(seed)
    popular = rng.normal(size=_ENTITIES)
    answers = rng.integers(2, 13, queries)
    true = np.zeros((queries, _ENTITIES), bool)
    for q, count in enumerate(answers):
        true[q, rng.choice(_ENTITIES, count, replace=False)] = True
    center, slope = rng.uniform(-1, 1), {"popularity": rng.uniform(0.5, 2), "independent": 0.0}[kind]
    gone = true & (rng.uniform(size=true.shape) < 1 / (1 + np.exp(-(center - slope * popular))))
    known = true & ~gone
    known[np.arange(queries), (true * rng.uniform(size=true.shape)).argmax(1)] |= ~known.any(1)
    gone = true & ~known
    biases = biases or tuple(rng.uniform(0, 1.5, 2))
    signal = rng.uniform(1, 2.5) + rng.uniform(-0.6, 0.6, len(biases))
    names = [f"s{i}" for i in range(len(biases))]
    tables, lists, full = {}, {}, {}
    for name, bias, own in zip(names, biases, signal, strict=True):
        score = own * true + bias * popular + rng.normal(size=true.shape)
        tables[name] = _ranks(score, known)
        lists[name] = _run(name, score)
        full[name] = float((1 / _ranks(score, true)["optimistic"].to_numpy()).mean())
    labels = tuple(f"h{q}" for q in range(queries)), tuple(f"t{e}" for e in range(_ENTITIES))
    query, tail = np.nonzero(known)
    test = np.stack([query, np.zeros_like(query), queries + tail], 1).astype(np.int32)
    train = np.array([[0, 1, 1]], np.int32)
    graph = KnowledgeGraph((*labels[0], *labels[1]), ("r", "s"), {"train": train, "test": test})
    judged = _pairs(*np.nonzero(true)).with_columns(relevance=pl.lit(1, pl.Int64))
    return World(graph, tables, lists, judged, full, float(gone.sum() / true.sum()))


def _ranks(score: np.ndarray, answers: np.ndarray) -> pl.DataFrame:
    """Filtered ranks of answers."""
    query, tail = np.nonzero(answers)
    open_ = np.where(answers, -np.inf, score)
    rank = 1 + (open_[query] > score[query, tail][:, None]).sum(1)
    frame = pl.DataFrame({"head": [f"h{q}" for q in query], "tail": [f"t{e}" for e in tail]})
    candidates = (_ENTITIES - answers.sum(1) + 1)[query]
    return frame.with_columns(
        relation=pl.lit("r"),
        side=pl.lit("tail"),
        candidates=pl.Series(candidates),
        optimistic=pl.Series(rank),
        pessimistic=pl.Series(rank),
        filtered=pl.lit(True),
    )


def _pairs(query: np.ndarray, tail: np.ndarray) -> pl.DataFrame:
    columns = {"query": [f"h{q}|r|?" for q in query], "entity": [f"h{q}" for q in query]}
    frame = pl.DataFrame(columns | {"answer": [f"t{e}" for e in tail]})
    return frame.with_columns(side=pl.lit("tail"), relation=pl.lit("r")).select(_KEYS)


def _run(name: str, score: np.ndarray) -> pl.DataFrame:
    """All candidates of a system."""
    frame = _pairs(*np.nonzero(np.isfinite(score)))
    return frame.select(pl.lit(name).alias("model"), *_KEYS, pl.Series("score", score.ravel()))


class Campaign(NamedTuple):
    """Judgements of one campaign.

    Attributes:
        design: name of the design.
        judged: all judgements.
        parts: the same campaign with fewer labels, the smallest first.
    """

    design: str
    judged: pl.DataFrame
    parts: list[pl.DataFrame]


def campaign(of: World, design: str, seed: int) -> Campaign:
    """A campaign that judges with the truth.

    Args:
        of: the world.
        design: one of `DESIGNS`.
        seed: seed of sampled queries, depths and budgets, and of the order of judging.
    """
    rng = np.random.default_rng(seed)
    # For an unknown design, the user states nothing about it.
    how = rng.choice(DESIGNS[:-1]) if design == "unknown" else design
    chosen = _facts(of) if how == "sheet" else pl.DataFrame()
    if how == "sheet" and chosen.is_empty():
        how = "budget"
    every = chosen
    if how != "sheet":
        run = pl.concat(of.lists.values())
        names = run["query"].unique().sort()
        if how in ("complete", "sampled-pool", "sampled-budget"):
            size = int(rng.integers(len(names) // 4, len(names)))
            run = run.filter(pl.col("query").is_in(rng.choice(names, size, replace=False).tolist()))
        every = chosen = pool(run, _ENTITIES if how == "complete" else int(rng.integers(1, 8)))
        if how in ("budget", "sampled-budget"):
            asked = every.join(_test(of), on=["query", "answer"], how="anti")
            chosen = within_budget(asked, int(rng.integers(5, max(len(asked), 6))), seed=seed)
    left = every.select(_KEYS).join(chosen, on=_KEYS, how="anti")
    judged = _labelled(of, chosen.select(_KEYS))
    order = rng.permutation(len(judged))
    parts = [_cut(judged, order < share * len(judged), sheet=how == "sheet") for share in _LEVELS]
    rest = left.with_columns(relevance=pl.lit(POOLED, pl.Int64))
    told = [pl.concat([one, rest]) for one in (*parts, judged)]
    return Campaign(design if design == "unknown" else str(how), told[-1], told[:-1])


def _facts(of: World) -> pl.DataFrame:
    """Candidates that an audit would have judged first."""
    facts = audit(of.tables, "mrr", graph=of.graph, lists=of.lists, test="t").facts
    return facts.select(_KEYS).unique(maintain_order=True)


def _test(of: World) -> pl.DataFrame:
    test = of.graph.splits["test"]
    return _pairs(test[:, 0], test[:, 2] - (of.graph.num_entities - _ENTITIES))


def _labelled(of: World, chosen: pl.DataFrame) -> pl.DataFrame:
    """The candidates with their true labels."""
    found = chosen.join(of.truth.select("query", "answer", "relevance"), on=["query", "answer"], how="left")
    return found.with_columns(pl.col("relevance").fill_null(0))


def _cut(judged: pl.DataFrame, stays: np.ndarray, *, sheet: bool) -> pl.DataFrame:
    """Keeps only some labels: unlabelled candidates stay in a pool but are dropped from a sheet."""
    if sheet:
        return judged.filter(pl.Series(stays))
    kept = pl.when(pl.Series(stays)).then("relevance").otherwise(POOLED)
    return judged.with_columns(relevance=kept.cast(pl.Int64))


class Told(NamedTuple):
    """An audit, with how much was judged and how much was stated.

    Attributes:
        judged, stated: levels; a higher level has more information.
        audit: the audit itself.
    """

    judged: int
    stated: int
    audit: Audit


def audits(of: World, one: Campaign) -> Iterator[Told]:
    """Audits of a campaign: all labels with fewer statements, and one statement with fewer labels."""
    rho = true_correlations(of)
    spread = (max(of.sparsity - 0.05, 0.0), min(of.sparsity + 0.05, 0.95))
    wide = (max(of.sparsity - 0.2, 0.0), min(of.sparsity + 0.3, 0.95))
    statements: list[dict[str, Any]] = [
        {},
        {"sparsity": wide},
        {"sparsity": spread},
        {"sparsity": spread, "correlation": rho},
    ]
    labels = [None, *one.parts, one.judged]
    last = len(labels) - 1
    rng = np.random.default_rng(len(one.judged))
    stated, fewer = (int(x) for x in rng.permutation(len(statements))[:2])
    part = int(rng.integers(1, last))
    for i, s in sorted({(last, stated), (last, fewer), (last, 0), (part, stated), (0, stated)}):
        given = {} if labels[i] is None else {"judged": labels[i], "design": one.design}
        try:
            found = audit(
                of.tables, "mrr", graph=of.graph, lists=of.lists, test="t", **given, **statements[s]
            )
        except ArgumentError as error:
            if "possible" in str(error) or "not known already" in str(error) or "leave" in str(error):
                continue  # the range is impossible for every system, or nothing was judged yet
            raise
        yield Told(i, s, found)


def true_correlations(of: World) -> tuple[float, float]:
    """Smallest and largest correlation of the systems, computed from the whole truth."""
    options: Any = {"design": "complete"}
    told = judged_strengths(of.tables, of.lists, of.truth, of.graph, **options)["correlation"].fill_null(0.0)
    return float(told.min()), float(told.max())  # pyright: ignore[reportArgumentType]


def faults(of: World, one: Campaign, told: list[Told]) -> dict[str, int]:
    """Counts of claims and errors in the audits of a campaign.

    Returns:
        `claims`: verdicts that hold whatever is missing or under the stated range; `stronger`: compared
        verdicts of which the audit with less information claims more; `beyond`: numbers that the design does
        not allow; `intervals`: intervals of sparsity and full-test metric printed without a stated sparsity;
        `excluded`: how many of these do not contain the truth.
    """
    count: dict[str, int] = dict.fromkeys(
        ("audits", "claims", "compared", "stronger", "beyond", "intervals", "excluded"), 0
    )
    count["audits"] = len(told)
    claimed = (HOLDS, HOLDS_IN_RANGE, REVERSED_IN_RANGE)
    count["claims"] = sum(verdict in claimed for each in told for verdict in each.audit.pairs["verdict"])
    for few in told:
        for more in told:
            if few is more or few.judged > more.judged or few.stated > more.stated:
                continue
            both = few.audit.pairs.join(more.audit.pairs, on=["first", "second"])
            for a, b in both.select("verdict", "verdict_right").rows():
                count["compared"] += 1
                count["stronger"] += not no_stronger(a, b)
    for each in told:
        if each.stated:
            continue
        frame, models = each.audit.judged, each.audit.models
        allowed = one.design == "complete" and each.audit.assumptions["design"] == "complete"
        if not allowed:
            columns = ("full", "full_low", "full_high", "strength")
            count["beyond"] += sum(int(models[name].is_not_null().sum()) for name in columns)
            columns = ("sparsity_high", "correlation", "missing_strength", "test_strength")
            count["beyond"] += sum(int(frame[name].is_not_null().sum()) for name in columns)
            count["beyond"] += int(each.audit.pairs["probability_low"].is_not_null().sum())
        least = each.audit.assumptions["sparsity_at_least"]
        checks = [] if least is None else [(least, 1.0, of.sparsity)]
        whole = frame.filter(pl.col("side").is_null())
        checks += [
            (row["sparsity_low"], row["sparsity_high"], of.sparsity)
            for row in whole.iter_rows(named=True)
            if row["sparsity_high"] is not None
        ][:1]
        checks += [
            (low, high, of.full[name])
            for name, low, high in models.select("model", "full_low", "full_high").rows()
            if low is not None
        ]
        count["intervals"] += len(checks)
        count["excluded"] += sum(not low - 1e-9 <= truth <= high + 1e-9 for low, high, truth in checks)
    return count


def campaigns(
    out: Out = Path("out"),
    number: Annotated[int, typer.Option(help="Number of campaigns, over all designs.", min=1)] = 500,
    start: Annotated[int, typer.Option(help="Seed of the first campaign.", min=0)] = 0,
    quick: Quick = False,
) -> None:
    """Simulates campaigns of every design and checks verdicts and numbers of their audits."""
    number = 14 if quick else number
    rows = []
    with progress("judging", "campaigns") as update:
        for seed in range(start, start + number):
            design = DESIGNS[seed % len(DESIGNS)]
            of = world(seed, kind=("popularity", "independent")[seed // len(DESIGNS) % 2])
            one = campaign(of, design, seed)
            told = list(audits(of, one))
            rows.append({"design": design, "seed": seed} | faults(of, one, told))
            update(len(rows), number, design)
            if len(rows) % 50 == 0:  # saves what an interrupted run has
                save_table(pl.DataFrame(rows), out / "judged_campaigns.csv")
    table = pl.DataFrame(rows)
    summed = table.group_by("design", maintain_order=True).agg(
        pl.len().alias("campaigns"), pl.exclude("seed").sum()
    )
    cells = [[str(cell) for cell in row] for row in summed.iter_rows()]
    printed("campaigns that judge with the truth", summed.columns, cells)
    line(f"wrote {out / 'judged_campaigns.csv'}", "dim")


def popularity(
    out: Out = Path("out"),
    number: Annotated[int, typer.Option(help="Number of worlds.", min=1)] = 500,
    quick: Quick = False,
) -> None:
    """Counts wrong verdicts when facts are missing by popularity and systems differ in popularity bias."""
    number = 6 if quick else number
    rows = []
    with progress("auditing", "worlds") as update:
        for seed in range(number):
            rng = np.random.default_rng([seed, 1])
            of = world(10_000 + seed, queries=200, biases=tuple(rng.uniform(0, 1.5, 3)))
            rho = true_correlations(of)
            statements: list[dict[str, Any]] = [{}, {"correlation": rho}]
            for given in statements:
                try:
                    found = audit(of.tables, "mrr", test="t", sparsity=of.sparsity, **given)
                except ArgumentError:
                    continue
                for row in found.pairs.iter_rows(named=True):
                    gap = of.full[row["first"]] - of.full[row["second"]]
                    right = gap > 0 if not row["verdict"].startswith("reversed") else gap < 0
                    rows.append({"seed": seed, "verdict": row["verdict"], "right": right})
            update(seed + 1, number, "")
            if (seed + 1) % 20 == 0:  # saves what an interrupted run has
                save_table(pl.DataFrame(rows), out / "judged_popularity.csv")
    table = pl.DataFrame(rows)
    save_table(table, out / "judged_popularity.csv")
    summed = table.group_by("verdict").agg(pairs=pl.len(), wrong=(~pl.col("right")).sum()).sort("verdict")
    printed(
        "verdicts on worlds with facts missing by popularity",
        summed.columns,
        [list(map(str, row)) for row in summed.iter_rows()],
    )
    wrong = table.filter(verdict=HOLDS_IN_RANGE)
    line(f"wrong under the stated range: {(~wrong['right']).sum()} of {len(wrong)}", "dim")


main = command_line(
    "simulations.judged_campaigns",
    {"campaigns": campaigns, "popularity": popularity},
    {"campaigns": "campaigns --out out", "popularity": "popularity --out out"},
)

if __name__ == "__main__":
    run_package(main)

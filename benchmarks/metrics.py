"""Speed of rank metrics, intervals and ranking, compared with PyKEEN and ranx if installed, and with limits.

The limit of a pass over ranks or scores is the time that the machine needs to read the same bytes once. The
limit of the bootstrap is the time to draw the same random numbers. PyKEEN computes the same metrics of the
same ranks under one tie rule; its bootstrap draws single ranks, ours draws whole queries.

    python benchmarks/metrics.py --out out

PyKEEN and ranx are not installed with owkg: `pip install pykeen==1.11.1 ranx`.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import jax
import numpy as np
import polars as pl
import typer

from benchmarks.timing import fastest, machine, once, peak_gib
from owkg import ir, metrics, ranks, stats
from owkg.files.storage import writable_folder
from owkg.metrics import chance
from owkg.rank_weights import HMR
from simulations.script import Out, Quick, run_script, save_table

_PLAIN = ("mr", "mrr", "imr", "hmr", "gmr", "igmr", "median_rank", "hits@1", "hits@3", "hits@5", "hits@10")
NAMES = (
    *_PLAIN,
    *("amr", "amri", "amrr", "agmri", "aimr", "ahmri", "aigmr", "amedian_ranki"),
    *("ahits@1", "ahits@3", "ahits@5", "ahits@10"),
    *("zmr", "zmrr", "zgmr", "zimr", "zhmr", "zigmr", "zmedian_rank"),
    *("zhits@1", "zhits@3", "zhits@5", "zhits@10", "count"),
)
FIVE = ("mrr", "hits@1", "hits@10", "amri", "gmr")
# FB15k-237: entities, and ranks of its test triples as PyKEEN keeps them.
_ENTITIES = 14_541
_TEST_RANKS = 40_876


@dataclass(frozen=True)
class Config:
    """Sizes of the timed problems."""

    ranks: int = 10_000_000
    replicates: int = 1000
    peer_replicates: int = 20
    scored: int = 4096
    queries: int = 1000
    depth: int = 1000
    repeats: int = 3


def drawn_ranks(
    count: int, *, tied: float = 0.2, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Optimistic and pessimistic ranks, candidates and queries of a model better than random ranking."""
    rng = np.random.default_rng(seed)
    candidates = (_ENTITIES - rng.integers(0, 1500, count)).astype(np.int32)
    optimistic = np.clip(np.ceil(candidates * rng.random(count) ** 4), 1, candidates).astype(np.int32)
    width = np.where(rng.random(count) < tied, rng.integers(1, 50, count), 0)
    pessimistic = np.minimum(optimistic + width, candidates).astype(np.int32)
    query = np.sort(rng.integers(0, max(1, count * 7 // 10), count)).astype(np.int32)
    return optimistic, pessimistic, candidates, query


def pykeen_metrics() -> list[Any] | None:
    """PyKEEN's rank metrics with Hits at 1, 3, 5, 10; None if PyKEEN is not installed."""
    if find_spec("pykeen") is None:
        return None
    from pykeen.evaluation import RankBasedEvaluator  # pyright: ignore[reportMissingImports]

    return RankBasedEvaluator().metrics


def time_metrics(config: Config, rows: list[tuple]) -> None:
    """Times all metrics of many ranks, without and with intervals."""
    optimistic, pessimistic, candidates, query = drawn_ranks(config.ranks)
    wanted = [metrics.metric(name) for name in NAMES]
    columns = (optimistic, pessimistic, candidates)
    read = fastest(lambda: [int(column.sum()) for column in columns], config.repeats)
    what = f"{len(NAMES)} metrics of {config.ranks:,} ranks"

    def from_arrays() -> None:
        metrics.evaluate(metrics.tasks(*columns, query=query), wanted, level=None)

    seconds = fastest(from_arrays, config.repeats)
    rows.append((f"{what}, 4 tie rules, checks and all", config.ranks, seconds, seconds / read, peak_gib()))
    tasks = metrics.tasks(*columns, query=query)
    exact = (metrics.Ties.EXACT,)
    seconds = fastest(lambda: metrics.evaluate(tasks, wanted, ties=exact, level=None), config.repeats)
    rows.append((f"{what}, 1 tie rule", config.ranks, seconds, seconds / read, peak_gib()))
    seconds = once(lambda: metrics.evaluate(tasks, wanted, ties=exact))
    rows.append(
        (
            f"{what}, 1 tie rule, intervals over {tasks.num_queries:,} queries",
            config.ranks,
            seconds,
            seconds / read,
            peak_gib(),
        )
    )
    rows.append(("reading these ranks once", config.ranks, read, 1.0, None))

    peers = pykeen_metrics()
    if peers is None:
        print("PyKEEN is not installed: not timed")
        return
    realistic, counts = (optimistic + pessimistic) / 2, candidates.astype(np.int64)
    seconds = once(lambda: [metric(ranks=realistic, num_candidates=counts) for metric in peers])
    what = f"PyKEEN, {len(peers)} metrics of {config.ranks:,} ranks, 1 tie rule"
    rows.append((what, config.ranks, seconds, seconds / read, peak_gib()))


def rank_table(count: int) -> pl.DataFrame:
    """Rank table of about `count` rows, with both sides of random triples, like FB15k-237 but larger."""
    rng = np.random.default_rng(0)
    low, high, _, _ = drawn_ranks(count // 2 * 2)
    columns = {
        "head": rng.integers(0, _ENTITIES, count // 2),
        "relation": rng.integers(0, 237, count // 2),
        "tail": (_ENTITIES * rng.random(count // 2) ** 2).astype(np.int64),
    }
    triples = pl.DataFrame(columns).unique(maintain_order=True)
    sides = pl.concat([triples.with_columns(side=pl.lit(side)) for side in ("head", "tail")])
    known = pl.when(side="head").then("tail").otherwise("head")
    sides = sides.with_columns(candidates=_ENTITIES - sides.select(known=known)["known"] % 1500)
    most = sides["candidates"].to_numpy()
    return sides.with_columns(
        optimistic=np.minimum(low[: len(sides)], most),
        pessimistic=np.minimum(high[: len(sides)], most),
        candidates=most,
    )


def time_command(config: Config, rows: list[tuple]) -> None:
    """Times `owkg metrics` with all defaults, including start-up and file, and reading the file alone."""
    read = "import polars as pl; pl.read_parquet({!r}).select('head', 'relation', 'side').n_unique()"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ranks.parquet"
        table = rank_table(config.ranks)
        table.write_parquet(path)
        what = f"owkg metrics, a file of {len(table):,} ranks"
        commands = {
            what: ["-m", "owkg", "metrics", str(path)],
            f"{what}, --format json": ["-m", "owkg", "metrics", str(path), "--format", "json"],
            "polars reads that file and counts the queries of a side": ["-c", read.format(str(path))],
        }
        seconds, peaks = {}, {}
        for name, command in commands.items():
            begun = time.perf_counter()
            child = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)  # noqa: S603
            _, status, usage = os.wait4(child.pid, 0)
            if status:
                raise RuntimeError(f"`{' '.join(command)}` ended with status {status}")
            seconds[name], peaks[name] = time.perf_counter() - begun, usage.ru_maxrss / 2**20
        limit = seconds[list(commands)[-1]]
        rows += [(name, len(table), seconds[name], seconds[name] / limit, peaks[name]) for name in commands]


def time_bootstrap(config: Config, rows: list[tuple]) -> None:
    """Times replicates of five metrics on as many ranks as FB15k-237's test triples give."""
    optimistic, pessimistic, candidates, query = drawn_ranks(_TEST_RANKS)
    tasks = metrics.tasks(optimistic, pessimistic, candidates, query=query)
    wanted = [metrics.metric(name) for name in FIVE]
    key = jax.random.key(0)
    count = tasks.num_queries

    @jax.jit
    def draws(key: jax.Array) -> jax.Array:
        keys = jax.random.split(key, config.replicates)
        return jax.lax.map(lambda k: jax.random.bits(k, (count,)).sum(), keys, batch_size=64)

    limit = fastest(lambda: jax.block_until_ready(draws(key)), config.repeats)

    def bootstrap() -> object:
        return metrics.evaluate(
            tasks,
            wanted,
            ties=(metrics.Ties.REALISTIC,),
            interval=stats.IntervalMethod.BCA,
            replicates=config.replicates,
            key=key,
        )

    what = f"{config.replicates:,} replicates of 5 metrics on {_TEST_RANKS:,} ranks"
    seconds = fastest(bootstrap, config.repeats)
    rows.append((f"{what}, whole queries, BCa", config.replicates, seconds, seconds / limit, peak_gib()))
    rows.append(("drawing these random numbers", config.replicates, limit, 1.0, None))
    if find_spec("pykeen") is None:
        return
    from pykeen.metrics.ranking import rank_based_metric_resolver as resolver  # pyright: ignore[reportMissingImports]

    peers = [
        resolver.make(name, options)
        for name, options in (
            ("InverseHarmonicMeanRank", None),
            ("HitsAtK", {"k": 1}),
            ("HitsAtK", {"k": 10}),
            ("AdjustedArithmeticMeanRankIndex", None),
            ("GeometricMeanRank", None),
        )
    ]
    realistic, counts = (optimistic + pessimistic) / 2, candidates.astype(np.int64)
    rng = np.random.default_rng(0)

    def resample() -> None:
        for _ in range(config.peer_replicates):
            picks = rng.integers(_TEST_RANKS, size=_TEST_RANKS)
            for metric in peers:
                metric(ranks=realistic[picks], num_candidates=counts[picks])

    seconds = once(resample) * config.replicates / config.peer_replicates
    what = f"PyKEEN, the same, single ranks (from {config.peer_replicates} replicates)"
    rows.append((what, config.replicates, seconds, seconds / limit, None))


def time_chance(config: Config, rows: list[tuple]) -> None:
    """Times the chance level of the harmonic mean rank: quadrature against PyKEEN's sampling."""
    _, _, candidates, _ = drawn_ranks(_TEST_RANKS)
    seconds = fastest(lambda: chance.reciprocal_chance(HMR, 1.0, chance.Shapes(candidates)), config.repeats)
    rows.append((f"chance level of hmr, {_TEST_RANKS:,} tasks, exact", 1, seconds, None, None))
    if find_spec("pykeen") is None:
        return
    from pykeen.metrics.ranking import HarmonicMeanRank  # pyright: ignore[reportMissingImports]

    counts, found, draws = candidates.astype(np.int64), [], 100
    generator = np.random.default_rng(0)
    seconds = once(
        lambda: found.append(
            HarmonicMeanRank().numeric_expected_value(
                num_candidates=counts, num_samples=draws, generator=generator, memory_intense=False
            )
        )
    )
    error = abs(found[0] / chance.reciprocal_chance(HMR, 1.0, chance.Shapes(candidates)).expectation - 1)
    what = f"PyKEEN, the same, {draws} draws ({error:.2%} off)"
    rows.append((what, 1, seconds, None, None))


def time_ranking(config: Config, rows: list[tuple]) -> None:
    """Times raw ranks from scores, and reading the scores once."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(config.scored, _ENTITIES)).astype(np.float32)
    target = rng.integers(0, _ENTITIES, config.scored)
    read = fastest(lambda: float(scores.sum()), config.repeats)
    seconds = fastest(lambda: ranks.ranks_from_scores(scores, target), config.repeats)
    what = f"ranks of {config.scored:,} x {_ENTITIES:,} scores"
    rows.append((what, scores.size, seconds, seconds / read, peak_gib()))
    rows.append(("reading these scores once", scores.size, read, 1.0, None))


def time_retrieval(config: Config, rows: list[tuple]) -> None:
    """Times AP, nDCG@20 and reciprocal rank of judged lists, compared with ranx and trec_eval."""
    rng = np.random.default_rng(0)
    names = np.array([f"d{i:06d}" for i in range(config.depth)])
    queries = np.repeat([f"q{i:05d}" for i in range(config.queries)], config.depth)
    answers, scores = np.tile(names, config.queries), rng.random(config.queries * config.depth)
    relevances = (rng.random(scores.size) < 0.02).astype(np.int64)
    run = pl.DataFrame({"query": queries, "answer": answers, "score": scores})
    qrels = pl.DataFrame({"query": queries, "answer": answers, "relevance": relevances})
    qrels = qrels.filter(rng.random(scores.size) < 0.5)

    def ours() -> None:
        judged = ir.judge(run, qrels)
        _ = ir.average_precision(judged), ir.ndcg(judged, 20), ir.reciprocal_rank(judged)

    what = f"AP, nDCG@20, RR of {config.queries:,} lists of {config.depth:,}"
    rows.append((what, scores.size, fastest(ours, config.repeats), None, peak_gib()))
    if find_spec("ranx") is None and find_spec("pytrec_eval") is None:
        print("neither ranx nor pytrec_eval is installed: not timed")
        return
    as_dict: list[dict] = []
    for frame, value in ((run, "score"), (qrels, "relevance")):
        nested: dict[str, dict[str, Any]] = {}
        for query, answer, number in frame.select("query", "answer", value).iter_rows():
            nested.setdefault(query, {})[answer] = number
        as_dict.append(nested)
    if find_spec("ranx") is not None:
        import ranx  # pyright: ignore[reportMissingImports]

        def theirs() -> None:
            ranx.evaluate(ranx.Qrels(as_dict[1]), ranx.Run(as_dict[0]), ["map", "ndcg@20", "mrr"])

        rows.append(("ranx, the same, from dictionaries", scores.size, fastest(theirs, 1), None, None))
    if find_spec("pytrec_eval") is not None:
        import pytrec_eval  # pyright: ignore[reportMissingImports]

        def trec_eval() -> None:
            wanted = {"map", "ndcg_cut_20", "recip_rank"}
            pytrec_eval.RelevanceEvaluator(as_dict[1], wanted).evaluate(as_dict[0])

        rows.append(
            ("pytrec_eval, the same, from dictionaries", scores.size, fastest(trec_eval, 1), None, None)
        )


def run(config: Config) -> pl.DataFrame:
    """The table: what, how much, seconds, rate, ratio to the limit, memory."""
    rows: list[tuple] = []
    for part in (time_metrics, time_command, time_bootstrap, time_chance, time_ranking, time_retrieval):
        part(config, rows)
    columns = ["what", "count", "seconds", "times_limit", "peak_gib"]
    return pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None).with_columns(
        per_second=pl.col("count") / pl.col("seconds")
    )


def main(
    out: Out = Path("out"),
    quick: Quick = False,
    repeats: Annotated[int, typer.Option(help="Number of timed calls; the fastest counts.", min=1)] = 3,
) -> None:
    """Times rank metrics, intervals and ranking, and writes the table."""
    writable_folder(out)
    sizes = {"ranks": 1_000_000, "replicates": 200, "scored": 512, "queries": 200} if quick else {}
    print(machine())
    table = run(Config(repeats=repeats, **sizes))
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=180, fmt_str_lengths=80,
                   tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):  # fmt: skip
        print(table)
    save_table(table, out / "benchmark_metrics.csv")


if __name__ == "__main__":
    run_script(main)

"""Growth of time and memory with size: every kernel from 10^3 to 10^8, and what larger sizes would take.

Each size runs in a process of its own, whose peak memory counts with its inputs. The mean of as many calls
counts as fit into three seconds, after one that compiles, so that all sizes are measured at the same
sustained speed. A kernel stops growing before a size that would take longer than half a minute, or more
memory than is free. The slope is the power of the size by which seconds grew over the last tenfold step: 1 is
linear. A kernel leaves linear time at the first size whose seconds an item are 1.5 times those of a smaller
size of at least 10^4.

The last table continues this step, on this machine and on a cluster: 16 Amazon r7a.24xlarge machines, each
with 96 cores and 768 GiB. It assumes that every item more takes as many seconds and bytes as in the last
step, and cores as fast as those of this machine. Most kernels run in one process, so that a cluster does
not shorten them. Trials and queries need nothing of each other, and can be divided among all cores; the
column `divided` has the number of cores. `breaks` names what a row lacks: memory of one machine, or time,
if it takes longer than a week.

    python benchmarks/growth.py --out out
    python benchmarks/growth.py --kernels trials,moments --seconds 20

The script writes up to 2 GB of inputs into the folder that TMPDIR names.
"""

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

# When this file is run as a script, the files in its folder would hide packages of the same names.
sys.path[:] = [entry for entry in sys.path if Path(entry).absolute() != Path(__file__).parent]

import jax
import numpy as np
import polars as pl
import psutil
import typer

from benchmarks.timing import machine, measured_command, once, peak_gib
from owkg.files.storage import free_memory, writable_folder
from owkg.plots.figure import COLOURS, figure
from simulations.script import Out, run_script, save_figure, save_table

SIZES = tuple(10**power for power in range(3, 9))
"""Sizes that a kernel may reach."""

# Seconds after which calls are no longer repeated, and of a call that is not repeated.
_ENOUGH_S, _LONG_S = 3.0, 20.0
# Factor that leaves linear time, and the smallest size that it is compared with.
_BEND, _FROM = 1.5, 10**4
# Growth of memory over a tenfold step in GiB that counts; less is noise.
_NOISE_GIB = 0.05
# Share of the free memory that a size may take, and seconds after which a result is late.
_FREE, _LATE_S = 0.9, 7 * 86_400
# Rows of one file of ranks; more are several files.
_FILE = 10**7

Call = Callable[[], object]


def _trials(size: int, folder: Path) -> Call:
    from owkg import simulate
    from owkg.rank_weights import MRR

    setting = {"strength": 0.7, "sparsity": 0.35, "num_answers": 43, "num_entities": 14_505}
    return lambda: simulate.estimate(jax.random.key(0), MRR, trials=size, **setting)


def _moments(size: int, folder: Path) -> Call:
    from owkg import theory
    from owkg.rank_weights import MRR

    rng = np.random.default_rng(0)
    settings = {
        "strength": rng.uniform(0, 1, size),
        "sparsity": rng.uniform(0.01, 0.99, size),
        "num_answers": rng.integers(1, 65, size),
        "num_entities": 14_541,
    }
    return lambda: theory.moments(MRR, **settings)


def _ranks(size: int, folder: Path) -> Call:
    from benchmarks.metrics import NAMES, drawn_ranks
    from owkg import metrics

    *columns, query = drawn_ranks(size)
    wanted = [metrics.metric(name) for name in NAMES]
    return lambda: metrics.evaluate(metrics.tasks(*columns, query=query), wanted, level=None)


def _rank_files(size: int, folder: Path) -> list[str]:
    from benchmarks.metrics import rank_table

    table = rank_table(min(size, _FILE))
    for part in range(max(1, size // _FILE)):
        own = table.with_columns(relation=pl.col("relation") + 237 * part)
        own.write_parquet(folder / f"ranks{part}.parquet")
    return ["metrics", str(folder if size > _FILE else folder / "ranks0.parquet")]


def _bootstrap(size: int, folder: Path) -> Call:
    from benchmarks.metrics import FIVE, drawn_ranks
    from owkg import metrics, stats

    optimistic, pessimistic, candidates, _ = drawn_ranks(size)
    tasks = metrics.tasks(optimistic, pessimistic, candidates, query=np.arange(size))
    wanted, rule = [metrics.metric(name) for name in FIVE], (metrics.Ties.REALISTIC,)
    return lambda: metrics.evaluate(
        tasks, wanted, ties=rule, interval=stats.IntervalMethod.BCA, replicates=1000, key=jax.random.key(0)
    )


def _randomisation(size: int, folder: Path) -> Call:
    from benchmarks.judge import example
    from owkg.judge.significance import pairwise

    scores, key = example(size), jax.random.key(0)
    return lambda: pairwise(scores, "macro mrr", test="randomisation", key=key, draws=1000)


def _lists(size: int, folder: Path) -> Call:
    from owkg import ir

    rng, depth = np.random.default_rng(0), 100
    columns = {
        "query": np.repeat(np.arange(size // depth), depth),
        "answer": np.tile(np.arange(depth), size // depth),
    }
    frame = pl.DataFrame(columns).with_columns(pl.all().cast(str))
    run = frame.with_columns(score=pl.Series(rng.random(len(frame))))
    qrels = frame.with_columns(relevance=pl.Series((rng.random(len(frame)) < 0.02).astype(np.int64)))

    def call() -> None:
        judged = ir.judge(run, qrels)
        _ = ir.average_precision(judged), ir.ndcg(judged, 20), ir.reciprocal_rank(judged)

    return call


def _ranking(size: int, folder: Path) -> Call:
    from owkg import evaluation
    from owkg.models import Trained, model

    scorer = model("distmult", dim=64, reciprocal=False)
    trained = Trained(scorer, *jax.block_until_ready(scorer.init(jax.random.key(0), size, 1)))
    rng = np.random.default_rng(0)
    triples = np.stack([rng.integers(0, n, 256) for n in (size, 1, size)], axis=1)
    return lambda: evaluation.rank_arrays(trained, triples, "tail", known=None)


def _known(size: int, folder: Path) -> Call:
    from owkg.kg import known_answers

    rng, entities = np.random.default_rng(0), max(2, size // 20)
    triples = np.empty((size, 3), np.int32)
    for column, count in enumerate((entities, 1000, entities)):
        triples[:, column] = rng.random(size, np.float32) ** 3 * (count - 1)
    return lambda: known_answers(triples, "tail", num_entities=entities, num_relations=1000)


def _graph_file(size: int, folder: Path) -> list[str]:
    from benchmarks.large_graph import write_power_law_graph

    write_power_law_graph(folder / "graph", size, labels=True)
    return ["kg", "info", str(folder / "graph")]


def _step(size: int, folder: Path) -> Call:
    from benchmarks.training_rows import stepping_by

    return stepping_by(size, 1000, ("rows",))["rows"]


def _people(size: int, folder: Path) -> list[str]:
    return ["family-tree", "generate", str(folder / "tree"), "--num-trees", str(max(1, round(size / 300)))]


class Kernel(NamedTuple):
    """Kernel whose growth is measured.

    Attributes:
        what: what it does.
        unit: one item of the size.
        made: function of (size, folder for files) that returns a call to time, or words of an `owkg` command.
        in_parts: whether it reads in parts what does not fit in memory.
    """

    what: str
    unit: str
    made: Callable[[int, Path], Call | list[str]]
    in_parts: bool = False


KERNELS = {
    "trials": Kernel("Monte Carlo, 43 answers", "trial", _trials),
    "moments": Kernel("exact moments", "setting", _moments),
    "ranks": Kernel("35 metrics, 4 tie rules, in memory", "rank", _ranks),
    "rank files": Kernel("`owkg metrics`", "rank", _rank_files, in_parts=True),
    "bootstrap": Kernel("1,000 replicates of 5 metrics", "query", _bootstrap),
    "randomisation": Kernel("78 pairs of 13 systems, 1,000 sign flips", "query", _randomisation),
    "lists": Kernel("AP, nDCG@20, RR of lists of 100", "answer", _lists),
    "ranking": Kernel("256 queries ranked, 64 numbers an entity", "entity", _ranking),
    "known answers": Kernel("known answers of tails", "triple", _known),
    "graph files": Kernel("`owkg kg info`, labels", "triple", _graph_file),
    "step": Kernel("4 training steps of rows, 128 numbers an entity", "entity", _step),
    "people": Kernel("`owkg family-tree generate`", "person", _people),
}
"""Kernels by name."""


def measured(name: str, size: int) -> dict[str, float]:
    """Seconds and peak GiB of one size, in this process, or in that of the command."""
    with tempfile.TemporaryDirectory(prefix="owkg-growth-") as folder:
        made = KERNELS[name].made(size, Path(folder))
        if isinstance(made, list):
            _, seconds, peak = measured_command([sys.executable, "-m", "owkg", *made])
            return {"seconds": seconds, "peak_gib": peak}
        first = once(made)  # compiles
        times = [first] if first > _LONG_S else []
        while sum(times) < _ENOUGH_S:
            times.append(once(made))
        return {"seconds": sum(times) / len(times), "peak_gib": peak_gib()}


def grown(name: str, sizes: tuple[int, ...], longest: float) -> list[dict[str, Any]]:
    """Rows of a kernel by size, the last with the reason why it did not grow further."""
    rows: list[dict[str, Any]] = []
    for size in sizes:
        if why := _too_large(rows, size, longest):
            rows[-1]["stopped"] = why
            break
        begin = time.perf_counter()
        code = "import json, sys; from benchmarks.growth import measured; "
        code += "print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))))"
        command = [sys.executable, "-c", code, name, str(size)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
        if done.returncode:
            print(
                f"{name}, {size:,}: {(done.stderr.strip().splitlines() or ['killed'])[-1][:300]}", flush=True
            )
            if rows:
                rows[-1]["stopped"] = "memory" if done.returncode < 0 else "an error"
            break
        row: dict[str, Any] = {
            "kernel": name,
            "size": size,
            "took_s": time.perf_counter() - begin,
            "stopped": "",
        }
        rows.append(row | json.loads(done.stdout.splitlines()[-1]))
        print(f"{name}: {size:,}, {rows[-1]['seconds']:.4g} s, {rows[-1]['peak_gib']:.3g} GiB", flush=True)
    return rows


def _too_large(rows: list[dict[str, Any]], size: int, longest: float) -> str:
    """Time or memory, whichever a size would take too much of, by the growth since the first; "" if none."""
    if len(rows) < 2:
        return ""

    def expected(what: str) -> float:
        first, last = rows[0][what], rows[-1][what]
        return first + max(0.0, last - first) * size / rows[-1]["size"]

    free = (free_memory() or psutil.virtual_memory().available) / 2**30
    if expected("seconds") > longest or expected("took_s") > 3 * longest:
        return "time"
    return "memory" if expected("peak_gib") > _FREE * free else ""


def slopes(rows: pl.DataFrame) -> pl.DataFrame:
    """A row for each kernel: its largest size, slope, bytes an item, and where it leaves linear time."""
    result = []
    for name in rows["kernel"].unique(maintain_order=True):
        own = rows.filter(kernel=name)
        last = _last_step(own)
        result.append(
            {
                "what": KERNELS[name].what,
                "unit": KERNELS[name].unit,
                "largest_size": own["size"][-1],
                "seconds": own["seconds"][-1],
                "slope": last and last.slope,
                "leaves_linear_time_at": _bend(own),
                "peak_gib": own["peak_gib"][-1],
                "bytes_an_item": (last and last.bytes) or None,
                "fits_this_machine_up_to": last and last.fits(_here_gib()),
                "stopped_by": own["stopped"][-1],
            }
        )
    return pl.DataFrame(result, infer_schema_length=None)


def _bend(own: pl.DataFrame) -> int | None:
    """First size whose seconds an item are 1.5 times the fewest of smaller sizes, or None."""
    each = own.select("size", each=pl.col("seconds") / pl.col("size")).filter(pl.col("size") >= _FROM)
    late = each.filter(pl.col("each") > _BEND * pl.col("each").cum_min().shift(1))
    return None if late.is_empty() else late["size"][0]


class Step(NamedTuple):
    """Growth from the last size but one to the last.

    Attributes:
        slope: power of the size by which the seconds grew.
        rate: seconds of one more item.
        bytes: bytes an item; 0 if memory does not grow, or larger inputs are read in parts.
        base_gib: memory without items.
        size, seconds: of the last size.
    """

    slope: float
    rate: float
    bytes: float
    base_gib: float
    size: int
    seconds: float

    def seconds_of(self, size: int) -> float:
        """Seconds of a size, if every item more takes as long as in this step."""
        return self.seconds + self.rate * (size - self.size)

    def fits(self, gib: float) -> int | None:
        """Size at which a memory is full, with one digit; None if memory does not grow."""
        return rounded(max(1.0, gib - self.base_gib) * 2**30 / self.bytes) if self.bytes >= 1 else None


def _last_step(own: pl.DataFrame) -> Step | None:
    if len(own) < 2:
        return None
    before, last = own.tail(2).to_dicts()
    grew = last["peak_gib"] - before["peak_gib"]
    counts = grew > _NOISE_GIB and not KERNELS[last["kernel"]].in_parts
    return Step(
        math.log(last["seconds"] / before["seconds"]) / math.log(last["size"] / before["size"]),
        max(0.0, last["seconds"] - before["seconds"]) / (last["size"] - before["size"]),
        grew * 2**30 / (last["size"] - before["size"]) if counts else 0.0,
        own["peak_gib"][0] if counts else last["peak_gib"],
        last["size"],
        last["seconds"],
    )


def rounded(value: float) -> int:
    """A number with one significant digit, downwards."""
    power = 10 ** math.floor(math.log10(value))
    return int(value // power * power)


def _here_gib() -> float:
    return psutil.virtual_memory().total / 2**30


class Cluster(NamedTuple):
    """Machines of one kind."""

    name: str = "16 Amazon r7a.24xlarge"
    machines: int = 16
    cores: int = 96
    gib: float = 768.0


class Wished(NamedTuple):
    """Work on data of the size of the web.

    Attributes:
        what: with its size in words.
        kernel: kernel that it takes.
        size: items of the kernel.
        times: how many times the kernel.
        divided: "cluster", if its parts need nothing of each other; "machine": one process, on as many cores
            as here.
    """

    what: str
    kernel: str
    size: int
    times: float
    divided: str


WISHED = (
    Wished("10^12 trials", "trials", 10**12, 1, "cluster"),
    Wished("metrics of 10^9 ranks from files", "rank files", 10**9, 1, "machine"),
    Wished("metrics of 10^9 ranks in memory", "ranks", 10**9, 1, "machine"),
    Wished("intervals over 10^9 queries", "bootstrap", 10**9, 1, "machine"),
    Wished("10^6 queries ranked among 10^8 entities", "ranking", 10**8, 10**6 / 256, "cluster"),
    Wished("known answers of 10^10 triples", "known answers", 10**10, 1, "machine"),
    Wished("`owkg kg info` of 10^10 triples", "graph files", 10**10, 1, "machine"),
    Wished("an epoch of 10^10 triples on 10^8 entities", "step", 10**8, 10**10 / 1024 / 4, "machine"),
    Wished("families of 10^8 people", "people", 10**8, 1, "machine"),
)
"""Projected sizes."""
CLUSTER = Cluster()


def projected(rows: pl.DataFrame, cluster: Cluster = CLUSTER) -> pl.DataFrame:
    """Hours and memory of `WISHED` here and on a cluster, by the last step of each kernel."""
    result: list[dict[str, Any]] = []
    here = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    for one in WISHED:
        if (last := _last_step(rows.filter(kernel=one.kernel))) is None:
            continue
        hours = last.seconds_of(one.size) * one.times / 3600
        gib = last.base_gib + last.bytes * one.size / 2**30
        cores = cluster.machines * cluster.cores if one.divided == "cluster" else here
        there = hours * here / cores
        result.append(
            {
                "what": one.what,
                "here_hours": hours,
                "divided": f"{cores:,} cores",
                "cluster_hours": there,
                "needed_gib": gib,
                "machine_gib": cluster.gib,
                "fits_a_machine_up_to": last.fits(cluster.gib),
                "breaks": "memory" if gib > cluster.gib else "time" if there * 3600 > _LATE_S else "",
            }
        )
    return pl.DataFrame(result, infer_schema_length=None)


def draw(rows: pl.DataFrame, stem: Path) -> list[Path]:
    """Figure of seconds an item and of memory by size, one line a kernel."""
    names = rows["kernel"].unique(maintain_order=True).to_list()
    with figure(1, 2, (10, 5)) as (fig, (time_axis, memory_axis)):
        for number, name in enumerate(names):
            own = rows.filter(kernel=name)
            style = {
                "color": COLOURS[number % len(COLOURS)],
                "linestyle": "-" if number < len(COLOURS) else "--",
                "marker": "o",
                "markersize": 3,
                "label": f"{name}, by {KERNELS[name].unit}",
            }
            time_axis.plot(own["size"], own["seconds"] / own["size"] * 1e6, **style)
            memory_axis.plot(own["size"], own["peak_gib"], **style)
        memory_axis.axhline(_here_gib(), color="black", linewidth=0.8)
        memory_axis.annotate("this machine", (10**3, _here_gib()), va="bottom", fontsize=8)
        for axis, words in ((time_axis, "microseconds an item"), (memory_axis, "peak memory, GiB")):
            axis.set(xscale="log", yscale="log", xlabel="size", ylabel=words)
        fig.legend(*time_axis.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return save_figure(fig, stem)


def main(
    out: Out = Path("out"),
    quick: Annotated[bool, typer.Option("--quick", help="Measure the two smallest sizes only.")] = False,
    kernels: Annotated[
        str | None,
        typer.Option(help=f"Kernels to measure, with commas, from {', '.join(KERNELS)}. Default: all."),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Longest time of one call.", min=0)] = 30,
) -> None:
    """Measures every kernel by size, and writes the tables and the figure."""
    writable_folder(out)
    chosen = list(KERNELS) if kernels is None else kernels.split(",")
    if unknown := [name for name in chosen if name not in KERNELS]:
        raise ValueError(f"`kernels` must be from {', '.join(KERNELS)}, got {unknown[0]!r}.")
    print(machine())
    sizes = SIZES[:2] if quick else SIZES
    found = [row for name in chosen for row in grown(name, sizes, seconds)]
    if not found:
        raise ValueError("no kernel could be measured; the lines above say why.")
    rows = pl.DataFrame(found, infer_schema_length=None)
    save_table(slopes(rows), out / "growth_slopes.csv")
    save_table(projected(rows), out / "growth_projection.csv")
    save_table(
        rows.with_columns(per_second=pl.col("size") / pl.col("seconds")).drop("stopped", "took_s"),
        out / "growth.csv",
    )
    draw(rows, out / "growth")


if __name__ == "__main__":
    run_script(main)

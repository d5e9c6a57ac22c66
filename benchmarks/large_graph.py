"""Seconds and peak memory of `owkg kg info` and known answers on graphs of up to 10^8 triples, by size.

The graphs are random: entities and relations follow a power law, as in Freebase. The table also has the time
to read the bytes of the file and, for known answers, the time to sort a 64-bit number for each triple.

    python benchmarks/large_graph.py --out out

The script writes 4 GB of triples into the folder that TMPDIR names.
"""

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from benchmarks.timing import machine, measured_command, once
from owkg.files.storage import writable_folder
from simulations.script import Out, Quick, run_script, save_table

SIZES = (10**6, 10**7, 10**8)
# Triples for each entity, as in Freebase, and the exponent by which popularity falls.
_PER_ENTITY, _EXPONENT, _RELATIONS = 20, 0.6, 1000
# Number of lines that are written at a time.
_BLOCK = 5_000_000
_KNOWN = """
import sys, json, time
from owkg.kg import known_answers, num_candidates, read_graph
graph = read_graph(sys.argv[1], duplicates="keep")
begin = time.perf_counter()
known = known_answers(graph.splits["train"], "tail", **graph.sizes)
made = time.perf_counter()
count = num_candidates(known, graph.splits["train"][:1_000_000])
print(json.dumps({"known": made - begin, "candidates": time.perf_counter() - made, "of": len(count)}))
"""


def write_power_law_graph(folder: Path, triples: int, *, labels: bool, seed: int = 0) -> None:
    """Writes `train.txt` in blocks, with entities and relations that follow a power law.

    Args:
        folder: folder to create.
        triples: number of lines; some triples appear twice.
        labels: whether entities have labels such as /m/0004c92, or are numbers.
        seed: seed of the draws.
    """
    rng = np.random.default_rng(seed)
    entities = max(2, triples // _PER_ENTITY)
    folder.mkdir(parents=True)
    with (folder / "train.txt").open("wb") as file:
        # Every entity is in at least one triple.
        every = np.arange(entities)
        for first in range(0, triples, _BLOCK):
            count = min(_BLOCK, triples - first)
            head, tail = (
                (entities * rng.random(count) ** (1 / (1 - _EXPONENT))).astype(np.int64) for _ in range(2)
            )
            inside = every[first : first + count]
            head[: len(inside)] = inside
            frame = pl.DataFrame(
                {
                    "head": head,
                    "relation": (_RELATIONS * rng.random(count) ** 3).astype(np.int64),
                    "tail": rng.permutation(tail),
                }
            )
            if labels:
                entity = {x: pl.format("/m/{}", pl.col(x).cast(str).str.zfill(7)) for x in ("head", "tail")}
                frame = frame.with_columns(**entity, relation=pl.format("/relation/{}", "relation"))
            frame.write_csv(file, include_header=False, separator="\t", quote_style="never")


def row_of(folder: Path, triples: int, *, labels: bool) -> dict[str, float | int | str]:
    """Measurements of one graph."""
    write_power_law_graph(folder, triples, labels=labels)
    size = (folder / "train.txt").stat().st_size
    read = once(lambda: (folder / "train.txt").read_bytes().count(b"\n"))
    info = [sys.executable, "-m", "owkg", "kg", "info", str(folder), "--format", "json"]
    printed, seconds, peak = measured_command(info)
    of = json.loads(printed)["triples"]["train"]
    assert of == triples, f"{of} triples were read, {triples} written"
    known, _, known_peak = measured_command([sys.executable, "-c", _KNOWN, str(folder)])
    numbers = np.random.default_rng(0).integers(0, 2**62, triples)
    begin = time.perf_counter()
    numbers.sort()
    sorting = time.perf_counter() - begin
    inner = json.loads(known)
    return {
        "triples": triples,
        "lines": "labels" if labels else "ids",
        "file_gb": size / 1e9,
        "kg_info_s": seconds,
        "times_reading_bytes": seconds / read,
        "kg_info_gib": peak,
        "bytes_a_triple": peak * 2**30 / triples,
        "known_answers_s": inner["known"],
        "times_sorting": inner["known"] / sorting,
        "known_answers_gib": known_peak,
        "candidates_of_10^6_s": inner["candidates"],
    }


def main(out: Out = Path("out"), quick: Quick = False) -> None:
    """Times `owkg kg info` and known answers at each size, and writes the table."""
    writable_folder(out)
    print(machine())
    rows = []
    for triples in SIZES[:1] if quick else SIZES:
        for labels in (True, False):
            with TemporaryDirectory(prefix="owkg-benchmark-") as folder:
                rows.append(row_of(Path(folder) / "graph", triples, labels=labels))
            print(
                "; ".join(
                    f"{key} {of:,.4g}" if isinstance(of, float) else f"{key} {of}"
                    for key, of in rows[-1].items()
                )
            )
    save_table(pl.DataFrame(rows), out / "benchmark_large_graph.csv")


if __name__ == "__main__":
    run_script(main)

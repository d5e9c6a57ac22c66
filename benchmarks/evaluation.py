"""Speed and memory of full filtered evaluation, compared with its bare matrix products and with PyKEEN.

ComplEx of 256 complex numbers with random parameters ranks the test set of FB15k-237 among all entities.
Both sides are ranked, filtered by train, valid and test. The limit is the time of the matrix products
alone, of the same queries in blocks with all entities, measured in turn with the evaluation. Blocks have 16
or 64 MiB of scores, and the faster size counts. The table also has the best speed of the machine on square
matrices. PyKEEN runs in its own process and interpreter and evaluates the same triples. It is compared with
its own bare products: it scores a query once for each triple.

    python benchmarks/evaluation.py --out out --kg data/fb15k237 --pykeen pykeen-env/bin/python

The second table is for a million entities: ranks per second by block size, compared with NumPy's product of
64 queries.

The last table has a row for each model that is not a single product of plain embeddings. Each ranks 2,048
queries for tails of the test set among all entities, filtered. `bare_s` are the seconds of the products or
of the scan of which the scores consist, of the same queries in blocks. Hyperbolic models also need
functions of each pair. For TransE and RotatE, `arithmetic_s` are the seconds of all distances in registers:
additions as fast as the machine's best product, square roots as fast as XLA sums them. `queries_s` are the
seconds of the query vectors alone, which the ranking includes. InteractE and HittER compute them by
networks. Encoders encode before the ranking, in `encode_s`.

If --kg is not given and OWKG_DATA is not set, a random graph of the same size is used.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import typer

from benchmarks.timing import fastest, machine, measured_elsewhere, once, peak_gib
from owkg import evaluation, kg
from owkg.evaluation.memory import block_bytes, query_numbers
from owkg.files.storage import writable_folder
from owkg.models import Trained, model
from simulations.script import Out, Quick, run_script, save_table

_DIM = 256
_SQUARE = 4096
# Bytes of scores in a block.
_BLOCKS = (2**24, 2**26)
# For many entities: number of entities, numbers an entity, queries, and queries of a product of NumPy.
_MANY, _MANY_DIM, _ASKED, _ROWS = 1_000_000, 64, 512, 64
_MANY_BLOCKS = {"24 MiB": 3 * 2**23, "256 MiB": 2**28, "1 GiB": 2**30, "as chosen": None}
# By model: options, for candidates of about 200 numbers; and how many products of `dim` numbers a score is.
# None: the score is a product of what queries and candidates are; 0: it is a scan.
_LAYERS: dict[str, object] = {"triple_layers": 1, "context_layers": 2}
_FORMS: dict[str, tuple[dict[str, object], int | None]] = {
    "hole": ({"dim": 200}, None),
    "simple": ({"dim": 100}, None),
    "cp": ({"dim": 200}, None),
    "bique": ({"dim": 25}, None),
    "interacte": ({"dim": 200}, None),
    "hitter": ({"dim": 200, "heads": 8, "hidden": 800, "neighbours": 10} | _LAYERS, None),
    "rgcn": ({"dim": 200}, None),
    "compgcn": ({"dim": 100, "encoded_dim": 200}, None),
    **dict.fromkeys(("mure", "rote", "refe", "atte"), ({"dim": 200}, 1)),
    **dict.fromkeys(("roth", "refh", "atth"), ({"dim": 200}, 1)),
    **dict.fromkeys(("transh", "murp"), ({"dim": 200}, 2)),
    "mode": ({"dim": 200}, 0),
    "transe": ({"dim": 200}, 0),
    "rotate": ({"dim": 100}, 0),
    "hake": ({"dim": 100}, 0),
}
# For each dimension of a pair: additions and subtractions, and square roots.
_OPERATIONS = {"transe": (2, 0), "rotate": (3, 1)}
_RANKED = 2048
_SIZES = {"entities": 14_541, "relations": 237, "train": 272_115, "valid": 17_535, "test": 20_466}


def graph_at(folder: Path | None, sizes: Sequence[int] = tuple(_SIZES.values())) -> kg.KnowledgeGraph:
    """The graph in a folder, or a random one of the given sizes whose entities differ in popularity."""
    if folder is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about labels that no triple has
            return kg.read_graph(folder)
    rng = np.random.default_rng(0)
    n, m, *counts = sizes

    def drawn(count: int) -> np.ndarray:
        columns = [(size * rng.random(count) ** 3).astype(np.int32) for size in (n, m, n)]
        return np.stack(columns, axis=1)

    splits = {name: drawn(count) for name, count in zip(("train", "valid", "test"), counts, strict=True)}
    return kg.KnowledgeGraph(tuple(map(str, range(n))), tuple(map(str, range(m))), splits)


def queries(graph: kg.KnowledgeGraph) -> list[int]:
    """Number of different queries of the test set, for heads and for tails."""
    test = graph.splits["test"]
    return [len(np.unique(test[:, columns], axis=0)) for columns in ([1, 2], [0, 1])]


def ours(graph: kg.KnowledgeGraph, repeats: int) -> dict[str, Any]:
    """Seconds of the evaluation, measured alone in its process because of its memory."""
    scorer = model("complex", dim=_DIM)
    trained = Trained(scorer, *scorer.init(jax.random.key(0), graph.num_entities, graph.num_relations))

    def rank() -> None:
        evaluation.ranks(trained, graph)

    first = once(rank)
    peak = peak_gib()
    bare = [products(graph, size) for size in _BLOCKS]
    # In turn, so that other load on the machine affects all of them.
    seconds, *alone = zip(*((once(rank), *map(once, bare)) for _ in range(repeats)), strict=True)
    limit = min(map(min, alone))
    flops = 2 * sum(queries(graph)) * graph.num_entities * 2 * _DIM
    most = 2 * operations_per_s(repeats)[0]
    return {
        "seconds": min(seconds),
        "products_s": limit,
        "times_the_products": min(seconds) / limit,
        "first_s": first,
        "peak_gib": peak,
        "gflop_per_s": flops / min(seconds) / 1e9,
        "products_gflop_per_s": flops / limit / 1e9,
        "square_gflop_per_s": most / 1e9,
    }


def many(entities: int, repeats: int) -> list[dict[str, Any]]:
    """Ranks per second among many entities by block size, and the speed of a product of NumPy."""
    scorer = model("distmult", dim=_MANY_DIM, reciprocal=False)
    trained = Trained(scorer, *scorer.init(jax.random.key(0), entities, 1))
    rng = np.random.default_rng(0)
    triples = np.stack([rng.integers(0, n, _ASKED) for n in (entities, 1, entities)], axis=1)
    candidates = np.asarray(trained.params["entity"])
    asked = rng.normal(size=(_ROWS, _MANY_DIM)).astype(np.float32)

    def rank(size: int | None) -> None:
        evaluation.rank_arrays(trained, triples, "tail", known=None, block_bytes=size)

    def multiply() -> None:
        for _ in range(_ASKED // _ROWS):
            np.matmul(asked, candidates.T)

    calls: dict[str, Callable[[], None]] = {
        f"blocks, {name}": partial(rank, size) for name, size in _MANY_BLOCKS.items()
    }
    calls[f"NumPy's product of {_ROWS} queries"] = multiply
    for call in calls.values():
        call()
    # In turn, so that other load on the machine affects all of them.
    seconds = [[once(call) for call in calls.values()] for _ in range(repeats)]
    return [
        {
            "what": name,
            "entities": entities,
            "ranks_per_s": _ASKED / min(each),
            "median_ranks_per_s": _ASKED / float(np.median(each)),
        }
        for name, each in zip(calls, zip(*seconds, strict=True), strict=True)
    ]


def of_models(graph: kg.KnowledgeGraph, names: Sequence[str], repeats: int) -> Iterator[dict[str, Any]]:
    """Seconds of ranking by each of these models, and of the bare products or scan of its scores."""
    facts = np.concatenate(list(graph.splits.values()))
    known = kg.known_answers(facts, "tail", **graph.sizes)
    test = graph.splits["test"]
    triples = test[np.sort(np.unique(test[:, :2], axis=0, return_index=True)[1])[:_RANKED]]
    return (_of_model(name, graph, triples, known, repeats) for name in names)


def _of_model(
    name: str, graph: kg.KnowledgeGraph, triples: np.ndarray, known: kg.KnownAnswers, repeats: int
) -> dict[str, Any]:
    options, count = _FORMS[name]
    scorer = model(name, **options)
    begin = jax.jit(lambda key, facts: scorer.begun(key, **graph.sizes, facts=facts))
    trained = Trained(scorer, *begin(jax.random.key(0), graph.splits["train"]))
    encode = partial(_ready, lambda: trained.encoded().params)
    encode()
    encode_s = once(encode) if scorer.encode is not None else None
    trained = trained.encoded()
    rows = triples[:, :2].T
    of_block = block_bytes(jax.devices()[0]) // (4 * query_numbers(trained))
    blocks = np.array_split(rows, -(-rows.shape[1] // of_block), axis=1)
    queries_of = jax.jit(lambda own, entity, relation: own.queries(entity, relation, "tail"))
    asked = [queries_of(trained, *block) for block in blocks]
    candidates = trained.candidates()
    compare, form = scorer.similarity.all, "scan"
    pairs = [(block, candidates) for block in asked]
    if count != 0:
        width = candidates.shape[1] if count is None else scorer.config.dim
        form = f"{count or 1} x product of {width}"
        compare = jax.jit(lambda a, b: jnp.einsum("qd,nd->qn", a, b, precision="highest"))
        pairs = [(block[:, :width], candidates[:, :width]) for block in asked] * (count or 1)
    calls: list[Callable[[], object]] = [
        lambda: evaluation.rank_arrays(trained, triples, "tail", known=known),
        lambda: [_ready(compare, *pair) for pair in pairs],
        lambda: [_ready(queries_of, trained, *block) for block in blocks],
    ]
    for call in calls:
        call()
    # In turn, so that what else the machine does weighs on all.
    seconds, bare_s, queries_s = np.min([[once(call) for call in calls] for _ in range(repeats)], axis=0)
    arithmetic = None
    if name in _OPERATIONS:
        each = max(n / rate for n, rate in zip(_OPERATIONS[name], operations_per_s(repeats), strict=True))
        arithmetic = each * len(np.unique(rows, axis=1).T) * graph.num_entities * scorer.config.dim
    return {
        "model": name,
        "entities": graph.num_entities,
        "queries": len(triples),
        "form": form,
        "seconds": float(seconds),
        "bare_s": float(bare_s),
        "times_the_bare": float(seconds / bare_s),
        "arithmetic_s": arithmetic,
        "times_arithmetic": None if arithmetic is None else float(seconds / arithmetic),
        "queries_s": float(queries_s),
        "encode_s": encode_s,
    }


@cache
def operations_per_s(repeats: int) -> tuple[float, float]:
    """Additions and square roots of float32 numbers in a second, on all processors."""
    square = jax.random.normal(jax.random.key(1), (_SQUARE, _SQUARE))
    multiply = jax.jit(jnp.matmul)
    additions = _SQUARE**3 / fastest(lambda: multiply(square, square).block_until_ready(), repeats)
    numbers = jnp.abs(square.ravel()[: 2**20])
    roots = jax.jit(lambda x: sum(jnp.sqrt(x + k) for k in range(64)))
    return additions, 64 * 2**20 / fastest(lambda: roots(numbers).block_until_ready(), repeats)


def _ready(call: Callable[..., Any], *arguments: object) -> None:
    jax.block_until_ready(call(*arguments))


def products(graph: kg.KnowledgeGraph, block_bytes: int) -> Callable[[], None]:
    """A function that computes the bare matrix products of the evaluation."""
    most = block_bytes // (4 * graph.num_entities)
    keys = jax.random.split(jax.random.key(2))
    entities = jax.random.normal(keys[0], (graph.num_entities, 2 * _DIM))
    blocks = []
    for count in queries(graph):
        number = -(-count // most)
        blocks += [jax.random.normal(keys[1], (-(-count // number), 2 * _DIM))] * number
    product = jax.jit(lambda asked, entities: jnp.einsum("qd,nd->qn", asked, entities, precision="highest"))

    def multiply() -> None:
        for block in blocks:
            jax.block_until_ready(product(block, entities))

    multiply()
    return multiply


def pykeen(graph: kg.KnowledgeGraph, python: Path, repeats: int) -> dict[str, Any]:
    """Seconds of PyKEEN for the same triples."""
    with tempfile.TemporaryDirectory() as folder:
        splits = {name: graph.splits[name] for name in ("train", "valid", "test")}
        sizes = np.array([graph.num_entities, graph.num_relations])
        np.savez(Path(folder) / "graph.npz", allow_pickle=False, sizes=sizes, **splits)
        script = Path(__file__).with_name("evaluation_pykeen.py")
        return measured_elsewhere("pykeen", python, script, f"{folder}/graph.npz", _DIM, repeats)


def main(
    out: Out = Path("out"),
    quick: Quick = False,
    folder: Annotated[
        Path | None, typer.Option("--kg", help="Folder of FB15k-237. Default: fb15k237 in OWKG_DATA.")
    ] = None,
    python: Annotated[
        Path | None, typer.Option("--pykeen", help="Python interpreter of an environment with PyKEEN 1.11.1.")
    ] = None,
    only: Annotated[bool, typer.Option("--only", help="Measure without PyKEEN, and print JSON.")] = False,
    models: Annotated[
        str | None, typer.Option("--models", help="Measure only the ranking by these models, with commas.")
    ] = None,
) -> None:
    """Measures speed and memory of full filtered evaluation."""
    repeats = 2 if quick else 5
    data = os.environ.get("OWKG_DATA")
    folder = Path(data) / "fb15k237" if folder is None and data else folder
    graph = graph_at(folder)
    if only:
        print(json.dumps(ours(graph, repeats)))
        return
    writable_folder(out)
    print(machine())
    if models is not None:
        _write_models(graph, models.split(","), repeats, out)
        return
    counts = " + ".join(f"{count:,}" for count in queries(graph))
    print(
        f"{folder or 'a random graph'}: {2 * len(graph.splits['test']):,} ranks, {counts} queries, "
        f"{graph.num_entities:,} entities"
    )
    command = [sys.executable, __file__, "--only", *(["--quick"] if quick else [])]
    command += [] if folder is None else ["--kg", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    rows = [{"what": "owkg"} | json.loads(done.stdout)]
    if python is not None:
        rows.append({"what": "pykeen"} | pykeen(graph, python, 1))
    for row in rows:
        print(", ".join(f"{k} {v if isinstance(v, str) else format(v, ',.4g')}" for k, v in row.items()))
    for row in (blocks := many(_MANY // 10 if quick else _MANY, repeats)):
        rate, median = row["ranks_per_s"], row["median_ranks_per_s"]
        print(f"{row['what']}: {rate:,.3g} ranks/s (median {median:,.3g}) among {row['entities']:,} entities")
    save_table(pl.from_dicts(blocks), out / "evaluation_blocks.csv")
    _write_models(graph, list(_FORMS), repeats, out)
    if python is not None:
        print(f"PyKEEN takes {rows[1]['seconds'] / rows[0]['seconds']:,.3g} times as long")
    save_table(pl.from_dicts(rows, infer_schema_length=None), out / "evaluation_speed.csv")


def _write_models(graph: kg.KnowledgeGraph, names: Sequence[str], repeats: int, out: Path) -> None:
    rows = []
    for row in of_models(graph, names, repeats):
        rows.append(row)
        print(
            f"{row['model']}: {row['queries']:,} queries in {row['seconds']:.3g} s, {row['form']} in "
            f"{row['bare_s']:.3g} s, {row['times_the_bare']:.3g} times; arithmetic "
            f"{row['arithmetic_s'] or math.nan:.3g} s; queries {row['queries_s']:.3g} s",
            flush=True,
        )
    save_table(pl.from_dicts(rows, infer_schema_length=None), out / "evaluation_models.csv")


if __name__ == "__main__":
    run_script(main)

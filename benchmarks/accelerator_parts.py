"""Parts of `benchmarks/accelerator.py`, one function each, which returns numbers by name."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import evaluation as speed
from benchmarks import simulation, training_rows
from benchmarks.sampled_evaluation import planted
from benchmarks.timing import fastest, once
from benchmarks.training import random_graph
from family_tree import closed_graph, ontology, sample_people
from owkg import evaluation, kg, simulate
from owkg.evaluation.memory import block_bytes
from owkg.models import MODELS, SIDES, Trained, model
from owkg.rank_weights import MRR
from owkg.sampling import sample, write_worlds
from owkg.simulate.run import trials_in_flight
from owkg.train import Training, training
from owkg.train.queries import queries
from owkg.train.state import State, all_finite, init_state, rates
from owkg.train.step import advance, advance_many, orders_of
from simulations.open_world.presets import PRESETS, Configuration
from simulations.open_world.record import record
from simulations.open_world.world import ClosedWorld, read_worlds

Numbers = dict[str, Any]


@dataclass(frozen=True)
class Scale:
    """Sizes of the measurements.

    Attributes:
        repeats: number of timed calls; the fastest counts.
        copied: bytes of the array that is copied.
        square: rows of the matrices that are multiplied.
        chain: multiply-adds of each number of an array of `copied` / 16 bytes.
        trials: numbers of trials of a setting of the published grid, each timed by itself.
        chunks: numbers of simultaneous trials; None: the default of the simulator.
        bits: number of trials whose random bits are drawn.
        graph: entities, relations, and facts of train, valid and test of the evaluated graph.
        evaluated: names of the evaluated models.
        dim: dimension of the evaluated models.
        models: names of the trained models.
        trained: entities, relations and facts of the graph for training.
        step: fields and options of the trainings.
        sizes: dimensions of models that need a different one.
        steps: number of steps in a call of the device.
        together: number of trainings in one call.
        rows: numbers of entities of the graphs of which a step touches a part.
        estimated: entities, facts and test triples of the graph for sampled evaluation.
        configurations: configurations that are projected.
        families: options of the world that the configurations learn, if the published one is not there.
        drawn: number of queries drawn from that world, and smallest number of their answers.
    """

    repeats: int = 5
    copied: int = 2**30
    square: int = 8192
    chain: int = 256
    trials: tuple[int, ...] = (500, 20_000)
    chunks: tuple[int | None, ...] = (2**14, None)
    bits: int = 2**21
    graph: tuple[int, ...] = (14_541, 237, 272_115, 17_535, 20_466)
    evaluated: tuple[str, ...] = ("complex", "rotate", "transe")
    dim: int = 256
    models: tuple[str, ...] = tuple(MODELS)
    trained: tuple[int, int, int] = (6004, 28, 150_000)
    step: tuple[tuple[str, Any], ...] = (("dim", 500), ("batch_size", 1024), ("num_negatives", 128))
    sizes: tuple[tuple[str, int], ...] = (("rescal", 200), ("tucker", 200))
    steps: int = 20
    together: int = 8
    rows: tuple[int, ...] = (10**4, 10**5, 10**6)
    estimated: tuple[int, int, int] = (2_500_604, 16_109_182, 4000)
    configurations: tuple[Configuration, ...] = PRESETS["paper"]
    families: tuple[tuple[str, int], ...] = ()
    drawn: tuple[int, int] = (500, 10)


QUICK = Scale(
    repeats=1,
    copied=2**20,
    square=64,
    chain=4,
    trials=(2,),
    chunks=(None,),
    bits=64,
    graph=(60, 4, 300, 20, 30),
    evaluated=("complex", "transe"),
    dim=8,
    models=("transe", "rescal"),
    trained=(60, 4, 300),
    step=(("dim", 16), ("batch_size", 32), ("num_negatives", 4)),
    sizes=(("rescal", 8),),
    steps=2,
    together=2,
    rows=(1000,),
    estimated=(600, 2000, 20),
    configurations=tuple(replace(one, looks=(5, 10)) for one in PRESETS["quick"][1:]),
    families=(("num_trees", 4), ("max_tree_size", 60)),
    drawn=(20, 2),
)
"""Sizes at which everything takes seconds on a processor, and the numbers have no meaning."""


def limits(scale: Scale) -> Numbers:
    """Limits of the device: bytes moved, products of matrices, and multiply-adds, per second."""
    key, n = jax.random.key(0), scale.square
    array, narrow = jnp.ones(scale.copied // 4), jax.random.normal(key, (n, n), jnp.bfloat16)
    numbers, square = jnp.ones(scale.copied // 16), jax.random.normal(key, (n, n))
    factor, term = jnp.float32(0.999), jnp.float32(0.001)

    def chained(x: jax.Array, factor: jax.Array, term: jax.Array) -> jax.Array:
        for _ in range(scale.chain):
            x = x * factor + term
        return x

    def seconds(function: Callable[..., jax.Array], *arrays: jax.Array) -> float:
        compiled = jax.jit(function)
        return fastest(lambda: jax.block_until_ready(compiled(*arrays)), scale.repeats)

    return {
        "bytes_per_s": 2 * scale.copied / seconds(lambda x: x + 1, array),
        "float32_product_flop_per_s": 2 * n**3 / seconds(_highest, square, square),
        "bfloat16_product_flop_per_s": 2 * n**3 / seconds(jnp.matmul, narrow, narrow),
        "multiply_adds_per_s": len(numbers) * scale.chain / seconds(chained, numbers, factor, term),
    }


def _highest(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.matmul(x, y, precision="highest")


def monte_carlo(scale: Scale) -> Numbers:
    """Trials per second of the published grid, and the speed of drawing the same random bits."""
    config = simulation.Config(repeats=scale.repeats)
    grid = simulation.published_grid(config)
    blocks = {min(8192, scale.bits), min(2**17, scale.bits)}
    bits = min(simulation.time_random_bits(config, scale.bits, block=size) for size in blocks) / scale.bits
    rows = []
    for each in scale.trials:
        for chunk in scale.chunks:
            trials = each * grid["strength"].size

            def draw(each: int = each, chunk: int | None = chunk) -> None:
                simulate.estimate(jax.random.key(0), MRR, trials=each, chunk=chunk, **grid)

            first = once(draw)
            seconds = fastest(draw, 1) if each > scale.trials[0] else fastest(draw, scale.repeats)
            in_flight = chunk or trials_in_flight(jax.devices(), int(np.max(grid["num_answers"])))
            rows.append(
                {"trials": trials, "chunk": in_flight, "first_s": first, "seconds": seconds}
                | _against(seconds, bits * trials)
            )
    return {"settings": grid["strength"].size, "random_bits_trials_per_s": 1 / bits, "rows": rows}


def full_evaluation(scale: Scale, name: str, limit: Numbers, graph: kg.KnowledgeGraph) -> Numbers:
    """Ranks per second of both sides, filtered: for the whole call, and with known answers at hand.

    The limit is the larger of the time of the arithmetic and the time of writing and reading all scores once.
    """
    scorer = model(name, dim=scale.dim)
    trained = Trained(scorer, *scorer.init(jax.random.key(0), graph.num_entities, graph.num_relations))
    test, num = (
        graph.splits["test"],
        {"num_entities": graph.num_entities, "num_relations": graph.num_relations},
    )
    facts = np.concatenate([graph.splits[split] for split in ("train", "valid", "test")])
    known = {side: kg.known_answers(facts, side, **num) for side in SIDES}

    def arrays() -> None:
        for side in SIDES:
            evaluation.rank_arrays(trained, test, side, known=known[side])

    def table() -> None:
        evaluation.ranks(trained, graph)

    asked, width = sum(speed.queries(graph)), trained.candidates(jnp.arange(1)).shape[-1]
    pairs = asked * graph.num_entities
    # Operations for each pair and real number: the length of a difference takes six for two numbers (two
    # differences, a product, a multiply-add, a root, a sum), its absolute value two for one.
    arithmetic = {
        "complex": 2 * width / limit["float32_product_flop_per_s"],
        "rotate": 3 * width / limit["multiply_adds_per_s"],
        "transe": 2 * width / limit["multiply_adds_per_s"],
    }[name]
    found = {"entities": graph.num_entities, "ranks": 2 * len(test), "queries": asked, "first_s": once(table)}
    found |= {"seconds": fastest(table, scale.repeats), "arrays_s": fastest(arrays, scale.repeats)}
    found |= {"arithmetic_limit_s": pairs * arithmetic, "memory_limit_s": 8 * pairs / limit["bytes_per_s"]}
    if name == "complex" and scale.dim == speed._DIM:  # which `products` multiplies
        size = block_bytes(jax.devices()[0])
        found["products_s"] = fastest(speed.products(graph, size), scale.repeats)
    found["ranks_per_s"] = found["ranks"] / found["seconds"]
    return found | _against(found["seconds"], max(found["arithmetic_limit_s"], found["memory_limit_s"]))


def data_folder(scale: Scale) -> Path | None:
    """Folder OWKG_DATA with FB15k-237 and the published families; None: random graphs replace them."""
    place = Path(os.environ.get("OWKG_DATA", ""))
    there = all((place / name).is_dir() for name in ("fb15k237", "family_tree_published"))
    return place if there and scale is not QUICK else None


def evaluated_graph(scale: Scale) -> kg.KnowledgeGraph:
    """FB15k-237 of the data folder, or a random graph of its size."""
    data = data_folder(scale)
    return speed.graph_at(data and data / "fb15k237", scale.graph)


def _against(seconds: float, limit: float) -> Numbers:
    return {"limit_s": limit, "times_the_limit": seconds / limit}


def sampled(name: str, **settings: Any) -> Training:
    """A training against drawn negatives, for any model."""
    fixed = {"training_loop": "negatives", "loss": "self_adversarial", "optimiser": "adam", "valid_every": 0}
    fixed |= {"subsampling": False, "label_smoothing": 0.0, "n3": 0.0, "l2": 0.0}
    return training(name, **(fixed | settings))


def walked(
    graph: kg.KnowledgeGraph, config: Training, steps: int, repeats: int, seeds: int = 0
) -> tuple[Numbers, State]:
    """Seconds of compiling, and of a step in calls of several; with `seeds`, of trainings together."""
    parts, sizes = queries(graph, config)
    many = [rates(replace(config, seed=seed)) for seed in range(max(1, seeds))]
    numbers = jax.tree.map(lambda *x: jnp.stack(x), *many) if seeds else many[0]
    mapped: Callable[..., Any] = jax.vmap if seeds else lambda function: function
    begin = time.perf_counter()
    orders = mapped(lambda one: orders_of(one, 0, asked=sizes.queries))(numbers)
    state, step = mapped(lambda one: init_state(config, sizes, one))(numbers), 0
    run, finite = (advance_many if seeds else advance)(config, sizes), jax.jit(mapped(all_finite))
    state = jax.block_until_ready(run(state, 0, 0, orders, parts, numbers))
    compiled = time.perf_counter() - begin

    def call() -> None:
        nonlocal state, step
        state, step = run(state, step, step + steps, orders, parts, numbers), step + steps
        jax.block_until_ready(finite(state.params))

    return {"compile_s": compiled, "step_s": fastest(call, repeats) / steps}, state


def step_limits(config: Training, state: State, limit: Numbers) -> Numbers:
    """Least seconds of a step: by memory if no cache keeps anything, and by products of matrices.

    Rows of candidates, entities and relations are read, and their gradients are read and written; gradients
    are set to 0 and read, and Adam reads and writes two means and the parameters. All other parameters
    multiply each query once, and twice more in the gradient.
    """
    params, batch = state.params, config.batch_size
    width = config.built().candidates(params, jnp.arange(1)).shape[-1]
    rows = config.num_negatives * width + params["entity"].shape[1] + params["relation"].shape[1]
    size = sum(x.size for x in jax.tree.leaves(params))
    others = size - params["entity"].size - params["relation"].size
    memory = 4 * (3 * batch * (rows + width) + 8 * size) / limit["bytes_per_s"]
    return {
        "parameters": size,
        "memory_limit_s": memory,
        "products_limit_s": 6 * batch * others / limit["float32_product_flop_per_s"],
    }


def training_steps(scale: Scale, name: str, limit: Numbers) -> Numbers:
    """Seconds of a training step of a model, and its limits by memory and by products."""
    settings = dict(scale.step)
    config = sampled(name, **(settings | {"dim": dict(scale.sizes).get(name, settings["dim"])}))
    found, state = walked(random_graph(*scale.trained), config, scale.steps, scale.repeats)
    sizes = {"entities": scale.trained[0], "queries": config.batch_size, "negatives": config.num_negatives}
    found = sizes | {"dim": config.built().config.dim} | found | step_limits(config, state, limit)
    return found | _against(found["step_s"], max(found["memory_limit_s"], found["products_limit_s"]))


def trained_together(scale: Scale, name: str, settings: Numbers) -> Numbers:
    """Seconds of a step of several trainings in one call, and of a step of one training."""
    config, graph = sampled(name, **(dict(scale.step) | settings)), random_graph(*scale.trained)
    one = walked(graph, config, scale.steps, scale.repeats)[0]
    all_ = walked(graph, config, scale.steps, scale.repeats, scale.together)[0]
    return {
        "queries": config.batch_size,
        "negatives": config.num_negatives,
        "dim": dict(config.options)["dim"],
        "together": scale.together,
        "one_step_s": one["step_s"],
        "together_step_s": all_["step_s"],
        "together_compile_s": all_["compile_s"],
        "times_faster_than_in_turn": scale.together * one["step_s"] / all_["step_s"],
    }


def steps_of_rows(scale: Scale, entities: int, limit: Numbers) -> Numbers:
    """Seconds of a step that updates only its rows, of a dense step, and of moving the rows."""
    graph, found = training_rows.graph_of(entities), {}
    for updates in ("rows", "dense"):
        own = walked(graph, training_rows.configured(updates, 0), scale.steps, scale.repeats)[0]
        found |= {f"{updates}_{key}": of for key, of in own.items()}
    moved = training_rows.moved_bytes(entities) / limit["bytes_per_s"]
    return {"entities": entities} | found | _against(found["rows_step_s"], moved)


def estimated(scale: Scale, limit: Numbers) -> Numbers:
    """Seconds of sampled and of full evaluation of the same test triples, both sides.

    The limit of full evaluation is the larger of the time of the products and the time of writing and reading
    all scores once.
    """
    entities, facts, tests = scale.estimated
    trained, graph = planted(entities, facts, tests)

    def full() -> None:
        evaluation.ranks(trained, graph)

    found: dict[str, Any] = {}

    def by_sample() -> None:
        found["result"] = evaluation.sampled(trained, graph, ["mrr"], share=0.005)

    numbers = {"entities": entities, "tests": tests, "sampled_first_s": once(by_sample)}
    numbers |= {"sampled_s": fastest(by_sample, 1), "first_s": once(full), "seconds": fastest(full, 1)}
    own = found["result"].values.filter(side="both").row(0, named=True)
    pairs, width = 2 * tests * entities, trained.params["entity"].shape[1]
    seconds = 2 * width * pairs / limit["float32_product_flop_per_s"], 8 * pairs / limit["bytes_per_s"]
    return (
        numbers
        | {"scores": found["result"].typical_share + found["result"].sampled_share}
        | {"mrr": own["value"], "sampling_error": own["sampling_error"]}
        | _against(numbers["seconds"], max(seconds))
    )


def studied_world(scale: Scale, out: Path) -> ClosedWorld:
    """The published families of density 0.75 from the data folder, or families of that size."""
    data = data_folder(scale)
    place = data / "family_tree_published" if data else out / "accelerator_worlds"
    if not place.is_dir():
        families: Any = dict(scale.families)
        closed = closed_graph(sample_people(**families), ontology("published"))
        num, least = scale.drawn
        drawn = sample(closed, density=0.75, train_rate=0.7, num_queries=num, min_answers=least, seed=0)
        write_worlds([drawn], place)
    return read_worlds(place, [0.75])[0]


def projected(scale: Scale, one: Configuration, world: ClosedWorld, limit: Numbers) -> Numbers:
    """Seconds of a step and of a look, in calls from look to look, and projected of the whole run."""
    config, interval = one.training(), one.looks[0]
    found, state = walked(world.graph, config, interval, 2)
    trained = state.trained(config.built())

    def look() -> None:
        evaluation.rank_arrays(trained, world.triples, "tail", known=world.known)

    first, seconds = once(look), fastest(look, 2)
    found |= {"look_compile_s": first, "look_s": seconds, "steps": config.steps, "looks": len(one.looks)}
    whole = found["compile_s"] + first + config.steps * found["step_s"] + len(one.looks) * seconds
    found |= step_limits(config, state, limit)
    found |= _against(found["step_s"], max(found["memory_limit_s"], found["products_limit_s"]))
    return found | {"projected_s": whole}


def whole_run(one: Configuration, world: ClosedWorld, folder: Path, until: float) -> Numbers:
    """Seconds of a whole run as in the study of Figures 3 to 5, with looks, checkpoints and its record.

    Raises:
        TimeoutError: if it is not finished when `time.perf_counter` reaches `until`.
    """

    def watch(step: int, total: int, _note: str) -> None:
        if time.perf_counter() > until:
            raise TimeoutError(f"no time was left after {step:,} of {total:,} steps")

    begin = time.perf_counter()
    found = record(world, one.training(), one.looks, folder, on_progress=watch)
    seconds = time.perf_counter() - begin
    last = 2 / (found.optimistic[-1].astype(float) + found.pessimistic[-1])
    return {"seconds": seconds, "mrr": float(last.mean())}

"""Example rank tables for `owkg metrics` and `owkg compare`: four scorers of a small generated graph.

The constant scorer gives every entity the same score, which shows what tie rules do: its optimistic MRR is 1
and its exact AMRR is 0. The second scorer is random, and the third counts how often an entity answers the
relation in training. The fourth is the truth with noise, rounded to one decimal so that some candidates are
tied. The script also writes two sets of judgements: all answers of the test set, and only the facts whose
entities are popular, because a graph usually knows these first. By the popular facts, the frequency scorer
has the largest MRR and Hits@10; by all facts, the noisy truth has.

    python simulations/example_ranks.py --out out
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from owkg.files.storage import writable_folder
from owkg.judge import qrels_from_graph, write_judgements
from owkg.kg import KnowledgeGraph, joined_splits, write_labelled
from owkg.metrics import Ties, evaluate, metric, tasks_of
from owkg.ranks import rank_table, write_ranks
from simulations.script import Out, Quick, Seed, run_script

SIDES = ("head", "tail")


@dataclass(frozen=True)
class Config:
    """Sizes of the graph and its splits, noise of the oracle, and share known to the sparse judgements."""

    entities: int = 400
    relations_of_a_kind: int = 3
    facts: int = 400  # of each relation, before duplicates are dropped
    held_out: float = 0.1
    noise: float = 0.6
    sparse: float = 0.5
    seed: int = 0


def made_graph(config: Config, rng: np.random.Generator) -> KnowledgeGraph:
    """A graph with equally many 1-1, 1-N, N-1 and N-N relations and few popular entities.

    Popularity follows Zipf's law. On the side of a relation that has many entities for one on the opposite
    side, each entity appears once.
    """
    number = config.entities
    popularity = rng.permutation(1 / np.arange(1, number + 1))
    popularity /= popularity.sum()

    def once() -> np.ndarray:
        return rng.permutation(number)[: config.facts]

    def often(few: int) -> np.ndarray:
        chosen = rng.choice(number, few, replace=False, p=popularity)
        weight = popularity[chosen] / popularity[chosen].sum()
        return rng.choice(chosen, min(config.facts, number), p=weight)

    few, many = number // 8, number // 2
    names, facts = [], []
    for kind, head, tail in (
        ("one_to_one", once, once),
        ("one_to_many", lambda: often(few), once),
        ("many_to_one", once, lambda: often(few)),
        ("many_to_many", lambda: often(many), lambda: often(many)),
    ):
        for i in range(config.relations_of_a_kind):
            pairs = np.unique(np.stack([head(), tail()], axis=1), axis=0)
            facts.append(np.insert(pairs, 1, len(names), axis=1))
            names.append(f"{kind}_{i + 1}")
    triples = rng.permutation(np.concatenate(facts)).astype(np.int32)
    held = int(config.held_out * len(triples))
    splits = {"train": triples[2 * held :], "valid": triples[:held], "test": triples[held : 2 * held]}
    width = len(str(number - 1))
    return KnowledgeGraph(tuple(f"e{i:0{width}d}" for i in range(number)), tuple(names), splits)


def scored(graph: KnowledgeGraph, side: str, noise: float, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Scores of every entity for each test answer of one side, by the name of the scorer.

    All answers to one query have the same scores, because a scorer sees only the query.
    """
    test, entities = graph.splits["test"], graph.num_entities
    answer, known = (2, 0) if side == "tail" else (0, 2)
    queries, query = np.unique(test[:, [known, 1]], axis=0, return_inverse=True)
    shape = (len(queries), entities)
    seen = np.zeros((graph.num_relations, entities))
    np.add.at(seen, (graph.splits["train"][:, 1], graph.splits["train"][:, answer]), 1)
    facts = joined_splits(graph, list(graph.splits))
    true = np.zeros((entities, graph.num_relations, entities))
    true[facts[:, known], facts[:, 1], facts[:, answer]] = 1
    oracle = true[queries[:, 0], queries[:, 1]] + noise * rng.standard_normal(shape)
    scores = {
        "constant": np.zeros(shape),
        "random": rng.random(shape),
        "frequency": seen[queries[:, 1]],
        "oracle": oracle.round(1),
    }
    return {name: of[query] for name, of in scores.items()}


def labels(graph: KnowledgeGraph, share: float) -> dict[str, pl.DataFrame]:
    """Full judgements with all test facts, and sparse ones with the share whose entities are most popular."""
    test = graph.splits["test"]
    facts = np.bincount(graph.splits["train"][:, [0, 2]].ravel(), minlength=graph.num_entities)
    popularity = facts[test[:, 0]] + facts[test[:, 2]]
    kept = {"test": test[popularity >= np.quantile(popularity, 1 - share)]}
    sparse = KnowledgeGraph(graph.entities, graph.relations, kept)
    return {"full": qrels_from_graph(graph, "test"), "sparse": qrels_from_graph(sparse, "test")}


def run(config: Config) -> tuple[KnowledgeGraph, dict[str, pl.DataFrame], dict[str, pl.DataFrame]]:
    """The graph, the rank table of each scorer on both sides, and the judgements."""
    rng = np.random.default_rng(config.seed)
    graph = made_graph(config, rng)
    of_side = {side: scored(graph, side, config.noise, rng) for side in SIDES}
    tables = {
        name: pl.concat(
            rank_table(
                graph,
                of_side[side][name],
                graph.splits["test"],
                side,
                model=name,
                popularity=False,
                score=True,
            )
            for side in SIDES
        )
        for name in of_side["head"]
    }
    return graph, tables, labels(graph, config.sparse)


def printed_table(tables: dict[str, pl.DataFrame]) -> None:
    """Prints MRR under each tie rule, and AMRR under the exact rule."""
    print(f"{'scorer':>10}" + "".join(f"{rule:>13}" for rule in Ties) + f"{'exact AMRR':>13}")
    for name, table in tables.items():
        found = evaluate(tasks_of(table)[0], [metric("mrr"), metric("amrr")], level=None)
        values = [found[rule]["mrr"].value for rule in Ties] + [found[Ties.EXACT]["amrr"].value]
        print(f"{name:>10}" + "".join(f"{round(value, 4) + 0.0:13.4f}" for value in values))


def main(out: Out = Path("out"), seed: Seed = 0, quick: Quick = False) -> None:
    """Writes a small knowledge graph, rank tables of four scorers of it, and full and sparse judgements."""
    folder = out / "example"
    writable_folder(folder)
    config = Config(seed=seed, entities=120, facts=120) if quick else Config(seed=seed)
    graph, tables, judged = run(config)
    write_labelled(graph, folder / "graph")
    print(f"wrote {folder / 'graph'}")
    for name, table in tables.items():
        path = folder / f"{name}.parquet"
        write_ranks(table, path)
        print(f"wrote {path}: {len(table):,} ranks")
    for name, qrels in judged.items():
        path = folder / f"{name}.qrels"
        write_judgements(qrels, path)
        print(f"wrote {path}: {len(qrels):,} answers")
    print("MRR under each tie rule:")
    printed_table(tables)
    files = " ".join(str(folder / f"{name}.parquet") for name in tables)
    print("to try next:")
    print(f"  owkg kg info {folder / 'graph'}")
    print(f"  owkg metrics {files} --by ties --metric mrr,amrr,amri,zmrr")
    print(f"  owkg metrics {folder / 'oracle.parquet'} --kg {folder / 'graph'} --by category")
    print(f"  owkg metrics {files} --kg {folder / 'graph'} --figures {out}")
    print(f"  owkg compare {files} --qrels {folder / 'full.qrels'} --qrels {folder / 'sparse.qrels'}")


if __name__ == "__main__":
    run_script(main)

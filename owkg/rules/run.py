"""Runs of the table model, with answers of rules or of another system, in a folder like a run of training."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import polars as pl
from jaxtyping import Float

from owkg.errors import ArgumentError
from owkg.files.lines import line_error
from owkg.ir.trec import read_run
from owkg.keys import settled
from owkg.kg import KnowledgeGraph
from owkg.kg.names import parts_of
from owkg.kg.read import Reading
from owkg.models.table import table_of
from owkg.ranks.runs import with_ids
from owkg.rules.mine import Rules, mine
from owkg.rules.plogicnet import joined, plogicnet
from owkg.rules.rnnlogic import rnnlogic, weighted
from owkg.rules.scores import AGGREGATIONS, Applied, Predictions, Queries, predict, queries_of
from owkg.train.config import training
from owkg.train.folder import facts_checksums, made_run, require_unchanged, write_snapshot
from owkg.train.loop import Row, Snapshot
from owkg.train.state import State, direction
from owkg.train.validation import validator

RULES = "rules.parquet"
# Columns of `rules.parquet` in addition to the rule in words.
_WEIGHTS = ("weight_of_tails", "weight_of_heads")
_COLUMNS = ("support", "bodies", "confidence", "head", "body", "constant", "end", "cluster")

Progress = Callable[[str], Callable[[int, int], None]]


class Learnt(NamedTuple):
    """Rules that a system learns from a graph, and how they answer queries.

    Attributes:
        rules: rules of the system, in the order in which they are written.
        weights: weights of the rules for tails and for heads. None: the rules have only a confidence.
        answers: function from (queries, `top`, `on_progress`), as in `predict`, to predictions.
    """

    rules: Rules
    weights: Float[np.ndarray, "2 rules"] | None
    answers: Callable[..., Predictions]


class System(NamedTuple):
    """System of rules.

    Attributes:
        learn: function from (graph, settings by name, `on_estimate` of `mine`, function from a title to a
            progress callback) to `Learnt`.
        settings: settings that only this system takes.
        told: whether `explain` can give the reasons for the order of its answers.
    """

    learn: Callable[[KnowledgeGraph, Mapping[str, Any], Callable[[str], None] | None, Progress], Learnt]
    settings: tuple[str, ...]
    told: bool


class Made(NamedTuple):
    """Numbers of a written run.

    Attributes:
        rules: number of rules.
        queries: number of queries with an answer.
        predictions: number of answers.
        valid: metrics on the split valid; empty without this split.
    """

    rules: int
    queries: int
    predictions: int
    valid: dict[str, float]


@settled()
def rules_run(
    graph: KnowledgeGraph,
    folder: Path,
    *,
    settings: Mapping[str, object],
    system: str = "rules",
    top: int = 100,
    splits: list[str] | None = None,
    graph_folder: Path | None = None,
    reading: Reading | None = None,
    overwrite: bool = False,
    on_estimate: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> Made:
    """Mines or learns rules of a graph, and writes their answers as the folder of a run.

    Args:
        graph: graph whose split train is used.
        folder: folder to write.
        settings: arguments of `mine` and settings of the system, by name.
        system: one of `SYSTEMS`. Default "rules".
        top: number of answers to keep per query, as in `predict`. Default 100.
        splits: splits whose queries are answered; ["all"]: the queries of every entity and relation. None:
            valid and test, where the graph has them.
        graph_folder, reading: folder of the graph, and options with which it was read.
        overwrite: allow replacing an existing run.
        on_estimate: argument of `mine`.
        progress: function from a title to a progress callback.

    Raises:
        ArgumentError: if an argument is out of range, or there are no rules.
    """
    if system not in SYSTEMS:
        raise ArgumentError("system", f"must be one of {', '.join(SYSTEMS)}, got {system!r}.")
    asked = queries_of(graph, _splits(graph, splits))
    tell: Progress = progress or (lambda _: lambda *_: None)
    more: dict[str, object] = {"rules": {**settings, "system": system, "top": top}}
    with _new(folder, graph, graph_folder, reading, more, overwrite=overwrite) as write:
        learnt = SYSTEMS[system].learn(graph, settings, on_estimate, tell)
        found = learnt.answers(asked, top=top, on_progress=tell("Answering queries"))
        if not len(found.query):
            raise ArgumentError("splits", "must have a query that some rule answers, got none.")
        return write(asked, found, learnt)


@settled()
def predictions_run(
    graph: KnowledgeGraph,
    folder: Path,
    path: Path,
    *,
    graph_folder: Path | None = None,
    reading: Reading | None = None,
    overwrite: bool = False,
) -> Made:
    """Writes the answers in a prediction file (AnyBURL, PyClause) or run file as the folder of a run.

    Args:
        graph: graph with the labels of the file.
        folder: folder to write.
        path: file with one system, in a format of `owkg.ir.trec.read_run`.
        graph_folder, reading, overwrite: arguments of `rules_run`.

    Raises:
        ValueError: if the file is invalid, or has a label that is not in the graph; the message names file
            and line.
    """
    frame = read_run(path)
    if (tags := frame["tag"].n_unique()) > 1:
        raise ArgumentError("predictions", f"must be of one system, got {tags} tags in {path}.")
    if (bad := ~frame["score"].is_finite()).any():
        raise line_error(path, frame.filter(bad)["line"][0], "a score must be finite.")
    frame = with_ids(path, frame, graph)
    of_side = pl.when(pl.col("side") == "tail").then(0).otherwise(graph.num_relations)
    frame = frame.select(
        relation=pl.col("relation").cast(pl.Int64) + of_side,
        entity=pl.col("entity").cast(pl.Int64),
        answer=pl.col("answer").cast(pl.Int64),
        score=pl.col("score").rank("dense").over("side", "entity", "relation").cast(pl.Int64),
    ).sort("relation", "entity", maintain_order=True)
    keys, query = np.unique(
        (frame["relation"] * graph.num_entities + frame["entity"]).to_numpy(), return_inverse=True
    )
    asked = Queries(keys % graph.num_entities, keys // graph.num_entities)
    found = Predictions(query.ravel(), frame["answer"].to_numpy(), frame["score"].to_numpy())
    there = [name for name in ("valid", "test") if len(graph.splits.get(name, ()))]
    wanted = queries_of(graph, there) if there else Queries(*np.empty((2, 0), np.int64))
    without = ~np.isin(wanted.relation * graph.num_entities + wanted.entity, keys)
    if without.any():
        warnings.warn(
            f"{path}: {without.sum():,} of {len(without):,} queries of {' and '.join(there)} have no answer "
            f"there; all entities tie there.",
            UserWarning,
            stacklevel=2,
        )
    more: dict[str, object] = {"read_from": path.name}
    with _new(folder, graph, graph_folder, reading, more, overwrite=overwrite) as write:
        return write(asked, found, None)


@contextmanager
def _new(
    folder: Path,
    graph: KnowledgeGraph,
    graph_folder: Path | None,
    reading: Reading | None,
    more: dict[str, object],
    *,
    overwrite: bool,
) -> Iterator[Callable[[Queries, Predictions, Learnt | None], Made]]:
    """Yields a function that writes answers, and the rules behind them, into the folder of a run."""
    config = training("table", valid_every=0)
    how = reading or Reading()
    started = time.perf_counter()
    with made_run(
        folder, graph, config, graph_folder, how, overwrite=overwrite, devices=1, more=more
    ) as place:

        def write(asked: Queries, found: Predictions, learnt: Learnt | None) -> Made:
            number = asked.relation * graph.num_entities + asked.entity
            # Files of other systems do not list queries that the system could not answer.
            whole = None if learnt is None else number
            trained = table_of(number[found.query], found.answer, found.score, whole, **graph.sizes)
            state = State(
                trained.params,
                trained.statistics,
                direction(config).init(trained.params),
                jnp.float32(0),
                jnp.int32(-1),
            )
            more["predictions"] = len(found.query)
            if learnt is not None:
                rule_table(learnt, graph).write_parquet(place / RULES)
            seconds = time.perf_counter() - started
            valid = validator(graph, config)(trained) if len(graph.splits.get("valid", ())) else {}
            # The path of the run has one row, without a loss.
            row: Row = {"step": 1, "epoch": 1.0, "loss": None, "seconds": seconds}
            row |= {"examples_per_s": len(graph.splits["train"]) / seconds}
            row |= {f"valid_{name}": value for name, value in valid.items()}
            write_snapshot(place, config, Snapshot(1, state, [row], due=True, last=True))
            count = 0 if learnt is None else len(learnt.rules.head)
            return Made(count, len(np.unique(found.query)), len(found.query), valid)

        yield write


def _splits(graph: KnowledgeGraph, splits: list[str] | None) -> list[str] | None:
    """Splits whose queries are answered; None: every query."""
    if splits == ["all"]:
        return None
    found = [name for name in ("valid", "test") if name in graph.splits] if splits is None else splits
    if unknown := [name for name in found if name not in graph.splits]:
        raise ArgumentError(
            "splits", f"must be all or splits of the graph, {', '.join(graph.splits)}, got {unknown[0]!r}."
        )
    if not sum(len(graph.splits[name]) for name in found):
        raise ArgumentError("splits", "must have triples, got none; `all` answers every query.")
    return found


def rule_table(learnt: Learnt, graph: KnowledgeGraph) -> pl.DataFrame:
    """Rules in words, such as r(X,Y) <- a(X,A), b(A,Y), with the columns of `Rules`."""
    rules, weights = learnt.rules, learnt.weights
    columns = rules._asdict() | {"confidence": rules.confidence, "rule": rule_words(rules, graph)}
    held = {} if weights is None else dict(zip(_WEIGHTS, weights, strict=True))
    return pl.DataFrame({name: columns[name] for name in ("rule", *_COLUMNS)} | held)


def rule_words(rules: Rules, graph: KnowledgeGraph) -> list[str]:
    """Each rule in words."""

    def atom(relation: int, start: str, end: str) -> str:
        if relation >= graph.num_relations:
            relation, start, end = relation - graph.num_relations, end, start
        return f"{graph.relations[relation]}({start},{end})"

    found = []
    for head, body, constant, end in zip(
        *(x.tolist() for x in (rules.head, rules.body, rules.constant, rules.end)), strict=True
    ):
        steps = [one for one in body if one >= 0]
        names = ["X", *"ABC"[: len(steps) - 1], "Y"]
        if constant >= 0:
            names = ["X", "A" if end < 0 else graph.entities[end]]
        to = "Y" if constant < 0 else graph.entities[constant]
        atoms = [atom(one, *names[i : i + 2]) for i, one in enumerate(steps)]
        found.append(f"{atom(head, 'X', to)} <- {', '.join(atoms)}".rstrip())
    return found


def read_rules(folder: Path) -> tuple[Rules, Float[np.ndarray, "2 rules"] | None]:
    """Rules of a run, and their weights for tails and for heads, or None.

    Raises:
        ValueError: if the run has no rules, or the file is not one that `owkg rules` wrote.
    """
    path = folder / RULES
    if not path.is_file():
        raise ValueError(f"{folder}: has no {RULES}; owkg rules writes it when it mines rules.")
    try:
        frame = pl.read_parquet(path, glob=False)
        body = np.array(frame["body"].to_list(), np.int64)
        columns = {name: frame[name].cast(pl.Int64).to_numpy() for name in Rules._fields if name != "body"}
        weights = None
        if _WEIGHTS[0] in frame.columns:
            weights = np.stack([frame[name].cast(pl.Float64).to_numpy() for name in _WEIGHTS])
        return Rules(**columns, body=body.reshape(len(frame), -1)), weights
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, TypeError) as error:
        raise ValueError(f"{path}: must hold rules as owkg rules writes them ({error}).") from None


def explain(
    folder: Path, query: str, graph: KnowledgeGraph, *, answers: int = 10, most: int = 5
) -> pl.DataFrame:
    """Best answers of the rules of a run to a query, with the rules that give each answer, best first.

    Args:
        folder: folder of a run that `rules_run` wrote.
        query: query as head|relation|? or ?|relation|tail.
        graph: graph from which the rules were mined.
        answers: number of answers, including facts of train. Default 10.
        most: largest number of rules per answer. Default 5.

    Returns:
        Columns place, answer, known (whether it is a fact of train), rule, support, bodies, confidence and
        rules (how many give the answer). Rules with weights also have the column adds, weight * paths to the
        answer, and are sorted by it.

    Raises:
        ValueError: if the query or a label is not in the graph, or the graph has other facts than the run.
    """
    noted = require_unchanged(folder)
    rules, weights = read_rules(folder)
    how: dict[str, Any] = noted["rules"]
    if not SYSTEMS[how["system"]].told:
        raise ArgumentError(
            "run", f"must have rules that give scores, got {how['system']}, which also uses embeddings."
        )
    if noted["facts_sha256"] != facts_checksums(graph):
        raise ArgumentError("kg", f"must have the facts from which the rules of {folder} were mined.")
    asked = _asked(graph, query)
    given = list(Applied(graph, rules).to(asked))
    answer, rule, count = (
        np.concatenate([getattr(one, name) for one in given]) for name in ("answer", "rule", "paths")
    )
    if weights is None:
        found = predict(graph, rules, asked, aggregate=how.get("aggregate", "maximum"), top=answers)
        value = rules.confidence[rule]
    else:
        found = weighted(graph, rules, weights, asked, top=answers)
        value = weights[int(asked.relation[0] >= graph.num_relations)][rule] * count
    facts = set(_answers(graph, asked))
    rows: list[dict[str, object]] = []
    for place, one in enumerate(found.answer[:answers].tolist()):
        own = np.flatnonzero(answer == one)
        own = own[np.lexsort((rule[own], -value[own]))]
        words = rule_words(rules.some(rule[own[:most]]), graph)
        for entry, text in zip(own[:most].tolist(), words, strict=True):
            number = int(rule[entry])
            rows.append(
                {
                    "place": int((found.score > found.score[place]).sum()) + 1,
                    "answer": graph.entities[one],
                    "known": one in facts,
                    "rule": text,
                    "support": int(rules.support[number]),
                    "bodies": int(rules.bodies[number]),
                    "confidence": float(rules.confidence[number]),
                    **({} if weights is None else {"adds": float(value[entry])}),
                    "rules": len(own),
                }
            )
    schema = ("place", "answer", "known", "rule", "support", "bodies", "confidence", "rules")
    return pl.DataFrame(rows) if rows else pl.DataFrame(schema=dict.fromkeys(schema, pl.String))


def _asked(graph: KnowledgeGraph, query: str) -> Queries:
    if (parts := parts_of(query)) is None:
        raise ArgumentError("query", f"must be head|relation|? or ?|relation|tail, got {query!r}.")
    side, entity, relation = parts
    for name, label, labels in (("entity", entity, graph.entities), ("relation", relation, graph.relations)):
        if label not in labels:
            raise ArgumentError("query", f"must have labels of the graph, which has no {name} {label!r}.")
    number = graph.relations.index(relation) + (graph.num_relations if side == "head" else 0)
    return Queries(np.array([graph.entities.index(entity)]), np.array([number]))


def _answers(graph: KnowledgeGraph, asked: Queries) -> list[int]:
    """Answers to one query that are facts of train."""
    (entity,), (relation,) = asked.entity.tolist(), asked.relation.tolist()
    head, to = (0, 2) if relation < graph.num_relations else (2, 0)
    train = graph.splits["train"]
    return train[(train[:, 1] == relation % graph.num_relations) & (train[:, head] == entity), to].tolist()


def _mined(
    graph: KnowledgeGraph,
    settings: Mapping[str, Any],
    on_estimate: Callable[[str], None] | None,
    tell: Progress,
) -> Learnt:
    given = dict(settings)
    aggregate, constants = given.pop("aggregate", "maximum"), not given.pop("no_constants", False)
    if aggregate not in AGGREGATIONS:
        raise ArgumentError("aggregate", f"must be one of {', '.join(AGGREGATIONS)}, got {aggregate!r}.")
    rules = mine(
        graph, **given, constants=constants, on_estimate=on_estimate, on_progress=tell("Mining rules")
    )
    if not len(rules.head):
        raise ArgumentError(
            "min_confidence", "leaves no rule for this graph: make it or `min_support` smaller."
        )
    rules = rules.some(np.argsort(-rules.confidence, kind="stable"))
    return Learnt(rules, None, partial(predict, graph, rules, aggregate=aggregate))


def _rnnlogic(
    graph: KnowledgeGraph,
    settings: Mapping[str, Any],
    on_estimate: Callable[[str], None] | None,
    tell: Progress,
) -> Learnt:
    found = rnnlogic(graph, **settings, on_estimate=on_estimate, on_progress=tell("Learning rules"))
    return Learnt(*found, partial(weighted, graph, *found))


def _plogicnet(
    graph: KnowledgeGraph,
    settings: Mapping[str, Any],
    on_estimate: Callable[[str], None] | None,
    tell: Progress,
) -> Learnt:
    given = dict(settings)
    balance = given.pop("balance", 1.0)
    if not 0 <= balance < float("inf"):
        raise ArgumentError("balance", f"must be a finite number of at least 0, got {balance!r}.")
    rules, learned = plogicnet(graph, **given, on_estimate=on_estimate, on_progress=tell("Learning rules"))
    answers = partial(joined, graph, rules, learned, balance=balance)
    return Learnt(rules, np.tile(learned.weight, (2, 1)), answers)


SYSTEMS = {
    "rules": System(_mined, ("length", "no_constants", "min_groundings", "aggregate"), told=True),
    "rnnlogic": System(_rnnlogic, ("length", "per_relation", "rounds"), told=True),
    "plogicnet": System(_plogicnet, ("precision", "threshold", "balance", "rounds"), told=False),
}

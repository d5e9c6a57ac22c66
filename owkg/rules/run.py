"""Runs of the table model: answers of rules, or of another system, in a folder as of training."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import polars as pl

from owkg.errors import ArgumentError
from owkg.files.lines import line_error
from owkg.ir.trec import read_run
from owkg.kg import KnowledgeGraph
from owkg.kg.names import parts_of
from owkg.kg.read import Reading
from owkg.models.table import table_of
from owkg.ranks.runs import with_ids
from owkg.rules.mine import Rules, mine
from owkg.rules.scores import AGGREGATIONS, Applied, Predictions, Queries, predict, queries_of
from owkg.train.config import training
from owkg.train.folder import facts_checksums, made_run, require_unchanged, write_snapshot
from owkg.train.loop import Snapshot
from owkg.train.state import State, direction
from owkg.train.validation import validator

RULES = "rules.parquet"
# What `rules.parquet` holds beside the rule in words.
_COLUMNS = ("support", "bodies", "confidence", "head", "body", "constant", "end", "cluster")

Progress = Callable[[str], Callable[[int, int], None]]


class Made(NamedTuple):
    """What became of rules or predictions.

    Attributes:
        rules: how many.
        queries: how many have an answer.
        predictions: answers.
        valid: metrics of the split valid; empty without one.
    """

    rules: int
    queries: int
    predictions: int
    valid: dict[str, float]


def rules_run(
    graph: KnowledgeGraph,
    folder: Path,
    *,
    mining: Mapping[str, object],
    aggregate: str = "maximum",
    top: int = 100,
    splits: list[str] | None = None,
    graph_folder: Path | None = None,
    reading: Reading | None = None,
    overwrite: bool = False,
    on_estimate: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> Made:
    """Mines rules of a graph, and writes their answers as the folder of a run.

    Args:
        graph: whose split train is looked at.
        folder: to write.
        mining: arguments of `mine`.
        aggregate, top: of `predict`.
        splits: whose queries are answered; none: valid and test, as far as they are there; "all": the queries
            of every entity and relation.
        graph_folder, reading: where the graph comes from, and how it was read there.
        overwrite: whether a run that is there may be replaced.
        on_estimate: as of `mine`.
        progress: from a title to what is told how much is done, and of how much.

    Raises:
        ArgumentError: if an argument is out of range, or there are no rules.
    """
    if aggregate not in AGGREGATIONS:
        raise ArgumentError("aggregate", f"must be one of {', '.join(AGGREGATIONS)}, got {aggregate!r}.")
    asked = queries_of(graph, _splits(graph, splits))
    tell: Progress = progress or (lambda _: lambda *_: None)
    more: dict[str, object] = {"rules": dict(mining) | {"aggregate": aggregate, "top": top}}
    with _new(folder, graph, graph_folder, reading, more, overwrite=overwrite) as write:
        rules = mine(graph, **mining, on_estimate=on_estimate, on_progress=tell("Mining rules"))  # pyright: ignore[reportArgumentType]
        if not len(rules.head):
            raise ArgumentError("min_confidence", "leaves no rule of this graph: make it smaller.")
        rules = rules.some(np.argsort(-rules.confidence, kind="stable"))
        found = predict(
            graph, rules, asked, aggregate=aggregate, top=top, on_progress=tell("Answering queries")
        )
        return write(asked, found, rules)


def predictions_run(
    graph: KnowledgeGraph,
    folder: Path,
    path: Path,
    *,
    graph_folder: Path | None = None,
    reading: Reading | None = None,
    overwrite: bool = False,
) -> Made:
    """Writes the answers in a file of predictions (AnyBURL, PyClause) or another run as the folder of a run.

    Args:
        graph: whose labels the file uses.
        folder: to write.
        path: as `owkg.ir.trec.read_run` takes it, of one system.
        graph_folder, reading, overwrite: as of `rules_run`.

    Raises:
        ValueError: naming file and line, if the file is none, or has a label that the graph has not.
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
) -> Iterator[Callable[[Queries, Predictions, Rules | None], Made]]:
    """Yields what writes answers, and the rules that they come from, into the folder of a run."""
    config = training("table", valid_every=0)
    how = reading or Reading()
    with made_run(
        folder, graph, config, graph_folder, how, overwrite=overwrite, devices=1, more=more
    ) as place:

        def write(asked: Queries, found: Predictions, rules: Rules | None) -> Made:
            number = asked.relation[found.query] * graph.num_entities + asked.entity[found.query]
            trained = table_of(number, found.answer, found.score, **graph.sizes)
            state = State(
                trained.params,
                trained.statistics,
                direction(config).init(trained.params),
                jnp.float32(0),
                jnp.int32(-1),
            )
            more["predictions"] = len(found.query)
            if rules is not None:
                rule_table(rules, graph).write_parquet(place / RULES)
            write_snapshot(place, config, Snapshot(1, state, [], due=True, last=True))
            valid = validator(graph, config)(trained) if len(graph.splits.get("valid", ())) else {}
            count = 0 if rules is None else len(rules.head)
            return Made(count, len(np.unique(found.query)), len(found.query), valid)

        yield write


def _splits(graph: KnowledgeGraph, splits: list[str] | None) -> list[str] | None:
    """The splits whose queries are answered; None: every query."""
    if splits == ["all"]:
        return None
    found = [name for name in ("valid", "test") if name in graph.splits] if splits is None else splits
    if unknown := [name for name in found if name not in graph.splits]:
        raise ArgumentError(
            "splits", f"must be all or splits of the graph, {', '.join(graph.splits)}, got {unknown[0]!r}."
        )
    if not sum(len(graph.splits[name]) for name in found):
        raise ArgumentError("splits", "must have triples, got none of them; all asks every query.")
    return found


def rule_table(rules: Rules, graph: KnowledgeGraph) -> pl.DataFrame:
    """Rules with their words, such as r(X,Y) <- a(X,A), b(A,Y), for people; the other columns as `Rules`."""
    columns = rules._asdict() | {"confidence": rules.confidence, "rule": rule_words(rules, graph)}
    return pl.DataFrame({name: columns[name] for name in ("rule", *_COLUMNS)})


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


def read_rules(folder: Path) -> Rules:
    """The rules of a run.

    Raises:
        ValueError: if it has none, or they are not as `owkg rules` writes them.
    """
    path = folder / RULES
    if not path.is_file():
        raise ValueError(f"{folder}: holds no {RULES}; owkg rules writes it where it mines rules.")
    try:
        frame = pl.read_parquet(path, glob=False)
        body = np.array(frame["body"].to_list(), np.int64)
        columns = {name: frame[name].cast(pl.Int64).to_numpy() for name in Rules._fields if name != "body"}
        return Rules(**columns, body=body.reshape(len(frame), -1))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, TypeError) as error:
        raise ValueError(f"{path}: must hold rules as owkg rules writes them ({error}).") from None


def explain(
    folder: Path, query: str, graph: KnowledgeGraph, *, answers: int = 10, most: int = 5
) -> pl.DataFrame:
    """The best answers of the rules of a run to a query, and the rules that give each, best first.

    Args:
        folder: of a run that `rules_run` wrote.
        query: head|relation|? or ?|relation|tail.
        graph: that the rules were mined of.
        answers: how many; facts of train are among them.
        most: rules of each answer.

    Returns:
        Columns place, answer, known (a fact of train), rule, support, bodies, confidence and rules, how many
        give the answer.

    Raises:
        ValueError: if the query or a label is none of the graph, or the graph has other facts than the run.
    """
    noted = require_unchanged(folder)
    rules = read_rules(folder)
    if noted["facts_sha256"] != facts_checksums(graph):
        raise ArgumentError("kg", f"must have the facts that the rules of {folder} were mined of.")
    asked = _asked(graph, query)
    how = noted["rules"]
    found = predict(graph, rules, asked, aggregate=how["aggregate"], top=answers)
    given = list(Applied(graph, rules).to(asked))
    answer, rule = (np.concatenate([getattr(one, name) for one in given]) for name in ("answer", "rule"))
    facts = set(_answers(graph, asked))
    rows: list[dict[str, object]] = []
    confidence = rules.confidence
    for place, one in enumerate(found.answer[:answers].tolist()):
        own = np.sort(rule[answer == one])
        own = own[np.argsort(-confidence[own], kind="stable")]
        words = rule_words(rules.some(own[:most]), graph)
        for number, text in zip(own[:most].tolist(), words, strict=True):
            rows.append(
                {
                    "place": int((found.score > found.score[place]).sum()) + 1,
                    "answer": graph.entities[one],
                    "known": one in facts,
                    "rule": text,
                    "support": int(rules.support[number]),
                    "bodies": int(rules.bodies[number]),
                    "confidence": float(confidence[number]),
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
    """The answers to one query that are facts of train."""
    (entity,), (relation,) = asked.entity.tolist(), asked.relation.tolist()
    head, to = (0, 2) if relation < graph.num_relations else (2, 0)
    train = graph.splits["train"]
    return train[(train[:, 1] == relation % graph.num_relations) & (train[:, head] == entity), to].tolist()

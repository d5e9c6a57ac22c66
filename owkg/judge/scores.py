"""What every system reads on every question: all that rankings, tests and intervals are computed from."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float64, Int64

from owkg.judge.frames import known_entity
from owkg.judge.rankings import settled
from owkg.metrics import Adjustment, Metric, Summary, Ties, part_of, tasks_of
from owkg.metrics.measures import Dispersion, Median
from owkg.metrics.parts import Parts, parts_by_ties

QUESTION = ("side", "entity", "relation")
"""Columns that tell questions apart: which side is asked, and what is known of the triple."""

_TASK = ("side", "head", "relation", "tail")


class Scores(NamedTuple):
    """A number of each system on each question, by metric.

    What a system reads in all is sum of `value` over sum of `weight`. Of a macro metric, the weight of a
    question is 1 and its value what the question reads; of a micro metric, the weight is the number of its
    answers and the value the sum over them.

    Attributes:
        systems: their names, at least one.
        metrics: their names.
        larger_is_better: of each metric.
        questions: columns side, entity, relation.
        value: [metrics, systems, questions].
        weight: the same for all systems, at least 0, [metrics, questions].
    """

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    larger_is_better: tuple[bool, ...]
    questions: pl.DataFrame
    value: Float64[np.ndarray, "metrics systems questions"]
    weight: Float64[np.ndarray, "metrics questions"]

    @property
    def mean(self) -> Float64[np.ndarray, "metrics systems"]:
        """What each system reads in all."""
        return self.value.sum(2) / self.weight.sum(1)[:, None]

    @property
    def strength(self) -> Float64[np.ndarray, "metrics systems"]:
        """`mean`, turned where smaller is better."""
        return self.mean * np.where(self.larger_is_better, 1.0, -1.0)[:, None]

    @property
    def places(self) -> Int64[np.ndarray, "metrics systems"]:
        """1 for the best system by each metric; systems that read the same share the best of their places."""
        strength = settled(self.strength)
        return 1 + (strength[:, None, :] > strength[:, :, None]).sum(2)


def scores(
    tables: Mapping[str, pl.DataFrame] | Any,
    summaries: Sequence[Summary] | Any,
    *,
    ties: Any = Ties.REALISTIC,
    intersect: bool = False,
) -> tuple[Scores, int]:
    """What every system reads on every question, from their rank tables.

    Args:
        tables: a rank table of each system, by its name; columns model and seed are not looked at.
        summaries: means over answers or over questions, plain or adjusted as an index; no median, no
            standard deviation, no z metric, nothing with a link (such as the geometric mean rank).
        ties: the rule.
        intersect: keep what every system ranks (`intersected`), where it differs; else that is an error.

    Returns:
        (scores, number of questions that are left out). Questions are in the order of their texts,
        whatever the order of the rows, so that what is drawn of them is the same.

    Raises:
        ValueError: if there is no system, a table is malformed, the systems do not answer the same
            questions, a question has other answers in another system, or a summary is none of those.

    Examples:
        >>> from owkg.metrics import summary
        >>> row = {"relation": "r", "tail": "b", "side": "tail", "candidates": 9}
        >>> of = lambda ranks: pl.DataFrame(
        ...     [row | {"head": f"h{i}", "optimistic": r, "pessimistic": r} for i, r in enumerate(ranks)]
        ... )
        >>> scores({"one": of([1, 2]), "two": of([4, 1])}, [summary("mrr")])[0].mean.tolist()
        [[0.75, 0.625]]
    """
    if not isinstance(tables, Mapping) or not tables:
        raise ValueError(f"`tables` must hold a rank table for each system, got {tables!r}.")
    chosen = _averaged(summaries)
    rule = _rule(ties)
    left_out = 0
    if intersect:
        asked = pl.concat([table.select(pl.col(_TASK).cast(pl.String)) for table in tables.values()])
        tables, left = intersected(tables)
        left_out = _counted(asked)[0] - left["questions"][0]
    parts = [
        table.drop("seed", strict=False).with_columns(model=pl.lit(name)) for name, table in tables.items()
    ]
    shared = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
    tasks, table = tasks_of(pl.concat([part.select(shared) for part in parts], how="vertical_relaxed"))
    everything = tasks.question if tasks.question is not None else np.arange(len(table))
    _refuse_other_answers(table, everything, tuple(tables))
    model = table["model"].to_numpy()
    found = []
    for name in tables:
        own = part_of(tasks, model == name)
        of_system = []
        for summary in chosen:
            read = parts_by_ties(summary.measure, summary.weighting, own, (rule,), by_question=True)
            if read is None:
                raise ValueError(
                    f"`summaries` has {summary.name}, and the answers of a question are in no one list: "
                    "their numbers of candidates differ, or the others are not filtered."
                )
            of_system.append(_ratio(summary, read[rule]))
        found.append(of_system)
    value = np.array([[of_system[i][0] for of_system in found] for i in range(len(chosen))])
    weights = np.array([[of_system[i][1] for of_system in found] for i in range(len(chosen))])
    if not np.allclose(weights, weights[:, :1], rtol=1e-9, atol=0):
        raise ValueError("`tables` must have the same candidates and weights in every system.")
    first = table.filter(model == next(iter(tables)))
    questions = _questions(first, part_of(tasks, model == next(iter(tables))).question)
    order = (
        questions.select(pl.col(QUESTION).cast(pl.String))
        .with_row_index("row")
        .sort(QUESTION)["row"]
        .to_numpy()
    )
    return Scores(
        systems=tuple(tables),
        metrics=tuple(summary.name for summary in chosen),
        larger_is_better=tuple(summary.larger_is_better for summary in chosen),
        questions=questions[order],
        value=value[..., order],
        weight=weights[:, 0][:, order],
    ), left_out


def _averaged(summaries: Any) -> tuple[Summary, ...]:
    chosen = (summaries,) if isinstance(summaries, Summary) else tuple(summaries)
    if not chosen:
        raise ValueError("`summaries` must be at least one, got none.")
    for one in chosen:
        if not isinstance(one, Summary):
            raise ValueError(f"`summaries` must be of owkg.metrics.summary, got {one!r}.")
        linked = isinstance(one.measure, Metric) and one.measure.link is not None
        plain = one.adjustment in (Adjustment.NONE, Adjustment.INDEX)
        if isinstance(one.measure, Median | Dispersion) or linked or not plain:
            raise ValueError(f"`summaries` must be means, plain or adjusted as an index, got {one.name}.")
    if len({one.name for one in chosen}) < len(chosen):
        raise ValueError(f"`summaries` must be different, got {', '.join(one.name for one in chosen)}.")
    return chosen


def _rule(ties: Any) -> Ties:
    try:
        return Ties(ties)
    except ValueError:
        raise ValueError(f"`ties` must be one of {', '.join(Ties)}, got {ties!r}.") from None


def _ratio(summary: Summary, parts: Parts) -> tuple[np.ndarray, np.ndarray]:
    """Sums over each question whose ratio is the summary: (M - E) / (B - E) of an index."""
    if summary.adjustment is Adjustment.INDEX:
        return np.asarray(parts.value - parts.chance), np.asarray(parts.best - parts.chance)
    return np.asarray(parts.value), np.asarray(parts.weight)


def intersected(tables: Mapping[str, pl.DataFrame] | Any) -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    """What every system ranks: the rows of the answers that stand in every table.

    Ranks stay as they are. Of filtered ranks that is exact: an answer that is left out is no candidate of the
    others.

    Args:
        tables: a rank table of each system, by its name.

    Returns:
        (tables, what is left): a row a system, with system; questions and answers that are left; of_questions
        and of_answers that it had.

    Raises:
        ValueError: if no answer stands in every table.

    Examples:
        >>> row = {"head": "a", "relation": "r", "side": "tail", "candidates": 9}
        >>> of = lambda tails: pl.DataFrame(
        ...     [row | {"tail": t, "optimistic": 1, "pessimistic": 1} for t in tails]
        ... )
        >>> cut, left = intersected({"one": of("bc"), "two": of("cde")})
        >>> left.select("system", "answers", "of_answers").rows()
        [('one', 1, 2), ('two', 1, 3)]
    """
    keys = {name: table.select(pl.col(_TASK).cast(pl.String)) for name, table in tables.items()}
    counted = pl.concat([key.unique() for key in keys.values()]).group_by(_TASK).len()
    shared = counted.filter(pl.col("len") == len(keys)).drop("len")
    if shared.is_empty():
        raise ValueError("`tables` have no question that every system answers.")
    found, rows = {}, []
    for name, key in keys.items():
        kept = key.join(shared.with_columns(kept=True), on=_TASK, how="left", maintain_order="left")["kept"]
        found[name] = tables[name].filter(kept.fill_null(False))
        before, after = _counted(key), _counted(key.filter(kept.fill_null(False)))
        rows.append((name, after[0], before[0], after[1], before[1]))
    columns = ("system", "questions", "of_questions", "answers", "of_answers")
    return found, pl.DataFrame(rows, schema=columns, orient="row")


def _counted(keys: pl.DataFrame) -> tuple[int, int]:
    """How many questions, and how many answers to them."""
    return keys.select("side", known_entity(), "relation").n_unique(), keys.n_unique()


def _refuse_other_answers(table: pl.DataFrame, question: np.ndarray, systems: tuple[str, ...]) -> None:
    """ValueError if the systems do not rank the same answers to the same questions."""
    rows = table.select("model", *_TASK).with_columns(question=pl.Series(question))
    by_question = rows.group_by("question").agg(pl.col("model").n_unique(), pl.first(*_TASK))
    lacking = by_question.filter(pl.col("model") < len(systems)).sort("question")
    if len(lacking) == len(by_question):
        raise ValueError("`tables` have no question that every system answers.")
    if len(lacking):
        who = set(systems) - set(rows.filter(question=lacking["question"][0])["model"])
        raise ValueError(
            f"`tables` must answer the same questions: {len(lacking):,} of {len(by_question):,} are missing "
            f"in some system, such as {_asked(lacking.row(0, named=True))} in {min(who)}; --intersect "
            "leaves them out."
        )
    answers = rows.group_by(*_TASK).agg(pl.len()).filter(pl.col("len") < len(systems))
    if len(answers):
        row = answers.sort(*_TASK).row(0, named=True)
        raise ValueError(
            f"`tables` must have the same answers to a question in every system: {len(answers):,} are not "
            f"in all, such as {row[row['side']]!r} to {_asked(row)}, in {row['len']} of {len(systems)}; "
            "--intersect leaves them out."
        )


def _asked(row: dict[str, Any]) -> str:
    asked = [row["head"], row["relation"], row["tail"]]
    asked[0 if row["side"] == "head" else 2] = "?"
    return "|".join(map(str, asked))


def _questions(table: pl.DataFrame, question: np.ndarray | None) -> pl.DataFrame:
    """Side, known entity and relation of each question, in the order of their ids."""
    asked = table.select("side", known_entity(), "relation")
    if question is None:
        return asked
    return asked[np.unique(question, return_index=True)[1]]

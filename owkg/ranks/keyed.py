"""Ranks of queries with keys (times, qualifiers, types), filtered by known answers."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.files.columns import columns_checked, named
from owkg.files.delimited import read_text_table, separator
from owkg.files.parquet import read_parquet
from owkg.ir.trec import QUERY_TEXT, query_parts
from owkg.ranks.matrices import labelled_scores
from owkg.ranks.scores import ranks_from_scores
from owkg.ranks.sets import EntitySets
from owkg.ranks.table import SIDES, RankTable, sides_spelled, validated

_TRIPLE = ("head", "relation", "tail")
_SPAN = ("from", "to")
# Number of pairs of tasks and known facts handled at a time.
_PAIRS = 2**22
_TAKEN = (*_TRIPLE, "side", "entity", "answer", "other", "label", "row", *_SPAN)


def rank_queries(
    scores: ArrayLike,
    tasks: pl.DataFrame,
    entities: Sequence[str],
    *,
    known: pl.DataFrame | None = None,
    key: str | Sequence[str] = (),
    during: str | None = None,
    query: str | Sequence[str] = (),
    candidates: pl.DataFrame | None = None,
    tolerance: float = 0.0,
    model: str | None = None,
) -> RankTable:
    """Filtered ranks of queries that have more than an entity and a relation.

    A known fact is removed from the candidates of a query if it has the entity, relation and `key` of the
    query, and holds at its time. For temporal facts, the filter is static without a key and time-aware with
    the key time; ranks are raw without `known`. For hyper-relational facts, the key is their qualifiers.

    Args:
        scores: scores, floats [tasks, entities]; larger is better.
        tasks: frame with head, relation, tail, side (the predicted side), and the columns of `key` and
            `during`; one row for each row of `scores`.
        entities: labels of the columns of `scores`.
        known: known facts: head, relation, tail (or query and answer, with the query as head|relation|? or
            ?|relation|tail), the columns of `key`, and with `during` the columns from and to, both inclusive,
            null if open. The answer of a task stays a candidate. Default: raw ranks.
        key: columns that a known fact must share with the task, in addition to entity and relation. Default:
            none.
        during: column of `tasks` with the time at which a known fact must hold. Default: none.
        query: further columns of `tasks` that distinguish queries and do not filter, so that raw and static
            ranks of temporal facts keep the time. Default: none.
        candidates: frame with entity, and any of relation, side and the columns of `key`: candidates of the
            tasks that share these, such as entities of a type. The answer is always a candidate. Default: all
            entities.
        tolerance: largest absolute difference from the answer's score that counts as a tie. Default 0.
        model: entry of the column `model`. Default: no such column.

    Returns:
        Rank table. The relation of a query ends with its key, `relation|time=2014`, so that queries with
        other keys are other queries in macro metrics, comparisons and pools. The column `filtered` is true if
        `known` has the fact of every task, so that the answers to one query were removed from each other's
        candidates.

    Raises:
        ValueError: if a column is missing, a label is not an entity, a task is repeated or has no candidates,
            or an argument is out of range.

    Examples:
        >>> facts = {"head": ["a"] * 2, "relation": ["r"] * 2, "tail": ["b", "c"], "time": [1, 2]}
        >>> known = pl.DataFrame(facts)
        >>> tasks = known[:1].with_columns(side=pl.lit("tail"))
        >>> of = lambda **options: rank_queries([[0.1, 0.5, 0.9]], tasks, "abc", **options).frame
        >>> [of(known=known, key=key)["optimistic"].item() for key in ((), "time")]
        [1, 2]
    """
    keys = _keys(key)
    further = _keys(query, "query")
    if during is not None and not isinstance(during, str):
        raise ArgumentError("during", f"must be the name of a column, got {during!r}.")
    if not isinstance(entities, Iterable):
        raise ArgumentError("entities", f"must be labels, got {entities!r}.")
    more: list[str] = [*keys, *([] if during is None else [during]), *further]
    named = list(dict.fromkeys(more))
    needed = [*_TRIPLE, "side", *named]
    frame = _checked("tasks", tasks, needed)
    if during is not None:
        empty = frame[during].is_null() | (
            frame[during].is_nan() if frame[during].dtype.is_float() else False
        )
        if empty.any():
            row = int(empty.arg_true()[0]) + 1
            raise ArgumentError("tasks", f"must have a time in every row of {during}, got none in row {row}.")
    for name, other in (("known", known), ("candidates", candidates)):
        if not isinstance(other, pl.DataFrame):
            continue
        for column in keys:
            if column in other.columns and other[column].dtype != frame[column].dtype:
                kinds = f"{other[column].dtype}, not {frame[column].dtype}"
                raise ArgumentError(name, f"must hold {column} with the type of `tasks`, got {kinds}.")
    if during is not None and isinstance(known, pl.DataFrame) and set(_SPAN) <= set(known.columns):
        kinds = [frame[during].dtype, *(known[name].dtype for name in _SPAN)]
        some = [kind for kind in kinds if kind != pl.Null]
        if not all(kind.is_numeric() for kind in some) and len(set(some)) > 1:
            got = ", ".join(map(str, kinds))
            raise ArgumentError("known", f"must hold from and to with the type of {during}, got {got}.")
        if len(wrong := known.filter(pl.col("from") > pl.col("to"))):
            first, last = wrong.select(_SPAN).row(0)
            raise ArgumentError("known", f"must have from at or before to, got {first!r} and {last!r}.")
    side = frame["side"].cast(pl.String)
    if not side.is_in(SIDES).all():
        raise ArgumentError(
            "tasks", f"must have the sides {', '.join(SIDES)}, got {side.unique().to_list()}."
        )
    place = pl.DataFrame({"label": list(map(str, entities))}, schema={"label": pl.String}).with_row_index(
        "id"
    )
    if place["label"].is_duplicated().any():
        raise ArgumentError("entities", "must be distinct labels.")
    matrix: Any = scores if hasattr(scores, "shape") else np.asarray(scores)
    if matrix.shape != (len(frame), len(place)):
        raise ArgumentError(
            "scores",
            f"must be [tasks, entities], [{len(frame)}, {len(place)}], got shape {tuple(matrix.shape)}.",
        )
    asked = frame.with_row_index("row").with_columns(
        entity=pl.when(side == "tail").then("head").otherwise("tail"),
        answer=pl.when(side == "tail").then("tail").otherwise("head"),
        side=side,
    )
    answer = _ids("tasks", asked.select("answer"), place)
    left = None if known is None else _known(asked, known, keys, during, place)
    among = None if candidates is None else _candidates(asked, candidates, keys, place)
    found = ranks_from_scores(matrix, answer, known=left, candidates=among, tolerance=tolerance)
    shown = [pl.col("relation"), *(pl.format(f"|{name}={{}}", pl.col(name)) for name in named)]
    table = frame.select("head", pl.concat_str(shown, ignore_nulls=True).alias("relation"), "tail", "side")
    if len(twice := table.filter(table.is_duplicated())):
        head, relation, tail, which = twice.row(0)
        raise ArgumentError(
            "tasks",
            f"must be distinct: the {which} of ({head}, {relation}, {tail}) is asked for twice. Name columns "
            "that tell such queries apart, such as a time, in `query`.",
        )
    columns: dict[str, Any] = {
        name: np.asarray(getattr(found, name), np.int64)
        for name in ("optimistic", "pessimistic", "candidates")
    }
    own = 0 if left is None else int(_holds(left, answer).sum())
    # Answers to one query are removed from each other's candidates only if the filter knows them.
    columns["filtered"] = [own == len(frame)] * len(frame)
    if model is not None:
        columns["model"] = [model] * len(frame)
    about: dict[str, Any] = {
        "filter": ["known", *keys, *([] if during is None else [during])] if left is not None else []
    }
    if left is not None:
        about["own_facts_known"] = own
    return RankTable.trusted(validated(pl.concat([table, pl.DataFrame(columns)], how="horizontal")), about)


def rank_query_files(
    scores: str | PathLike[str],
    tasks: str | PathLike[str],
    *,
    known: str | PathLike[str] | None = None,
    key: str | Sequence[str] = (),
    during: str | None = None,
    query: str | Sequence[str] = (),
    candidates: str | PathLike[str] | None = None,
    tolerance: float = 0.0,
    model: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> RankTable:
    """Filtered ranks of queries with keys, from files (`rank_queries`).

    Args:
        scores: .npz file with the arrays scores, [tasks, entities], and entity_labels.
        tasks: Parquet, CSV or TSV file with the columns of `rank_queries`; so are `known` and `candidates`.
            Times are compared as numbers if all of them are numbers, as times if some column holds times or
            dates, and otherwise as text, such as 2014-03-01.
        known: file of known facts. Default: raw ranks.
        key: columns that a known fact must share with the task. Default: none.
        during: column of `tasks` with the time at which a known fact must hold. Default: none.
        query: further columns of `tasks` that distinguish queries. Default: none.
        candidates: file of the candidates of the tasks. Default: all entities.
        tolerance: largest absolute difference from the answer's score that counts as a tie. Default 0.
        model: entry of the column `model`. Default: no such column.
        columns: names of columns in the tables by their names in owkg, such as {"head": "subject"}, if they
            differ; each must be in some table.

    Raises:
        ValueError: naming the file or the argument.
        OSError: if a file cannot be opened.
    """
    keys = _keys(key)
    matrix, entities = labelled_scores(checks.path("scores", scores))
    given = {"tasks": tasks, "known": known, "candidates": candidates}
    further = [*keys, *_keys(query, "query"), *([during] if isinstance(during, str) else [])]
    known_names = tuple(dict.fromkeys([*_TRIPLE, "side", *_SPAN, "entity", "query", "answer", *further]))
    own = columns_checked(columns, known_names)
    paths = {name: path for name, path in given.items() if path is not None}
    read = {name: _frame(name, path) for name, path in paths.items()}
    for column in own.values():
        if not any(column in one.columns for one in read.values()):
            raise ArgumentError("columns", f"must name a column of some table, got {column!r}.")
    tables = {name: _named(read[name], own, known_names, path, keys) for name, path in paths.items()}
    for column in keys:
        _alike(tables, [(name, column) for name in tables])
    if during is not None:
        if during in keys:
            raise ArgumentError("during", f"must not be in `key`, got {during!r}.")
        spans = [("tasks", during), ("known", "from"), ("known", "to")]
        _alike(tables, [(name, column) for name, column in spans if name in tables], times=True)
    return rank_queries(
        matrix,
        tables["tasks"],
        entities,
        known=tables.get("known"),
        key=keys,
        during=during,
        query=query,
        candidates=tables.get("candidates"),
        tolerance=tolerance,
        model=model,
    )


def _frame(name: str, path: str | PathLike[str]) -> pl.DataFrame:
    """Table in a file."""
    place = checks.path(name, path)
    if separator(place) is None and place.suffix.lower() != ".parquet":
        raise ArgumentError(name, f"must end in .parquet, .csv, .tsv, .csv.gz or .tsv.gz, got {place}.")
    return read_parquet(place) if separator(place) is None else read_text_table(place)[0]


def _named(
    table: pl.DataFrame, columns: dict[str, str], known: tuple[str, ...], path: object, keys: list[str]
) -> pl.DataFrame:
    """Table with the names of owkg, and keys as text; ValueError naming the file if a label is missing."""
    own = {name: column for name, column in columns.items() if column in table.columns}
    table, place = named(table, own, known, source=str(path)), path
    if "side" in table.columns and table["side"].dtype == pl.String:
        table = table.with_columns(sides_spelled(table["side"]))
    for column in (*_TRIPLE, "entity"):
        if column in table.columns and table[column].null_count():
            row = int(table[column].is_null().arg_true()[0])
            raise ValueError(f"{place}, row {row + 1}: {column} must not be missing.")
    there = [name for name in keys if name in table.columns and not table[name].dtype.is_temporal()]
    return table.with_columns(pl.col(name).cast(pl.String) for name in there)


def _alike(tables: dict[str, pl.DataFrame], columns: list[tuple[str, str]], *, times: bool = False) -> None:
    """Makes a column of several tables comparable, in place: as numbers if all are, so that 2014 is 2014.0.

    If some column holds dates or times, text is parsed as dates or times.

    Raises:
        ValueError: with `times`, if some columns hold numbers and others do not, or text in place of a date
            cannot be parsed.
    """
    there = [(name, column) for name, column in columns if column in tables[name].columns]
    if any(tables[name][column].dtype in (pl.Date, pl.Datetime) for name, column in there):
        moments = {at: _moments(*at, tables[at[0]][at[1]]) for at in there}
        midnight = all(
            (each.drop_nulls() == each.drop_nulls().dt.truncate("1d")).all() for each in moments.values()
        )
        for (name, column), each in moments.items():
            kept = each.cast(pl.Date) if midnight else each
            tables[name] = tables[name].with_columns(kept.alias(column))
        return
    texts = {at: tables[at[0]][at[1]].cast(pl.String) for at in there}
    found = texts
    # Text such as 007 is a name, not a number.
    coded = any(text.str.contains(r"^0\d").any() for text in texts.values())
    numbers = {at: column.cast(pl.Float64, strict=False) for at, column in texts.items()}
    all_numbers = [numbers[at].null_count() == texts[at].null_count() for at in there]
    if all(all_numbers) and not coded:
        whole = all((column.drop_nulls() % 1 == 0).all() for column in numbers.values())
        found = {at: column.cast(pl.Int64) for at, column in numbers.items()} if whole else numbers
    elif times and any(a and len(texts[at].drop_nulls()) for a, at in zip(all_numbers, there, strict=True)):
        named = " and ".join(f"{column} of {name}" for name, column in there)
        raise ArgumentError("during", f"must be numbers in all tables, or dates in all: {named}.")
    for name, column in there:
        tables[name] = tables[name].with_columns(found[name, column].alias(column))


def _moments(name: str, column: str, values: pl.Series) -> pl.Series:
    """Dates and times, in microseconds and without a zone."""
    if values.dtype == pl.Datetime:
        if getattr(values.dtype, "time_zone", None):
            values = values.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return values.cast(pl.Datetime("us"))
    if values.dtype in (pl.Date, pl.Null):
        return values.cast(pl.Datetime("us"))
    text = values.cast(pl.String)
    found = pl.select(
        pl.coalesce(
            text.str.to_datetime(form, time_unit="us", strict=False)
            for form in ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f")
        )
    ).to_series()
    if found.null_count() > text.null_count():
        row = int((found.is_null() & text.is_not_null()).arg_true()[0])
        raise ArgumentError(
            name,
            f"must hold dates or times in {column}, as other tables do, got {text[row]!r} in row {row + 1}.",
        )
    return found


def _holds(sets: EntitySets, answer: np.ndarray) -> np.ndarray:
    """Whether the set of each row contains its answer."""
    row = np.repeat(np.arange(len(answer)), sets.stop - sets.start)
    found = np.zeros(len(answer), bool)
    found[row[sets.ids == answer[row]]] = True
    return found


def _keys(key: str | Sequence[str], name: str = "key") -> list[str]:
    """Columns of the key; ArgumentError if one has another meaning in these tables."""
    keys = list(dict.fromkeys(checks.names(name, key)))
    if taken := [one for one in keys if one in _TAKEN]:
        raise ArgumentError(name, f"must not be one of {', '.join(_TAKEN)}, got {taken[0]}.")
    return keys


def _checked(name: str, frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Frame with labels as text; ArgumentError if a column is missing or malformed."""
    if not isinstance(frame, pl.DataFrame):
        raise ArgumentError(name, f"must be a polars DataFrame, got {type(frame).__name__}.")
    if lacking := [column for column in columns if column not in frame.columns]:
        raise ArgumentError(name, f"must have the column {lacking[0]}, got {', '.join(frame.columns)}.")
    for column in (*_TRIPLE, "entity"):
        if column in columns and frame[column].null_count():
            row = int(frame[column].is_null().arg_true()[0]) + 1
            raise ArgumentError(name, f"must have a {column} in every row, got none in row {row}.")
    nested = [name for name in columns if frame[name].dtype.is_nested()]
    if nested:
        raise ArgumentError(name, f"must hold text, numbers or times in {nested[0]}, got lists; join them.")
    text = [pl.col(column).cast(pl.String) for column in (*_TRIPLE, "entity") if column in frame.columns]
    return frame.with_columns(text)


def _ids(name: str, labels: pl.DataFrame, place: pl.DataFrame) -> np.ndarray:
    """Ids of the labels in the only column of a frame."""
    (column,) = labels.columns
    found = labels.join(place, left_on=column, right_on="label", how="left", maintain_order="left")
    _require_entities(name, found, column)
    return found["id"].to_numpy().astype(np.int64)


def _triples(known: pl.DataFrame) -> pl.DataFrame:
    """Known facts with head, relation and tail, also if they are given by query and answer."""
    if not {"query", "answer"} <= set(known.columns) or set(_TRIPLE) & set(known.columns):
        return known
    query, answer = (pl.col(name).cast(pl.String) for name in ("query", "answer"))
    side, entity, relation = query_parts(query)
    is_tail = side == "tail"
    found = known.with_columns(
        relation,
        head=pl.when(is_tail).then(entity).otherwise(answer),
        tail=pl.when(is_tail).then(answer).otherwise(entity),
    )
    if found["relation"].null_count():
        wrong = found.filter(pl.col("relation").is_null())["query"][0]
        raise ArgumentError("known", f"must have queries {QUERY_TEXT}, got {wrong!r}.")
    return found


def _known(
    asked: pl.DataFrame, known: pl.DataFrame, keys: list[str], during: str | None, place: pl.DataFrame
) -> EntitySets:
    """Known answers of each task, including the answer itself."""
    facts = _checked("known", _triples(known), [*_TRIPLE, *keys, *([] if during is None else _SPAN)])
    spans = [] if during is None else list(_SPAN)
    both = []
    for side, ends in (("tail", ("head", "tail")), ("head", ("tail", "head"))):
        renamed = {ends[0]: "entity", ends[1]: "other"}
        own = facts.select(*_TRIPLE, *keys, *spans).rename(renamed).with_columns(side=pl.lit(side))
        both.append(own.select("side", "entity", "relation", "other", *keys, *spans))
    on = ["side", "entity", "relation", *keys]
    answers = pl.concat(both).unique().join(place, left_on="other", right_on="label", how="left")
    tasks = asked.select("row", *on, *([] if during is None or during in keys else [during]))
    counts = answers.group_by(on).len()
    size = tasks.join(counts, on=on, how="left", nulls_equal=True, maintain_order="left")["len"]
    block = (size.fill_null(0).cum_sum() // _PAIRS).to_numpy()
    found = []
    for begin, end in pairwise([0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(tasks)]):
        pairs = tasks[begin:end].join(answers, on=on, nulls_equal=True)
        if during is not None:
            time = pl.col(during)
            after = pl.col("from").is_null() | (pl.col("from") <= time)
            pairs = pairs.filter(after & (pl.col("to").is_null() | (time <= pl.col("to"))))
        _require_entities("known", pairs, "other")
        found.append(pairs.select("row", "id").unique())
    return _sets(pl.concat(found), len(asked))


def _candidates(
    asked: pl.DataFrame, candidates: pl.DataFrame, keys: list[str], place: pl.DataFrame
) -> EntitySets:
    """Candidates of each task, shared within a group."""
    frame = _checked("candidates", candidates, ["entity"])
    allowed = {"entity", "side", "relation", *keys}
    if other := [name for name in frame.columns if name not in allowed]:
        raise ArgumentError(
            "candidates",
            f"must only have the columns {', '.join(sorted(allowed))}; {other[0]} is not in `key`.",
        )
    on = [name for name in ("side", "relation", *keys) if name in frame.columns]
    frame = frame.select(*on, "entity").unique().join(place, left_on="entity", right_on="label", how="left")
    _require_entities("candidates", frame, "entity")
    if not on:
        ids = np.sort(frame["id"].to_numpy())
        return EntitySets(np.zeros(len(asked), np.int64), np.full(len(asked), len(ids)), ids)
    groups = frame.select(on).unique(maintain_order=True).with_row_index("group")
    group = asked.join(groups, on=on, how="left", nulls_equal=True, maintain_order="left")["group"]
    if lacking := group.null_count():
        row = asked.filter(group.is_null()).row(0, named=True)
        what = "head" if row["side"] == "head" else "tail"
        raise ArgumentError(
            "candidates",
            f"must have an entity for every task; {lacking:,} tasks have none, such as a {what} of "
            f"{row['relation']!r}.",
        )
    members = frame.join(groups, on=on, nulls_equal=True)
    sets, own = _sets(members.select(pl.col("group").alias("row"), "id"), len(groups)), group.to_numpy()
    return EntitySets(sets.start[own], sets.stop[own], sets.ids)


def _require_entities(name: str, joined: pl.DataFrame, column: str) -> None:
    """ArgumentError if a label has no id."""
    unknown = joined.filter(pl.col("id").is_null())
    if len(unknown):
        raise ArgumentError(name, f"must name entities in {column}, got {unknown[column][0]!r}.")


def _sets(pairs: pl.DataFrame, rows: int) -> EntitySets:
    """Sets of ids by row."""
    ordered = pairs.sort("row", "id")
    count = np.bincount(ordered["row"].to_numpy(), minlength=rows)
    stop = np.cumsum(count)
    return EntitySets(stop - count, stop, ordered["id"].to_numpy().astype(np.int64))

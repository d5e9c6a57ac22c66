"""Annotation sheets: candidates for people to judge, and the judgements that owkg reads back."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from os import PathLike
from pathlib import Path

import numpy as np
import polars as pl

from owkg import checks
from owkg.checks import StrPath
from owkg.errors import ArgumentError, naming
from owkg.files.cells import as_it_was, harmless
from owkg.files.delimited import header, read_text_table
from owkg.files.lines import line_error, read_lines, split_lines
from owkg.files.storage import written_aside
from owkg.ir import POOLED
from owkg.ir.trec import TOPIC, read_qrels
from owkg.judge.qrels import merged, read_judgements
from owkg.judge.schema import ASKED, QRELS, checked
from owkg.kg.names import query_parts
from owkg.pools.pool import POOL, candidates_checked
from owkg.pools.templates import Templates, addresses, sentences

SHEET = ("question_id", "answer_id", "question", "answer", "label", "comment")
"""Columns of a sheet."""

SOURCE = "source"
"""Optional last column of a sheet: address where an annotator found the answer."""

_WORDED = SHEET[:4]  # columns that annotators must not change
_NEEDED = ("question_id", "answer_id", "label")
_LABELS = ("entity", "relation", "answer")
_WORDS = {
    **dict.fromkeys(("1", "y", "yes", "true", "relevant"), 1),
    **dict.fromkeys(("0", "n", "no", "false", "not relevant", "nonrelevant"), 0),
    **dict.fromkeys(("?", "unsure"), POOLED),
}
LABELS_SHOWN = "1, y, yes, relevant; 0, n, no, not relevant; or ?"
"""Words allowed as a label, for error messages."""
# Queries are texts such as 'head|relation|?' or '?|relation|tail'.


def write_sheet(
    candidates: pl.DataFrame,
    path: StrPath,
    *,
    seed: int,
    labels: Mapping[str, str] | None = None,
    descriptions: Mapping[str, str] | None = None,
    templates: Templates | None = None,
    source: str | None = None,
    in_order: bool = False,
) -> None:
    """Write candidates as a table for annotators, TSV with a line of column names.

    Annotators read the columns `question` and `answer`, and fill in `label` and `comment`. They must not
    change `question_id` and `answer_id`. The answers to a query are adjacent. Queries and answers are
    shuffled, so that the order does not reveal how many systems list an answer, or at which rank.

    Cells that a spreadsheet would compute (they begin with = + - @) get a leading apostrophe, control
    characters are spelled out (\\x1b), and backslashes are doubled; `read_sheet` reverses this.

    Args:
        candidates: table with columns query, side, entity, relation, answer, such as `owkg.pools.pool.pool`
            returns. Other columns are not written.
        path: file to write. It is written completely or not at all.
        seed: seed of the order; equal seeds give equal files.
        labels: readable names of entities and relations. Labels without a name are shown unchanged.
        descriptions: descriptions of entities, shown after their names.
        templates: result of `owkg.pools.templates.read_templates`: wording for the queries that have a
            template, instead of the default wording.
        source: "" adds a blank last column source; a template of addresses (`owkg.pools.templates.addresses`)
            fills it. Default None: no such column.
        in_order: whether the rows keep their order, as in a draw. Default False.

    Raises:
        ValueError: if the candidates are malformed or empty, or `source` is not such a template.
    """
    path = checks.path("path", path)
    frame = candidates_checked(candidates) if in_order else _in_order(candidates, seed)
    named, told = dict(labels or {}), dict(descriptions or {})
    shown = frame.select(
        "side",
        entity=_readable(frame["entity"], named, told),
        relation=_readable(frame["relation"], named, {}),
        answer=_readable(frame["answer"], named, told),
    )
    own = sentences(frame["relation"], shown, templates or {})
    sheet = frame.select(
        question_id="query",
        answer_id="answer",
        question=pl.select(pl.coalesce(own, _sentence(shown))).to_series(),
        answer=shown["answer"],
    )
    if source is not None:
        bare = frame.select("side", *(_readable(frame[name], named, {}) for name in _LABELS))
        sheet = sheet.with_columns(addresses(bare, source).alias(SOURCE))
    _write(sheet, path)


def write_again(
    candidates: pl.DataFrame,
    sheets: Sequence[StrPath],
    path: StrPath,
    *,
    seed: int,
    original: StrPath | None = None,
) -> None:
    """Write some candidates of earlier sheets as a new sheet, in the same wording and without labels.

    Args:
        candidates: table with columns query, side, entity, relation, answer; each candidate must be in a
            sheet.
        sheets: sheets of annotators. If one has the column source, the new sheet has it too, blank.
        path: file to write. It is written completely or not at all.
        seed: seed of the order.
        original: the sheet before it was filled in, whose sources are kept. Default None: there is none.

    Raises:
        ValueError: if the candidates are malformed, empty, or in no sheet, or a sheet is malformed.
        OSError: if a sheet cannot be opened.
    """
    path = checks.path("path", path)
    frame = _in_order(candidates, seed)
    tables = [] if original is None else [sheet_rows(original)[0]]
    tables += [sheet_rows(sheet)[0].with_columns(pl.lit(None, pl.String).alias(SOURCE)) for sheet in sheets]
    columns = [*_WORDED, *([SOURCE] if any(map(has_source, sheets)) else [])]
    words = pl.concat([table.select(columns) for table in tables])
    words = words.unique(_WORDED[:2], keep="first", maintain_order=True)
    asked = frame.select(question_id="query", answer_id="answer")
    sheet = asked.join(words, on=_WORDED[:2], how="left", maintain_order="left")
    for row in sheet["question"].is_null().arg_true().head(1):
        query, answer = asked.row(row)
        raise ArgumentError("candidates", f"must be in one of the sheets, got {answer!r} to {query!r}.")
    _write(sheet, path)


def read_sheet(
    path: StrPath, candidates: pl.DataFrame | None = None, *, of: str = "the pool", blank: bool = False
) -> pl.DataFrame:
    """Judgements from a sheet that an annotator has filled in.

    Labels are 1, y, yes, true, relevant; 0, n, no, false, not relevant, nonrelevant; or ?, unsure, which
    count as not judged (-1). Case does not matter. Rows may be in any order, and rows may be missing.

    Args:
        path: file of the sheet.
        candidates: candidates that the sheet may contain, to detect changed ids. Default None: any query is
            accepted.
        of: name for the set of candidates, for error messages. Default "the pool".
        blank: whether blank labels are allowed, as not judged yet. Default False.

    Returns:
        Columns query, side, entity, relation, answer, relevance.

    Raises:
        ValueError: naming file and line: if a column is missing, a label is blank or not one of these words,
            a candidate has two different labels, or an id was changed.
        OSError: if the file cannot be opened.
    """
    table, place = sheet_rows(path)
    if table.is_empty():
        raise ValueError(f"{path}: must have at least one labelled row, got none.")
    table = table.with_row_index("row")

    def refuse(bad: pl.Series, column: str, must: str) -> None:
        for row in bad.arg_true().head(1):
            raise ValueError(f"{place(row)}: the {column} {must}, got {table[column][row]!r}.")

    label = table["label"].str.strip_chars()
    if blank:
        label = label.replace("", "?")
    refuse(label == "", "label", f"must not be blank, but {LABELS_SHOWN} (or delete the row)")
    relevance = labels_in(label)
    refuse(relevance.is_null(), "label", f"must be {LABELS_SHOWN}")
    table = table.with_columns(relevance=relevance)
    topics = candidates is not None and (checked("candidates", candidates, POOL)["relation"] == TOPIC).all()
    asked = _asked(table["question_id"], topics=topics)
    refuse(asked["relation"].is_null(), "question_id", "must be as written, such as head|relation|?")
    refuse(table["answer_id"] == "", "answer_id", "must be as written")
    frame = asked.with_columns(answer=table["answer_id"], relevance=table["relevance"], row=table["row"])
    if candidates is not None:
        wanted = checked("candidates", candidates, POOL).select("query", "answer", there=True)
        joined = frame.join(wanted.unique(), on=["query", "answer"], how="left", maintain_order="left")
        known = frame["query"].is_in(wanted["query"].unique().implode())
        refuse(~known, "question_id", f"must be a query of {of}")
        refuse(joined["there"].is_null(), "answer_id", f"must be an answer in {of} to its query")
    relevances = frame.group_by("query", "answer", maintain_order=True).agg("row", "relevance")
    torn = relevances.filter(pl.col("relevance").list.n_unique() > 1)
    if len(torn):
        first = torn.row(0, named=True)
        other = next(
            i for i, relevance in enumerate(first["relevance"]) if relevance != first["relevance"][0]
        )
        raise ValueError(
            f"{place(first['row'][other])}: the label of {first['answer']!r} to {first['query']!r} "
            f"contradicts the label in {place(first['row'][0])}."
        )
    return frame.unique(["query", "answer"], keep="first", maintain_order=True).select(QRELS)


def labels_in(words: pl.Series) -> pl.Series:
    """Relevance for each word of an annotator: 1, 0, -1 (not judged); null for other words."""
    low = words.str.strip_chars().str.to_lowercase().replace({"1.0": "1", "0.0": "0"})
    return low.replace_strict(_WORDS, default=None, return_dtype=pl.Int64)


def judged_in(
    paths: StrPath | Sequence[StrPath],
    candidates: pl.DataFrame | None = None,
    *,
    name: str = "judged",
    check: Callable[[Path, pl.DataFrame], None] | None = None,
) -> pl.DataFrame:
    """Judgements from files of qrels and from sheets, where blank labels count as not judged yet.

    Args:
        paths: one file or several.
        candidates: candidates that sheets may contain. Default None: any query is accepted.
        name: name of the argument that holds the files, for error messages.
        check: function that takes each file with its judgements and raises an error if they are wrong.

    Raises:
        ValueError: naming file and line, if a file is malformed; naming the argument, if there is no file or
            two files contradict each other.
        OSError: if a file cannot be opened.
    """
    several = [paths] if isinstance(paths, str | PathLike) else list(paths)
    files = [checks.path(name, path) for path in several]
    if not files:
        raise ArgumentError(name, "must name at least one file, got none.")
    each = [
        read_sheet(file, candidates, blank=True)
        if is_sheet(file)
        else read_judgements(file, topics="allowed")
        for file in files
    ]
    for file, own in zip(files, each, strict=True):
        if check is not None:
            check(file, own)
    with naming({"first": f"`{name}`"}):
        return reduce(merged, (own.select(QRELS) for own in each))


def judged_place(path: Path, query: str, answer: str) -> str:
    """Place of a judgement in a file of qrels or a sheet: "path, line N", or the path if it is not found."""
    if is_sheet(path):
        table, place = sheet_rows(path)
        rows = ((table["question_id"] == query) & (table["answer_id"] == answer)).arg_true()
        return place(int(rows[0])) if len(rows) else str(path)
    said = read_qrels(path, topics="allowed").filter(query=query, answer=answer)["line"].drop_nulls()
    return f"{path}, line {said[0]}" if len(said) else str(path)


def sheet_rows(path: StrPath) -> tuple[pl.DataFrame, Callable[[int], str]]:
    """Cells of a sheet, filled in or not, and a function that names the place of a row.

    Returns:
        Columns question_id, answer_id, question, answer (with their original text), label, comment and
        source, blank if the sheet lacks the column; and a function from a row (from 0) to "path, line N".

    Raises:
        ValueError: naming file and line, if the file is not a table, or lacks question_id, answer_id or
            label.
        OSError: if the file cannot be opened.
    """
    path = checks.path("path", path)
    table, place = read_text_table(path)
    if not set(_NEEDED) <= set(table.columns):
        got = ", ".join(table.columns)
        raise ValueError(f"{path}, line 1: must have the columns {', '.join(_NEEDED)}, got {got}.")
    there = [pl.col(name) if name in table.columns else pl.lit("").alias(name) for name in (*SHEET, SOURCE)]
    table = table.select(there).fill_null("")
    return table.with_columns(as_it_was(table[name]) for name in _WORDED), place


def is_sheet(path: Path) -> bool:
    """Whether the first line of a file has the columns of a sheet."""
    with path.open("rb") as file:
        first = file.readline(2**16).decode("utf-8-sig", "replace")
        return set(_NEEDED) <= set(first.strip().split("\t"))


def has_source(path: StrPath) -> bool:
    """Whether a sheet has the column source."""
    return SOURCE in header(checks.path("path", path))


def read_names(
    path: StrPath, expected: str = "a label, a name and perhaps a description"
) -> tuple[dict[str, str], dict[str, str]]:
    """Readable names and descriptions from lines of label, name and optional description, between tabs.

    Returns:
        (labels, descriptions) for `write_sheet`.

    Raises:
        ValueError: naming file and line, if a line has another number of fields or a label occurs twice.
        OSError: if the file cannot be opened.
    """
    path = checks.path("path", path)
    lines = read_lines(path)
    pattern = r"(?P<label>[^\t]+)\t(?P<name>[^\t]+)(?:\t(?P<description>[^\t]*))?"
    frame = split_lines(path, lines, pattern, f"{expected}, separated by tabs", separator="\t")
    again = ~frame["label"].is_first_distinct()
    if again.any():
        row = int(again.arg_true()[0])
        raise line_error(path, row + 1, f"the label {frame['label'][row]!r} is also on an earlier line.")
    described = frame.filter(pl.col("description").fill_null("") != "")
    return (
        dict(zip(frame["label"], frame["name"], strict=True)),
        dict(zip(described["label"], described["description"], strict=True)),
    )


def _in_order(candidates: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The validated candidates in the order of a sheet."""
    number = checks.seed("seed", seed)
    frame = candidates_checked(candidates)
    if frame.is_empty():
        raise ArgumentError("candidates", "must have at least one row, got none.")
    return _shuffled(frame, number)


def _write(sheet: pl.DataFrame, path: Path) -> None:
    """Write the cells of a sheet, with blank cells for annotators to fill in."""
    blank = sheet.with_columns(pl.lit(None, pl.String).alias(name) for name in ("label", "comment"))
    ordered = blank.select(*SHEET, *([SOURCE] if SOURCE in sheet.columns else []))
    write_cells(ordered, path, [*_WORDED, *ordered.columns[len(SHEET) :]])


def write_cells(table: pl.DataFrame, path: Path, texts: Iterable[str]) -> None:
    """Write a table as TSV, with the columns `texts` made harmless to spreadsheets and terminals."""
    table = table.with_columns(harmless(table[name]) for name in texts)
    with written_aside(path) as aside:
        table.write_csv(aside, separator="\t", quote_style="necessary")


def _shuffled(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The rows in a random order of queries and of answers to each, whatever their order before."""
    frame = frame.sort("query", "answer")
    of_query, of_answer = np.random.default_rng(seed).spawn(2)
    queries = frame["query"].unique().sort()
    place = pl.col("query").replace_strict(queries, of_query.permutation(len(queries)), return_dtype=pl.Int64)
    order = pl.Series("order", of_answer.permutation(len(frame)))
    return frame.with_columns(order, place=place).sort("place", "order").drop("place", "order")


def _readable(column: pl.Series, names: dict[str, str], descriptions: dict[str, str]) -> pl.Series:
    """Names in place of labels, followed by descriptions."""
    shown: dict[str, str] = {}
    for label in column.unique().to_list():
        told = f" ({descriptions[label]})" if label in descriptions else ""
        shown[label] = f"{names.get(label, label)}{told}"
    return column.replace_strict(shown, return_dtype=pl.String)


def _sentence(shown: pl.DataFrame) -> pl.Series:
    """Query in words. The triple is shown unchanged, because owkg does not know how to phrase a relation."""
    for_tail = pl.format("Which X makes this true: '{}' -- {} --> X?", "entity", "relation")
    for_head = pl.format("Which X makes this true: X -- {} --> '{}'?", "relation", "entity")
    of_triple = pl.when(pl.col("side") == "tail").then(for_tail).otherwise(for_head)
    of_topic = pl.format("Is it relevant to '{}'?", "entity")
    return shown.select(pl.when(pl.col("relation") == TOPIC).then(of_topic).otherwise(of_triple)).to_series()


def _asked(query: pl.Series, *, topics: bool) -> pl.DataFrame:
    """Columns query, side, entity, relation; null if the text is not a query."""
    texts = query.to_frame("query")
    if topics:
        return texts.with_columns(side=pl.lit("tail"), entity="query", relation=pl.lit(TOPIC)).select(ASKED)
    return texts.with_columns(query_parts(pl.col("query"))).select(ASKED)

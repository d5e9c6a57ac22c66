"""Run and qrels files as tables of queries and answers: TREC, MS MARCO, BEIR, rule learners, and JSON."""

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import polars as pl

from owkg.files.lines import line_error, read_lines, split_lines
from owkg.files.storage import opened, require_rereadable
from owkg.ir import POOLED
from owkg.ir.dictionaries import MOST, dictionary, read_dictionary
from owkg.ir.rules import is_predictions, read_predictions
from owkg.kg.names import QUERY_TEXT, TOPIC, query_parts, query_text, unescaped

_RUN = ("query", "q0", "answer", "rank", "score", "tag")
_RANKED = ("query", "answer", "rank")
_QRELS = ("query", "zero", "answer", "relevance")
_BEIR = ("query", "answer", "relevance")
RUNS = (
    "lines `query Q0 answer rank score tag` (TREC) or `query answer rank` (MS MARCO), predictions of "
    "AnyBURL, or JSON {query: {answer: score}}"
)
_JUDGEMENTS = (
    "lines `query 0 answer relevance` (TREC), lines `query answer relevance` under the header "
    "`query-id corpus-id score` (BEIR), or JSON {query: {answer: relevance}}"
)
Topics = bool | Literal["allowed"]
"""Whether queries are topics (any text); "allowed": if none in the file begins with ?| or ends with |?."""

_HEADER = re.compile(
    r"query[-_]?id([\t,; ])((?:iter|iteration|q0|0|zero)\1)?(?:corpus|doc|answer)[-_]?id\1"
    r"(?:score|relevance)",
    re.IGNORECASE,
)
_OBJECT = re.compile(r"\{\s*(?:[\"}].*)?")
# Pattern of first lines that a .tsv or .csv file of ranks cannot have.
_LISTED = re.compile(r"[^\t]+\t[^\t]+\t[1-9][0-9]*|\S+[\t ]+Q0[\t ].*")
# First bytes of files that are not text.
_BINARY = {
    b"PAR1": "a Parquet file",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"%PDF": "a PDF file",
    b"PK\x03\x04": "an archive (.zip, .npz or .xlsx)",
    b"\x93NUMPY": "an array of NumPy",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
    b"\x1f\x8b": "a gzip file, whose name must end in .gz",
    b"BZh": "a file packed by bzip2",
    b"\xfd7zXZ": "a file packed by xz",
    b"\x28\xb5\x2f\xfd": "a file packed by zstd",
}


def read_run(path: Path, *, topics: Topics = False) -> pl.DataFrame:
    """Run with lines `query Q0 answer rank score tag`, in the order of the file; .gz files are unpacked.

    Fields are separated by white space, or by tabs if the first line has five tabs; labels may then hold
    spaces. A query is `head|relation|?` or `?|relation|tail`, with bars and similar characters in labels
    escaped as in `owkg.kg.names`.

    Three other formats are recognised by their content. They have no tags, so the tag is the name of the
    file. Lines `query answer rank` (MS MARCO) have no scores, so the score is minus the rank, and a warning
    says that it is. JSON {query: {answer: score}} is the dictionary of pytrec_eval and ranx. Prediction files
    of AnyBURL and PyClause hold the candidates for the head and the tail of each triple (`owkg.ir.rules`).

    Args:
        path: path of the file.
        topics: True: queries are any text, as in TREC, and are not parsed. "allowed": if no query of the file
            begins with ?| or ends with |?, queries are topics, with side tail and relation `TOPIC`. False
            (default): queries are parsed.

    Returns:
        A frame with the columns line (null in JSON), side, entity, relation, answer, score, tag, and query,
        the text of the query; without side, entity and relation if `topics` is True.

    Raises:
        ValueError: naming file and line, if a line is malformed, a score is not a number, or an answer occurs
            twice for one query and tag.
    """
    lines = _text_lines(path, "a run")
    if _is_json(lines[0]):
        frame = read_dictionary(path, "\n".join(lines), "score").with_columns(tag=pl.lit(file_tag(path)))
    elif is_predictions(lines):
        frame = read_predictions(path, lines).with_columns(tag=pl.lit(file_tag(path)))
        return frame if topics is not True else frame.drop("side", "entity", "relation")
    elif _is_ranked(lines[0]):
        frame = _by_rank(path, lines)
    else:
        frame = _fields(path, lines, _RUN, RUNS)
        score = frame["score"].cast(pl.Float64, strict=False)
        _refuse(path, frame["score"], score.is_null(), "a score must be a number")
        _refuse(path, frame["score"], score.is_nan(), "a score must not be NaN")
        frame = frame.with_columns(score=score).drop("q0", "rank")
    return _once(path, _queries(path, frame, topics), "tag", "query", "answer")


def read_qrels(path: Path, *, topics: Topics = False) -> pl.DataFrame:
    """Judgements with lines `query 0 answer relevance`; otherwise as `read_run`.

    BEIR files (lines `query answer relevance` below a header, separated by tabs, commas or semicolons,
    possibly with a second column iteration) and JSON {query: {answer: relevance}} are recognised by their
    content. A relevance may be written as 1.0.

    Returns:
        A frame with the columns line (null in JSON), side, entity, relation, answer, relevance (Int64), and
        query. A relevance below -1, such as TREC's -2 for spam, becomes -1 (pooled and not judged), as in
        trec_eval.
    """
    lines = _text_lines(path, "judgements")
    if _is_json(lines[0]):
        frame = read_dictionary(path, "\n".join(lines), "relevance")
        frame = frame.with_columns(pl.col("relevance").clip(POOLED))
        return _once(path, _queries(path, frame, topics), "query", "answer")
    if header := _HEADER.fullmatch(lines[0].strip()):
        if len(lines) == 1:
            raise line_error(path, 1, "must be followed by judgements, got the header alone.")
        names = _QRELS if header[2] else _BEIR
        frame = _fields(path, lines[1:], names, _JUDGEMENTS, first=2, mark=header[1])
    else:
        frame = _fields(path, lines, _QRELS, _JUDGEMENTS).drop("zero")
    relevance = _whole(frame["relevance"])
    bad = relevance.is_null()
    if bad.any():
        line, text = frame.filter(bad).select("line", "relevance").row(0)
        hint = "; is this a header line? BEIR's is `query-id corpus-id score`" if line == 1 else ""
        raise line_error(path, line, f"a relevance must be a whole number, got {text!r}{hint}.")
    frame = frame.with_columns(relevance=relevance.clip(POOLED))
    return _once(path, _queries(path, frame, topics), "query", "answer")


def run_of(name: str, held: Mapping[Any, Any], *, topics: Topics = False) -> pl.DataFrame:
    """Run from a dictionary {query: {answer: score}}, the argument `name`; as `read_run`, but without tag."""
    return _queries(f"`{name}`", dictionary(name, held, "score"), topics)


def qrels_of(name: str, held: Mapping[Any, Any], *, topics: Topics = False) -> pl.DataFrame:
    """Judgements from a dictionary {query: {answer: relevance}}, the argument `name`; as `read_qrels`."""
    frame = dictionary(name, held, "relevance").with_columns(pl.col("relevance").clip(POOLED))
    return _queries(f"`{name}`", frame, topics)


def file_tag(path: Path) -> str:
    """Name of the system whose run is in a file without tags: the name of the file without its endings."""
    return path.name.partition(".")[0] or path.name


def begins_as_run(lines: pl.Series) -> bool:
    """Whether a file with these first lines is a run in one of the formats."""
    six = 6 in (len(lines[0].split()), len(lines[0].split("\t")))
    return six or _is_json(lines[0]) or is_predictions(lines) or _is_ranked(lines[0])


def looks_like_run(path: Path) -> bool:
    """Whether a file, whose name could belong to a rank table, begins like a run of TREC or MS MARCO."""
    if not path.is_file() or path.suffix.lower() == ".parquet":
        return False
    with opened(path) as file:
        line = file.readline(2**16).decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\r\n")
    return _LISTED.fullmatch(line) is not None


def _text_lines(path: Path, what: str) -> pl.Series:
    """Lines of a file.

    Raises:
        ValueError: naming the kind of file that it appears to be, if it is not text.
    """
    require_text(path, what)
    return read_lines(path)


def require_text(path: Path, what: str) -> None:
    """Raises ValueError, naming the kind of file, if a file is not text; OSError if there is no file."""
    require_rereadable(path)
    with path.open("rb") as file:
        start = file.read(4096)
    kind = next((kind for magic, kind in _BINARY.items() if start.startswith(magic)), None)
    kind = "a binary file" if kind is None and b"\0" in start else kind
    if kind is not None and path.suffix != ".gz":
        raise ValueError(f"{path}: must be {what}, text in UTF-8, but is {kind}.")


def _is_json(line: str) -> bool:
    return _OBJECT.fullmatch(line.strip()) is not None or line.strip() == "["


def _is_ranked(line: str) -> bool:
    fields = line.split("\t") if line.count("\t") == 2 else line.split()
    return len(fields) == 3 and re.fullmatch("[1-9][0-9]*", fields[2].strip()) is not None


def _by_rank(path: Path, lines: pl.Series) -> pl.DataFrame:
    """Run in the format of MS MARCO."""
    frame = _fields(path, lines, _RANKED, RUNS)
    rank = frame["rank"].cast(pl.Int64, strict=False)
    _refuse(path, frame["rank"], rank.is_null() | (rank < 1), "a rank must be a whole number from 1")
    again = ~frame.select(pl.struct("query", "rank").is_first_distinct()).to_series()
    _refuse(path, frame["rank"], again, "a rank must occur once in the list of a query")
    warnings.warn(
        f"{path}: has ranks but no scores, so each score is minus the rank.", UserWarning, stacklevel=3
    )
    return frame.with_columns(score=-rank.cast(pl.Float64), tag=pl.lit(file_tag(path))).drop("rank")


def _fields(
    path: Path, lines: pl.Series, names: tuple[str, ...], kinds: str, *, first: int = 1, mark: str = "\t"
) -> pl.DataFrame:
    """Fields of each line, with the number of the line, counted from `first`."""
    parted = mark in ",;" or lines[0].count("\t") == len(names) - 1
    # Between tabs, spaces at the ends of a field are stripped. TREC does not count no-break spaces as white.
    mark = mark if mark in ",;" else "\t"
    field, between = (
        (rf"[^{mark} ](?:[^{mark}]*[^{mark} ])?", rf" *{mark} *") if parted else (r"[^ \t\r\v\f]+", r"[ \t]+")
    )
    edge = " *" if parted else r"[ \t]*"
    pattern = edge + between.join(f"(?P<{name}>{field})" for name in names) + edge
    expected = f"{len(names)} fields: {', '.join(names)}"
    if not lines.head(1).str.contains(f"^{pattern}$").item():
        expected = kinds
    frame = split_lines(path, lines, pattern, expected, separator=mark if parted else None, first=first)
    return frame.with_row_index("line", offset=first)


def _whole(texts: pl.Series) -> pl.Series:
    """Whole numbers, which may be written as floats (1.0); null if a text is not a whole number."""
    floats = texts.cast(pl.Float64, strict=False)
    whole = floats.is_finite() & (floats == floats.round()) & (floats.abs() < MOST)
    return texts.cast(pl.Int64, strict=False).fill_null(
        pl.select(pl.when(whole).then(floats)).to_series().cast(pl.Int64)
    )


def _queries(path: Path | str, frame: pl.DataFrame, topics: Topics) -> pl.DataFrame:
    if topics is True:
        return frame
    query = frame["query"]
    if topics and not (query.str.ends_with("|?") | query.str.starts_with("?|")).any():
        return frame.with_columns(side=pl.lit("tail"), entity="query", relation=pl.lit(TOPIC))
    return _parsed(path, frame)


def _parsed(path: Path | str, frame: pl.DataFrame) -> pl.DataFrame:
    """Frame with its queries parsed into the columns side, entity, relation."""
    asked = frame.unique("query", keep="first", maintain_order=True).select("query", "line")
    asked = asked.with_columns(query_parts(pl.col("query")))
    if asked["side"].null_count():
        line, text = asked.filter(pl.col("side").is_null()).select("line", "query").row(0)
        raise line_error(path, line, f"a query must be {QUERY_TEXT}, got {text!r}.")
    found = frame.join(asked.drop("line"), on="query", how="left", maintain_order="left")
    if not frame.select(
        pl.any_horizontal(pl.col("query", "answer").str.contains("\\", literal=True).any())
    ).item():
        return found
    # Each query has one text, however another program escapes it.
    return found.with_columns(query_text(), unescaped(pl.col("answer")))


def _once(path: Path, frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """The argument `frame`, after a check that no line repeats an earlier line in all `columns`."""
    again = ~frame.select(pl.struct(columns).is_first_distinct()).to_series()
    if again.any():
        line, query, answer = frame.filter(again).select("line", "query", "answer").row(0)
        raise line_error(path, line, f"the answer {answer!r} to {query!r} is also on an earlier line.")
    return frame


def _refuse(path: Path, column: pl.Series, bad: pl.Series, must: str) -> None:
    """Raises ValueError for the first line that is `bad`."""
    if bad.any():
        row = bad.arg_max() or 0
        raise line_error(path, row + 1, f"{must}, got {column[row]!r}.")

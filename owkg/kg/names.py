"""Texts of queries, and their known and asked entities.

The query for the tail of (h, r, ?) is `h|r|?`, and the query for the head of (?, r, t) is `?|r|t`. The head
ends at the first bar and the tail begins after the last, so that a relation may hold bars. Ambiguous
characters of an entity are escaped: a bar as `\\|`, a backslash as `\\\\`, tabs and ends of line as
`\\x09`, `\\x0a` and `\\x0d`, a space at an end as `\\x20`, and the entity `?` as `\\?`.
"""

import polars as pl

QUERY_TEXT = "'head|relation|?' or '?|relation|tail'"

TOPIC = "(topic)\u2060"
"""Relation of a query that is a topic: its entity is the topic, its answers are relevant documents.

It ends with a character of no width, so that a relation of a graph may be named (topic).
"""

_ESCAPES = {"\\": "\\\\", "\t": "\\x09", "\n": "\\x0a", "\r": "\\x0d"}
_BARRED = _ESCAPES | {"|": "\\|"}
_READ = {written: text for text, written in (_BARRED | {" ": "\\x20", "?": "\\?"}).items()}
_TAIL_ASKED = r"^((?:[^|\\]|\\.)+)\|((?:[^\\]|\\.)+)\|\?$"
_HEAD_ASKED = r"^\?\|((?:[^\\]|\\.)+)\|((?:[^|\\]|\\.)+)$"


def known_entity() -> pl.Expr:
    """Known entity of the query of a triple, from the columns side, head and tail."""
    return pl.when(pl.col("side") == "tail").then("head").otherwise("tail").alias("entity")


def asked_entity() -> pl.Expr:
    """Answer to the query of a triple, from the columns side, head and tail."""
    return pl.when(pl.col("side") == "tail").then("tail").otherwise("head").alias("answer")


def escaped(label: str | pl.Expr, *, bars: bool = False) -> pl.Expr:
    """Column of labels, escaped for a field of a file; with `bars`, bars and the label ? are escaped too."""
    column = pl.col(label) if isinstance(label, str) else label
    codes = _BARRED if bars else _ESCAPES
    text = column.cast(pl.String).str.replace_many(list(codes), list(codes.values()))
    text = text.str.replace("^ ", r"\x20").str.replace(" $", r"\x20")
    return pl.when(text == "?").then(pl.lit(r"\?")).otherwise(text) if bars else text


def unescaped(column: pl.Expr) -> pl.Expr:
    """Labels of a column that `escaped` wrote; a backslash before any other character is kept."""
    return column.str.replace_many(list(_READ), list(_READ.values()), leftmost=True)


def query_text() -> pl.Expr:
    """Query `head|relation|?` or `?|relation|tail`, or topic, from the columns side, entity and relation."""
    entity, relation = escaped("entity", bars=True), escaped("relation")
    texts = (
        pl.when(pl.col("side") == "tail")
        .then(pl.format("{}|{}|?", entity, relation))
        .otherwise(pl.format("?|{}|{}", relation, entity))
    )
    return pl.when(pl.col("relation") == TOPIC).then("entity").otherwise(texts).alias("query")


def query_parts(query: pl.Expr) -> list[pl.Expr]:
    """Side, entity and relation of `head|relation|?` or `?|relation|tail`; null for other texts."""
    tail, head = query.str.extract_groups(_TAIL_ASKED), query.str.extract_groups(_HEAD_ASKED)
    for_tail, for_head = tail.struct[0].is_not_null(), head.struct[0].is_not_null()
    good = for_tail != for_head
    entity = pl.when(for_tail).then(tail.struct[0]).otherwise(head.struct[1])
    relation = pl.when(for_tail).then(tail.struct[1]).otherwise(head.struct[0])
    side = pl.when(for_tail).then(pl.lit("tail")).otherwise(pl.lit("head"))
    return [
        pl.when(good).then(part).alias(name)
        for name, part in (("side", side), ("entity", unescaped(entity)), ("relation", unescaped(relation)))
    ]


def query_of(entity: str, relation: str, side: str) -> str:
    """Text of one query, as from `query_text`."""
    frame = pl.DataFrame({"side": [side], "entity": [entity], "relation": [relation]})
    return frame.select(query_text()).item()


def parts_of(query: str) -> tuple[str, str, str] | None:
    """Side, entity and relation of the text of one query; None for other texts."""
    row = pl.DataFrame({"query": [query]}).select(query_parts(pl.col("query"))).row(0)
    return None if row[0] is None else row

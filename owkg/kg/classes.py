"""Spellings of true and false in files of triple classification."""

import polars as pl

_TRUE = ("1", "+1", "1.0", "true", "yes", "positive")
_FALSE = ("-1", "0", "-1.0", "0.0", "false", "no", "negative")
CLASSES: dict[str, bool] = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}
"""Spellings in lower case: files of NTN have 1 and -1, others 1 and 0."""

CLASSES_IN_WORDS = "1 or -1 (also +1, 0, true, false, yes, no, positive, negative)"


def is_class(text: str) -> bool:
    """Whether a text is a spelling of true or false."""
    return text.strip().lower() in CLASSES


def truth_of(column: pl.Series) -> pl.Series:
    """Column of booleans from a column of such texts; null for other texts."""
    texts = column.str.strip_chars().str.to_lowercase()
    return texts.replace_strict(CLASSES, default=None, return_dtype=pl.Boolean)

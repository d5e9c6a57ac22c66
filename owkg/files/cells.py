r"""Table cells that neither a spreadsheet nor a terminal treats as a command.

All cells follow one rule. A backslash is doubled, and control characters are spelled out as `\x1b` or
`\u202e`. A cell that a spreadsheet would compute, or that begins with an apostrophe, gets an apostrophe in
front. Data files, such as rank tables, keep their labels unchanged.
"""

import re

import polars as pl

from owkg.terminal.tables import CONTROL, spelled

# Characters that a cell must not begin with, including full-width forms, and the mark put before it.
_FORMULA, _MARK = "[=+\\-@'\uff1d\uff0b\uff0d\uff20]", "'"
_STRANGE = f"[\n{CONTROL}]"
_SPELLED = re.compile(r"\\(?:\\|x([0-9a-f]{2})|u([0-9a-f]{4}))")


def harmless(column: pl.Series) -> pl.Series:
    """Text column with the rule applied."""
    texts = column.cast(pl.String).str.replace_all("\\", "\\\\", literal=True)
    strange = texts.filter(texts.str.contains(_STRANGE)).unique()
    if len(strange):
        plain = [re.sub(_STRANGE, spelled, text) for text in strange]
        texts = texts.replace(strange, pl.Series(plain, dtype=pl.String))
    frame = pl.DataFrame({column.name: texts})
    cell = pl.col(column.name)
    begins = cell.str.contains(f"^{_FORMULA}")
    marked = pl.when(begins).then(pl.concat_str(pl.lit(_MARK), cell)).otherwise(cell)
    return frame.select(marked.alias(column.name)).to_series()


def as_it_was(column: pl.Series) -> pl.Series:
    """Text column as before `harmless`; a spreadsheet may have removed the apostrophe."""
    texts = column.str.replace(f"^'({_FORMULA})", "${1}")
    plain = texts.filter(texts.str.contains("\\", literal=True)).unique()
    if plain.is_empty():
        return texts
    return texts.replace(plain, pl.Series([_SPELLED.sub(_meant, text) for text in plain], dtype=pl.String))


def harmless_table(table: pl.DataFrame) -> pl.DataFrame:
    """Table with the rule applied to its text columns and its column names."""
    kinds = pl.col(pl.String, pl.Categorical, pl.Enum)
    found = table.with_columns(harmless(column) for column in table.select(kinds))
    return found.rename(dict(zip(table.columns, harmless(pl.Series(table.columns)), strict=True)))


def _meant(match: re.Match[str]) -> str:
    digits = match[1] or match[2]
    return chr(int(digits, 16)) if digits else "\\"

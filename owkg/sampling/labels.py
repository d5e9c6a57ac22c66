"""Labels that the files of an open world cannot hold."""

from collections.abc import Sequence

import polars as pl

from owkg.sampling.sample import OpenWorld

# What would end a column or a line, be taken for a byte order mark, or be lost where columns are cut out.
_BREAKS = r"[\t\n\r]|^\x{feff}|^ | $|^$"
# A query is "head|relation|?" or "?|relation|tail".
_BARS = r"\||^\?$"


def check_labels(world: OpenWorld) -> None:
    """Raises ValueError if a label cannot be written; the message shows the first one."""
    for kind, labels in (("entity", world.entities), ("relation", world.relations)):
        _refuse(labels, _BREAKS, f"{kind} labels must hold no tab or line end, begin or end in no space")
    _refuse(world.entities, _BARS, 'entity labels must hold no bar and be no "?", as qrels have it')


def label_notes(world: OpenWorld) -> list[str]:
    """What users of some tools should know about the labels, one sentence each."""
    labels = pl.concat([pl.Series(world.entities), pl.Series(world.relations)])
    notes = {
        r"\s": "labels hold white space: trec_eval cannot read them in qrels, owkg can",
        '^"': "labels begin with a quotation mark, which PyKEEN's reader takes for its own",
    }
    counts = {what: int(labels.str.contains(pattern).sum()) for pattern, what in notes.items()}
    return [f"{count:,} {what}." for what, count in counts.items() if count]


def _refuse(labels: Sequence[str], pattern: str, must: str) -> None:
    column = pl.Series(labels)
    bad = column.str.contains(pattern)
    if bad.any():
        raise ValueError(f"{must}, got {column[bad.arg_max() or 0]!r}.")

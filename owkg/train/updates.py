"""Whether a step updates whole tables, or the rows of its entities alone: by what each has to move."""

from typing import NamedTuple

from owkg.train.config import Training

# Measured on a CPU: with fewer entities for each row that a step gathers, whole tables are the faster.
_ENTITIES_A_ROW = 2


class Updates(NamedTuple):
    """How the optimiser updates the parameters of entities.

    Attributes:
        how: "dense" or "rows".
        why: in words, of one line.
    """

    how: str
    why: str


def updates_of(config: Training, num_entities: int) -> Updates:
    """How training by `config` on a graph of so many entities updates their parameters, and why.

    Examples:
        >>> from owkg.train import training
        >>> updates_of(training("rotate", batch_size=10, num_negatives=4), 1000).why
        'rows: a step gathers at most 60 rows of 1,000 entities'
    """
    if config.training_loop != "negatives":
        return Updates("dense", f"dense: a step of {config.training_loop} compares with all entities")
    if config.built().of_neighbours:
        return Updates("dense", f"dense: scores of {config.model} are of neighbours too")
    rows = gathered_rows(config)
    if config.updates != "auto":
        return Updates(config.updates, f"{config.updates}: as the setting updates says")
    if num_entities < _ENTITIES_A_ROW * rows:
        return Updates(
            "dense", f"dense: a step gathers up to {rows:,} rows, of only {num_entities:,} entities"
        )
    return Updates("rows", f"rows: a step gathers at most {rows:,} rows of {num_entities:,} entities")


def gathered_rows(config: Training) -> int:
    """Rows of entities of a step against negatives: given, answers and negatives of its queries."""
    drawn = 2 if config.shared_negatives else config.batch_size
    return 2 * config.batch_size + drawn * config.num_negatives

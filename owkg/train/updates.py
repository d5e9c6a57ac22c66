"""Choice between updating whole tables and updating only the rows of a step, by the cost of each."""

from typing import NamedTuple

from owkg.train.config import Training

# Measured on a CPU: with fewer entities per gathered row than this, updating whole tables is faster.
_ENTITIES_A_ROW = 2


class Updates(NamedTuple):
    """Way in which the optimiser updates the parameters of entities.

    Attributes:
        how: "dense" or "rows".
        why: reason, in one line.
    """

    how: str
    why: str


def updates_of(config: Training, num_entities: int) -> Updates:
    """Way to update entity parameters in a training by `config` on `num_entities` entities, and the reason.

    Examples:
        >>> from owkg.train import training
        >>> updates_of(training("rotate", batch_size=10, num_negatives=4), 1000).why
        'rows: a step gathers at most 60 rows of 1,000 entities'
    """
    if config.training_loop != "negatives":
        return Updates("dense", f"dense: a step of {config.training_loop} compares with all entities")
    if config.built().of_neighbours:
        return Updates("dense", f"dense: scores of {config.model} depend on neighbours")
    rows = gathered_rows(config)
    if config.updates != "auto":
        return Updates(config.updates, f"{config.updates}: by the setting updates")
    if num_entities < _ENTITIES_A_ROW * rows:
        return Updates(
            "dense", f"dense: a step gathers up to {rows:,} rows, of only {num_entities:,} entities"
        )
    return Updates("rows", f"rows: a step gathers at most {rows:,} rows of {num_entities:,} entities")


def gathered_rows(config: Training) -> int:
    """Number of entity rows in a step with negatives: given entities, answers and negatives."""
    drawn = 2 if config.shared_negatives else config.batch_size
    return 2 * config.batch_size + drawn * config.num_negatives

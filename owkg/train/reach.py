"""Access of a step to entity tables: their substitutes in the objective, and how they are updated."""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Array, Bool, PyTree

from owkg.models import Params
from owkg.train.queries import SideQueries

# Arrays that identify a step: its number, and the numbers of the configuration.
At = PyTree[Array]
# Function from (at, gradients, params, optimiser) to the changes of the parameters and the new optimiser
# state.
Move = Callable[[At, Params, Params, PyTree[Array]], tuple[Params, PyTree[Array]]]


class Reach(NamedTuple):
    """Entity tables in a step.

    Attributes:
        batches, counts: queries by side, with places instead of entities unless tables are whole, and which
            of them count.
        rows, others: arrays to differentiate the objective by, in addition to the parameters that are not
            tables.
        gathered: function from (rows, others) to the substitute for the tables in the objective; None for
            whole tables.
        summed: function from (gradients of rows, gradients of others) to the gradients that update the
            tables.
        moved: function from (these gradients, optimiser state of the tables, at, move) to (tables, optimiser
            state, slots for the next step).
    """

    batches: tuple[SideQueries, ...]
    counts: tuple[Bool[Array, "q"], ...]
    rows: PyTree[Array]
    others: PyTree[Array]
    gathered: Callable[..., PyTree[Array] | None]
    summed: Callable[..., PyTree[Array]]
    moved: Callable[..., tuple[Params, PyTree[Array], Array]]

"""How a step reaches the tables of entities: what stands for them in its objective, and how they move."""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Array, Bool, PyTree

from owkg.models import Params
from owkg.train.queries import SideQueries

# What a step is of: its number, and the numbers of the configuration; arrays.
At = PyTree[Array]
# (at, gradients, params, optimiser) to the way that the parameters move, and the optimiser after it.
Move = Callable[[At, Params, Params, PyTree[Array]], tuple[Params, PyTree[Array]]]


class Reach(NamedTuple):
    """The tables of entities in a step.

    Attributes:
        batches, counts: the queries by side, with places instead of entities where tables are not whole, and
            which of them count.
        rows, others: what the objective is differentiated by, beside the parameters that are no tables.
        gathered: (rows, others) to what stands for the tables in the objective; None: they are whole.
        summed: (gradients of rows, of others) to those by which the tables move.
        moved: (those, what the optimiser keeps of the tables, at, move) to (tables, what the optimiser keeps,
            slots for the next step).
    """

    batches: tuple[SideQueries, ...]
    counts: tuple[Bool[Array, "q"], ...]
    rows: PyTree[Array]
    others: PyTree[Array]
    gathered: Callable[..., PyTree[Array] | None]
    summed: Callable[..., PyTree[Array]]
    moved: Callable[..., tuple[Params, PyTree[Array], Array]]

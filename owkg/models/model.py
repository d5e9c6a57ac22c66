"""Knowledge-graph-embedding models, as data and pure functions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.keys import settled
from owkg.models.similarity import Similarity

Params = dict[str, Array]
Statistics = dict[str, Array]

Ids = Int[Array, "..."] | Int[np.ndarray, "..."]

Facts = Int[Array, "facts 3"] | Int[np.ndarray, "facts 3"]

SIDES = ("head", "tail")
# Function from (params, statistics, entity [q], relation [q], side, *, key=None) to (queries [q, d_c],
# statistics).
Query = Callable[..., tuple[Array, Statistics]]


# (Rows, weight) pairs that a penalty uses.
Factors = Sequence[tuple[Array, float]]


@runtime_checkable
class Options(Protocol):
    """Options of a model, a frozen dataclass.

    Attributes:
        dim: dimension of the embeddings.
        reciprocal: whether heads are predicted through inverse relations.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]

    @property
    def dim(self) -> int: ...  # noqa: D102

    @property
    def reciprocal(self) -> bool: ...  # noqa: D102


@dataclass(frozen=True)
class Model:
    """Model whose score is the similarity of a query and a candidate; larger scores are more plausible.

    Models made from equal options are one object, so that they share compiled code.

    Attributes:
        name: name in `owkg.models.MODELS`.
        config: options of the model, a frozen dataclass.
        init: function from (key, num_entities, num_relations) to (params, statistics). params are float32
            arrays by name: `entity` [num_entities, d_e], `relation` [num_relations, d_r], and others
            depending on the model. Reciprocal models have twice the rows in `relation`; row r + num_relations
            is the inverse of r. statistics are running means and variances of batch normalisation; empty for
            most models.
        query: function from (params, statistics, entity [q], relation [q], side, *, key=None) to (queries [q,
            d_c], statistics). The query is (entity, relation, ?) for side "tail" and (?, relation, entity)
            for side "head". A key means training: with dropout, and with batches normalised by their own
            statistics.
        candidates: function from (params, entity=None) to the candidate rows that are compared with queries,
            [n, d_c] for all entities or [..., d_c] for ids [...].
        similarity: similarity of queries and candidates, which is the score.
        encode: function from (params, statistics, *, key=None) to the params and statistics for `query` and
            `candidates`, including rows of entities and relations; a key means training. It is called once
            per step, and once before scoring. None: params and statistics are used as they are.
        graph: function from (facts [facts, 3], num_entities, num_relations) to further statistics that the
            model derives from train facts, with columns head, relation, tail; to be traced. None: no such
            statistics.
        sees_answers: whether `query` also takes `answer` [q] in training, the answer of the fact; if all
            answers of a query count, the first one.
        complex_params: arrays whose rows hold real parts, then as many imaginary parts.
        entity_params: arrays with one row per entity; candidates use no other arrays.
        relation_params: arrays with one row per relation, or two, with inverse relations in the second half.
        factors: function from (rows of entities, of relations, of answers) of facts to the rows that a
            penalty uses, each with its weight. None: the three given rows.
        retract: function from parameters, or some of their rows by name, to parameters that the model allows,
            row by row; applied before the first step and after each step. None: all parameters are allowed.
        phase_unit: radians of a rotation per unit of `relation`; 0: relations are not rotations.
    """

    name: str
    config: Options
    init: Callable[[Array, int, int], tuple[Params, Statistics]]
    query: Query
    candidates: Callable[..., Array]
    similarity: Similarity
    encode: Callable[..., tuple[Params, Statistics]] | None = None
    graph: Callable[[Facts, int, int], Statistics] | None = None
    sees_answers: bool = False
    complex_params: tuple[str, ...] = ()
    entity_params: tuple[str, ...] = ("entity",)
    relation_params: tuple[str, ...] = ("relation",)
    factors: Callable[[Array, Array, Array], Factors] | None = None
    phase_unit: float = 0.0
    retract: Callable[[Params], Params] | None = None

    @property
    def of_neighbours(self) -> bool:
        """Whether a score depends on other rows than the rows of its triple."""
        return self.encode is not None or self.graph is not None

    def begun(
        self, key: Array, num_entities: int, num_relations: int, facts: Facts | None = None
    ) -> tuple[Params, Statistics]:
        """Initial (params, statistics) of `init`, with the statistics that `graph` derives from facts.

        Raises:
            ValueError: if the model needs facts and there are none.
        """
        params, statistics = self.init(key, num_entities, num_relations)
        return params, statistics | self.of_graph(facts, num_entities, num_relations)

    def of_graph(self, facts: Facts | None, num_entities: int, num_relations: int) -> Statistics:
        """Statistics that `graph` derives from train facts; empty without `graph`.

        Raises:
            ValueError: if the model needs facts and there are none.
        """
        if self.graph is None:
            return {}
        if facts is None or not len(facts):
            raise ArgumentError(
                "graph", f"must have triples in train, which {self.name} needs for its scores, got none."
            )
        return self.graph(facts, num_entities, num_relations)

    def graph_shapes(self, num_entities: int, num_relations: int) -> dict[str, jax.ShapeDtypeStruct]:
        """Shapes of the statistics of `of_graph` for a graph with one fact."""
        fact = jax.ShapeDtypeStruct((1, 3), jnp.int32)
        return jax.eval_shape(lambda one: self.of_graph(one, num_entities, num_relations), fact)


# Function from (params, statistics, rows of entities, rows of relations, key) to (queries, statistics).
Form = Callable[[Params, Statistics, Array, Array, Array | None], tuple[Array, Statistics]]


def stateless(form: Callable[[Array, Array], Array]) -> Form:
    """Form of a model without dropout, statistics, or parameters other than the embeddings."""
    return lambda params, statistics, entity, relation, key: (form(entity, relation), statistics)


def sided(tail: Form, head: Form | None, *, reciprocal: bool) -> Query:
    """The `query` of a model from its forms for (entity, relation, ?) and for (?, relation, entity).

    Reciprocal models need no form for heads, because they ask (entity, inverse of relation, ?).
    """
    if head is None and not reciprocal:
        raise ArgumentError(
            "reciprocal", f"must be True for a model without a head form, got {reciprocal!r}."
        )

    def query(
        params: Params,
        statistics: Statistics,
        entity: Ids,
        relation: Ids,
        side: str,
        *,
        key: Array | None = None,
    ) -> tuple[Array, Statistics]:
        if side not in SIDES:
            raise ArgumentError("side", f"must be head or tail, got {side!r}.")
        form = tail
        if side == "head" and reciprocal:
            relation = relation + params["relation"].shape[0] // 2
        elif side == "head" and head is not None:
            form = head
        return form(params, statistics, params["entity"][entity], params["relation"][relation], key)

    return query


def entity_rows(params: Params, entity: Ids | None = None) -> Array:
    """Embeddings of all entities, or of `entity`; the candidates of most models."""
    return params["entity"] if entity is None else params["entity"][entity]


def rows_with(bias: str) -> Callable[..., Array]:
    """The `candidates` of a model with entity biases: embeddings, followed by the bias of this name."""

    def candidates(params: Params, entity: Ids | None = None) -> Array:
        own = params[bias] if entity is None else params[bias][entity]
        return jnp.concatenate([entity_rows(params, entity), own[..., None]], axis=-1)

    return candidates


@partial(jax.tree_util.register_dataclass, data_fields=("params", "statistics"), meta_fields=("model",))
@dataclass(frozen=True, eq=False)
class Trained:
    """Model with its arrays; a pytree of the arrays, with a static model.

    Attributes:
        model: functions and options of the model.
        params: parameters by name, as returned by `Model.init`.
        statistics: running statistics by name.

    Examples:
        >>> import jax
        >>> from owkg.models import model
        >>> transe = model("transe", dim=2)
        >>> begun = Trained(transe, *transe.init(jax.random.key(0), 5, 3))
        >>> begun.num_entities, begun.num_relations
        (5, 3)
    """

    model: Model
    params: Params
    statistics: Statistics = field(default_factory=dict)

    @property
    def num_entities(self) -> int:
        """Number of entities."""
        return len(self.params["entity"])

    @property
    def num_relations(self) -> int:
        """Number of relations; a relation and its inverse count once."""
        return len(self.params["relation"]) // (2 if self.model.config.reciprocal else 1)

    def encoded(self) -> "Trained":
        """Trained model after `Model.encode`, with no `encode` in its model; itself if there is none."""
        if (encode := self.model.encode) is None:
            return self
        done = _encoded(encode, self.params, self.statistics)
        return Trained(replace(self.model, encode=None), *done)

    def queries(self, entity: Ids, relation: Ids, side: str) -> Float[Array, "q d"]:
        """Query vectors of `Model.query`, outside training."""
        own = self.encoded()
        return own.model.query(own.params, own.statistics, entity, relation, side)[0]

    def candidates(self, entity: Ids | None = None) -> Float[Array, "... d"]:
        """Candidate rows of entities, from `Model.candidates`."""
        return self.model.candidates(self.encoded().params, entity)


@partial(jax.jit, static_argnums=0)
def _encoded(
    encode: Callable[..., tuple[Params, Statistics]], params: Params, statistics: Statistics
) -> tuple[Params, Statistics]:
    return encode(params, statistics)


def trained_checked(trained: object) -> Trained:
    """`trained`, checked to be a `Trained` with parameters entity and relation; ValueError otherwise."""
    if not isinstance(trained, Trained) or not isinstance(trained.model, Model):
        raise ArgumentError(
            "trained",
            f"must be an `owkg.models.Trained` with a model and its arrays, got {type(trained).__name__}.",
        )
    if not isinstance(trained.params, Mapping) or not {"entity", "relation"} <= trained.params.keys():
        raise ArgumentError(
            "trained",
            "must have the arrays of the model by name in its params, entity and relation among them.",
        )
    return trained


@settled()
def score(trained: Trained, head: ArrayLike, relation: ArrayLike, tail: ArrayLike) -> Float[Array, "..."]:
    """Scores of triples, from the query for their tails; the ids `head`, `relation` and `tail` broadcast.

    Raises:
        ValueError: if an id is out of range.

    Examples:
        >>> import jax
        >>> from owkg.models import model
        >>> params = {"entity": jax.numpy.eye(2), "relation": jax.numpy.array([[-1.0, 0.5]])}
        >>> score(Trained(model("transe", dim=2), params), 0, 0, [0, 1]).tolist()
        [-1.5, -0.5]
    """
    shape = checks.common_shape(head=head, relation=relation, tail=tail)
    n = trained.num_entities
    sizes = {"head": (head, n), "tail": (tail, n), "relation": (relation, trained.num_relations)}
    head, tail, relation = (
        jnp.broadcast_to(_ids(name, ids, size), shape).ravel() for name, (ids, size) in sizes.items()
    )
    trained = trained.encoded()
    queries = trained.queries(head, relation, "tail")
    return trained.model.similarity.one(queries, trained.candidates(tail)).reshape(shape)


@settled()
def score_all(
    trained: Trained, entity: object, relation: object, side: str, candidates: object = None
) -> Float[Array, "q c"]:
    """Scores of all entities, or some of them, as answers to queries.

    Args:
        trained: model with its parameters.
        entity, relation: ids given by the queries, [q].
        side: side to score, "head" or "tail".
        candidates: ids of the entities to score, [c]. None: all entities.

    Raises:
        ValueError: if an id is out of range, or the side is invalid.
    """
    n = trained.num_entities
    entity = _ids("entity", entity, n)
    relation = _ids("relation", relation, trained.num_relations)
    if candidates is not None:
        candidates = _ids("candidates", candidates, n)
    trained = trained.encoded()
    queries = trained.queries(entity, relation, side)
    return trained.model.similarity.all(queries, trained.candidates(candidates))


def _ids(name: str, ids: Any, size: int) -> Int[Array, "..."]:
    """`ids`, checked to be below `size`; ids that JAX is tracing are not checked."""
    if checks.is_traced(ids):
        return ids
    array = checks.integer(name, ids, 0)
    checks.require(name, array, array < size, f"ids below {size}")
    return jnp.asarray(array.astype(np.int32))

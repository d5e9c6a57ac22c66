"""What a knowledge-graph-embedding model is: data and pure functions."""

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
# (params, statistics, entity [q], relation [q], side, *, key=None) to (queries [q, d_c], statistics)
Query = Callable[..., tuple[Array, Statistics]]


# (rows, weight) of what a penalty is of.
Factors = Sequence[tuple[Array, float]]


@runtime_checkable
class Options(Protocol):
    """Options of a model: a frozen dataclass.

    Attributes:
        dim: of the embeddings.
        reciprocal: whether heads are asked for by inverse relations.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]

    @property
    def dim(self) -> int: ...  # noqa: D102

    @property
    def reciprocal(self) -> bool: ...  # noqa: D102


@dataclass(frozen=True)
class Model:
    """A model whose score is the similarity of a query and a candidate; larger is more plausible.

    Models made from equal options are one object, so they share compiled code.

    Attributes:
        name: in `owkg.models.MODELS`.
        config: its options, a frozen dataclass.
        init: (key, num_entities, num_relations) to (params, statistics). params are float32 arrays by name:
            `entity` [num_entities, d_e] and `relation` [num_relations, d_r], twice the relations if they are
            reciprocal, row r + num_relations the inverse of r; others by model. statistics are running
            means and variances of batch normalisation; none for most models.
        query: (params, statistics, entity [q], relation [q], side, *, key=None) to (queries [q, d_c],
            statistics). The query (entity, relation, ?) of side "tail", (?, relation, entity) of side
            "head". A key means training: dropout, and batches normalised by themselves.
        candidates: (params, entity=None) to what entities are compared as, [n, d_c], or [..., d_c] for
            ids [...].
        similarity: of queries and candidates: the score.
        encode: (params, statistics, *, key=None) to params and statistics as `query` and `candidates` take
            them, rows of entities and relations among them; a key means training. Called once a step, and
            once before scores. None: they are as `init` gives them.
        graph: (facts [facts, 3], num_entities, num_relations) to further statistics, what the model knows of
            the train facts: head, relation, tail; to be traced. None: nothing.
        sees_answers: whether `query` also takes `answer` [q] in training: of the fact that is asked, where
            all answers of a query count its first.
        complex_params: the arrays whose rows are real parts, then as many imaginary parts.
        entity_params: the arrays with a row an entity; candidates are made of no others.
        relation_params: the arrays with a row a relation, or two, those of the inverse relations below.
        factors: (rows of entities, of relations, of answers) of facts to the rows that a penalty is of, each
            with its weight; None: those rows.
        retract: parameters, or rows of some of them by their names, to those that the model allows, row by
            row: what they become before the first step and after each; None: all are allowed.
        phase_unit: radians of a rotation for each unit of `relation`; 0: relations are no rotations.
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
        """Whether a score depends on more rows than those of the triple."""
        return self.encode is not None or self.graph is not None

    def begun(
        self, key: Array, num_entities: int, num_relations: int, facts: Facts | None = None
    ) -> tuple[Params, Statistics]:
        """As `init`, with what `graph` makes of the train facts among the statistics.

        Raises:
            ValueError: if the model needs facts, and there are none.
        """
        params, statistics = self.init(key, num_entities, num_relations)
        return params, statistics | self.of_graph(facts, num_entities, num_relations)

    def of_graph(self, facts: Facts | None, num_entities: int, num_relations: int) -> Statistics:
        """The statistics that `graph` makes of the train facts; none without it.

        Raises:
            ValueError: if the model needs facts, and there are none.
        """
        if self.graph is None:
            return {}
        if facts is None or not len(facts):
            raise ArgumentError(
                "graph", f"must have triples in train, which {self.name} scores by, got none."
            )
        return self.graph(facts, num_entities, num_relations)

    def graph_shapes(self, num_entities: int, num_relations: int) -> dict[str, jax.ShapeDtypeStruct]:
        """Shapes of the statistics of `of_graph`, were there one fact."""
        fact = jax.ShapeDtypeStruct((1, 3), jnp.int32)
        return jax.eval_shape(lambda one: self.of_graph(one, num_entities, num_relations), fact)


# (params, statistics, rows of entities, rows of relations, key) to (queries, statistics)
Form = Callable[[Params, Statistics, Array, Array, Array | None], tuple[Array, Statistics]]


def stateless(form: Callable[[Array, Array], Array]) -> Form:
    """The form of a model without dropout, statistics, or parameters beyond the embeddings."""
    return lambda params, statistics, entity, relation, key: (form(entity, relation), statistics)


def sided(tail: Form, head: Form | None, *, reciprocal: bool) -> Query:
    """The `query` of a model from its forms of (entity, relation, ?) and of (?, relation, entity).

    Reciprocal models need no form for heads: they ask (entity, inverse of relation, ?).
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
    """The embeddings of all entities, or of `entity`: the candidates of most models."""
    return params["entity"] if entity is None else params["entity"][entity]


def rows_with(bias: str) -> Callable[..., Array]:
    """The `candidates` of a model whose entities have a bias: embeddings, then the bias of that name."""

    def candidates(params: Params, entity: Ids | None = None) -> Array:
        own = params[bias] if entity is None else params[bias][entity]
        return jnp.concatenate([entity_rows(params, entity), own[..., None]], axis=-1)

    return candidates


@partial(jax.tree_util.register_dataclass, data_fields=("params", "statistics"), meta_fields=("model",))
@dataclass(frozen=True, eq=False)
class Trained:
    """A model with the arrays that it scores by; a pytree of those arrays, whose model is static.

    Attributes:
        model: what is computed.
        params: its parameters by name, as `Model.init` gives them.
        statistics: its running statistics by name.

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
        """Number of relations, reciprocal ones counted once."""
        return len(self.params["relation"]) // (2 if self.model.config.reciprocal else 1)

    def encoded(self) -> "Trained":
        """This after `Model.encode`, of a model without it; itself where there is none."""
        if (encode := self.model.encode) is None:
            return self
        done = _encoded(encode, self.params, self.statistics)
        return Trained(replace(self.model, encode=None), *done)

    def queries(self, entity: Ids, relation: Ids, side: str) -> Float[Array, "q d"]:
        """The vectors of queries, as `Model.query` has them where nothing is learned."""
        own = self.encoded()
        return own.model.query(own.params, own.statistics, entity, relation, side)[0]

    def candidates(self, entity: Ids | None = None) -> Float[Array, "... d"]:
        """What entities are compared as, as of `Model.candidates`."""
        return self.model.candidates(self.encoded().params, entity)


@partial(jax.jit, static_argnums=0)
def _encoded(
    encode: Callable[..., tuple[Params, Statistics]], params: Params, statistics: Statistics
) -> tuple[Params, Statistics]:
    return encode(params, statistics)


def trained_checked(trained: object) -> Trained:
    """`trained`, if it is a `Trained` whose parameters hold entities and relations; ValueError otherwise."""
    if not isinstance(trained, Trained) or not isinstance(trained.model, Model):
        raise ArgumentError(
            "trained",
            f"must be an `owkg.models.Trained` of a model and its arrays, got {type(trained).__name__}.",
        )
    if not isinstance(trained.params, Mapping) or not {"entity", "relation"} <= trained.params.keys():
        raise ArgumentError(
            "trained",
            "must have the arrays of the model by name in its params, entity and relation among them.",
        )
    return trained


@settled()
def score(trained: Trained, head: ArrayLike, relation: ArrayLike, tail: ArrayLike) -> Float[Array, "..."]:
    """The scores of triples, by the query of their tails; `head`, `relation` and `tail`, ids, broadcast.

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
    """The scores of all entities, or a shard of them, as answers to queries.

    Args:
        trained: what scores.
        entity, relation: ids that the queries give, [q].
        side: that is asked for, "head" or "tail".
        candidates: entity ids to score, [c]; None: all.

    Raises:
        ValueError: if an id is out of range, or the side none.
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
    """`ids` below `size`; those that JAX is tracing pass."""
    if checks.is_traced(ids):
        return ids
    array = checks.integer(name, ids, 0)
    checks.require(name, array, array < size, f"ids below {size}")
    return jnp.asarray(array.astype(np.int32))

"""RNNLogic: a recurrent network that proposes rules, and rule weights that select among them."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int
from scipy import sparse

from owkg import checks
from owkg.errors import ArgumentError
from owkg.keys import reproducible
from owkg.kg import KnowledgeGraph
from owkg.rules.mine import Rules, mine
from owkg.rules.paths import Paths
from owkg.rules.scores import Applied, Predictions, Queries, best_of, known_of, queries_of

# Share of the target that all answers of a query have; the rest belongs to the answer of the fact itself.
_ALL = 0.2
# Weight of the generator's log-probability, which is added to H.
_PRIOR = 1e-3
_RATE, _GENERATOR_RATE, _WIDTH, _STEPS = 0.01, 0.01, 64, 300
# Largest number of entries (pair of query and answer, rule) in memory.
_ENTRIES = 400_000_000
Params = dict[str, Array]


class Features(NamedTuple):
    """Numbers of paths by which rules lead from queries to answers.

    Attributes:
        paths: [pairs, 2 rules]: paths of each rule for tails, then of each rule for heads.
        query: query of each pair, increasing.
        answer: answer of each pair.
        columns: number of columns, 2 rules.
    """

    paths: sparse.csr_matrix
    query: Int[np.ndarray, "pairs"]
    answer: Int[np.ndarray, "pairs"]
    columns: int


@reproducible
def rnnlogic(
    graph: KnowledgeGraph,
    *,
    per_relation: int = 100,
    rounds: int = 3,
    steps: int = 300,
    length: int = 2,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
    **mining: object,
) -> tuple[Rules, Float[np.ndarray, "2 rules"]]:
    """Rules r(X,Y) of RNNLogic, and their weights for tails and for heads.

    score(answer) = sum over rules of weight * paths along the body, and 0 without paths.

    The rules of the first round are the most confident rules of `mine`; in later rounds the generator
    proposes twice as many rules as are kept. A rule serves both directions of its relation, with a weight for
    each direction. Because different variables stand for different entities, no path uses the fact that the
    query asks for.

    Args:
        graph: graph whose split train is learned.
        per_relation: rules to keep per relation. Default 100.
        rounds: rounds of expectation and maximisation. Default 3.
        steps: training steps of the predictor in each round; the last predictor takes twice as many. Default
            300.
        length: largest length of bodies, 1 to 3. Default 2.
        seed: seed of everything random.
        on_progress: function called with (rounds done, all rounds).
        **mining: arguments of `mine`.

    Raises:
        ArgumentError: if an argument is out of range, or there are no rules.

    References:
        Qu et al. 2021, RNNLogic: Learning logic rules for reasoning on knowledge graphs, equations 2, 3, 8.
    """
    for name, value in (("per_relation", per_relation), ("rounds", rounds), ("steps", steps)):
        checks.whole(name, value, 1)
    found = mine(graph, length=length, constants=False, seed=seed, **mining)  # pyright: ignore[reportArgumentType]
    if not len(found.head):
        raise ArgumentError(
            "min_confidence", "leaves no rule r(X,Y) for this graph: make it or `min_support` smaller."
        )
    paths, generator = Paths(graph), Generator(graph.num_relations, length, seed)
    found = found.some(best_of_each(found.head, found.confidence, 2 * per_relation))
    asked = queries_of(graph, ["train"])
    for turn in range(rounds):
        features = features_of(graph, found, asked)
        weights = fitted(features, targets(graph, asked, features), graph.num_entities, steps)
        worth = worths(graph, found, asked, features, weights)
        worth += _PRIOR * generator.log_probability(found.head, found.body)
        chosen = best_of_each(found.head, worth, per_relation)
        generator.learn(
            found.head[chosen], found.body[chosen], softmax_of_each(found.head[chosen], worth[chosen])
        )
        last = turn + 1 == rounds
        head, body = generator.drawn(per_relation if last else 2 * per_relation, likeliest=last)
        if len((some := scored(paths, head, body)).head):
            found = some
        if on_progress is not None:
            on_progress(turn + 1, rounds)
    features = features_of(graph, found, asked)
    weights = fitted(features, targets(graph, asked, features), graph.num_entities, 2 * steps)
    order = np.argsort(-weights.sum(0), kind="stable")
    return found.some(order), weights[:, order]


def weighted(
    graph: KnowledgeGraph,
    rules: Rules,
    weights: Float[np.ndarray, "2 rules"],
    queries: Queries,
    *,
    top: int = 100,
    on_progress: Callable[[int, int], None] | None = None,
) -> Predictions:
    """Best answers of weighted rules to queries; arguments as in `owkg.rules.predict`."""
    n, found = graph.num_entities, []
    applied = Applied(graph, rules)
    size = max(1, 2**25 // n)
    for begin in range(0, len(queries.entity), size):
        some = Queries(*(column[begin : begin + size] for column in queries))
        features = features_of(graph, rules, some, applied)
        score = features.paths @ weights.ravel()
        group = np.unique(score, return_inverse=True)[1].ravel()
        known = known_of(applied, some, features.query, features.answer)
        query, answer, level = best_of(features.query * n + features.answer, group, known, n, top)
        found.append((query + begin, answer, level))
        if on_progress is not None:
            on_progress(min(begin + size, len(queries.entity)), len(queries.entity))
    nothing = [(np.empty(0, np.int64),) * 3]
    return Predictions(*map(np.concatenate, zip(*nothing, *found, strict=True)))


def features_of(
    graph: KnowledgeGraph, rules: Rules, queries: Queries, applied: Applied | None = None
) -> Features:
    """Paths along rules r(X,Y) from queries to answers; ArgumentError if there are too many."""
    n, count, parts, total = graph.num_entities, len(rules.head), [], 0
    for given in (applied or Applied(graph, rules)).to(queries):
        inverse = queries.relation[given.query] >= graph.num_relations
        parts.append((given.query * n + given.answer, given.rule + count * inverse, given.paths))
        if (total := total + len(given.rule)) > _ENTRIES:
            raise ArgumentError(
                "per_relation",
                f"must be smaller: the rules give more than {_ENTRIES:,} answers to queries of train.",
            )
    none = (np.empty(0, np.int64),) * 3
    key, column, value = map(np.concatenate, zip(none, *parts, strict=True))
    pairs, row = np.unique(key, return_inverse=True)
    shape = len(pairs), 2 * count
    matrix = sparse.csr_matrix((value.astype(np.float32), (row.ravel(), column)), shape)
    return Features(matrix, pairs // n, pairs % n, 2 * count)


def targets(graph: KnowledgeGraph, queries: Queries, features: Features) -> Float[np.ndarray, "pairs"]:
    """Target of each pair, summed over the facts of its query."""
    facts = _facts(graph, queries)
    own = np.asarray(facts[features.query, features.answer]).ravel().astype(bool)
    return own * (_ALL * np.diff(facts.indptr)[features.query] + 1 - _ALL)


def _facts(graph: KnowledgeGraph, queries: Queries) -> sparse.csr_matrix:
    """[queries, n]: 1 for the answers in train."""
    n, count = graph.num_entities, graph.num_relations
    h, r, t = np.unique(graph.splits["train"].astype(np.int64), axis=0).T
    keys = np.concatenate([r * n + h, (r + count) * n + t])
    row = np.searchsorted(queries.relation * n + queries.entity, keys)
    shape = len(queries.entity), n
    return sparse.csr_matrix((np.ones(len(row), np.int8), (row, np.concatenate([t, h]))), shape)


def gradient(
    features: Features, target: Float[np.ndarray, "pairs"], weight: np.ndarray, num_entities: int
) -> tuple[float, np.ndarray]:
    """Cross-entropy of the softmax over all entities, averaged over reached facts, and its gradient."""
    paths, query, *_ = features
    score = paths @ weight
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    sizes = np.diff(starts, append=len(query))
    top = np.maximum(np.maximum.reduceat(score, starts), 0)
    reached = np.exp(score - np.repeat(top, sizes))
    total = np.add.reduceat(reached, starts) + (num_entities - sizes) * np.exp(-top)
    asked, facts = np.add.reduceat(target, starts), target.sum()
    loss = (asked @ (np.log(total) + top) - target @ score) / facts
    by_score = np.repeat(asked / total, sizes) * reached - target
    return float(loss), paths.T @ (by_score / facts).astype(weight.dtype)


def fitted(
    features: Features, target: Float[np.ndarray, "pairs"], num_entities: int, steps: int
) -> Float[np.ndarray, "2 rules"]:
    """Weights after `steps` steps of Adam from 0, each over all facts."""
    weight = np.zeros(features.columns, np.float32)
    adam = optax.adam(_RATE)
    state, update = adam.init(weight), jax.jit(adam.update)
    for _ in range(steps if target.any() else 0):
        change, state = update(gradient(features, target, weight, num_entities)[1], state)
        weight += np.asarray(change)
    return weight.reshape(2, -1)


def worths(
    graph: KnowledgeGraph, rules: Rules, queries: Queries, features: Features, weight: np.ndarray
) -> Float[np.ndarray, "rules"]:
    """H of each rule: its score of the answer minus its mean over reached answers, averaged over facts."""
    facts = _facts(graph, queries)
    asked = np.diff(facts.indptr)
    own = np.asarray(facts[features.query, features.answer]).ravel()
    reached = np.bincount(features.query, minlength=len(asked))
    better = own - (asked / np.maximum(reached, 1))[features.query]
    gain = weight.ravel() * (features.paths.T @ better.astype(np.float32))
    of_relation = np.bincount(graph.splits["train"][:, 1], minlength=graph.num_relations)
    return gain.reshape(2, -1).sum(0) / np.maximum(of_relation[rules.head], 1)


def best_of_each(head: np.ndarray, value: np.ndarray, most: int) -> np.ndarray:
    """Places of the `most` largest values of each relation, sorted by relation, the largest first."""
    order = np.lexsort((-value, head))
    first = np.searchsorted(head[order], head[order])
    return order[np.arange(len(order)) - first < most]


def softmax_of_each(head: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Softmax of the values within each relation."""
    top = np.full(head.max() + 1, -np.inf)
    np.maximum.at(top, head, value)
    share = np.exp(value - top[head])
    return share / np.bincount(head, share)[head]


def scored(paths: Paths, head: np.ndarray, body: np.ndarray) -> Rules:
    """These rules r(X,Y), without rules that no fact supports."""
    rows = []
    bodies, which = np.unique(body, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    places = np.split(order, np.cumsum(np.bincount(which.ravel()))[:-1])
    for number, (steps, own) in enumerate(zip(bodies, places, strict=True)):
        counts = paths.counts(tuple(int(one) for one in steps if one >= 0))
        for place in own if counts.nnz else ():
            support = counts.multiply(paths.steps[head[place]]).nnz
            if support and (steps[0], *steps[1:]) != (head[place], *[-1] * (len(steps) - 1)):
                rows.append((place, support, counts.nnz, number))
    place, support, size, cluster = np.array(rows, np.int64).reshape(-1, 4).T
    order = np.argsort(place)
    place, none = place[order], np.full(len(place), -1)
    return Rules(head[place], body[place], none, none, support[order], size[order], cluster[order])


class Generator:
    """LSTM over the relation of the head, the directed relations of the body, and an end token."""

    def __init__(self, num_relations: int, length: int, seed: int) -> None:
        self.relations, self.length, self.key = num_relations, length, jax.random.key(seed)
        size, width = 2 * num_relations + 1, _WIDTH
        keys = jax.random.split(jax.random.fold_in(self.key, 0), 3)
        self.params = {
            "token": jax.random.normal(keys[0], (size, width)) / width**0.5,
            "cell": jax.random.normal(keys[1], (2 * width, 4 * width)) / (2 * width) ** 0.5,
            "bias": jnp.zeros(4 * width),
            "out": jax.random.normal(keys[2], (width, size)) / width**0.5,
        }
        self.rounds = 0

    def log_probability(self, head: np.ndarray, body: np.ndarray) -> Float[np.ndarray, "rules"]:
        """Log-probability of each body, given the head."""
        found = _log_probability(self.params, *self._padded(head, body))
        return np.asarray(found)[: len(head)].astype(float)

    def _padded(self, head: np.ndarray, body: np.ndarray) -> tuple[Array, Array]:
        """(Heads, tokens that follow them), padded to a power of two so that few shapes are compiled."""
        more = (1 << (len(head) - 1).bit_length()) - len(head)
        tokens = np.where(body < 0, 2 * self.relations, body)
        wide = (0, more), (0, self.length - body.shape[1])
        tokens = np.pad(tokens, wide, constant_values=2 * self.relations)
        tokens[len(head) :, 0] = 0
        return jnp.asarray(np.pad(head, (0, more))), jnp.asarray(tokens)

    def learn(self, head: np.ndarray, body: np.ndarray, weight: np.ndarray) -> None:
        """Trains on weighted rules, starting from the current parameters."""
        heads, tokens = self._padded(head, body)
        share = np.zeros(len(heads), np.float32)
        share[: len(head)] = weight / weight.sum()
        self.params = _learned(self.params, heads, tokens, jnp.asarray(share), steps=_STEPS)

    def drawn(self, count: int, *, likeliest: bool) -> tuple[np.ndarray, np.ndarray]:
        """(Head, body) of `count` different rules of each relation, at random or the likeliest in the beam.

        References:
            Kool et al. 2019, Stochastic beams and where to find them, section 4 and appendix B.3.
        """
        self.rounds += 1
        key = None if likeliest else jax.random.fold_in(self.key, self.rounds)
        body, value = (np.asarray(x) for x in _beam(self.params, self.relations, self.length, count, key))
        head, place = np.nonzero(np.isfinite(value))
        body = body[head, place]
        return head, np.where(body == 2 * self.relations, -1, body)


def _step(params: Params, token: Array, state: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
    """(Log-probabilities of the next token, state) of an LSTM after a token."""
    hidden, cell = state
    gates = jnp.concatenate([params["token"][token], hidden], axis=-1) @ params["cell"] + params["bias"]
    keep, take, give, new = jnp.split(gates, 4, axis=-1)
    cell = jax.nn.sigmoid(keep + 1) * cell + jax.nn.sigmoid(take) * jnp.tanh(new)
    hidden = jax.nn.sigmoid(give) * jnp.tanh(cell)
    return hidden @ params["out"], (hidden, cell)


def _next(logits: Array, first: bool, ended: Array) -> Array:
    """Log-probabilities of the next token: no body is empty, and after an end only ends follow."""
    end = logits.shape[-1] - 1
    logits = logits.at[..., end].set(-jnp.inf) if first else logits
    only_end = jnp.where(jnp.arange(end + 1) == end, 0.0, -jnp.inf)
    return jnp.where(ended[..., None], only_end, jax.nn.log_softmax(logits))


def _begin(shape: tuple[int, ...]) -> tuple[Array, Array]:
    return jnp.zeros((*shape, _WIDTH)), jnp.zeros((*shape, _WIDTH))


@jax.jit
def _log_probability(params: Params, head: Array, targets: Array) -> Array:
    end = params["out"].shape[1] - 1
    state, token, total = _begin(head.shape), head, jnp.zeros(head.shape)
    for i in range(targets.shape[1]):
        logits, state = _step(params, token, state)
        ended = token == end
        following = _next(logits, i == 0, ended)
        token = targets[:, i]
        own = jnp.take_along_axis(following, token[:, None], axis=1)[:, 0]
        total += jnp.where(ended, 0.0, own)
    return total


@partial(jax.jit, static_argnames="steps")
def _learned(params: Params, head: Array, targets: Array, share: Array, steps: int) -> Params:
    adam = optax.adam(_GENERATOR_RATE)

    def loss(params: Params) -> Array:
        return -(share * _log_probability(params, head, targets)).sum()

    def one(carry: tuple[Params, Any], _: None) -> tuple[tuple[Params, Any], None]:
        change, state = adam.update(jax.grad(loss)(carry[0]), carry[1])
        return (jax.tree.map(jnp.add, carry[0], change), state), None

    return jax.lax.scan(one, (params, adam.init(params)), None, length=steps)[0][0]


@partial(jax.jit, static_argnames=("relations", "length", "count"))
def _beam(params: Params, relations: int, length: int, count: int, key: Array | None) -> tuple[Array, Array]:
    """(Bodies [relations, beam, length], values that selected them, with -inf for none)."""
    size = 2 * relations + 1
    token = jnp.arange(relations)[:, None]
    state, chance = _begin(token.shape), jnp.zeros(token.shape)
    value, body = chance, jnp.zeros((relations, 1, 0), jnp.int32)
    for i in range(length):
        logits, state = _step(params, token, state)
        chances = chance[..., None] + _next(logits, i == 0, token == size - 1)
        values = chances
        if key is not None:
            moved = chances + jax.random.gumbel(jax.random.fold_in(key, i), chances.shape)
            behind = value[..., None] - moved
            behind += jnp.log1p(-jnp.exp(moved - moved.max(-1, keepdims=True)))
            values = value[..., None] - jnp.maximum(behind, 0) - jnp.log1p(jnp.exp(-jnp.abs(behind)))
            values = jnp.where(jnp.isfinite(moved), values, -jnp.inf)
        flat = values.reshape(relations, -1)
        value, place = jax.lax.top_k(flat, min(count, flat.shape[1]))
        before, token = place // size, place % size
        chance = jnp.take_along_axis(chances.reshape(relations, -1), place, axis=1)
        state = jax.tree.map(lambda x, at=before: jnp.take_along_axis(x, at[..., None], axis=1), state)
        body = jnp.take_along_axis(body, before[..., None], axis=1)
        body = jnp.concatenate([body, token[..., None].astype(jnp.int32)], axis=-1)
    return body, value

"""Closed worlds other than families: block graphs, and graphs whose degrees follow a power law."""

from collections.abc import Callable

import numpy as np

from owkg.kg import KnowledgeGraph

# Answers of a query in a power-law graph: smallest number, and largest share of the entities.
_LEAST, _LARGEST = 2.0, 0.15


def block_graph(
    entities: int, relations: int, blocks: int, seed: int, density: tuple[float, float], joined: float
) -> KnowledgeGraph:
    """Graph of blocks of entities: a relation joins all entities of one block to most of another.

    Args:
        entities, relations, blocks: numbers of each.
        seed: seed of all draws.
        density: parameters of the Beta distribution of the share of facts that hold between two blocks.
        joined: mean number of blocks that a relation joins to one block.
    """
    rng = np.random.default_rng([1, seed])
    of = rng.choice(blocks, size=entities, p=rng.dirichlet(np.full(blocks, 2.0)))
    members = [np.flatnonzero(of == block) for block in range(blocks)]
    facts = []
    for relation in range(relations):
        for heads in members:
            for other in rng.choice(blocks, size=min(rng.poisson(joined), blocks), replace=False):
                share = rng.beta(*density)
                head, tail = np.meshgrid(heads, members[other], indexing="ij")
                holds = rng.uniform(size=head.shape) < share
                facts.append(np.stack([head[holds], np.full(holds.sum(), relation), tail[holds]], 1))
    return _graph(entities, relations, facts)


def power_law_graph(
    entities: int, relations: int, seed: int, exponent: float, features: int, noise: float, own: float
) -> KnowledgeGraph:
    """Graph whose queries have Pareto distributed numbers of answers.

    The answers to a query are the entities with the largest sums of popularity, match with the head, and
    noise.

    Args:
        entities, relations: numbers of each; half of the entities are heads of a relation.
        seed: seed of all draws.
        exponent: exponent of the Pareto distribution.
        features: number of features of an entity, by which heads and tails match.
        noise: scale of the noise.
        own: scale of the match.
    """
    rng = np.random.default_rng([2, seed])
    feature = rng.normal(size=(entities, features))
    facts = []
    for relation in range(relations):
        match = rng.normal(size=(features, features)) / np.sqrt(features)
        popular = 2 * rng.gumbel(size=entities)
        heads = rng.choice(entities, size=entities // 2, replace=False)
        pareto = np.ceil(_LEAST * (1 - rng.uniform(size=len(heads))) ** (-1 / exponent))
        number = np.minimum(pareto, int(_LARGEST * entities)).astype(np.int64)
        score = own * feature[heads] @ match @ feature.T + popular
        score += noise * rng.gumbel(size=score.shape)
        place = np.argsort(np.argsort(-score, 1), 1)
        row, tail = np.nonzero(place < number[:, None])
        facts.append(np.stack([heads[row], np.full(len(row), relation), tail], 1))
    return _graph(entities, relations, facts)


def _graph(entities: int, relations: int, facts: list[np.ndarray]) -> KnowledgeGraph:
    labels = [tuple(f"{kind}{i}" for i in range(size)) for kind, size in (("e", entities), ("r", relations))]
    train = np.unique(np.concatenate(facts), axis=0).astype(np.int32)
    return KnowledgeGraph(labels[0], labels[1], {"train": train})


GRAPHS: dict[str, Callable[[], KnowledgeGraph]] = {
    "block 1": lambda: block_graph(900, 8, 40, 1, (30, 1), 1.0),
    "block 2": lambda: block_graph(700, 10, 90, 3, (8, 2), 1.0),
    "power law 1": lambda: power_law_graph(1200, 10, 1, 1.3, 4, 0.1, 0.5),
    "power law 2": lambda: power_law_graph(900, 8, 2, 1.1, 3, 0.05, 1.0),
}
"""Closed worlds by name."""

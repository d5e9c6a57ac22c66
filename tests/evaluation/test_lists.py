"""Top answers: those that sorting all scores gives, without the known ones."""

import jax
import numpy as np
import pytest

from owkg import models
from owkg.evaluation import lists, top_answers
from owkg.kg import known_answers

ENTITIES, RELATIONS = 23, 3
pytestmark = pytest.mark.usefixtures("quick_compilation")
RNG = np.random.default_rng(0)
TRAIN = RNG.integers(0, (ENTITIES, RELATIONS, ENTITIES), (150, 3))
ASKED = RNG.integers(0, (ENTITIES, RELATIONS), (40, 2)).T


@pytest.mark.parametrize("side", models.SIDES)
@pytest.mark.parametrize("name", ["complex", "rotate", "tucker"])
def test_as_by_sorting_whatever_the_blocks(name, side, monkeypatch):
    scorer = models.model(name, dim=4)
    trained = models.Trained(scorer, *scorer.init(jax.random.key(1), ENTITIES, RELATIONS))
    known = known_answers(TRAIN, side, num_entities=ENTITIES, num_relations=RELATIONS)
    found = top_answers(trained, *ASKED, side, known=known, depth=ENTITIES)
    queries, _ = scorer.query(trained.params, trained.statistics, *ASKED, side)
    scores = np.array(scorer.similarity.all(queries, scorer.candidates(trained.params)))
    asked, answer = (0, 2) if side == "tail" else (2, 0)
    for row, (entity, relation) in enumerate(ASKED.T):
        out = TRAIN[(TRAIN[:, asked] == entity) & (TRAIN[:, 1] == relation), answer]
        scores[row, out] = -np.inf
        left = ENTITIES - len(set(out))
        order = np.argsort(-scores[row], kind="stable")[:left]
        assert found.answer[row].tolist() == [*order, *[-1] * (ENTITIES - left)]
        np.testing.assert_allclose(found.score[row, :left], scores[row, order], rtol=1e-4, atol=1e-5)
    monkeypatch.setattr(lists, "whole_bytes", lambda _, numbers: 4 * numbers * 7)
    small = top_answers(trained, *ASKED, side, known=known, depth=5)
    np.testing.assert_array_equal(small.answer, found.answer[:, :5])


def test_equal_scores_by_id_and_nothing_known():
    params = {"entity": jax.numpy.zeros((5, 1)), "relation": jax.numpy.zeros((1, 1))}
    trained = models.Trained(models.model("transe", dim=1), params)
    assert top_answers(trained, [3], [0], "tail", known=None, depth=3).answer.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 0}, "`depth` must be"),
        ({"depth": 24}, "`depth` must be at most 23"),
        ({"side": "both"}, "`side` must be"),
        ({"entity": [23]}, "`entity` must be"),
        ({"relation": [0, 1]}, "`entity` and `relation` must be one id a query"),
        ({"known": TRAIN}, "`known` must be KnownAnswers"),
        (
            {"known": known_answers(TRAIN, "head", num_entities=ENTITIES, num_relations=RELATIONS)},
            "`known` must be for the side tail, got head",
        ),
    ],
)
def test_refused(change, message):
    scorer = models.model("distmult", dim=4)
    trained = models.Trained(scorer, *scorer.init(jax.random.key(1), ENTITIES, RELATIONS))
    given = {"entity": [0], "relation": [0], "side": "tail", "known": None, "depth": 3} | change
    with pytest.raises(ValueError, match=message):
        top_answers(trained, **given)


def test_nan_earns_no_place():
    scorer = models.model("distmult", dim=4)
    params, statistics = scorer.init(jax.random.key(1), ENTITIES, RELATIONS)
    params = params | {"entity": params["entity"].at[7, 0].set(np.nan)}
    with pytest.raises(ValueError, match="finite, got NaN or infinity for the tail of entity 2, relation 1"):
        top_answers(models.Trained(scorer, params, statistics), [2], [1], "tail", known=None, depth=3)

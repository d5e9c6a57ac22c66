"""The rank table of a model against that of its score matrix."""

import jax
import numpy as np
import polars as pl
import pytest

from owkg.evaluation import ranks
from owkg.evaluation.table import check_sizes
from owkg.kg import KnowledgeGraph
from owkg.models import Trained, model, score_all
from owkg.ranks import rank_table


def drawn(seed, count):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, below, count) for below in (19, 2, 19)], axis=1).astype(np.int32)


GRAPH = KnowledgeGraph(
    tuple(f"e{i}" for i in range(19)),
    ("likes", "knows"),
    {"train": drawn(0, 80), "valid": drawn(1, 20), "test": drawn(2, 30), "none": np.empty((0, 3), np.int32)},
)
MODEL = model("complex", dim=4)
TRAINED = Trained(MODEL, *MODEL.init(jax.random.key(0), 19, 2))
PARAMS = TRAINED.params


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"filter_splits": ()},
        {"filter_splits": ("train", "valid")},
        {"split": "valid", "sides": ["tail"], "tolerance": 1e-7, "popularity": True, "name": "m"},
    ],
)
def test_as_of_the_score_matrix(options):
    rest = dict(options)
    triples = GRAPH.splits[rest.pop("split", "test")]
    sides = rest.pop("sides", ("head", "tail"))
    expected = []
    for side in sides:
        entity = triples[:, 2 if side == "head" else 0]
        scores = score_all(TRAINED, entity, triples[:, 1], side)
        matrix = {"popularity": False} | rest
        matrix["model"] = matrix.pop("name", None)
        expected.append(rank_table(GRAPH, scores, triples, side, **matrix))
    assert ranks(TRAINED, GRAPH, **options).equals(pl.concat(expected))


def test_the_splits_that_there_are_filter_by_default():
    graph = KnowledgeGraph(
        GRAPH.entities, GRAPH.relations, {name: GRAPH.splits[name] for name in ("train", "test")}
    )
    expected = ranks(TRAINED, graph, filter_splits=["train", "test"])
    assert ranks(TRAINED, graph).equals(expected)
    with pytest.raises(ValueError, match="`filter_splits` must be among train, test, got 'valid'"):
        ranks(TRAINED, graph, filter_splits=["train", "valid"])


def test_progress_runs_over_all_sides():
    seen = []
    ranks(TRAINED, GRAPH, on_progress=lambda *at: seen.append(at))
    assert seen == [(30, 60), (60, 60)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"split": "full"}, "`split` must be one of train, valid, test, none, got 'full'"),
        ({"split": "none"}, "`split` must have triples to rank, got 'none'"),
        ({"filter_splits": ["full"]}, "`filter_splits` must be among .*'full'"),
        ({"name": ""}, "`name` must not be empty, got ''"),
        ({"sides": []}, r"`sides` must be head, tail, or both, each once, got none"),
        ({"sides": ["tail", "tail"]}, "`sides` must be"),
        ({"sides": "both"}, "`sides` must be .* got both"),
        ({"sides": 3}, "`sides` must be .*3"),
        ({"sides": [["tail"]]}, "`sides` must be"),
    ],
)
def test_refusals(options, words):
    with pytest.raises(ValueError, match=words):
        ranks(TRAINED, GRAPH, **options)


def test_parameters_of_another_graph():
    for name, rows in (("entity", 19), ("relation", 4)):
        params = PARAMS | {name: PARAMS[name][:-1]}
        with pytest.raises(ValueError, match=f"`trained` must have {rows} rows in {name} .* got {rows - 1}"):
            ranks(Trained(MODEL, params), GRAPH)


def test_what_is_no_model_with_its_arrays():
    with pytest.raises(ValueError, match=r"`trained` must be an `owkg\.models\.Trained` .* got str"):
        check_sizes("transe", GRAPH)
    with pytest.raises(ValueError, match=r"`trained` must have .* entity and relation among them"):
        check_sizes(Trained(MODEL, {"entity": PARAMS["entity"]}), GRAPH)


def test_one_split_that_filters_may_be_text():
    assert ranks(TRAINED, GRAPH, filter_splits="train").equals(ranks(TRAINED, GRAPH, filter_splits=["train"]))
    more = GRAPH._replace(splits={**GRAPH.splits, "test_more": drawn(3, 9)})
    for filters in ("test_more", ["test_more"]):
        assert not ranks(TRAINED, more, filter_splits=filters)["filtered"].any()


def test_no_graph():
    with pytest.raises(ValueError, match="`graph` must be a KnowledgeGraph, got 3"):
        ranks(TRAINED, 3)


def test_scores_that_are_no_numbers_name_their_query():
    tail = GRAPH.splits["test"][0, 2]
    entity = PARAMS["entity"].at[tail].set(np.nan)
    with pytest.raises(ValueError, match="got NaN or infinity for the head of 'e"):
        ranks(Trained(MODEL, PARAMS | {"entity": entity}), GRAPH)


def test_double_precision_tells_apart_what_ties_in_single():
    graph = KnowledgeGraph(("a", "b", "c"), ("r",), {"test": np.array([[0, 0, 1]], np.int32)})
    transe = model("transe", dim=2, norm=1)
    params = {"entity": jax.numpy.array([[0, 0], [2.0**24, 1], [2.0**24, 0]]), "relation": np.zeros((1, 2))}
    trained = Trained(transe, params)
    columns = ["optimistic", "pessimistic", "score"]
    ask = {"sides": ["tail"], "score": True}
    single = ranks(trained, graph, **ask).select(columns)
    double = ranks(trained, graph, precision="float64", **ask).select(columns)
    margin = transe.config.margin
    assert single.rows()[0][:2] == (2, 3)
    assert double.rows() == [(3, 3, margin - 2**24 - 1)]
    # The tolerance is of that precision, too.
    wide = ranks(trained, graph, precision="float64", sides=["tail"], tolerance=1 - 1e-8)
    assert wide["optimistic"].to_list() == [3]
    assert ranks(trained, graph, precision="float64", sides=["tail"], tolerance=1)[
        "optimistic"
    ].to_list() == [2]
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize("name", ["transe", "distmult", "complex", "rotate", "rescal", "rgcn", "interacte"])
def test_double_precision_as_of_the_score_matrix(name):
    scorer = model(name, **{"interacte": {"dim": 12, "height": 2, "kernel": 3}}.get(name, {"dim": 4}))
    triples = GRAPH.splits["test"]
    trained = Trained(scorer, *scorer.begun(jax.random.key(0), 19, 2, triples))
    with jax.enable_x64(True):
        floating = jax.numpy.floating
        wide = jax.tree.map(
            lambda x: x.astype(np.float64) if jax.numpy.issubdtype(x.dtype, floating) else x, trained
        )
        scores = np.asarray(score_all(wide, triples[:, 0], triples[:, 1], "tail"))
    assert scores.dtype == np.float64
    expected = rank_table(GRAPH, scores, triples, "tail", popularity=False, model=None)
    found = ranks(trained, GRAPH, sides=["tail"], precision="float64", score=True)
    assert found.drop("score").equals(expected)
    np.testing.assert_allclose(found["score"], scores[np.arange(30), triples[:, 2]], rtol=1e-14)


def test_precision_is_one_of_two():
    with pytest.raises(ValueError, match="`precision` must be float32 or float64, got 'half'"):
        ranks(TRAINED, GRAPH, precision="half")


def test_an_encoder_without_its_graph():
    scorer = model("rgcn", dim=4)
    trained = Trained(scorer, *scorer.init(jax.random.key(0), 19, 2))
    with pytest.raises(ValueError, match=r"`trained` must have the array edge_fact .*\(rgcn\), got none"):
        ranks(trained, GRAPH)

"""PyKEEN's models through each way in: its own metrics, without PyKEEN being imported by owkg."""

import json
import subprocess
import sys
import warnings
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

import owkg
from owkg.evaluation import ranks
from owkg.interop import embeddings_of_state, pykeen, read_state
from owkg.models import Trained, import_embeddings, score
from owkg.models import model as owkg_model
from owkg.ranks import RankTable

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("pykeen", reason="PyKEEN is not installed: pip install pykeen")
    import torch
    from pykeen import models
    from pykeen.datasets import Nations
    from pykeen.pipeline import pipeline

pytestmark = pytest.mark.filterwarnings("ignore")
METRICS = {
    "mrr": "inverse_harmonic_mean_rank",
    "mr": "arithmetic_mean_rank",
    "gmr": "geometric_mean_rank",
    "hits@1": "hits_at_1",
    "hits@3": "hits_at_3",
    "hits@10": "hits_at_10",
    "amr": "adjusted_arithmetic_mean_rank",
    "amri": "adjusted_arithmetic_mean_rank_index",
    "amrr": "adjusted_inverse_harmonic_mean_rank",
    "zmrr": "z_inverse_harmonic_mean_rank",
}
MODELS = [
    ("TransE", {}, False),
    ("TransE", {"scoring_fct_norm": 2}, False),
    ("ComplEx", {}, True),
    ("RotatE", {}, False),
    ("RESCAL", {}, False),
    ("HolE", {}, False),
    ("CP", {"rank": 3}, True),
    ("MuRE", {}, True),
    ("ConvKB", {}, False),
]


@pytest.fixture(scope="module", params=MODELS, ids=lambda one: f"{one[0]}{one[1] or ''}")
def trained(request):
    name, options, inverse = request.param
    dataset = Nations(create_inverse_triples=inverse)
    result = pipeline(
        dataset=dataset,
        model=name,
        model_kwargs={"embedding_dim": 8} | options,
        training_kwargs={"num_epochs": 5, "use_tqdm": False},
        evaluation_kwargs={"use_tqdm": False},
        random_seed=1,
        device="cpu",
    )
    return result, dataset


def same(table, result):
    """Every shared metric, by side and tie rule, within 1e-6; zmrr 1e-5, for PyKEEN's single precision."""
    theirs = result.metric_results.to_flat_dict()
    mine = owkg.evaluate(table, list(METRICS), by=["side", "ties"], side=["head", "tail", "both"], ci=None)
    checked = 0
    for row in mine.iter_rows(named=True):
        key = f"{row['side']}.{row['ties']}.{METRICS[row['metric']]}"
        if key in theirs:
            near = 1e-5 if row["metric"] == "zmrr" else 1e-6
            assert row["value"] == pytest.approx(theirs[key], rel=near, abs=near), key
            checked += 1
    assert checked >= len(METRICS)


def test_ranks_of_a_result(trained):
    result, dataset = trained
    table = pykeen.ranks(result, dataset)
    same(table, result)
    assert not result.model.training
    result.model.train()
    pykeen.ranks(result, dataset)
    assert result.model.training
    result.model.eval()
    assert table.frame["filtered"].all()
    assert table.frame["model"].unique().to_list() == [type(result.model).__name__]


def test_ranks_of_a_model_and_factories(trained):
    result, dataset = trained
    known = [dataset.training, dataset.validation]
    tables = [
        pykeen.ranks(result.model, dataset.testing, known=known),
        pykeen.ranks(result, dataset.testing, known=known),
        pykeen.ranks(result.model, dataset),
    ]
    for table in tables:
        same(table, result)
    for scorer in (result, result.model):
        with pytest.raises(ValueError, match="`known` must be given with a factory"):
            pykeen.ranks(scorer, dataset.testing)
    with pytest.raises(
        ValueError, match=r"`known` must be triples factories, such as dataset\.training, got str"
    ):
        pykeen.ranks(result, dataset.testing, known="train")
    # The validation's answers stay candidates without it.
    less = pykeen.ranks(result, dataset.testing, known=dataset.training).frame
    assert less["candidates"].sum() > tables[0].frame["candidates"].sum()


def test_embeddings_and_states(trained, tmp_path):
    result, dataset = trained
    kind = type(result.model).__name__
    if kind == "ConvKB":
        with pytest.raises(ValueError, match=r"must be of TransE, .* got ConvKB; `ranks` takes any model"):
            pykeen.embeddings(result, dataset.training)
        return
    graph = pykeen.graph(dataset)
    found = pykeen.embeddings(result, dataset.training)
    same(found.ranks(graph), result)
    for ending in (".npz", ".safetensors"):
        found.write(path := tmp_path / f"model{ending}")
        again = import_embeddings(path, graph, found.model)  # the file says the norm
        same(RankTable.of(ranks(again, graph)), result)
    labels = {"entities": graph.entities, "relations": graph.relations}
    state = result.model.state_dict()
    options = {"norm": int(result.model.interaction.p)} if kind == "TransE" else {}
    same(embeddings_of_state(state, "pykeen", kind.lower(), **labels, **options).ranks(graph), result)
    from safetensors.torch import save_file
    from torch import save

    save_file({name: one.clone() for name, one in state.items()}, tmp_path / "state.safetensors")
    save(state, tmp_path / "state.pt")
    one, other = (read_state(tmp_path / name) for name in ("state.safetensors", "state.pt"))
    assert set(one) == set(other)
    assert all(np.array_equal(one[name], other[name]) for name in one)


def scored(model, own, entities, relations):
    """The score of the triple 0, 0, 1 by PyKEEN, and by owkg, of the same numbers."""
    facts = Nations().training
    theirs = model(triples_factory=facts, embedding_dim=2, random_seed=0)
    parts = (theirs.entity_representations, entities), (theirs.relation_representations, relations)
    with torch.no_grad():
        for representations, arrays in parts:
            for one, array in zip(representations, arrays, strict=True):
                one._embeddings.weight[: len(array)] = torch.tensor(array)
        found = theirs.score_hrt(torch.tensor([[0, 0, 1]])).item()
    with pytest.raises(ValueError, match=f"as PyKEEN's {model.__name__} .*; `ranks` takes it as it is"):
        pykeen.embeddings(theirs, facts)
    params = {"entity": jnp.hstack(entities), "relation": jnp.hstack(relations)}
    return found, float(score(Trained(owkg_model(own, dim=2), params), 0, 0, 1))


def test_transh_is_not_as_its_paper_has_it():
    """Wang et al. 2014, equation 1, for h = (1, 0), t = (0, 1), d = (.5, 0), w = (0, 1): the distance is 1.5.

    PyKEEN 1.11.1 declares relations as (d, w), and its score takes them as (w, d): a w of length .5, and the
    distance is .75.
    """
    points, shift, normal = np.eye(2, dtype=np.float32), np.float32([[0.5, 0]]), np.float32([[0, 1]])
    found = scored(models.TransH, "transh", [points], [shift, normal])
    assert found == pytest.approx((-0.75, -(1.5**2)))


def test_simple_is_not_as_its_paper_has_it():
    """Kazemi and Poole 2018, section 4: h r t' + t r' h', with ' of entities as tails, and r' of the inverse.

    PyKEEN 1.11.1 has h r t + t' r' h', so that heads and tails can change places: DistMult.
    """
    first, second = np.float32([[1, 0], [2, 0]]), np.float32([[6, 0], [3, 0]])
    forward, inverse = np.float32([[4, 0]]), np.float32([[1, 0]])
    found = scored(models.SimplE, "simple", [first, second], [forward, inverse])
    assert found == pytest.approx(((1 * 4 * 2 + 3 * 1 * 6) / 2, (1 * 4 * 3 + 2 * 1 * 6) / 2))


def test_other_settings_of_a_score_are_refused():
    facts = Nations(create_inverse_triples=True).training
    with pytest.raises(ValueError, match="`model` must have p 2, got 1; `ranks` takes any model"):
        pykeen.embeddings(models.MuRE(triples_factory=facts, p=1, random_seed=0), facts)
    alone = Nations()
    found = pykeen.embeddings(models.MuRE(triples_factory=alone.training, random_seed=0), alone.training)
    with pytest.raises(ValueError, match="MuRE: `reciprocal` must be True for mure"):
        found.ranks(pykeen.graph(alone))


def test_folders_that_pykeen_saves(trained, tmp_path):
    """Metrics and triples are read; the pickled model is not."""
    result, _ = trained
    result.save_to_directory(tmp_path)
    read = pykeen.read_metrics(tmp_path / "results.json")
    theirs = result.metric_results.to_flat_dict()
    for side, ties, _, key, value in read.rows():
        assert value == pytest.approx(theirs[f"{side}.{ties}.{key}"])
    assert {"mrr", "hits@10", "amri"} <= set(read["metric"].drop_nulls())
    with pytest.raises(ValueError, match="training_triples in it is the triples factory that PyKEEN saved"):
        owkg.read_graph(tmp_path)
    assert owkg.read_graph(tmp_path / "training_triples").num_entities == result.training.num_entities
    with pytest.raises(ValueError, match=r"trained_model\.pkl: must be a state .* weights-only.*state_dict"):
        read_state(tmp_path / "trained_model.pkl")


def test_factories(trained):
    _, dataset = trained
    graph = pykeen.graph({"train": dataset.training, "test": dataset.testing})
    assert set(graph.splits) == {"train", "test"}
    assert len(graph.splits["train"]) == dataset.training.num_triples
    labelled = dataset.testing.triples[:3]
    mine = [
        (graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in graph.splits["test"][:3]
    ]
    assert mine == [tuple(row) for row in labelled]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pykeen.graph({"train": 3}), "`factories` must be a PyKEEN dataset"),
        (lambda: pykeen.ranks(3, 4), "`model` must be a PyKEEN model or pipeline result, got int"),
    ],
)
def test_other_things(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_results_of_another_kind(tmp_path):
    (tmp_path / "a.json").write_text("[1,")
    with pytest.raises(ValueError, match=r"a\.json, line 1: must be JSON"):
        pykeen.read_metrics(tmp_path / "a.json")
    (tmp_path / "b.json").write_text(json.dumps([1]))
    with pytest.raises(ValueError, match=r"b\.json: must hold metrics"):
        pykeen.read_metrics(tmp_path / "b.json")


def test_owkg_does_not_import_pykeen():
    code = "import owkg.interop.pykeen, sys; print('pykeen' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_popularity_comes_with_ranks(trained):
    result, dataset = trained
    frame = pykeen.ranks(result, dataset, side="tail", name="mine").frame
    assert {"popularity", "category", "score"} <= set(frame.columns)
    assert frame["side"].unique().to_list() == ["tail"]
    assert frame["model"].unique().to_list() == ["mine"]
    assert isinstance(frame, pl.DataFrame)


def test_double_precision(trained):
    """PyKEEN's evaluator of a model in double precision: by the model, and by its embeddings."""
    from copy import deepcopy

    from pykeen.evaluation import RankBasedEvaluator

    result, dataset = trained
    wide = deepcopy(result.model).double()
    known = [dataset.training.mapped_triples, dataset.validation.mapped_triples]
    told = RankBasedEvaluator(filtered=True).evaluate(
        model=wide,
        mapped_triples=dataset.testing.mapped_triples,
        additional_filter_triples=known,
        batch_size=64,
        use_tqdm=False,
    )
    of_double = SimpleNamespace(metric_results=told)
    same(pykeen.ranks(wide, dataset), of_double)
    if type(wide).__name__ != "ConvKB":
        found = pykeen.embeddings(result, dataset.training)
        same(found.ranks(pykeen.graph(dataset)), of_double)

"""Complex embeddings in every layout that is declared, and refusals of those that are not."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest
from safetensors.numpy import save_file

from owkg.evaluation import ranks
from owkg.kg import KnowledgeGraph
from owkg.metrics import metric, pykeen_key, report
from owkg.models import Trained, import_embeddings, model, read_embeddings, score, write_embeddings

GRAPH = KnowledgeGraph(("a", "b", "c"), ("r", "s"), {})
LABELS = {"entity_labels": np.array(["b", "c", "a"]), "relation_labels": np.array(["s", "r"])}
RNG = np.random.default_rng(0)
ENTITY = (RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))).astype(np.complex64)
RELATION = (RNG.normal(size=(2, 4)) + 1j * RNG.normal(size=(2, 4))).astype(np.complex64)
PHASES = RNG.uniform(-3, 3, (2, 4)).astype(np.float32)
TURNS = np.exp(1j * PHASES.astype(np.float64)).astype(np.complex64)
WIDTH = (12 + 2) / 4  # of rotate with its usual margin


def halves(array):
    return np.concatenate([array.real, array.imag], axis=1)


def pairs(array):
    """As `torch.view_as_real` has it."""
    return np.stack([array.real, array.imag], axis=-1)


def interleaved(array):
    return pairs(array).reshape(len(array), -1)


def saved(folder, entity, relation, **more):
    np.savez(folder / "e.npz", entity=entity, relation=relation, **LABELS | more)
    return folder / "e.npz"


FORMS = {
    "complex": (lambda array: array, None),
    "complex, said": (lambda array: array, "complex"),
    "in double precision": (lambda array: array.astype(np.complex128), None),
    "real-imaginary": (halves, "real-imaginary"),
    "interleaved": (interleaved, "interleaved"),
    "view_as_real": (pairs, "interleaved"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("said_by", ["option", "file"])
def test_complex_embeddings(tmp_path, form, said_by):
    change, layout = FORMS[form]
    more = {} if layout is None or said_by == "option" else {"layout": np.array(layout)}
    path = saved(tmp_path, change(ENTITY), change(RELATION), relation_inverse=change(-RELATION), **more)
    found = import_embeddings(path, GRAPH, "complex", layout=None if more else layout)
    config, params = found.model.config, found.params
    assert (config.dim, config.reciprocal) == (4, True)
    np.testing.assert_array_equal(params["entity"], halves(ENTITY)[[2, 0, 1]])
    rows = np.concatenate([halves(RELATION)[::-1], -halves(RELATION)[::-1]])
    np.testing.assert_array_equal(params["relation"], rows)


def test_complex_embeddings_in_safetensors(tmp_path):
    labels = {name: json.dumps(texts.tolist()) for name, texts in LABELS.items()}
    arrays = {"entity": interleaved(ENTITY), "relation": interleaved(RELATION)}
    save_file(arrays, tmp_path / "e.safetensors", labels | {"layout": "interleaved"})
    params = import_embeddings(tmp_path / "e.safetensors", GRAPH, "complex").params
    np.testing.assert_array_equal(params["entity"], halves(ENTITY)[[2, 0, 1]])


def rotated(norm):
    """Of every triple, by the definition: minus the norm of the moduli of h r - t, and the margin."""
    entity, relation = ENTITY.astype(np.complex128)[[2, 0, 1]], TURNS.astype(np.complex128)[::-1]
    apart = np.abs(entity[:, None, None] * relation[:, None] - entity)
    return 12 - np.linalg.norm(apart, norm, axis=-1)


ROTATIONS = {
    "complex": (TURNS, None),
    "real-imaginary": (halves(TURNS), None),
    "phases": (PHASES, "phases"),
    "scaled": (PHASES / np.pi * WIDTH, "scaled"),
}


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("form", ROTATIONS)
def test_rotations(tmp_path, form, norm):
    relation, said = ROTATIONS[form]
    entity, layout = (halves(ENTITY), "real-imaginary") if form == "real-imaginary" else (ENTITY, None)
    path = saved(tmp_path, entity, relation)
    options = {"layout": layout, "relation_layout": said, "norm": norm}
    trained = import_embeddings(path, GRAPH, "rotate", **options)
    found = score(trained, *np.ogrid[:3, :2, :3])
    np.testing.assert_allclose(found, rotated(norm), rtol=1e-5)


@pytest.mark.parametrize("name", ["complex", "rotate"])
def test_what_is_written_says_its_layout(tmp_path, name):
    built = model(name, dim=4)
    trained = Trained(built, *built.init(jax.random.key(0), 3, 2))
    params = trained.params
    for path in (tmp_path / "e.npz", tmp_path / "e.safetensors"):
        write_embeddings(path, trained, entities="abc", relations="rs")
        found = read_embeddings(path)
        assert found.layout == "real-imaginary"
        assert found.relation_layout == ("scaled" if name == "rotate" else None)
        again = import_embeddings(path, GRAPH, name).params
        assert all((again[key] == params[key]).all() for key in params)
        with pytest.raises(ValueError, match="has layout real-imaginary, but `layout` interleaved was given"):
            import_embeddings(path, GRAPH, name, layout="interleaved")


@pytest.mark.parametrize(
    ("name", "arrays", "options", "words"),
    [
        (
            "complex",
            (halves(ENTITY), RELATION),
            {},
            r"'entity' of complex must be complex numbers; for real numbers give `layout` .* or "
            r"interleaved .*, got float32 \(3, 8\)",
        ),
        ("complex", (ENTITY, interleaved(RELATION)), {}, "'relation' of complex must be complex numbers"),
        ("complex", (pairs(ENTITY), RELATION), {}, "'entity' of complex must be complex numbers"),
        ("complex", (halves(ENTITY), RELATION), {"layout": "complex"}, "must be complex numbers"),
        (
            "complex",
            (ENTITY, RELATION),
            {"layout": "interleaved"},
            "'entity' must be a matrix of real numbers where `layout` is interleaved, got complex64",
        ),
        (
            "complex",
            (pairs(ENTITY), pairs(RELATION)),
            {"layout": "real-imaginary"},
            r"'entity' must be a matrix where `layout` is real-imaginary, got shape \(3, 4, 2\)",
        ),
        ("complex", (ENTITY, RELATION), {"layout": "polar"}, "`layout` must be one of complex, real-imag"),
        (
            "complex",
            (ENTITY, RELATION),
            {"relation_layout": "phases"},
            "`relation_layout` has no effect for complex, whose embeddings are not rotations",
        ),
        ("rotate", (halves(ENTITY), TURNS), {}, "'entity' of rotate must be complex numbers"),
        (
            "rotate",
            (ENTITY, PHASES),
            {},
            r"'relation' of rotate must be complex numbers of modulus 1; for real numbers give "
            r"`relation_layout` phases \(radians\) or scaled",
        ),
        ("rotate", (ENTITY, PHASES), {"relation_layout": "complex"}, "'relation' of rotate must be complex"),
        (
            "rotate",
            (ENTITY, TURNS),
            {"relation_layout": "phases"},
            "'relation' must be real numbers where `relation_layout` is phases, got complex ones",
        ),
        ("rotate", (ENTITY, RELATION), {}, "'relation' of rotate must be complex numbers of modulus 1, got"),
        (
            "rotate",
            (interleaved(ENTITY), halves(TURNS)),
            {"layout": "interleaved"},
            "'relation' of rotate must be complex numbers of modulus 1, got",
        ),
        (
            "distmult",
            (halves(ENTITY), halves(RELATION)),
            {"layout": "real-imaginary"},
            "`layout` has no effect for distmult, whose embeddings are real",
        ),
        ("distmult", (ENTITY, RELATION), {}, "'entity' of distmult must be real numbers, got complex64"),
        (
            "distmult",
            (pairs(ENTITY), pairs(RELATION)),
            {},
            r"'entity' must be a matrix of at least one column, got shape \(3, 4, 2\)",
        ),
    ],
)
def test_refusals(tmp_path, name, arrays, options, words):
    with pytest.raises(ValueError, match=words):
        import_embeddings(saved(tmp_path, *arrays), GRAPH, name, **options)


def test_a_layout_in_a_file_is_a_known_text(tmp_path):
    path = saved(tmp_path, ENTITY, RELATION, layout=np.array("polar"))
    with pytest.raises(ValueError, match=r"'layout' must be one of complex, .*got 'polar'"):
        import_embeddings(path, GRAPH, "complex")
    path = saved(tmp_path, ENTITY, RELATION, layout=np.array([1]))
    with pytest.raises(ValueError, match="'layout' must be a text, got int64"):
        read_embeddings(path)


# --- what PyKEEN trained, by benchmarks/record_pykeen_models.py

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("name", "options"), [("transe", {"norm": 1}), ("distmult", {}), ("complex", {}), ("rotate", {"norm": 2})]
)
def test_models_of_pykeen_reach_its_own_metrics(name, options):
    with np.load(DATA / "nations.npz", allow_pickle=False) as file:
        splits = {split: file[split].astype(np.int32) for split in ("train", "valid", "test")}
        graph = KnowledgeGraph(tuple(file["entities"].tolist()), tuple(file["relations"].tolist()), splits)
    expected = json.loads((DATA / "metrics.json").read_text())["metrics"][name]
    trained = import_embeddings(DATA / f"{name}.npz", graph, name, **options)
    table = ranks(trained, graph)
    names = {key.rpartition(".")[2] for key in expected}
    found = report(
        table, [metric(name) for name in sorted(names)], sides=("head", "tail", "both"), level=None
    )
    rows = found.select("side", "ties", "metric", "value").rows()
    values = {f"{side}.{ties}.{pykeen_key(metric(name))}": value for side, ties, name, value in rows}
    assert len(expected) == 9 * len(names) > 100
    for key, value in expected.items():
        np.testing.assert_allclose(values[key], value, rtol=1e-5, err_msg=key)

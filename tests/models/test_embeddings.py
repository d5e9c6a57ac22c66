"""Embeddings from files: order of the graph, refusals by name, and back."""

import io
import json
import warnings
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from owkg.kg import KnowledgeGraph, read_graph
from owkg.models import (
    MODELS,
    Trained,
    import_embeddings,
    model,
    read_embeddings,
    score,
    score_all,
    write_embeddings,
)

GRAPH = KnowledgeGraph(("a", "b", "ü"), ("r", "s"), {})
ENTITY = np.arange(12, dtype=np.float32).reshape(3, 4) / 10
RELATION = np.arange(8, dtype=np.float32).reshape(2, 4) / 20
LABELS = {"entity_labels": ["ü", "a", "b"], "relation_labels": ["s", "r"]}
FORMS = pytest.mark.parametrize("form", ["npz", "safetensors"])


def _write(path, *, labels=LABELS, **arrays):
    arrays = {"entity": ENTITY, "relation": RELATION} | arrays
    arrays = {name: array for name, array in arrays.items() if array is not None}
    if path.suffix == ".npz":
        np.savez(path, **arrays, **{name: np.array(texts) for name, texts in labels.items()})
    else:
        save_file(arrays, path, {name: json.dumps(texts) for name, texts in labels.items()})
    return path


@FORMS
def test_rows_come_in_the_order_of_the_graph(tmp_path, form):
    path = _write(tmp_path / f"e.{form}", relation_inverse=-RELATION)
    found = import_embeddings(path, GRAPH, "transe", norm=2)
    config, params = found.model.config, found.params
    assert (config.dim, config.norm, config.reciprocal) == (4, 2, True)
    assert found.statistics == {}
    assert (params["entity"] == ENTITY[[1, 2, 0]]).all()
    assert (params["relation"] == np.concatenate([RELATION[::-1], -RELATION[::-1]])).all()


@FORMS
@pytest.mark.parametrize("name", [name for name, kind in MODELS.items() if kind.made().graph is None])
def test_what_is_written_comes_back_also_in_another_order(tmp_path, form, name):
    small = {"dim": 12, "relation_dim": 3, "height": 3, "kernel": 3, "channels": 2, "hidden": 5}
    small |= {"heads": 4}
    options = {key: value for key, value in small.items() if key in MODELS[name].options}
    built = model(name, **options)
    facts = np.array([[0, 0, 1], [2, 1, 1], [0, 1, 2]], np.int32)
    graph = KnowledgeGraph(GRAPH.entities, GRAPH.relations, {"train": facts})
    begun = Trained(built, *built.begun(jax.random.key(0), 3, 2, facts))
    params = begun.params
    for bias in params.keys() & {"entity_bias", "head_bias", "tail_bias"}:
        params[bias] = jnp.arange(3.0)
    path = tmp_path / "new" / f"e.{form}"
    write_embeddings(path, begun, entities=GRAPH.entities, relations=GRAPH.relations)
    again = import_embeddings(path, graph, name)  # the file says the options
    same = again.params
    assert again.model is built
    assert same.keys() == params.keys()
    assert begun.statistics.keys() == again.statistics.keys()
    assert all((same[key] == params[key]).all() for key in params)
    other_ids = np.array([2, 1, 2], np.int32) - facts
    turned = KnowledgeGraph(GRAPH.entities[::-1], GRAPH.relations[::-1], {"train": other_ids})
    other = import_embeddings(path, turned, name, **options)
    np.testing.assert_allclose(
        score_all(other, [0, 2], [0, 1], "head")[:, ::-1],
        score_all(begun, [2, 0], [1, 0], "head"),
        rtol=1e-5,
        atol=1e-6,
    )


NAN = ENTITY.copy()
NAN[1, 2] = np.nan


@FORMS
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"entity": None}, "must have an array 'entity'; it has relation"),
        ({"relation": None}, "must have an array 'relation'; it has entity"),
        ({"entity": NAN}, r"'entity' must be finite in float32, got nan at index \(1, 2\); 1 entries"),
        ({"entity": ENTITY.astype(np.float64) * 1e300}, "'entity' must be finite in float32"),
        ({"entity": np.arange(12).reshape(3, 4)}, "'entity' must be an array of floats, got int64"),
        ({"relation": RELATION[:, :3].copy()}, r"'relation' must have shape \(2, 4\) for transe of dim 4"),
        ({"relation": RELATION.ravel()}, r"'relation' must be a matrix of .*, got shape \(8,\)"),
        (
            {"relation_inverse": RELATION[:, :2].copy()},
            "'relation_inverse' must have the shape of 'relation'",
        ),
        (
            {"relation_inverse": RELATION[:1].copy()},
            "a label for each of 1 rows of 'relation_inverse', got 2",
        ),
        ({"entity": ENTITY[:2].copy()}, "'entity_labels' must have a label for each of 2 rows .*, got 3"),
        ({"core": ENTITY}, "transe has no array 'core'; it has entity, relation"),
        (
            {"labels": LABELS | {"entity_labels": ["a", "b", "a"]}},
            "'entity_labels' has 'a' twice, in rows 0 and 2",
        ),
        (
            {"labels": LABELS | {"entity_labels": ["x", "y", "a"]}},
            "its entity labels must be the labels of the graph, but 2 are not in the file: 'b', 'ü'",
        ),
        (
            {"labels": LABELS | {"relation_labels": ["r", "q"]}},
            "its relation labels must be the labels of the graph, but 1 are not in the file: 's'",
        ),
    ],
)
def test_bad_files_are_refused_by_name(tmp_path, form, changed, message):
    path = _write(tmp_path / f"bad.{form}", **changed)
    with pytest.raises(ValueError, match=rf"bad\.{form}: .*{message}"):
        import_embeddings(path, GRAPH, "transe")


@pytest.mark.parametrize(
    ("name", "changed", "options", "message"),
    [
        ("complex", {"entity": ENTITY[:, :3].copy()}, {}, "an even number of columns for complex, got 3"),
        (
            "rotate",
            {"relation": RELATION[:, :3].copy()},
            {"layout": "interleaved", "relation_layout": "scaled"},
            r"'relation' must have shape \(2, 2\) for rotate of dim 2, got \(2, 3\)",
        ),
        ("transe", {}, {"dim": 5}, r"'entity' must have shape \(3, 5\) for transe of dim 5"),
        ("transe", {}, {"reciprocal": True}, "no array 'relation_inverse', but `reciprocal` is True"),
        (
            "transe",
            {"relation_inverse": RELATION},
            {"reciprocal": False},
            "an array 'relation_inverse', but `reciprocal` is False",
        ),
        (
            "tucker",
            {"relation_inverse": RELATION},
            {},
            "must have an array 'core' of shape .* for tucker, got none",
        ),
        ("protate", {}, {}, r"must have an array 'modulus' of shape \(1,\) for protate, got none"),
        ("ghost", {}, {}, "`model` must be one of"),
    ],
)
def test_files_of_another_model_are_refused(tmp_path, name, changed, options, message):
    path = _write(tmp_path / "e.npz", **changed)
    with pytest.raises(ValueError, match=message):
        import_embeddings(path, GRAPH, name, **options)


def test_a_label_that_the_graph_has_not_is_refused(tmp_path):
    path = _write(tmp_path / "e.npz")
    fewer = KnowledgeGraph(("a",), ("r", "s"), {})
    with pytest.raises(ValueError, match="but 2 are not in the graph: 'b', 'ü'"):
        import_embeddings(path, fewer, "transe")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("e.npz", b"no zip", "must be an .npz file"),
        ("e.safetensors", b"\xff" * 20, "must be a .safetensors file"),
        ("e.pt", b"", "must end in .npz or .safetensors; owkg.interop.embeddings_of_state reads a state"),
        ("e.npy", b"", "must end in .npz or .safetensors; write both arrays into one: numpy.savez"),
        ("e.pkl", b"", "pickles are never loaded"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_embeddings(path)


@FORMS
def test_a_file_that_is_not_there(tmp_path, form):
    with pytest.raises(OSError, match=f"e.{form}"):
        read_embeddings(tmp_path / f"e.{form}")


def test_objects_are_never_loaded(tmp_path):
    path = tmp_path / "e.npz"
    labels = {name: np.array(texts, object) for name, texts in LABELS.items()}
    np.savez(path, entity=ENTITY, relation=RELATION, **labels)
    with pytest.raises(
        ValueError, match=r"'entity_labels' must be a plain array.*write entity_labels.astype"
    ):
        read_embeddings(path)


@FORMS
def test_rows_without_labels_are_those_of_the_graphs_ids(tmp_path, form):
    path = _write(tmp_path / f"e.{form}", labels={})
    with pytest.warns(UserWarning, match="no entity_labels and no relation_labels, so its rows are taken in"):
        found = import_embeddings(path, GRAPH, "transe")
    np.testing.assert_array_equal(found.params["entity"], ENTITY)
    fewer = KnowledgeGraph(GRAPH.entities[:2], GRAPH.relations, {})
    with pytest.raises(ValueError, match=r"'entity' has 3 rows and no 'entity_labels', .* 2 entities"):
        import_embeddings(path, fewer, "transe")
    path = _write(tmp_path / f"r.{form}", labels={"entity_labels": list(GRAPH.entities)})
    with pytest.warns(UserWarning, match="has no relation_labels, so"):
        import_embeddings(path, GRAPH, "transe")


@FORMS
@pytest.mark.parametrize("labels", [LABELS, {}], ids=["labels", "no labels"])
@pytest.mark.parametrize("name", ["transe", "distmult", "complex"])
def test_two_rows_for_each_relation_are_inverse_relations(tmp_path, form, labels, name):
    layout = {"layout": "real-imaginary"} if name == "complex" else {}
    both = np.concatenate([RELATION, RELATION[::-1] + 1])
    twice = _write(tmp_path / f"twice.{form}", relation=both, labels=labels)
    apart = _write(tmp_path / f"apart.{form}", relation_inverse=RELATION[::-1] + 1, labels=labels)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found, same = (import_embeddings(path, GRAPH, name, **layout) for path in (twice, apart))
    told = [str(one.message) for one in caught if "two rows for each of 2 relations" in str(one.message)]
    assert len(told) == 1
    assert "row i + 2 is taken" in told[0]
    assert found.model.config.reciprocal
    np.testing.assert_array_equal(found.params["relation"], same.params["relation"])


def test_inverse_relations_of_rows_that_do_not_fit_are_refused(tmp_path):
    three = np.concatenate([RELATION, RELATION[:1]])
    with pytest.raises(ValueError, match="'relation_labels' must have a label for each of 3 rows"):
        import_embeddings(_write(tmp_path / "e.npz", relation=three), GRAPH, "transe")


@FORMS
def test_a_damaged_file_is_refused(tmp_path, form):
    path = _write(tmp_path / f"e.{form}")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match=f"e.{form}: must be"):
        read_embeddings(path)


def _header(description: str) -> bytes:
    """The bytes of an array in a file that says nothing but what it is."""
    text = description.ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (500000000000000,), }"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4"), "must be an .npz file"),
        (_header("{'descr': '<f4', 'fortran_order': Fa(lse, 0"), "must be an .npz file"),
        (_header(HUGE), "takes more memory than there is"),
        (b"no array", "'entity' must be an array"),
    ],
)
def test_damaged_arrays_are_refused(tmp_path, content, message):
    path = _write(tmp_path / "e.npz", entity=None)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("entity.npy", content)
    with pytest.raises(ValueError, match=rf"^{path}: {message}"):
        read_embeddings(path)


@given(place=st.integers(0, 5000), change=st.integers(1, 255))
def test_a_changed_byte_is_refused_or_harmless(tmp_path_factory, place, change):
    content = io.BytesIO()
    np.savez(content, entity=ENTITY, relation=RELATION, **{k: np.array(v) for k, v in LABELS.items()})
    data = bytearray(content.getvalue())
    data[place % len(data)] ^= change
    path = tmp_path_factory.mktemp("changed") / "e.npz"
    path.write_bytes(data)
    refusal = f"{path}: "
    try:
        read_embeddings(path)
    except ValueError as error:
        refusal = str(error)
    assert refusal.startswith(f"{path}: ")


def test_numbers_that_numpy_has_not_are_refused(tmp_path):
    path = _write(tmp_path / "e.safetensors")
    data = path.read_bytes()
    # A type of one byte a number, and so of four times as many columns.
    length = int.from_bytes(data[:8], "little")
    header = data[8 : 8 + length].replace(b'"F32","shape":[3,4]', b'"F8_E4M3","shape":[3,16]')
    assert b"F8_E4M3" in header
    path.write_bytes(len(header).to_bytes(8, "little") + header + data[8 + length :])
    with pytest.raises(ValueError, match=rf"^{path}: must be a .safetensors file of plain arrays"):
        read_embeddings(path)


def test_labels_nested_deep_are_refused(tmp_path):
    path = tmp_path / "e.safetensors"
    labels = {"entity_labels": "[" * 100_000, "relation_labels": "[]"}
    save_file({"entity": ENTITY, "relation": RELATION}, path, labels)
    with pytest.raises(ValueError, match=rf"^{path}: 'entity_labels' must be a JSON list that is not nested"):
        read_embeddings(path)


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("transe", {"entity_bias": ENTITY[:2, 0].copy()}, "transe has no array 'entity_bias'"),
        ("transe", {"entity_": ENTITY[0]}, "transe has no array 'entity_'"),
        ("transe", {"relations": RELATION}, "transe has no array 'relations'"),
        ("transe", {"relation_norm": RELATION[0]}, "transe has no array 'relation_norm'"),
        ("transe", {"entity": ENTITY[:, :0]}, r"'entity' must be a matrix of at least one column, got .*0\)"),
        ("tucker", {"relation": RELATION[:, :0]}, "'relation' must be a matrix of at least one column"),
        ("conve", {"relation_inverse": RELATION}, "`height` must divide `dim` .* got 20 for 4"),
        ("conve", {}, "`reciprocal` must be True for conve"),
    ],
)
def test_the_file_is_named_where_it_decides(tmp_path, name, changed, message):
    path = _write(tmp_path / "e.npz", **changed)
    with pytest.raises(ValueError, match=rf"^{path}: {message}"):
        import_embeddings(path, GRAPH, name)


def test_the_file_is_not_named_where_an_option_is_wrong(tmp_path):
    with pytest.raises(ValueError, match=r"^`dim` must be a whole number of at least 1, got 0"):
        import_embeddings(_write(tmp_path / "e.npz"), GRAPH, "transe", dim=0)


def test_what_the_file_says_of_its_model_holds(tmp_path):
    built = model("transe", dim=4, norm=2)
    begun = Trained(built, *built.init(jax.random.key(0), 3, 2))
    path = tmp_path / "e.npz"
    write_embeddings(path, begun, entities=GRAPH.entities, relations=GRAPH.relations)
    assert import_embeddings(path, GRAPH, "transe", norm=2).model is built
    with pytest.raises(ValueError, match="must be of the model distmult, got transe"):
        import_embeddings(path, GRAPH, "distmult")
    with pytest.warns(UserWarning, match="has norm 2, but 1 was given and is used"):
        assert import_embeddings(path, GRAPH, "transe", norm=1).model is model("transe", dim=4)
    for text in ("[]", "{", "[" * 100_000):
        with np.load(path) as held:
            np.savez(tmp_path / "bad.npz", **{**held, "options": np.array(text)})
        with pytest.raises(ValueError, match="'options' must be a JSON object"):
            import_embeddings(tmp_path / "bad.npz", GRAPH, "transe")


def test_labels_to_write_are_counted(tmp_path):
    built = model("distmult", dim=2)
    begun = Trained(built, *built.init(jax.random.key(0), 3, 2))
    with pytest.raises(ValueError, match="`relations` must be 2 labels, one per row, got 4"):
        write_embeddings(tmp_path / "e.npz", begun, entities="abc", relations="rstu")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["nations", "kinships"])
def test_published_embeddings_score_by_their_formula(owkg_data, name):
    graph = read_graph(owkg_data / name)
    path = owkg_data / "checkpoints" / f"{name}_transe.npz"
    found = import_embeddings(path, graph, "transe", norm=1)
    with np.load(path, allow_pickle=False) as file:
        row = {label: file["entity"][i].astype(np.float64) for i, label in enumerate(file["entity_labels"])}
        both = [
            {label: file[table][i].astype(np.float64) for i, label in enumerate(file["relation_labels"])}
            for table in ("relation", "relation_inverse")
        ]
    triples = graph.splits["test"][:20]
    labels = [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in triples]
    tails = [-np.abs(row[h] + both[0][r] - row[t]).sum() for h, r, t in labels]
    heads = [-np.abs(row[t] + both[1][r] - row[h]).sum() for h, r, t in labels]
    np.testing.assert_allclose(score(found, *triples.T), tails, rtol=1e-5)
    every = score_all(found, triples[:, 2], triples[:, 1], "head")
    np.testing.assert_allclose(every[np.arange(20), triples[:, 0]], heads, rtol=1e-5)


def test_an_encoder_needs_train(tmp_path):
    built = model("rgcn", dim=4)
    begun = Trained(built, *built.begun(jax.random.key(0), 3, 2, np.array([[0, 0, 1]], np.int32)))
    write_embeddings(tmp_path / "e.npz", begun, entities=GRAPH.entities, relations=GRAPH.relations)
    assert not [name for name in read_embeddings(tmp_path / "e.npz").arrays if name.startswith("edge")]
    with pytest.raises(
        ValueError, match="`graph` must have triples in train, which rgcn needs for its scores"
    ):
        import_embeddings(tmp_path / "e.npz", GRAPH, "rgcn")

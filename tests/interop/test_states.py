"""States of other libraries: their scores, and so their ranks."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import owkg
from owkg.interop import LIBRARIES, embeddings_of_state, pykeen, ranks_of_state, read_state
from owkg.kg import KnowledgeGraph
from owkg.models import MODELS, import_embeddings, score_all

RNG = np.random.default_rng(0)
N, R, D = 30, 4, 6
FACTS = np.unique(RNG.integers(0, [N, R, N], (200, 3)), axis=0).astype(np.int32)
RNG.shuffle(FACTS)
GRAPH = KnowledgeGraph(
    tuple(f"e{i}" for i in range(N)),
    tuple(f"r{i}" for i in range(R)),
    {"train": FACTS[:150], "test": FACTS[150:]},
)
TEST = FACTS[150:]


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def complexes(*shape):
    return normal(*shape) + 1j * normal(*shape)


def tails(score):
    """Ranks of the tails of the test facts, of a function of entities h, relation r and all entities."""
    return owkg.rank(np.stack([score(h, r) for h, r, _ in TEST]), GRAPH).frame["optimistic"].to_list()


def found(state, library, model, **options):
    frame = ranks_of_state(state, library, model, GRAPH, **options).frame
    return frame.filter(side="tail")["optimistic"].to_list()


# As the libraries have it: DGL-KE's TransE is TransE_l2, PyKEEN's is a setting.
TRANSE_NORMS = {"pykeen": 1, "pyg": 1, "torchkge": 2, "openke": 1, "libkge": 1, "dglke": 2}


def test_the_norm_of_a_pykeen_state_is_to_be_given():
    state = dict(zip(LIBRARIES["pykeen"], (normal(N, D), normal(R, D)), strict=True))
    with pytest.raises(ValueError, match="`norm` must be given: a state of pykeen's TransE does not hold it"):
        found(state, "pykeen", "transe")


def test_real_models_of_every_library():
    entity, relation = normal(N, D), normal(R, D)
    unit = lambda x, p: x / np.linalg.norm(x, p, axis=-1, keepdims=True)  # noqa: E731
    for name in MODELS["transe"].peers:
        arrays = LIBRARIES[name]
        state = dict(zip(arrays, (entity, relation), strict=True))
        assert found(state, name, "distmult") == tails(lambda h, r: (entity[h] * relation[r]) @ entity.T), (
            name
        )
        p = TRANSE_NORMS[name]
        e, w = entity, relation
        if name == "pyg":
            e = unit(entity, p)
        if name == "openke":
            e, w = unit(entity, 2), unit(relation, 2)
        e, w = (x.astype(np.float64) for x in (e, w))
        given = {"norm": p} if name == "pykeen" else {}
        assert found(state, name, "transe", **given) == tails(
            lambda h, r, e=e, w=w, p=p: -np.linalg.norm(e[h] + w[r] - e, p, axis=1)
        ), name
        behind = {f"module.{key}": array for key, array in state.items()}
        assert found(behind, name, "transe", norm=1 if p == 2 else 2) is not None


def stored(library, model, entity, relation):
    """A state as the library stores complex numbers; relations may be real."""
    peer, rows = MODELS[model].peers[library], []
    names = peer.arrays or LIBRARIES[library]
    for array in (entity, relation):
        if not np.iscomplexobj(array):
            rows.append(array)
        elif len(names) > 2:
            rows += [array.real, array.imag]
        elif peer.layout == "real-imaginary":
            rows.append(np.concatenate([array.real, array.imag], 1))
        else:
            rows.append(np.stack([array.real, array.imag], -1).reshape(len(array), -1))
    return dict(zip(names, rows, strict=True))


@pytest.mark.parametrize("library", MODELS["complex"].peers)
def test_complex(library):
    entity, relation = complexes(N, D), complexes(R, D)
    expected = tails(lambda h, r: ((entity[h] * relation[r]) @ entity.conj().T).real)
    assert found(stored(library, "complex", entity, relation), library, "complex") == expected


@pytest.mark.parametrize("library", MODELS["rotate"].peers)
def test_rotate(library):
    peer, entity = MODELS["rotate"].peers[library], complexes(N, D)
    phase = RNG.uniform(-1, 1, (R, D)).astype(np.float32)

    def score(h, r):
        apart = entity[h] * np.exp(1j * phase[r]) - entity
        return -np.abs(apart).sum(1) if peer.norm == 1 else -np.linalg.norm(apart, axis=1)

    # "scaled": radians when times pi dim / (margin + 2).
    relations = {"complex": np.exp(1j * phase), "phases": phase, "scaled": phase * ((9 + 2) / D / np.pi)}
    state = stored(library, "rotate", entity, relations[peer.relation_layout])
    options = {"margin": 9.0} if peer.relation_layout == "scaled" else {}
    assert found(state, library, "rotate", **options) == tails(score)


def test_rescal():
    entity, matrix = normal(N, D), normal(R, D, D)
    expected = tails(lambda h, r: entity[h] @ matrix[r] @ entity.T)
    assert (
        found({"ent_emb.weight": entity, "rel_mat.weight": matrix.reshape(R, -1)}, "torchkge", "rescal")
        == expected
    )
    state = {"ent_embeddings.weight": entity, "rel_matrices.weight": matrix.reshape(R, -1)}
    assert found(state, "openke", "rescal") is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"library": "keras"}, "`library` must be one of pykeen, pyg, torchkge"),
        (
            {"model": "conve"},
            "`model` must be one of transe, distmult, complex, rotate, which owkg reads from pyg",
        ),
        (
            {"library": "libkge", "model": "transh"},
            "`model` must be another one, as the transh of libkge scores by the distance",
        ),
        (
            {"library": "hake", "model": "hake"},
            "`margin` must be given: the phases of hake's HAKE are scaled by it",
        ),
        (
            {
                "library": "kbc",
                "model": "cp",
                "state": {f"{name}.weight": normal(i, 2) for i, name in enumerate(("lhs", "rhs", "rel"), 4)},
            },
            r"`state` must hold arrays that fit together, got \(4, 2\), \(5, 2\), \(6, 2\)",
        ),
        (
            {"state": {"a": np.ones((2, 2))}},
            "`state` must hold one array 'node_emb.weight' \\(pyg, transe\\), got a",
        ),
        ({"entities": ["a"]}, "`entities` must have a label for each of 30 rows, got 1"),
    ],
)
def test_bad_states(change, message):
    given = {
        "state": {"node_emb.weight": normal(N, D), "rel_emb.weight": normal(R, D)},
        "library": "pyg",
        "model": "transe",
        "entities": GRAPH.entities,
        "relations": GRAPH.relations,
    } | change
    with pytest.raises(ValueError, match=message):
        embeddings_of_state(given.pop("state"), given.pop("library"), given.pop("model"), **given)


OF_AUTHORS = {
    **dict.fromkeys(("mure", "rote", "refe", "atte", "roth", "refh", "atth"), "kgemb"),
    "hake": "hake",
    "mode": "hake",
    "bique": "kbc",
}


@pytest.mark.skipif("OWKG_DATA" not in os.environ, reason="needs OWKG_DATA")
@pytest.mark.parametrize("model", OF_AUTHORS)
def test_models_of_authors(model):
    """Scores of the authors' code of tails, then of heads by inverse relations, which are the second half."""
    with np.load(Path(os.environ["OWKG_DATA"]) / "model_fixtures" / f"{model}.npz") as file:
        held = dict(file)
    library, peer = OF_AUTHORS[model], MODELS[model].peers[OF_AUTHORS[model]]
    plain = {"entity_embedding": "entity", "relation_embedding": "relation"}
    plain |= {"embeddings.0.weight": "entity", "embeddings.1.weight": "relation"}
    names = {name: plain.get(name, name.replace(".", "_")) for name in peer.arrays or LIBRARIES[library]}
    state = {f"model.{name}": held[key] for name, key in names.items()}
    labels = {"entities": [f"e{i}" for i in range(7)], "relations": [f"r{i}" for i in range(3)]}
    options = {"margin": 6.0} if library == "hake" else {}
    found = embeddings_of_state(state, library, model, **labels, **options)
    # Rows in another order, as a file may have them.
    other = KnowledgeGraph(tuple(labels["entities"][::-1]), tuple(labels["relations"][::-1]), {})
    trained = import_embeddings(found.embeddings, other, model, **found.options)
    pairs = [x.ravel() for x in np.meshgrid(np.arange(7), np.arange(3), indexing="ij")]
    sides = ("tail", "head")[: 1 + trained.model.config.reciprocal]
    scores = [
        np.asarray(score_all(trained, *pairs, side)).reshape(7, 3, 7)[::-1, ::-1, ::-1] for side in sides
    ]
    np.testing.assert_allclose(np.concatenate(scores, 1), held["scores"], rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(("library", "model"), [("libkge", "cp"), ("kbc", "cp"), ("libkge", "simple")])
def test_halves_of_entities(library, model):
    """LibKGE's halves of rows, and the arrays of Lacroix et al. 2018."""
    head, tail, relation, inverse = normal(N, D), normal(N, D), normal(R, D), normal(R, D)
    rows = np.hstack([head, tail]), np.concatenate([relation, inverse])
    if model == "simple":
        rows = rows[0], np.hstack([relation, inverse])
    state = dict(zip(LIBRARIES[library], rows, strict=True))
    if library == "kbc":
        state = {"lhs.weight": head, "rhs.weight": tail, "rel.weight": rows[1]}

    def score(h, r):
        found = (head[h] * relation[r]) @ tail.T
        return found if model == "cp" else (found + (tail[h] * inverse[r]) @ head.T) / 2

    assert found(state, library, model) == tails(score)


def test_bad_files(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(b"no")
    with pytest.raises(ValueError, match=r"a\.safetensors: must be a \.safetensors file"):
        read_state(tmp_path / "a.safetensors")
    with pytest.raises(FileNotFoundError):
        read_state(tmp_path / "b.pt")


def test_file_to_ranks(tmp_path):
    from safetensors.numpy import save_file

    state = {"node_emb.weight": normal(N, D), "rel_emb.weight": normal(R, D)}
    save_file(state, tmp_path / "pyg.safetensors")
    assert found(tmp_path / "pyg.safetensors", "pyg", "distmult") == found(state, "pyg", "distmult")


def test_a_folder_is_no_state(tmp_path):
    with pytest.raises(ValueError, match=r"must be a file, such as model\.pt"):
        read_state(tmp_path)


def test_a_torch_whose_loader_may_run_code_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "model.pt").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.5.1+cpu"))
    with pytest.raises(ValueError, match=r"model\.pt: needs torch 2\.6 or newer, .* loader of 2\.5\.1"):
        read_state(tmp_path / "model.pt")


@pytest.mark.parametrize("kind", ["entities", "relations"])
def test_a_pykeen_model_of_other_sizes_is_refused(kind):
    model = SimpleNamespace(predict_t=None, num_entities=N, num_real_relations=R)
    setattr(model, {"entities": "num_entities", "relations": "num_real_relations"}[kind], 3)
    triples = SimpleNamespace(detach=lambda: triples, cpu=lambda: triples, numpy=lambda: FACTS)
    factory = SimpleNamespace(mapped_triples=triples, num_entities=N, num_relations=R)
    here = {"entities": N, "relations": R}[kind]
    with pytest.raises(
        ValueError, match=f"`factory` must be of the model: it has {here} {kind}, the model 3"
    ):
        pykeen.ranks(model, factory, known=[])


@pytest.mark.parametrize("norm", [1.5, 3, float("inf")])
def test_a_pykeen_norm_that_is_not_scored_here_is_refused(norm):
    model = type("TransE", (), {"interaction": SimpleNamespace(p=norm)})()
    with pytest.raises(ValueError, match=f"`model` must have a scoring_fct_norm of 1 or 2, got {norm:g}"):
        pykeen.embeddings(model, None)


def test_double_precision_is_of_the_scores():
    """TransE of PyG: float32 embeddings at length 1, distances added up in float64."""
    state = dict(zip(LIBRARIES["pyg"], (normal(N, D), normal(R, D)), strict=True))
    table = ranks_of_state(state, "pyg", "transe", GRAPH, norm=1)
    entity, relation = state["node_emb.weight"], state["rel_emb.weight"].astype(np.float64)
    entity = (entity / np.linalg.norm(entity, 1, axis=1, keepdims=True)).astype(np.float64)
    score = lambda h, r: -np.abs(entity[h] + relation[r] - entity).sum(1)  # noqa: E731
    assert table.frame.filter(side="tail")["optimistic"].to_list() == tails(score)
    assert table.about["precision"] == "float64"
    labels = {"entities": GRAPH.entities, "relations": GRAPH.relations}
    found = embeddings_of_state(state, "pyg", "transe", **labels, norm=1)
    assert found.ranks(GRAPH).about["precision"] == "float64"
    assert found.ranks(GRAPH, precision="float32").about["precision"] == "float32"


@pytest.mark.parametrize("library", ["libkge", "pyg", "dglke"])
@pytest.mark.parametrize("model", ["distmult", "complex", "transe"])
def test_inverse_relations_in_the_second_half(library, model):
    """LibKGE's reciprocal_relations_model, whose state holds the embedders of the wrapped model twice."""
    peer = MODELS[model].peers.get(library)
    if peer is not None and peer.arrays:
        pytest.skip("real and imaginary parts apart")
    entity, relation = normal(N, D), normal(2 * R, D)
    state = dict(zip(LIBRARIES[library], (entity, relation), strict=True))
    if library == "libkge":
        state |= {f"_base_model.{name}": array for name, array in state.items()}
    labels = {"entities": GRAPH.entities, "relations": GRAPH.relations}
    options = {"norm": 2} if model == "transe" else {}
    if library == "libkge":
        ranked = embeddings_of_state(state, library, model, **labels, **options)
    else:
        with pytest.warns(UserWarning, match="two rows for each relation"):
            ranked = embeddings_of_state(state, library, model, **labels, **options)
    arrays = ranked.embeddings.arrays
    np.testing.assert_array_equal(arrays["relation_inverse"].shape, arrays["relation"].shape)
    heads = ranked.ranks(GRAPH, split="test").frame.filter(side="head")["optimistic"].to_list()
    turned = dict(state) | {LIBRARIES[library][1]: relation[R:]}
    turned = {name: array for name, array in turned.items() if not name.startswith("_base")}
    other = embeddings_of_state(turned, library, model, **labels, **options)
    graph = GRAPH._replace(splits={name: facts[:, ::-1].copy() for name, facts in GRAPH.splits.items()})
    tails = other.ranks(graph, split="test").frame.filter(side="tail")["optimistic"].to_list()
    assert heads == tails


def test_different_arrays_of_one_name_are_refused():
    name, relation = LIBRARIES["libkge"]
    state = {name: normal(N, D), f"_base_model.{name}": normal(N, D), relation: normal(R, D)}
    with pytest.raises(ValueError, match="must hold one array"):
        found(state, "libkge", "distmult")

"""A model of one's own: one file, registered, then known wherever models are named."""

import json
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

from owkg import kg, plugins, train
from owkg.cli.main import main
from owkg.evaluation import ranks
from owkg.models import MODELS, Kind, Peer, model, register_model
from owkg.ranks import read_ranks

FILE = '''
"""Shifted: relations are translations, by a dot product."""

from dataclasses import dataclass

import jax
from owkg.models import Kind, Model, initial, options, register_model
from owkg.models.model import entity_rows, stateless, sided
from owkg.models.similarity import DOT


@dataclass(frozen=True)
class Shifted:
    dim: int = 8
    reciprocal: bool = False

    def __post_init__(self):
        options.whole_numbers(self, "dim")
        options.flags(self, "reciprocal")


def shifted_model(config):
    def init(key, num_entities, num_relations):
        shapes = (num_entities, config.dim), (num_relations, config.dim)
        return initial.drawn_embeddings(jax.random.split(key), initial.xavier_normal, config, *shapes), {}

    forms = stateless(lambda h, r: h + r), stateless(lambda t, r: t - r)
    return Model("shifted", config, init, sided(*forms, reciprocal=config.reciprocal), entity_rows, DOT)


KIND = Kind("shifted", Shifted, shifted_model, "(h + r) t", "this file", training={"batch_size": 20})
register_model(KIND)
'''


@pytest.fixture
def known(tmp_path, monkeypatch):
    """As if this process began with OWKG_PLUGINS=shifted_; nothing of it stays."""
    (tmp_path / "shifted_.py").write_text(FILE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("OWKG_PLUGINS", " shifted_ ,")
    monkeypatch.setattr(plugins, "_waiting", None)
    monkeypatch.setattr(MODELS, "held", dict(MODELS.held))
    yield
    sys.modules.pop("shifted_", None)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    triples = np.unique(rng.integers(0, [9, 2, 9], (70, 3)), axis=0).astype(np.int32)
    rng.shuffle(triples)
    splits = {"train": triples[:40], "valid": triples[40:48], "test": triples[48:]}
    for split, part in splits.items():
        lines = (f"e{h}\tr{r}\te{t}\n" for h, r, t in part)
        (tmp_path / "graph").mkdir(exist_ok=True)
        (tmp_path / "graph" / f"{split}.txt").write_text("".join(lines))
    return tmp_path / "graph"


def test_from_the_file_to_ranks(known, folder, tmp_path, capsys, monkeypatch):
    graph = kg.read_graph(folder)
    config = train.training("Shifted", epochs=2, dim=4, checkpoint_every=1)
    assert (config.batch_size, config.built()) == (20, model("shifted", dim=4))

    def cut(done, *_):
        if done > 4:  # in the second epoch
            raise RuntimeError

    whole = train.train(graph, config, tmp_path / "run", graph_folder=folder)
    with pytest.raises(RuntimeError):
        train.train(graph, config, tmp_path / "cut", chunk_steps=1, on_progress=cut)
    resumed = train.train(graph, config, tmp_path / "cut", resume=True)
    for name, array in whole.trained.params.items():
        np.testing.assert_array_equal(resumed.trained.params[name], array)
    out = tmp_path / "ranks.parquet"
    assert main(["rank", str(tmp_path / "run"), "--out", str(out)]) == 0
    assert read_ranks(out).frame.equals(ranks(whole.trained, graph))
    capsys.readouterr()
    assert main(["models", "--format", "json"]) == 0
    own = json.loads(capsys.readouterr().out)["models"][-1]
    assert (own["name"], own["equation"], own["training"]) == ("shifted", "(h + r) t", {"batch_size": 20})
    # The same run, where nobody imports the file.
    monkeypatch.setattr(MODELS, "held", {name: MODELS.held[name] for name in ("complex", "transe")})
    message = "model 'shifted' is unknown; to import a model of your own, set OWKG_PLUGINS=module"
    with pytest.raises(ValueError, match=message):
        train.load_run(tmp_path / "run")


def test_a_module_that_cannot_be_imported_is_named(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "broken_.py").write_text("raise RuntimeError('no\\nmore')")
    for name, words in (("broken_", "RuntimeError: no$"), ("absent_", "No module named 'absent_' .is its")):
        monkeypatch.setenv("OWKG_PLUGINS", name)
        monkeypatch.setattr(plugins, "_waiting", None)
        for _ in range(2):
            with pytest.raises(ValueError, match=f"^OWKG_PLUGINS: the module '{name}' cannot .*{words}"):
                model("complex")


@dataclass(frozen=True)
class Bare:
    dim: int = 8


@dataclass(frozen=True)
class Needy:
    rank: int
    dim: int = 8
    reciprocal: bool = False


@dataclass
class Loose:
    dim: int = 8
    reciprocal: bool = False


OTHER = replace(MODELS["complex"], name="other")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("complex", "`kind` must be an `owkg.models.Kind`, got 'complex'"),
        (
            replace(OTHER, name="complex"),
            "`build` must return the Model|`name` must not be the name of another",
        ),
        (replace(OTHER, name="Other"), "`name` must be lower-case letters, digits and _, got 'Other'"),
        (replace(OTHER, equation=""), "`equation` must be text, got ''"),
        (replace(OTHER, columns=0), "`columns` must be a whole number of at least 1"),
        (replace(OTHER, config=Bare), "`config` must have the option reciprocal, got dim"),
        (replace(OTHER, config=Needy), "`config` must have a default for each option; rank has none"),
        (replace(OTHER, config=Loose), "`config` must be a frozen dataclass of options, got"),
        (OTHER, "`build` must return the Model 'other' with its options, got"),
        (
            replace(MODELS["transe"], columns=2),
            r"`build` must return a model whose `entity` has shape \(5, 256",
        ),
    ],
)
def test_kinds_that_are_not_whole(kind, message):
    before = dict(MODELS.held)
    with pytest.raises(ValueError, match=message):
        register_model(kind)
    assert MODELS.held == before


def test_the_kinds_of_owkg_are_whole():
    for kind in MODELS.values():
        register_model(kind)
        assert isinstance(kind, Kind)
        assert all(isinstance(peer, Peer) for peer in kind.peers.values())

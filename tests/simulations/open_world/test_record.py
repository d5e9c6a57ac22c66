"""Ranks along the training: as those of the parameters, whole or not there, the same after every cut."""

from importlib import import_module

import jax
import numpy as np
import polars as pl
import pytest

from owkg import kg
from owkg.evaluation import rank_arrays
from owkg.train import changed, load_run, training
from simulations.open_world.record import Record, is_recorded, read_record, record, some_of

recording = import_module("simulations.open_world.record")
LOOKS = (1, 3, 4, 9, 12)
CONFIG = training(
    "distmult",
    dim=4,
    valid_every=0,
    steps=12,
    batch_size=20,
    training_loop="1vsall",
    learning_rate=0.5,
    seed=3,
)


def equal(a, b):
    return all(x.tobytes() == y.tobytes() and x.dtype == y.dtype for x, y in zip(a, b, strict=True))


def test_the_last_look_ranks_as_the_parameters_do(world, tmp_path):
    found = record(world, CONFIG, LOOKS, tmp_path / "run")
    assert found.step.tolist() == list(LOOKS)
    assert found.score.shape == (len(LOOKS), len(world.triples))
    run = load_run(tmp_path / "run" / "run")
    own = rank_arrays(run.trained, world.triples, "tail", known=world.known)
    np.testing.assert_array_equal(found.optimistic[-1], own.optimistic)
    np.testing.assert_array_equal(found.pessimistic[-1], own.pessimistic)
    head, relation, tail = (jnp_ids for jnp_ids in world.triples.T)
    e, r = (np.asarray(run.trained.params[name]) for name in ("entity", "relation"))
    np.testing.assert_allclose(found.score[-1], (e[head] * r[relation] * e[tail]).sum(1), rtol=1e-4)
    # The first look differs from the last: something was learned in between.
    assert (found.score[0] != found.score[-1]).any()


def test_programs_of_a_run_are_let_go(world, tmp_path):
    """Each takes memory maps of the process: a study of hundreds of runs would use them up."""
    counted = []
    record(
        world,
        CONFIG,
        LOOKS,
        tmp_path / "run",
        on_progress=lambda *_: counted.append(len(jax.devices()[0].client.live_executables())),
    )
    assert len(jax.devices()[0].client.live_executables()) < max(counted) / 2


def test_a_whole_record_is_read_and_no_other_taken_for_it(world, tmp_path):
    first = record(world, CONFIG, LOOKS, tmp_path / "run")
    before = sorted(p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*"))
    assert equal(record(world, CONFIG, LOOKS, tmp_path / "run"), first)
    assert sorted(p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*")) == before
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["ranks.parquet", "run"]
    with pytest.raises(ValueError, match="belongs to another training"):
        record(world, changed(CONFIG, seed=4), LOOKS, tmp_path / "run")
    fewer = world._replace(triples=world.triples[::-1])
    with pytest.raises(ValueError, match="belongs to another full test"):
        is_recorded(fewer, CONFIG, tmp_path / "run")
    graph = kg.KnowledgeGraph(
        world.graph.entities, world.graph.relations, {"train": world.graph.splits["train"][1:]}
    )
    with pytest.raises(ValueError, match="belongs to another train"):
        is_recorded(world._replace(graph=graph), CONFIG, tmp_path / "run")
    with pytest.raises(ValueError, match="has not finished"):
        read_record(world, CONFIG, tmp_path / "other")
    with pytest.raises(ValueError, match="at other steps"):
        record(world, CONFIG, LOOKS[1:], tmp_path / "run")


class CutError(Exception):
    pass


@pytest.mark.parametrize("cut", ["before the first checkpoint", "after one", "while the parts are joined"])
def test_cut_short_and_called_again_it_ends_the_same(world, tmp_path, monkeypatch, cut):
    config = CONFIG if cut == "before the first checkpoint" else changed(CONFIG, checkpoint_every=1)
    whole = record(world, config, LOOKS, tmp_path / "whole")
    ranked = recording.rank_arrays
    calls = []

    def cut_short(*args, **kwargs):
        calls.append(1)
        if len(calls) == (2 if cut == "before the first checkpoint" else 4):
            raise CutError
        return ranked(*args, **kwargs)

    with monkeypatch.context() as patch:
        if cut == "while the parts are joined":
            patch.setattr(recording.pl, "concat", lambda _: (_ for _ in ()).throw(CutError))
        else:
            patch.setattr(recording, "rank_arrays", cut_short)
        with pytest.raises(CutError):
            record(world, config, LOOKS, tmp_path / "cut")
    assert (tmp_path / "cut" / "run").is_dir() == (cut != "before the first checkpoint")
    assert not is_recorded(world, config, tmp_path / "cut")
    assert equal(record(world, config, LOOKS, tmp_path / "cut"), whole)
    assert sorted(p.name for p in (tmp_path / "cut").iterdir()) == ["ranks.parquet", "run"]


def test_litter_of_a_cut_after_the_end_goes(world, tmp_path):
    first = record(world, CONFIG, LOOKS, tmp_path / "run")
    parts = tmp_path / "run" / "parts"
    parts.mkdir()
    pl.DataFrame({"step": [1]}).write_parquet(parts / "000000001.parquet")
    assert equal(record(world, CONFIG, LOOKS, tmp_path / "run"), first)
    assert not parts.exists()


def test_a_damaged_record_is_named(world, tmp_path):
    record(world, CONFIG, LOOKS, tmp_path / "run")
    path = tmp_path / "run" / "ranks.parquet"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"ranks\.parquet: must be Parquet"):
        record(world, CONFIG, LOOKS, tmp_path / "run")


def test_a_record_of_other_numbers_is_named(world, tmp_path):
    record(world, CONFIG, LOOKS, tmp_path / "run")
    path = tmp_path / "run" / "ranks.parquet"
    said = pl.read_parquet_metadata(path)
    table = pl.read_parquet(path)
    own = {name: text for name, text in said.items() if name != "ARROW:schema"}
    table.with_columns(pl.col("score") + 1).write_parquet(path, metadata=own)
    with pytest.raises(ValueError, match=r"ranks\.parquet: was changed after it was written"):
        read_record(world, CONFIG, tmp_path / "run")
    table.write_parquet(path, metadata=own)
    read_record(world, CONFIG, tmp_path / "run")


def test_some_checkpoints_keep_the_ends():
    step = np.arange(10)
    rows = np.tile(step[:, None], 2)
    one = Record(step, rows, rows, rows.astype(np.float32))
    assert some_of(one, 10) is one
    few = some_of(one, 4)
    assert few.step.tolist() == [0, 3, 6, 9]
    assert few.score[:, 0].tolist() == few.optimistic[:, 1].tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize("steps", [(), (0, 3), (3, 13)])
def test_looks_that_cannot_be(world, tmp_path, steps):
    with pytest.raises(ValueError, match=r"`(steps|watched)` must be"):
        record(world, CONFIG, steps, tmp_path / "run")

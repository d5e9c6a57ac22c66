"""Many runs: each once, in their folders, resumed; too little memory and strangers' runs stop it first."""

import signal

import pytest

from owkg.train.workers import Where
from simulations.open_world import experiment, needs
from simulations.open_world.experiment import recorded_elsewhere, records, require_memory
from simulations.open_world.presets import Configuration

SETTINGS = {"dim": 4, "batch_size": 20, "training_loop": "1vsall", "n3": 0.0}
TWO = (
    Configuration("Dist 4", "distmult", SETTINGS, (2, 5)),
    Configuration("Com 4", "complex", SETTINGS, (1, 3, 6)),
)


def test_every_run_once(world, tmp_path):
    told, done = [], []

    def on_progress(one, world, *steps):
        told.append((one.label, *steps[:2]))

    found = records([world], TWO, tmp_path, on_progress=on_progress, on_done=done.append)
    assert [one.step.tolist() for one in found[0]] == [[2, 5], [1, 3, 6]]
    assert [(d.number, d.total, d.configuration.label) for d in done] == [(1, 2, "Dist 4"), (2, 2, "Com 4")]
    assert told[-1] == ("Com 4", 6, 6)
    assert sorted(p.name for p in (tmp_path / world.name).iterdir()) == ["com-4", "dist-4"]
    done.clear()
    again = records([world], TWO, tmp_path, on_done=done.append)
    assert [d.seconds for d in done] == [None, None]
    for a, b in zip(found[0], again[0], strict=True):
        assert all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def test_runs_at_once_are_those_of_one_process(world, worlds_folder, tmp_path):
    here, there, done = tmp_path / "here", tmp_path / "there", []
    expected = records([world], TWO, here)[0]
    of = (TWO, there, Where(workers=2), worlds_folder)
    recorded_elsewhere([world], *of, on_done=done.append)
    assert {(d.number, d.total, d.configuration.label) for d in done} == {(1, 2, "Dist 4"), (2, 2, "Com 4")}
    done.clear()
    found = records([world], TWO, there, on_done=done.append)[0]
    assert [d.seconds for d in done] == [None, None]
    for a, b in zip(expected, found, strict=True):
        assert all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))
    # Nothing is left to do: no worker is started.
    recorded_elsewhere([world], TWO, there, Where(scheduler="nowhere"), worlds_folder)


def test_training_can_be_cut_short(world, tmp_path):
    found = records([world], TWO, tmp_path, max_steps=3)
    assert [one.step.tolist() for one in found[0]] == [[2], [1, 3]]
    found = records([world], TWO, tmp_path / "few", most_checkpoints=2)
    assert [one.step.tolist() for one in found[0]] == [[2, 5], [1, 6]]


def test_a_run_of_another_seed_stops_it_before_any_training(world, tmp_path):
    records([world], TWO[1:], tmp_path)
    with pytest.raises(ValueError, match="belongs to another training"):
        records([world], TWO, tmp_path, seed=1)
    assert not (tmp_path / world.name / "dist-4").exists()
    (tmp_path / world.name / "com-4" / "ranks.parquet").unlink()
    with pytest.raises(ValueError, match="run: belongs to another training"):
        records([world], TWO, tmp_path, seed=1)
    assert not (tmp_path / world.name / "dist-4").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"configurations": ()}, "`configurations` must be at least one, each in its own"),
        ({"configurations": (TWO[0], TWO[0])}, "`configurations` must be at least one, each in its own"),
        ({"worlds": []}, "`worlds` must be at least one, each in its own"),
        ({"max_steps": 1}, "`max_steps` must reach the first look of Dist 4, 2, got 1"),
        ({"most_checkpoints": 1}, "`most_checkpoints` must be"),
        ({"seed": -1}, "`seed` must be"),
    ],
)
def test_what_is_wrong_is_said_before_any_training(world, tmp_path, change, message):
    given = {"worlds": [world], "configurations": TWO, "folder": tmp_path / "runs"}
    with pytest.raises(ValueError, match=message):
        records(**(given | change))
    assert not (tmp_path / "runs").exists()


def test_a_signal_between_runs_ends_it_after_the_run(world, tmp_path):
    took = []
    before = signal.signal(signal.SIGTERM, lambda number, _: took.append(number))
    try:
        with pytest.raises(KeyboardInterrupt):
            records([world], TWO, tmp_path, on_done=lambda _: signal.raise_signal(signal.SIGTERM))
        assert signal.getsignal(signal.SIGTERM) is not before
    finally:
        signal.signal(signal.SIGTERM, before)
    assert took == [signal.SIGTERM]
    assert (tmp_path / world.name / "dist-4" / "ranks.parquet").is_file()
    assert not (tmp_path / world.name / "com-4").exists()


def test_memory_of_a_run(world, monkeypatch):
    most, free = require_memory([world], TWO)
    assert most > 2**28
    assert free is None or free > 0
    large = Configuration("L", "complex", SETTINGS | {"dim": 400_000}, (1,)).training()
    # Parameters, their gradients, and the sums of their squares.
    assert needs.training_needs(world, large).bytes > 3 * 2 * 400_000 * 4 * (9 + 4)
    monkeypatch.setattr(experiment, "training_needs", lambda *_: needs.Needs(2**31, 2**30))
    with pytest.raises(
        ValueError, match=r"Dist 4 on d1\.0 takes about 2\.0 GiB of memory, and 1\.0 GiB are free"
    ):
        require_memory([world], TWO)


def test_memory_of_all_checkpoints_read_together(world, monkeypatch):
    # Two ranks and a score, before and after answers are permuted anew.
    more = needs.reading_needs(world, 1000).bytes - needs.reading_needs(world, 0).bytes
    assert more > 1000 * len(world.triples) * 2 * 24
    asked = []
    monkeypatch.setattr(
        experiment, "reading_needs", lambda _, checkpoints: asked.append(checkpoints) or needs.Needs(1, None)
    )
    for given in ({}, {"max_steps": 3}, {"most_checkpoints": 2}):
        require_memory([world], TWO, **given)
    assert asked == [5, 3, 4]
    monkeypatch.setattr(experiment, "reading_needs", lambda *_: needs.Needs(2**31, 2**30))
    with pytest.raises(ValueError, match=r"reading 3 checkpoints of d1\.0 takes about 2\.0 GiB"):
        require_memory([world], TWO, max_steps=3)

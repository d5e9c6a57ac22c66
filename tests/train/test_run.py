"""The folder of a run: resumed to the bit, whatever ended it."""

import hashlib
import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import polars as pl
import pytest

from owkg.evaluation import rank_arrays, ranks
from owkg.files import storage
from owkg.kg import known_answers, read_graph, write_labelled
from owkg.train import (
    changed,
    checkpoints,
    config_text,
    facts_checksums,
    load_run,
    run_config,
    run_lock,
    train,
    training,
)
from owkg.train.folder import path_checksum
from owkg.train.loop import snapshots

ROOT = Path(__file__).parents[2]
SMALL = {"dim": 8, "batch_size": 32, "epochs": 6, "valid_every": 2, "checkpoint_every": 1}
BINARY = {"training_loop": "negatives", "loss": "binary"}
# Every training_loop, dropout, batch statistics, several optimisers, both kinds of update.
CONFIGS = {
    "complex": training("complex", **SMALL),
    "rotate": training("rotate", **SMALL, num_negatives=4, schedule="cosine", warmup_steps=3),
    "rows": training("transh", **SMALL, **BINARY, num_negatives=4, updates="rows", sides="bernoulli"),
    "tucker": training(
        "tucker", **SMALL, relation_dim=4, optimiser="adamax", weight_decay=0.1, gradient_clip=1.0
    ),
    "compgcn": training("compgcn", **SMALL, encoded_dim=8),
}


def bits(state):
    return [np.asarray(x).tobytes() for x in jax.tree.leaves(state)]


def of_run(run):
    return bits((run.trained.params, run.trained.statistics))


@pytest.mark.parametrize("name", CONFIGS)
def test_where_it_is_cut_changes_no_bit(ring, name):
    config = CONFIGS[name]
    *_, whole = snapshots(ring, config, chunk_steps=1000)
    *_, cut = snapshots(ring, config, chunk_steps=3)
    assert bits(whole.state) == bits(cut.state)
    assert [row["loss"] for row in whole.rows] == [row["loss"] for row in cut.rows]


@pytest.mark.parametrize("name", CONFIGS)
def test_what_jax_is_set_to_changes_no_bit(ring, name, tmp_path):
    config = CONFIGS[name]
    plain = train(ring, config, tmp_path / "plain")
    scored = ranks(plain.trained, ring)
    with (
        jax.enable_x64(True),
        jax.numpy_dtype_promotion("strict"),
        jax.numpy_rank_promotion("raise"),
        jax.transfer_guard("disallow"),
        jax.debug_nans(True),
        jax.debug_infs(True),
    ):
        other = train(ring, config, tmp_path / "other")
        loaded = load_run(tmp_path / "other")
        assert ranks(loaded.trained, ring).equals(scored)
    assert of_run(other) == of_run(loaded) == of_run(plain)
    assert other.path.drop("seconds", "examples_per_s").equals(plain.path.drop("seconds", "examples_per_s"))


@pytest.mark.parametrize("name", CONFIGS)
def test_resumed_is_as_uninterrupted(ring, name, tmp_path):
    config = CONFIGS[name]
    whole = train(ring, config, tmp_path / "whole")
    train(ring, config, tmp_path / "run", chunk_steps=1)
    # As a kill would have left it in the middle of writing the last checkpoint.
    last = checkpoints.checkpoint_steps(tmp_path / "run" / "checkpoints")[-1]
    folder = tmp_path / "run" / "checkpoints"
    (folder / str(last)).rename(folder / f".{last}.01234567.new")
    (folder / "mine").mkdir()
    resumed = train(ring, config, tmp_path / "run", resume=True)
    assert not list(folder.glob("*.new"))
    assert (folder / "mine").is_dir()
    for step in ("best", "last"):
        assert of_run(load_run(tmp_path / "run", step=step)) == of_run(
            load_run(tmp_path / "whole", step=step)
        )
    same = [column for column in whole.path.columns if column not in ("seconds", "examples_per_s")]
    assert resumed.path.select(same).equals(whole.path.select(same))


def started(run, graph, settings):
    """A process that trains, once it has begun to write."""
    options = [
        text for name, value in settings.items() for text in (f"--{name.replace('_', '-')}", str(value))
    ]
    # What tests are run by may ignore SIGINT, and then so would the process.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from owkg.cli.main import run; run()"
    )
    command = [sys.executable, "-c", code, "train", graph, "--out", run, *options]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not [*run.parent.glob("*/path.parquet"), *run.parent.glob(".*/path.parquet")]:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


def unread(errors):
    """Standard error but for the lines that a slow machine may see of how far training is."""
    return "".join(line for line in errors.splitlines(True) if not line.startswith("owkg: training: "))


def test_killed_and_resumed(ring, tmp_path):
    write_labelled(ring, tmp_path / "graph")
    settings = {"dim": 8, "batch_size": 32, "epochs": 30, "checkpoint_every": 1, "valid_every": 7}
    run = tmp_path / "run"
    process = started(run, tmp_path / "graph", settings)
    while not (done := checkpoints.checkpoint_steps(run / "checkpoints")) or done[-1] < 20:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.kill()
    _, errors = process.communicate()
    assert (process.returncode, unread(errors)) == (-signal.SIGKILL, "")
    assert checkpoints.checkpoint_steps(run / "checkpoints")[-1] < 120
    graph, config = read_graph(tmp_path / "graph"), training("complex", **settings)
    resumed, whole = train(graph, config, run, resume=True), train(graph, config, tmp_path / "whole")
    assert resumed.step == whole.step
    assert of_run(resumed) == of_run(whole)
    last = [load_run(folder, step="last") for folder in (run, tmp_path / "whole")]
    assert last[0].step == 120
    assert of_run(last[0]) == of_run(last[1])


@pytest.mark.parametrize(
    ("number", "code", "message"), [(signal.SIGINT, 130, "owkg: interrupted\n"), (signal.SIGTERM, 143, "")]
)
def test_interrupted_and_resumed(ring, tmp_path, number, code, message):
    """No checkpoint is due before the end: the interrupt writes the one that is there."""
    write_labelled(ring, tmp_path / "graph")
    settings = {"dim": 8, "batch_size": 32, "epochs": 20_000, "checkpoint_every": 0, "valid_every": 0}
    run = tmp_path / "run"
    process = started(run, tmp_path / "graph", settings)
    process.send_signal(number)
    _, errors = process.communicate()
    (step,) = checkpoints.checkpoint_steps(run / "checkpoints")
    stopped = f"owkg: training stopped at step {step:,}; {run} holds step {step:,}; continue with: "
    again = f"owkg train {tmp_path / 'graph'} --out {run} --resume\n"
    assert process.returncode == code
    assert unread(errors) == stopped + again + message
    assert 0 < step < 80_000
    assert not list(tmp_path.glob(".run*"))
    # Whoever goes on from there is where an undisturbed run is.
    config = training("complex", **settings)
    graph = read_graph(tmp_path / "graph")
    at = load_run(run, step="last")
    *_, undisturbed = snapshots(graph, changed(config, steps=step))
    assert bits(at.trained.params) == bits(undisturbed.state.params)


def test_a_run_stays_until_the_one_that_replaces_it_has_a_checkpoint(ring, tmp_path):
    run = tmp_path / "run"
    before = train(ring, CONFIGS["complex"], run)
    wild = training("complex", dim=4, optimiser="sgd", learning_rate=1e30, init_scale=1.0, n3=0.0)
    with pytest.raises(ValueError, match="not finite"):
        train(ring, wild, run, overwrite=True)
    assert of_run(load_run(run)) == of_run(before)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    train(ring, training("complex", **SMALL, seed=5), run, overwrite=True)
    assert load_run(run).config.seed == 5


@pytest.fixture
def sigint():
    """Sets the handler of SIGINT, and in the end the one that was there."""
    before = signal.getsignal(signal.SIGINT)
    yield lambda handler: signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGINT, before)


def test_signals_that_are_ignored_stay_so(sigint):
    sigint(signal.SIG_IGN)
    with run_lock.interrupts() as came:
        signal.raise_signal(signal.SIGINT)
        assert came() == 0
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_second_signal_does_what_it_did_before(sigint):
    sigint(signal.default_int_handler)
    with run_lock.interrupts() as came:
        signal.raise_signal(signal.SIGINT)
        assert came() == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_locks_that_a_system_has_not_are_done_without(monkeypatch, tmp_path):
    def none(*_):
        raise OSError(9, "Bad file descriptor")

    for locks in (SimpleNamespace(LOCK_EX=2, LOCK_NB=4, flock=none), None):
        monkeypatch.setattr(run_lock, "fcntl", locks)
        with run_lock.alone(tmp_path / "run"):
            pass


def test_what_a_run_holds(ring, tmp_path):
    run = train(ring, CONFIGS["complex"], tmp_path / "run")
    assert {p.name for p in (tmp_path / "run").iterdir()} == {
        "config.toml", "metadata.json", "entities.dict", "relations.dict", "path.parquet", "checkpoints",
    }  # fmt: skip
    assert (run.entities, run.relations) == (ring.entities, ring.relations)
    path = pl.read_parquet(tmp_path / "run" / "path.parquet")
    assert path["epoch"].to_list() == [1, 2, 3, 4, 5, 6]
    assert path["step"].to_list() == [4, 8, 12, 16, 20, 24]
    assert path["valid_mrr"].is_null().to_list() == [True, False] * 3
    assert (path["examples_per_s"] > 0).all()
    assert path["loss"][-1] < path["loss"][0]
    best = path.filter(path["valid_mrr"] == path["valid_mrr"].max())["step"][0]
    assert run.step == best
    assert set(checkpoints.checkpoint_steps(tmp_path / "run" / "checkpoints")) == {best, 20, 24}
    assert not list((tmp_path / "run").rglob("*.pkl"))


def test_validation_looks_at_train_and_valid_only(ring, tmp_path):
    run = train(ring, CONFIGS["complex"], tmp_path / "run")
    row = run.path.filter(run.path["step"] == run.step)
    without = ring._replace(splits={name: ring.splits[name] for name in ("train", "valid")})
    again = train(without, CONFIGS["complex"], tmp_path / "without")
    assert again.path["valid_mrr"].equals(run.path["valid_mrr"])
    facts = np.concatenate([ring.splits["train"], ring.splits["valid"]])
    reciprocal = []
    for side in ("head", "tail"):
        known = known_answers(facts, side, num_entities=20, num_relations=3)
        ranks = rank_arrays(run.trained, ring.splits["valid"], side, known=known)
        assert (ranks.optimistic == ranks.pessimistic).all()
        reciprocal.extend(1 / ranks.optimistic)
    assert row["valid_mrr"][0] == pytest.approx(np.mean(reciprocal), rel=1e-6)


def test_a_watch_sees_what_a_run_to_there_ends_with(ring, tmp_path):
    config = changed(CONFIGS["complex"], valid_every=0)
    seen = {}

    def watch(step, trained):
        seen[step] = bits((trained.params, trained.statistics))

    plain = train(ring, config, tmp_path / "plain")
    watched = train(ring, config, tmp_path / "run", watch=watch, watched=[plain.step, 1, 4])
    assert list(seen) == [1, 4, plain.step]
    assert seen[plain.step] == of_run(watched) == of_run(plain)
    assert len({tuple(state) for state in seen.values()}) == 3
    for wrong in ([0], [plain.step + 1]):
        with pytest.raises(ValueError, match="`watched` must be whole numbers of steps"):
            train(ring, config, tmp_path / "wrong", watch=watch, watched=wrong)
    assert not (tmp_path / "wrong").exists()


def test_patience_ends_it(ring, tmp_path):
    config = training("complex", dim=4, epochs=500, valid_every=1, patience=3, n3=0.0)
    run = train(ring, config, tmp_path / "run")
    measured = run.path["valid_mrr"].to_list()
    assert len(measured) < 500
    assert len(measured) == measured.index(max(measured)) + 4
    assert run.step == run.path["step"][-4]
    again = train(ring, config, tmp_path / "run", resume=True)  # it is over
    assert of_run(again) == of_run(run)


def test_a_loss_that_is_not_finite_stops_it(ring, tmp_path):
    config = training(
        "complex", dim=4, optimiser="sgd", learning_rate=1e30, init_scale=1.0, epochs=50, n3=0.0
    )
    with pytest.raises(ValueError, match=r"the loss is not finite at step \d+; a smaller `learning_rate`"):
        train(ring, config, tmp_path / "run", chunk_steps=5)
    # There was no checkpoint to keep.
    assert list(tmp_path.iterdir()) == []


def test_the_last_good_checkpoint_survives(ring, tmp_path, monkeypatch):
    from owkg.train import loop

    config = CONFIGS["complex"]
    require = loop._require_finite

    def spoiled(state, step):
        require(state._replace(bad=jax.numpy.int32(17 if step > 17 else -1)), step)

    monkeypatch.setattr(loop, "_require_finite", spoiled)
    with pytest.raises(ValueError, match="not finite at step 17"):
        train(ring, config, tmp_path / "run", chunk_steps=1)
    assert load_run(tmp_path / "run", step="last").step == 16


def test_a_full_disk_leaves_the_old_checkpoint(ring, tmp_path):
    config = CONFIGS["complex"]
    *_, last = snapshots(ring, config)
    checkpoints.write_checkpoint(tmp_path, 1, last.state, "")
    big = last.state._replace(params={"entity": np.random.default_rng(0).normal(size=(1000, 100))})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"2: cannot be written: File too large\."):
            checkpoints.write_checkpoint(tmp_path, 2, big, "")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in tmp_path.iterdir()] == ["1"]
    assert bits(checkpoints.read_checkpoint(tmp_path, 1, last.state)) == bits(last.state)


def damage(run, step):
    path = run / "checkpoints" / str(step) / "state.npz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


# The best step is 6 of 20, and the last two checkpoints are kept beside it.
OVERFITTED = training(
    "complex", dim=8, epochs=20, batch_size=120, learning_rate=0.5, n3=0.0, valid_every=2, checkpoint_every=1
)


@pytest.mark.parametrize("before", [False, True])
def test_a_damaged_best_checkpoint_is_made_again(ring, tmp_path, before):
    """No other becomes the best instead, neither now nor when it is evaluated."""
    run, folder = tmp_path / "run", tmp_path / "run" / "checkpoints"
    whole = train(ring, OVERFITTED, run)
    steps = checkpoints.checkpoint_steps(folder)
    assert whole.step < steps[-2]
    if before:  # there is an older one to go on from
        *_, earlier = snapshots(ring, changed(OVERFITTED, steps=1))
        checkpoints.write_checkpoint(folder, 1, earlier.state, path_checksum(whole.path.to_dicts(), 1))
    damage(run, whole.step)
    with pytest.raises(ValueError, match=rf"{whole.step}: is damaged"):
        load_run(run)
    told = rf"{whole.step}: the best step is missing; training resumes from step {int(before)}\."
    with (
        pytest.warns(UserWarning, match=f"It is now {whole.step}.damaged"),
        pytest.warns(UserWarning, match=told),
    ):
        again = train(ring, OVERFITTED, run, resume=True)
    assert (again.step, of_run(again)) == (whole.step, of_run(whole))
    assert checkpoints.checkpoint_steps(folder) == steps
    assert of_run(load_run(run, step="last"))
    columns = ["step", "epoch", "loss", "valid_mrr"]
    assert again.path.select(columns).equals(whole.path.select(columns))


def test_a_best_checkpoint_that_is_gone_is_told(ring, tmp_path):
    run = tmp_path / "run"
    best = train(ring, OVERFITTED, run).step
    shutil.rmtree(run / "checkpoints" / str(best))
    message = rf"the checkpoint of the best step, {best}, is missing; .* `step` must be one of: 19, 20\."
    with pytest.raises(ValueError, match=message):
        load_run(run)
    assert load_run(run, step="last").step == 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.unlink(), "is not there; it records which step is the best"),
        (lambda path: path.write_bytes(b""), "must be Parquet"),
        (lambda path: rows(path, lambda table: table.clear()), "is not as it was written"),
        (lambda path: rows(path, lambda table: table.head(3)), "is not as it was written"),
        (
            lambda path: rows(path, lambda table: table.with_columns(valid_mrr=0.5)),
            "is not as it was written",
        ),
        (
            lambda path: rows(path, lambda table: table.with_columns(step=nothing("step"))),
            "got other values in step",
        ),
        # A run of rules has no losses; the checksum says that this one had some.
        (
            lambda path: rows(path, lambda table: table.with_columns(loss=nothing("loss"))),
            "is not as it was written",
        ),
    ],
    ids=["gone", "no bytes", "no rows", "cut", "other values", "no steps", "no losses"],
)
def test_a_spoiled_path_is_told(ring, tmp_path, change, message):
    """It says which step is the best: neither evaluation nor training goes on without."""
    run = tmp_path / "run"
    train(ring, OVERFITTED, run)
    change(run / "path.parquet")
    there = sorted(path.relative_to(run) for path in run.rglob("*"))
    for read in (lambda: load_run(run), lambda: train(ring, OVERFITTED, run, resume=True)):
        with pytest.raises(ValueError, match=rf"path\.parquet: .*{message}"):
            read()
    assert sorted(path.relative_to(run) for path in run.rglob("*")) == there


def rows(path, change):
    change(pl.read_parquet(path)).write_parquet(path)


def nothing(name):
    return pl.when(pl.col("step") > 3).then(pl.col(name))


def test_a_damaged_checkpoint_gives_way_to_the_one_before(ring, tmp_path):
    run = train(ring, CONFIGS["complex"], tmp_path / "run")
    damage(tmp_path / "run", 24)
    with pytest.raises(ValueError, match=r"24: is damaged; state\.npz is not as it was written"):
        load_run(tmp_path / "run", step="last")
    with pytest.warns(UserWarning, match=r"24: is damaged; .* It is now 24\.damaged"):
        again = train(ring, CONFIGS["complex"], tmp_path / "run", resume=True)
    assert of_run(again) == of_run(run)


def test_an_older_damaged_checkpoint_is_put_aside_too(ring, tmp_path):
    run = train(ring, CONFIGS["complex"], tmp_path / "run")
    folder = tmp_path / "run" / "checkpoints"
    (folder / "20" / "metadata.json").write_text("{}")
    with pytest.warns(UserWarning, match=r"20/metadata\.json: must hold checksums.* It is now 20\.damaged"):
        again = train(ring, CONFIGS["complex"], tmp_path / "run", resume=True)
    assert of_run(again) == of_run(run)
    assert sorted(path.name for path in folder.iterdir()) == ["20.damaged", "24"]


def test_a_checkpoint_that_is_being_removed_is_none(ring, tmp_path, monkeypatch):
    *_, last = snapshots(ring, CONFIGS["complex"])
    for step in (1, 2):
        checkpoints.write_checkpoint(tmp_path, step, last.state, "")

    def killed(path):
        (path / "metadata.json").unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoints.shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        checkpoints.keep_checkpoints(tmp_path, [2])
    monkeypatch.undo()
    assert checkpoints.checkpoint_steps(tmp_path) == [2]
    found = checkpoints.newest_checkpoint(tmp_path, last.state)
    assert (found.step, [path.name for path in tmp_path.iterdir()]) == (2, ["2"])


def test_a_run_whose_configuration_was_changed_is_not_gone_on_with(ring, tmp_path):
    config, run = CONFIGS["complex"], tmp_path / "run"
    train(ring, config, run)
    text = (run / "config.toml").read_text()
    for old, new in (("dim = 8", "dim = 9"), ("learning_rate = 0.1", "learning_rate = 0.2"), (text, "")):
        (run / "config.toml").write_text(text.replace(old, new))
        for read in (lambda: load_run(run), lambda: train(ring, config, run, resume=True)):
            with pytest.raises(ValueError, match=r"config\.toml: is not as it was written"):
                read()
    (run / "config.toml").write_text(text)
    assert load_run(run, step="last").step == 24


def test_a_run_from_before_updates_of_rows_is_gone_on_with(ring, tmp_path):
    """Its configuration does not say how updates are made: as they were then, of whole tables."""
    settings = SMALL | {"training_loop": "negatives", "loss": "logistic", "num_negatives": 2}
    config, run = training("complex", **settings, updates="dense"), tmp_path / "run"
    train(ring, config, run)
    text = (run / "config.toml").read_text().replace('updates = "dense"\n', "")
    (run / "config.toml").write_text(text)
    noted = json.loads((run / "metadata.json").read_text())
    del noted["metadata_sha256"]
    noted["run_sha256"]["config.toml"] = storage.checksum(run / "config.toml")
    own = hashlib.sha256(json.dumps(noted, sort_keys=True).encode()).hexdigest()
    (run / "metadata.json").write_text(json.dumps(noted | {"metadata_sha256": own}))
    assert config_text(run_config(run)) == config_text(config)
    assert train(ring, run_config(run), run, resume=True).step == load_run(run).step
    with pytest.raises(ValueError, match=r"""must have 'updates = "rows"', got 'updates = "dense"'"""):
        train(ring, run_config(run, updates="rows"), run, resume=True)


def test_checkpoints_of_another_shape_are_refused_and_stay(ring, tmp_path):
    config, run = CONFIGS["complex"], tmp_path / "run"
    train(ring, config, run)
    train(ring, training("complex", **(SMALL | {"dim": 9})), tmp_path / "other")
    shutil.rmtree(run / "checkpoints")
    shutil.copytree(tmp_path / "other" / "checkpoints", run / "checkpoints")
    steps = checkpoints.checkpoint_steps(run / "checkpoints")
    message = r"another model or shape: .*'entity'.* must be float32\[20, 16\], got float32\[20, 18\]"
    for read in (lambda: load_run(run), lambda: train(ring, config, run, resume=True)):
        with pytest.raises(ValueError, match=message):
            read()
    assert checkpoints.checkpoint_steps(run / "checkpoints") == steps


def test_what_a_killed_process_began_goes(ring, tmp_path):
    """Not what is of another run, nor a whole one that had only to be named: its predecessor stands aside."""
    names = [
        *(".run.0a1b2c3d.new", ".run.0a1b2c3e.new", ".run.0a1b2c3e.old"),
        *(".other.0a1b2c3d.new", ".run.0a1b2c3d.new.mine"),
    ]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.toml").write_text("half")
    train(ring, CONFIGS["complex"], tmp_path / "run")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names[1:], "run"])


def test_one_process_at_a_time(ring, tmp_path):
    config, run, seen = CONFIGS["complex"], tmp_path / "run", []

    def meanwhile(*_):
        (tmp_path / ".run.0a1b2c3d.new").mkdir(exist_ok=True)
        for how in ("resume", "overwrite"):
            with pytest.raises(ValueError, match=r"run: is being trained by another process"):
                train(ring, config, run, **{how: True})
            seen.append(how)
        assert (tmp_path / ".run.0a1b2c3d.new").exists()

    train(ring, config, run, chunk_steps=12, on_progress=meanwhile)
    assert seen == ["resume", "overwrite"] * 6
    train(ring, config, run, resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("path.parquet", "no table", "path.parquet: must be Parquet"),
        ("metadata.json", '{"graph_folder": 3, "sha256": {}}', "metadata.json: is not as it was written"),
        ("entities.dict", "0\tsomeone\n", "entities.dict: is not as it was written"),
    ],
)
def test_files_of_a_run_that_were_spoiled(ring, tmp_path, name, text, message):
    train(ring, CONFIGS["complex"], tmp_path / "run")
    (tmp_path / "run" / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        load_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda path: path.drop("loss"), "loss"),
        (lambda path: path.cast({"step": str}), "step"),
        (lambda path: path.with_columns(valid_mrr=None), "valid_mrr"),
    ],
    ids=["missing", "text", "null"],
)
def test_a_path_of_other_columns(ring, tmp_path, change, wrong):
    train(ring, CONFIGS["complex"], tmp_path / "run")
    file = tmp_path / "run" / "path.parquet"
    change(pl.read_parquet(file)).write_parquet(file)
    with pytest.raises(
        ValueError, match=rf"path\.parquet: must have numbers in .*, got other values in {wrong}"
    ):
        load_run(tmp_path / "run")


def test_checksums_are_of_the_facts_of_a_graph(ring):
    sums = facts_checksums(ring)
    assert set(sums) == {"train", "valid"}
    fewer = ring._replace(splits=ring.splits | {"train": ring.splits["train"][1:]})
    assert facts_checksums(fewer)["valid"] == sums["valid"]
    assert facts_checksums(fewer)["train"] != sums["train"]
    with pytest.raises(ValueError, match="`graph` must be"):
        facts_checksums({"train": []})


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('"graph_folder": null', '"graph_folder": 3'),
        ('"owkg": "0', '"owkg": "1'),
        ('"train": "', '"train": "0'),
    ],
)
def test_metadata_that_was_changed(ring, tmp_path, was, now):
    config, run = CONFIGS["complex"], tmp_path / "run"
    train(ring, config, run)
    file = run / "metadata.json"
    file.write_text(file.read_text().replace(was, now, 1))
    for read in (lambda: load_run(run), lambda: train(ring, config, run, resume=True)):
        with pytest.raises(ValueError, match=r"metadata\.json: is not as it was written"):
            read()


def test_brackets_in_a_path_are_no_pattern(ring, tmp_path):
    run = tmp_path / "[x]" / "run[0-9]"
    whole = train(ring, CONFIGS["complex"], run)
    assert of_run(load_run(run)) == of_run(whole)
    shutil.rmtree(run / "checkpoints" / "24")
    again = train(ring, CONFIGS["complex"], run, resume=True)
    assert of_run(again) == of_run(whole)


def test_refusals(ring, tmp_path):
    config = CONFIGS["complex"]
    run = tmp_path / "run"
    with pytest.raises(ValueError, match=r"is not the folder of a run, because it has no config\.toml"):
        train(ring, config, run, resume=True)
    with pytest.raises(ValueError, match=r"is not the folder of a run, because it has no config\.toml"):
        load_run(run)
    train(ring, config, run)
    with pytest.raises(ValueError, match="is there already"):
        train(ring, config, run)
    with pytest.raises(ValueError, match=r"is of another training: must have .*, got 'learning_rate = 0.1'"):
        train(ring, training("complex", **SMALL, learning_rate=0.2), run, resume=True)
    other = ring._replace(entities=("someone", *ring.entities[1:]))
    with pytest.raises(ValueError, match=r"entities.dict: must have the labels of the graph"):
        train(other, config, run, resume=True)
    fewer = ring._replace(splits=ring.splits | {"train": ring.splits["train"][1:]})
    with pytest.raises(ValueError, match="other facts"):
        train(fewer, config, run, resume=True)
    with pytest.raises(ValueError, match="`step` must be one of"):
        load_run(run, step=7)
    with pytest.raises(ValueError, match='`step` must be "best", "last", or a whole number'):
        load_run(run, step="first")
    with pytest.raises(ValueError, match="`overwrite` must not be given with `resume`"):
        train(ring, config, run, resume=True, overwrite=True)
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(ValueError, match="has no checkpoint"):
        load_run(run)


def test_validation_needs_facts_and_a_metric_that_grows(ring, tmp_path):
    lonely = ring._replace(splits={"train": ring.splits["train"]})
    with pytest.raises(ValueError, match="`valid_every` must be 0 for a graph without a split valid, got 2"):
        train(lonely, CONFIGS["complex"], tmp_path / "run")
    with pytest.raises(
        ValueError, match="`valid_metric` must be a mean over ranks whose larger values are better"
    ):
        train(ring, training("complex", valid_metric="mr"), tmp_path / "run")

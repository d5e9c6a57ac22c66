"""`owkg train` as its users meet it."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from owkg import kg
from owkg.ranks import read_ranks
from owkg.train import load_run, read_config

FACTS = [f"{a}\tafter\t{a + 1}\n{a + 1}\tbefore\t{a}\n" for a in range(100, 112)]
SMALL = ("--dim", 4, "--epochs", 4, "--valid-every", 2, "--n3", 0)


@pytest.fixture
def folder(tmp_path):
    graph = tmp_path / "graph"
    graph.mkdir()
    (graph / "train.txt").write_text("".join(f"e{line}" for line in "".join(FACTS).splitlines(True)))
    (graph / "valid.txt").write_text("e100\tafter\t105\ne103\tbefore\t102\n")
    return graph


def test_json_says_how_it_went(call, done, folder, tmp_path):
    out = tmp_path / "run"
    text = done("train", folder, "--out", out, *SMALL, "--seed", 3, "--format", "json")
    said, run = json.loads(text), load_run(out)
    assert said["run"] == str(out)
    assert (said["model"], said["best_step"], said["epoch"], said["steps"]) == ("complex", run.step, 4, 4)
    best = run.path.filter(run.path["step"] == run.step)
    assert said["valid"]["mrr"] == best["valid_mrr"][0]
    assert run.config.seed == 3
    assert (out / "learning_curves.png").read_bytes().startswith(b"\x89PNG")
    again = json.loads(call("train", folder, "--out", out, "--resume", "--format", "json")[1])
    assert again == said


def test_a_table_for_people(done, folder, tmp_path):
    text = done("train", folder, "--out", tmp_path / "run", *SMALL)
    assert "hits@10" in text
    assert text.endswith(f"wrote {tmp_path / 'run'}\n")


def test_options_stand_above_the_file(call, folder, tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('model = "rotate"\nepochs = 2\nvalid_every = 0\nnum_negatives = 3\n[options]\ndim = 6\n')
    out = tmp_path / "run"
    arguments = ("--config", file, "--dim", 5, "--option", "margin=3.5", "--option", "shared_negatives=true")
    assert call("train", folder, "--out", out, *arguments)[0] == 0
    config = read_config(out / "config.toml")
    assert (config.model, config.epochs, config.num_negatives, config.shared_negatives) == (
        "rotate",
        2,
        3,
        True,
    )
    assert dict(config.options) == {"dim": 5, "margin": 3.5, "norm": 1, "reciprocal": False}
    assert "valid" in call("train", folder, "--out", out, "--resume")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "nothing"), "--model must be one of"),
        (("--dim", 0), "--dim must be a whole number of at least 1, got 0."),
        (("--model", "rotate", "--num-negatives", 0), "--num-negatives must be a whole number of at least 1"),
        (("--loss", "margin"), "--loss must be 'cross_entropy' or 'bce' where the training loop is 1vsall"),
        (("--option", "margin"), "--option must be NAME=VALUE, got 'margin'."),
        (("--dim", 4, "--option", "dim=5"), "--option must not set anything twice, got dim again."),
        (("--option", "nothing=5"), "error: --option nothing is not an option of complex"),
        (("--model", "transe", "--option", "margin=x"), "error: --option margin must be"),
        (("--option", "name=x"), "error: --option name is not an option of complex"),
        (("--valid-metric", "nothing"), "error: --valid-metric must be the name of a metric: unknown metric"),
        (("--resume", "--overwrite"), "--overwrite cannot be combined with --resume"),
        (("--config", "nowhere.toml"), "nowhere.toml"),
        (("--resume",), "is not the folder of a run"),
        (("--resume", "--config", "run.toml"), "--config has no effect with --resume"),
        (("--coordinator", "a:1", "--distributed"), "--coordinator cannot be combined with --distributed"),
        (("--model", "conve", "--dim", 7), "--dim"),
        (("--optimiser", "sgd", "--learning-rate", 1e30, "--option", "init_scale=1.0"), "not finite at step"),
    ],
)
def test_bad_input_is_one_line(refused, folder, tmp_path, arguments, message):
    err = refused("train", folder, "--out", tmp_path / "run", *arguments)
    assert message in err


def test_a_run_is_not_overwritten_unasked(call, folder, tmp_path):
    out = tmp_path / "run"
    assert call("train", folder, "--out", out, *SMALL)[0] == 0
    assert "is there already" in call("train", folder, "--out", out, *SMALL)[2]
    other = call("train", folder, "--out", out, "--resume", "--model", "rotate")[2]
    assert f"--model must be complex as in the run {out}, got rotate" in other
    assert call("train", folder, "--out", out, *SMALL, "--seed", 9, "--overwrite")[0] == 0
    assert load_run(out).config.seed == 9


def test_a_full_disk_is_one_line(folder, tmp_path):
    """Files may not grow beyond 100 kB, and a checkpoint would."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000));"
        "from owkg.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["train", folder, "--out", tmp_path / "run", "--dim", 1000, "--epochs", 1, "--valid-every", 0]
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith("cannot be written: File too large.\n")
    assert done.stderr.count("\n") == 1


def test_a_model_is_named_in_capitals_or_not(call, folder, tmp_path):
    for name in ("TransE", "transE", "transe"):
        out = tmp_path / name
        assert call("train", folder, "--out", out, *SMALL, "--model", name)[0] == 0
        assert load_run(out).config.model == "transe"
        assert call("train", folder, "--out", out, "--model", name, "--resume")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "dense: a step of 1vsall compares with all entities"),
        (("--updates", "rows"), "rows: by the setting updates"),
    ],
)
def test_how_updates_were_made_is_told(call, folder, tmp_path, arguments, why):
    sampled = ("--training-loop", "negatives", "--loss", "logistic") if arguments else ()
    out = tmp_path / "run"
    code, text, _ = call("train", folder, "--out", out, *SMALL, *sampled, *arguments, "--format", "json")
    assert (code, json.loads(text)["updates"]) == (0, why)
    _, text, _ = call("train", folder, "--out", out, *SMALL, *sampled, *arguments, "--overwrite")
    assert f"updates: {why}\n" in text


def test_where_nothing_was_validated_nothing_is_best(call, folder, tmp_path):
    settings = ("--dim", 4, "--epochs", 60, "--valid-every", 0)
    text = call("train", folder, "--out", tmp_path / "run", *settings)[1]
    assert "best" not in text.partition("\n")[0]
    assert text.startswith("complex, step 60, nothing validated")
    said = json.loads(call("train", folder, "--out", tmp_path / "run", "--resume", "--format", "json")[1])
    assert (said["best_step"], said["steps"], said["valid"]) == (None, 60, {})


def test_brackets_in_a_path_are_no_pattern(call, folder, tmp_path, monkeypatch):
    (tmp_path / "[x]").mkdir()
    monkeypatch.chdir(tmp_path / "[x]")
    assert call("train", folder, "--out", "run", *SMALL)[::2] == (0, "")
    assert call("train", folder, "--out", "run", "--resume")[::2] == (0, "")
    assert call("rank", "run", "--split", "valid", "--out", "ranks.parquet")[::2] == (0, "")


def test_a_damaged_best_step_is_told_and_made_again(call, folder, tmp_path):
    """Where it is gone, neither evaluation nor training takes another for it."""
    out = tmp_path / "run"
    call("train", folder, "--out", out, *SMALL)
    best = load_run(out).step
    shutil.rmtree(out / "checkpoints" / str(best))
    code, _, err = call("rank", out, "--split", "valid", "--out", tmp_path / "ranks.parquet")
    assert (code, err.count("\n")) == (2, 1)
    assert f"the checkpoint of the best step, {best}, is missing" in err
    assert call("train", folder, "--out", out, "--resume")[::2] == (0, "")
    assert load_run(out).step == best


def test_an_interrupt_before_the_first_step_is_told(call, folder, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(kg, "read_graph", interrupted)
    code, _, err = call("train", folder, "--out", tmp_path / "run", *SMALL)
    told = "owkg: training stopped before its first step; nothing was written\n"
    assert (code, err) == (130, f"{told}owkg: interrupted\n")


@pytest.mark.parametrize("stopped", [KeyboardInterrupt, SystemExit])
def test_seeds_that_are_stopped_before_the_first_step(call, folder, tmp_path, monkeypatch, stopped):
    from owkg.train import seeds

    def interrupted(kg, config, numbers, out, **options):
        out.mkdir()
        raise stopped(143)

    monkeypatch.setattr(seeds, "train_seeds", interrupted)
    out = tmp_path / "runs"
    asked = ("train", folder, "--out", out, *SMALL, "--seeds", "2,5")
    if stopped is SystemExit:
        with pytest.raises(SystemExit):
            call(*asked)
    else:
        code, _, err = call(*asked)
        assert (code, err.splitlines()[0]) == (
            130, "owkg: training stopped; the same command starts again, because no step was saved"
        )  # fmt: skip
    assert not out.exists()


def test_seeds_here_and_on_workers(call, folder, tmp_path):
    """The same runs, to the bit; called again, they are read; mean and deviation are those of the runs."""
    found = []
    for name, more in (("one", ()), ("many", ("--workers", 2)), ("one", ())):
        asked = (
            "train",
            folder,
            "--out",
            tmp_path / name,
            *SMALL,
            "--seeds",
            "2,5",
            *more,
            "--format",
            "json",
        )
        code, text, _ = call(*asked)  # progress comes after a while
        assert code == 0
        found.append(json.loads(text))
    for said in found:
        assert [row["seed"] for row in said["runs"]] == [2, 5]
        assert {**said, "out": "", "runs": [row | {"run": ""} for row in said["runs"]]} == {
            **found[0], "out": "", "runs": [row | {"run": ""} for row in found[0]["runs"]]
        }  # fmt: skip
        values = [row["mrr"] for row in said["runs"]]
        assert said["mean"]["mrr"] == pytest.approx(sum(values) / 2)
        assert said["standard_deviation"]["mrr"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
    for seed in (2, 5):
        one, many = (load_run(tmp_path / name / f"seed-{seed}") for name in ("one", "many"))
        assert one.config.seed == seed
        assert all(
            (one.trained.params[name] == many.trained.params[name]).all() for name in one.trained.params
        )
    code, text, _ = call("train", folder, "--out", tmp_path / "one", *SMALL, "--seeds", "2,5")
    assert code == 0
    assert "standard deviation" in text
    assert text.endswith(f"wrote {tmp_path / 'one'}: seed-2, seed-5\n")
    for name in ("one", "many"):
        assert (tmp_path / name / "learning_curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_of_seeds_is_evaluated_into_one_table(call, refused, folder, tmp_path):
    """The ranks of each run, by model and seed; and what is no folder of the seeds of one model."""
    runs, out = tmp_path / "one", tmp_path / "all.parquet"
    assert call("train", folder, "--out", runs, *SMALL, "--seeds", "10,2")[0] == 0
    code, text, _ = call("rank", runs, "--split", "valid", "--out", out)
    assert code == 0
    assert f"wrote {out}: " in text
    assert "ranks of 2 seeds" in text
    whole = read_ranks(out)
    assert whole.frame["model"].unique().to_list() == ["one"]
    assert whole.frame["seed"].unique(maintain_order=True).to_list() == [2, 10]
    values = []
    for seed in (2, 10):
        alone = tmp_path / "alone.parquet"
        assert call("rank", runs / f"seed-{seed}", "--split", "valid", "--out", alone)[0] == 0
        frame = read_ranks(alone).frame
        assert whole.frame.filter(seed=seed).drop("model", "seed").equals(frame)
        values.append((1 / frame["optimistic"]).mean())
    said = json.loads(
        call("rank", runs, "--split", "valid", "--out", out, "--format", "json", "--name", "m")[1]
    )
    (mrr,) = (row for row in said["results"] if row["metric"] == "mrr")
    assert mrr["both"] == pytest.approx(np.mean(values))
    assert mrr["over_seeds"] == pytest.approx(np.std(values, ddof=1))
    assert read_ranks(out).frame["model"].unique().to_list() == ["m"]
    for options, message in (
        (("--out", out, "--lists", tmp_path / "a.run"), "--lists needs a single run"),
        (("--sample", 0.5), "--sample needs a single run"),
    ):
        err = refused("rank", runs, *options)
        assert message in err
    (runs / "seed-2").rename(runs / "seed-3")
    code, _, err = call("rank", runs, "--split", "valid", "--out", out)
    assert (code, err.count("\n")) == (2, 1)
    assert "seed-3: must have the seed of its name, got seed 2." in err
    (runs / "seed-3").rename(runs / "seed-2")
    config = runs / "seed-10" / "config.toml"
    config.write_text(config.read_text().replace("dim = 4", "dim = 8"))
    assert "must differ from" in call("rank", runs, "--split", "valid", "--out", out)[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seeds", "1,1"], "--seeds must be one or more different numbers"),
        (["--seeds", "1,x"], "--seeds must be whole numbers"),
        (["--seeds", ","], "--seeds must be one or more different numbers"),
        (["--seeds", "1", "--seed", "2"], "--seed cannot be combined with --seeds"),
        (["--seeds", "1", "--resume"], "--resume cannot be combined with --seeds"),
        (["--workers", "2"], "--workers needs --seeds"),
        (["--scheduler", "tcp://a:1"], "--scheduler needs --seeds"),
        (
            ["--seeds", "1", "--workers", "2", "--scheduler", "tcp://a:1"],
            "--workers has no effect with --scheduler",
        ),
    ],
)
def test_bad_seeds(refused, folder, tmp_path, options, message):
    err = refused("train", folder, "--out", tmp_path / "run", *SMALL, *options)
    assert message in err
    assert not (tmp_path / "run").exists()


def test_a_batch_of_more_than_there_is_has_a_note(call, tmp_path):
    (tmp_path / "train.txt").write_text("a\tr\tb\nb\tr\tc\nc\tr\ta\n")
    line = f"train {tmp_path} --model distmult --dim 2 --steps 1 --valid-every 0 --out {tmp_path}/run"
    said = "--batch-size 1,000 is more than the 6 queries of train: each step uses all."
    code, out, _ = call(*line.split(), "--batch-size", "1000")
    assert (code, out.count(said)) == (0, 1)
    code, out, _ = call(*line.split(), "--batch-size", "6", "--overwrite")
    assert (code, out.count("--batch-size")) == (0, 0)

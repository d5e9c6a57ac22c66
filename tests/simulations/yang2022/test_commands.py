"""`python -m simulations.yang2022`: figures from runs that resume; errors before any work."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from owkg import kg
from owkg.sampling import sample, write_worlds
from simulations.open_world import experiment, needs, runs
from simulations.open_world.curves import CORRELATED
from simulations.open_world.note import note
from simulations.open_world.world import read_worlds, with_correlated
from simulations.yang2022 import figures3to5
from simulations.yang2022.__main__ import main
from simulations.yang2022.figures3to5 import said

MAIN = main
ROOT = Path(__file__).parents[3]
# Enough for ComplEx to look four times and for RotatE to look once.
FEW = ("--max-steps", 50)
FIGURES = {
    "figure3": ["figure3_sparse_vs_full"],
    "figure5-correlation": ["figure5_correlation"],
    "figure5-metrics": ["figure5_metrics"],
    "claims": ["inconsistent_by_density", "inconsistent_by_metric"],
}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    rng = np.random.default_rng(0)
    facts = np.unique(rng.integers(0, (25, 3, 25), (700, 3)), axis=0).astype(np.int32)
    names = tuple(f"e{i}" for i in range(25)), ("r", "s", "t")
    closed = kg.KnowledgeGraph(*names, {"train": facts})
    drawn = (
        sample(closed, density=d, train_rate=0.6, num_queries=12, min_answers=3, seed=0) for d in (0.9, 0.6)
    )
    folder = tmp_path_factory.mktemp("worlds") / "worlds"
    write_worlds(drawn, folder)
    return folder


@pytest.fixture(scope="module")
def finished(worlds, tmp_path_factory):
    """A folder in which all runs have come to their end."""
    out = tmp_path_factory.mktemp("finished")
    done = script("open-world", "--worlds", worlds, *FEW, "--out", out)
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def command(name, *arguments):
    return [sys.executable, "-m", "simulations.yang2022", name, *map(str, arguments)]


def environment():
    return {k: v for k, v in os.environ.items() if k != "OWKG_DATA"} | {"PYTHONPATH": str(ROOT)}


def script(name, *arguments):
    return subprocess.run(
        command(name, *arguments), capture_output=True, text=True, env=environment(), check=False
    )


def test_all_figures_and_claims_from_one_set_of_runs(finished):
    out, printed = finished
    for names in FIGURES.values():
        for name in names:
            for suffix in (".png", ".svg", ".pdf"):
                assert (out / f"{name}{suffix}").stat().st_size > 2000
                assert f"wrote {out / name}{suffix}" in printed
    assert "4/4 RotatE 32, d = 0.6" in printed
    assert "the missing facts of the correlated test sets are chosen by ComplEx 32" in printed
    table = pl.read_csv(out / "figure3_sparse_vs_full.csv")
    assert table["density"].unique().sort().to_list() == [0.6, 0.9]
    assert table["configuration"].unique().sort().to_list() == ["ComplEx 32", "RotatE 32"]
    for name in ("full", "sparse", "correlated", "resampled", "resampled_lower", "resampled_upper"):
        assert table[name].is_between(0, 1).all()
    # Of two test sets the one with missing facts reads less, but for chance.
    assert (table["resampled"] < table["full"]).all()
    assert (table["resampled_lower"] <= table["resampled_upper"]).all()
    noted = json.loads((out / "study.json").read_text())
    assert noted["command"].startswith("python -m simulations.yang2022 open-world --worlds")
    assert (noted["preset"], noted["seed"], noted["densities"]) == ("quick", 0, [0.9, 0.6])
    assert set(noted["training_seconds"]["d0.6"]) == {"ComplEx 32", "RotatE 32"}
    assert noted["training_seconds_in_all"] > 0
    assert noted["correlated_by"] == "ComplEx 32"
    assert noted["results"] == sorted(
        path.name for path in out.iterdir() if path.suffix in (".csv", ".png", ".svg", ".pdf")
    )
    assert noted["of_earlier_studies"] == []
    claims = pl.read_csv(out / "claims.csv")
    assert set(claims["metric"]) >= {"mrr", "log-mrr", "p-mrr@1/4", "hits@10", "probe@0.5"}
    assert set(claims["test_set"]) == {"sparse", "correlated"}


@pytest.mark.parametrize("name", ["figure5-correlation", "claims"])
def test_each_figure_by_itself_reads_the_runs(name, worlds, finished, call):
    out, _ = finished
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*")}
    code, printed, error = call(name, "--worlds", worlds, *FEW, "--out", out)
    assert (code, error) == (0, "")
    for stem in FIGURES[name]:
        assert f"{stem}.png" in printed
    assert "the rest takes about" not in printed
    assert {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*")} == before


def test_checkpoints_are_few_and_the_last_of_complex_chooses(worlds, finished, monkeypatch):
    out, _ = finished
    monkeypatch.setattr(runs, "_MOST_CHECKPOINTS", 2)
    done = runs.study(runs.Preset.QUICK, out, worlds=worlds, max_steps=50)
    assert [[len(one.step) for one in of_world] for of_world in done.records] == [[2, 1]] * 2
    for world, of_world, plain in zip(done.worlds, done.records, read_worlds(worlds), strict=True):
        first, last = of_world[0].score.astype(float)
        assert (world.present[CORRELATED] == with_correlated(plain, last).present[CORRELATED]).all()
        assert (world.present[CORRELATED] != with_correlated(plain, first).present[CORRELATED]).any()


def test_figures_of_one_density_are_of_that_of_the_paper(worlds, finished):
    out, _ = finished
    done = runs.study(runs.Preset.QUICK, out, worlds=worlds, max_steps=50)
    # 0.6 and 0.9 are as far, but for rounding; a curve nearer by stands in for the others.
    near = done.curves[0]._replace(density=0.8)
    assert figures3to5._one(done._replace(curves=[*done.curves, near])) is near


def test_results_of_an_earlier_study_are_told_apart(tmp_path):
    for name in ("claims.csv", "figure3.png"):
        (tmp_path / name).touch()
    first, second = ({"seed": seed, "command": "owkg", "densities": [0.75]} for seed in (0, 1))
    assert note(tmp_path, first, [tmp_path / "claims.csv"]) == []
    assert note(tmp_path, first | {"command": "other"}, [tmp_path / "figure3.png"]) == []
    noted = json.loads((tmp_path / "study.json").read_text())
    assert noted["results"] == ["claims.csv", "figure3.png"]
    assert note(tmp_path, second, [tmp_path / "figure3.png"]) == ["claims.csv"]
    # A third call of the second study still knows.
    assert note(tmp_path, second) == ["claims.csv"]
    noted = json.loads((tmp_path / "study.json").read_text())
    assert (noted["seed"], noted["results"]) == (1, ["figure3.png"])
    (tmp_path / "claims.csv").unlink()
    assert note(tmp_path, second) == []
    for content in ("", "[]", "\xff"):
        (tmp_path / "study.json").write_text(content, encoding="latin-1")
        assert note(tmp_path, second) == []


def test_a_subset_drawn_into_the_same_folder_says_what_it_left(worlds, finished, call, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished[0], out)
    asked = ("--worlds", worlds, *FEW, "--density", 0.6, "--out", out)
    code, printed, _ = call("figure5-metrics", *asked)
    assert code == 0
    assert "left from an earlier study, not drawn again: claims.csv, " in printed
    noted = json.loads((out / "study.json").read_text())
    assert noted["results"] == ["figure5_metrics.pdf", "figure5_metrics.png", "figure5_metrics.svg"]
    assert "claims.csv" in noted["of_earlier_studies"]


def test_out_is_a_file(worlds, call, tmp_path):
    (tmp_path / "out").touch()
    code, _, error = call("figure3", "--worlds", worlds, "--out", tmp_path / "out")
    assert (code, error) == (
        2,
        f"python -m simulations.yang2022: error: --out must be a folder, got the file {tmp_path / 'out'}.\n",
    )


def test_json(worlds, finished, call):
    out, _ = finished
    asked = ("--worlds", worlds, *FEW, "--out", out, "--format", "json")
    code, printed, beside = call("claims", *asked)
    assert code == 0
    assert "wrote" in beside
    rows = json.loads(printed)["claims"]
    assert {row["claim"] for row in rows} >= {"ratio_of_slopes", "inconsistent"}
    assert {row["density"] for row in rows} == {0.6, 0.9}


def test_claims_without_a_number_or_an_interval_are_said():
    base = {"density": 0.75, "test_set": "sparse", "metric": "mrr", "configuration": "all", "minus": None}
    values = [(None, None, None), (0.5, None, None), (0.25, 0.125, 1.0)]
    table = pl.DataFrame(
        [
            {**base, "claim": "inconsistent", "value": v, "lower": a, "upper": b, "remark": "because"}
            for v, a, b in values
        ],
        schema_overrides={"value": float, "lower": float, "upper": float, "minus": str},
    )
    begin = "d = 0.75, sparse: pairs in the wrong order beyond their errors: "
    ends = [line.removeprefix(begin) for line in said(table)]
    assert ends == ["not measurable (because)", "0.5 (because)", "0.25 [0.125, 1]"]


def test_killed_and_called_again_it_ends_with_the_same_ranks(worlds, finished, tmp_path):
    arguments = ("--worlds", worlds, *FEW, "--density", 0.6, "--out", tmp_path)
    cut = subprocess.Popen(
        command("figure5-correlation", *arguments),
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not any((tmp_path / "runs").rglob("parts/*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.01)
    cut.send_signal(signal.SIGKILL)
    assert cut.wait() == -signal.SIGKILL
    assert not (tmp_path / "figure5_correlation.png").exists()
    done = script("figure5-correlation", *arguments)
    assert done.returncode == 0, done.stderr
    ranks = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("ranks.parquet"))
    assert len(ranks) == 2
    for path in ranks:
        assert (tmp_path / path).read_bytes() == (finished[0] / path).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--density", "0.9,0.8"), "holds no world of density 0.8; it has 0.6, 0.9"),
        (("--density", "most"), "--density must be numbers, separated by commas, got 'most'"),
        (("--configuration", "TransE"), "--configuration must be among complex 32, rotate 32, got 'TransE'"),
        (("--max-steps", 30), "--max-steps must reach the first look of RotatE 32, 50, got 30"),
    ],
)
def test_what_is_wrong_is_said_before_any_work(arguments, message, worlds, call, tmp_path):
    given = ("--max-steps", 50, *arguments)
    out = tmp_path / "out"
    code, _, error = call("figure3", "--worlds", worlds, *given, "--out", out)
    assert code == 2
    assert message in error
    assert error.count("\n") == 1
    assert not (out / "runs").exists()


def test_one_configuration_has_a_curve_and_no_pairs(worlds, finished, call, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished[0] / "runs", out / "runs")
    asked = ("--worlds", worlds, *FEW, "--configuration", "complex 32", "--out", out)
    for name in ("figure4", "claims"):
        code, printed, error = call(name, *asked)
        assert (code, error) == (0, "")
        assert printed.endswith("one configuration: no pairs to compare, so neither Figure 4 nor claims\n")


def test_no_worlds(call, tmp_path):
    code, _, error = call("figure3", "--worlds", tmp_path, "--out", tmp_path / "out")
    assert code == 2
    assert f"{tmp_path}: holds no open world" in error


def test_too_little_memory(worlds, call, tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "training_needs", lambda *_: needs.Needs(2**31, 2**30))
    code, _, error = call("figure3", "--worlds", worlds, "--out", tmp_path)
    assert code == 2
    assert "ComplEx 32 on d0.9 takes about 2.0 GiB of memory, and 1.0 GiB are free" in error
    assert not (tmp_path / "runs").exists()


def test_runs_of_another_seed_are_refused(worlds, finished, call):
    out, _ = finished
    code, _, error = call("claims", "--worlds", worlds, *FEW, "--out", out, "--seed", 1)
    assert code == 2
    assert "belongs to another training; choose another folder" in error


def test_help_has_examples(call):
    code, printed, _ = call("figure3", "--help")
    assert code == 0
    assert "python -m simulations.yang2022 figure3 --preset quick" in printed
    code, printed, _ = call("--help")
    assert code == 0
    for name in ("figure1", "figure2", "figure3", "figure4", "figure5-metrics", "open-world"):
        assert name in printed


def test_where_worlds_come_from(tmp_path, monkeypatch):
    given = runs._worlds_folder(runs.Preset.CPU, tmp_path, tmp_path, 0)
    assert given == tmp_path
    (tmp_path / "family_tree_published").mkdir()
    monkeypatch.setenv("OWKG_DATA", str(tmp_path))
    published = tmp_path / "family_tree_published"
    assert runs._worlds_folder(runs.Preset.CPU, None, tmp_path, 0) == published
    # A first look is at small families, whatever data there are.
    monkeypatch.setattr("owkg.sampling.write_worlds", lambda *_, **__: None)
    found = runs._worlds_folder(runs.Preset.QUICK, None, tmp_path, 0)
    assert found == tmp_path / "worlds" / "quick-seed0"
    # Worlds of one seed are not taken for those of another.
    assert runs._worlds_folder(runs.Preset.QUICK, None, tmp_path, 1) == tmp_path / "worlds" / "quick-seed1"

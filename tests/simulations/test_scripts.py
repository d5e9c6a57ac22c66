"""The scripts run from a clean folder, write what they promise, and fail early on bad places."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from owkg import metrics
from owkg.cli.main import main
from owkg.judge import read_judgements, relabelled, scores
from owkg.kg import read_graph
from owkg.pools import read_sheet
from owkg.ranks import other_candidates, read_ranks

ROOT = Path(__file__).parents[2]


def started(name):
    """What follows `python`: a script, or a package of a paper and its command."""
    package, *command = name.split()
    return (
        ["-m", f"simulations.{package}", *command] if command else [str(ROOT / "simulations" / f"{name}.py")]
    )


def script(name, *arguments, data=None):
    environment = {k: v for k, v in os.environ.items() if k != "OWKG_DATA"}
    environment |= {"PYTHONPATH": str(ROOT)} | ({"OWKG_DATA": str(data)} if data else {})
    return subprocess.run(
        [sys.executable, *started(name), *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


@pytest.fixture
def here(monkeypatch, capsys, signals):
    """`script` in this process, which need not import everything again; its signals are as before then."""

    def run(name, *arguments, data=None):
        package, *command = name.split()
        path = ROOT / "simulations" / (f"{package}/__main__.py" if command else f"{name}.py")
        monkeypatch.setattr(sys, "argv", [str(path), *command, *map(str, arguments)])
        monkeypatch.delenv("OWKG_DATA", raising=False)
        if data:
            monkeypatch.setenv("OWKG_DATA", str(data))
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(path), run_name="__main__")
        printed = capsys.readouterr()
        return subprocess.CompletedProcess(sys.argv, ended.value.code, printed.out, printed.err)

    return run


def test_true_against_reported_mrr(tmp_path, here):
    done = here("yang2022 reported-mrr", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    curves = pl.read_csv(tmp_path / "reported_mrr.csv")
    for (sparsity,), rows in curves.group_by("sparsity", maintain_order=True):
        true, reported = rows["true"].to_numpy(), rows["reported"].to_numpy()
        assert (np.diff(reported) > 0).all()  # at one correlation no order turns
        assert (reported[1:] < true[1:]).all(), sparsity
    better, worse = pl.read_csv(tmp_path / "reported_mrr_models.csv").to_dicts()
    assert better["true"] > worse["true"]
    assert better["reported"] < worse["reported"]
    assert "model A, correlation 0.1: true MRR 0.650, reported 0.236 at 20% missing" in done.stdout
    for suffix in (".png", ".svg", ".pdf"):
        assert (tmp_path / f"reported_mrr{suffix}").stat().st_size > 5000


def test_pictures_again_from_their_tables(tmp_path, here, monkeypatch):
    from simulations import pictures
    from simulations.yang2022 import curve_plots

    table = pl.read_csv(pictures.TABLES / "figure3_sparse_vs_full.csv", glob=False)
    part = table.filter(density=0.75)
    curves, layer = pictures.curves_of(part)
    for name in ("full", "sparse", "correlated"):
        np.testing.assert_allclose(curves.values[name][0].mean(axis=1), part[name], rtol=1e-6)
    assert layer.band.shape == (2, len(part))
    # What theory expects rises with the full metric, but for the digits of the table.
    assert (np.diff(layer.theory, axis=1) >= -2e-4).all()
    monkeypatch.setattr(curve_plots, "_written", lambda _, stem: [stem])
    monkeypatch.setattr("owkg.plots.judging.save_figure", lambda _, stem: [stem])
    monkeypatch.setattr("simulations.yang2022.contradiction_plots.save_figure", lambda _, stem: [stem])
    done = here("pictures", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert [Path(line).name for line in done.stdout.splitlines()] == [
        "figure3_sparse_vs_full",
        "figure5_correlation",
        "inconsistent_by_density",
        "inconsistent_by_metric",
        "pooling_depth",
        "pooling_rankings",
    ]


def test_paired_tests_writes_its_table(here, tmp_path):
    done = here("paired_tests", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    table = pl.read_csv(tmp_path / "paired_tests.csv")
    assert table["setting"].to_list() == ["exchangeable", "up to 2", "up to 5", "up to 10", "A ahead"]


@pytest.mark.parametrize("name", ["figure1_expectation", "figure2_correlation", "queries_required"])
def test_quick_figures(name, tmp_path, here):
    # One as users start it; another process shows that nothing else was needed.
    command = name if name == "queries_required" else f"yang2022 {name.split('_')[0]}"
    done = (script if command == name else here)(command, "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    for suffix in (".csv", ".png", ".svg", ".pdf"):
        path = tmp_path / f"{name}{suffix}"
        assert path.stat().st_size > 500
        assert f"wrote {path}" in done.stdout
    if name != "queries_required":
        z = pl.read_csv(tmp_path / f"{name}.csv")["standardised_difference"].drop_nulls()
        assert abs(z.mean()) < 0.25
        assert 0.85 < z.std() < 1.15


def test_published_points_are_compared(owkg_data, tmp_path, here):
    done = here("yang2022 figure1", "--quick", "--out", tmp_path, data=owkg_data)
    assert "published, all: 568 points" in done.stdout
    assert (tmp_path / "figure1_published.csv").exists()


def test_chance_adjustment(tmp_path, here):
    done = here("hoyt2022 chance-adjustment", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    for name in (".csv", "_models.csv", ".png", ".svg", ".pdf"):
        assert (tmp_path / f"chance_adjustment{name}").stat().st_size > 500
    levels = pl.read_csv(tmp_path / "chance_adjustment.csv").filter(metric="mr")
    candidates = levels["candidates"].to_numpy()
    np.testing.assert_allclose(levels["expectation"], (candidates + 1) / 2, rtol=1e-12)
    np.testing.assert_allclose(levels["variance"], (candidates**2 - 1) / 12 / candidates, rtol=1e-12)
    models = pl.read_csv(tmp_path / "chance_adjustment_models.csv")
    known = models.filter(pl.col("metric").is_in(["mr", "mrr", "hits@10"]), model="knows or guesses")
    adjusted = known["index"].drop_nulls()
    np.testing.assert_allclose(adjusted, 0.3, rtol=1e-9)
    # Hits@10 of at most ten candidates is 1 by chance, and has no index.
    gaps = known.filter(pl.col("index").is_null())
    assert set(gaps["metric"]) == {"hits@10"}
    assert gaps["candidates"].max() <= 10 < known.filter(metric="hits@10").drop_nulls()["candidates"].min()


def test_published_chance_levels_are_compared(owkg_data, tmp_path, here):
    done = here("hoyt2022 chance-adjustment", "--quick", "--out", tmp_path, data=owkg_data)
    assert done.returncode == 0
    lines = [line for line in done.stdout.splitlines() if line.startswith("published")]
    assert [line.split()[1].rstrip(":,") for line in lines] == [
        *("mr", "mrr", "gmr", "hits@10", "imr", "hmr", "igmr")
    ]
    table = pl.read_csv(tmp_path / "chance_adjustment_published.csv")
    closed = table.filter(pl.col("metric").is_in(["mr", "mrr", "hits@10"]))
    for column in ("expectation", "variance"):
        np.testing.assert_allclose(closed[f"own_{column}"], closed[column], rtol=1e-6, atol=1e-300)


def test_example_ranks_and_the_commands_it_prints(tmp_path, here, capsys):
    done = here("example_ranks", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "example"
    graph = read_graph(folder / "graph")
    tables = {path.stem: read_ranks(path).frame for path in folder.glob("*.parquet")}
    assert set(tables) == {"constant", "random", "frequency", "oracle"}
    found = {}
    for name, table in tables.items():
        assert table["model"].unique().to_list() == [name]
        assert len(table) == 2 * len(graph.splits["test"])
        assert other_candidates(table, graph) == 0
        wanted = [metrics.metric("mrr"), metrics.metric("amrr"), metrics.metric("zmrr")]
        found[name] = metrics.evaluate(metrics.tasks_of(table)[0], wanted, level=None)
    constant = found["constant"]
    assert constant["optimistic"]["mrr"].value == 1
    assert abs(constant["exact"]["amrr"].value) < 1e-12
    assert (tables["random"]["optimistic"] == tables["random"]["pessimistic"]).all()
    assert abs(found["random"]["exact"]["zmrr"].value) < 4
    assert (tables["oracle"]["optimistic"] < tables["oracle"]["pessimistic"]).any()
    assert found["oracle"]["exact"]["zmrr"].value > 10
    commands = [line.split() for line in done.stdout.splitlines() if line.startswith("  owkg ")]
    assert [command[1] for command in commands] == ["kg", "metrics", "metrics", "metrics", "compare"]
    for command in commands:
        assert main(command[1:]) == 0, capsys.readouterr().err
    # Scores tell every order: to leave out answers is to rank again.
    assert "depend on the order" not in capsys.readouterr().err
    full, sparse = (read_judgements(folder / f"{name}.qrels") for name in ("full", "sparse"))
    assert len(full) == 2 * len(graph.splits["test"])
    assert 0.45 < len(sparse) / len(full) < 0.7
    assert full.join(sparse, on=full.columns, how="semi").height == len(sparse)
    drawn = ("rank_histogram", "probe_surface", "probe_order")
    assert all(
        (tmp_path / f"{name}{suffix}").exists() for name in drawn for suffix in (".png", ".svg", ".pdf")
    )


def test_the_example_campaign_is_judged_by_the_truth(tmp_path, here):
    assert here("example_campaign", "--out", tmp_path).returncode == 0
    folder = tmp_path / "campaign"
    truth = read_judgements(folder / "truth.qrels")
    line = [str(folder / name) for name in ("a.run", "b.run")]
    line += ["--kg", str(folder / "graph"), "--depth", "3", "--draw", "queries:20", "--out"]
    assert main(["pool", *line, str(folder / "pool")]) == 0
    done = here("example_campaign", "--out", tmp_path, "--judge", folder / "pool" / "sheet.tsv")
    said = read_sheet(folder / "pool" / "sheet.tsv")
    assert f"{said['relevance'].sum()} answers are true" in done.stdout
    right = said.join(truth, on=["query", "answer"], how="semi")
    assert set(right["relevance"]) == {1}
    assert right.height == said["relevance"].sum()


def test_sparse_labels_turn_the_order_of_the_example(tmp_path, here):
    done = here("example_ranks", "--out", tmp_path)
    (constant,) = [line.split() for line in done.stdout.splitlines() if line.split()[:1] == ["constant"]]
    assert constant == ["constant", "1.0000", "0.0026", "0.0052", "0.0170", "0.0000"]
    folder = tmp_path / "example"
    tables = {
        name: read_ranks(folder / f"{name}.parquet").frame for name in ("random", "frequency", "oracle")
    }
    sparse = read_judgements(folder / "sparse.qrels")
    fewer = {name: relabelled(table, sparse).table for name, table in tables.items()}
    for name in ("mrr", "hits@10"):
        full, less = (scores(one, [metrics.metric(name)])[0].strength[0] for one in (tables, fewer))
        assert list(np.argsort(-full)) == [2, 1, 0]
        assert list(np.argsort(-less)) == [1, 2, 0]


def test_trained_models_and_that_runs_are_kept(tmp_path, here):
    arguments = ("trained_models", "--quick", "--seeds", "2", "--out", tmp_path)
    done = script(*arguments)
    assert done.returncode == 0, done.stderr
    runs = pl.read_csv(tmp_path / "trained_models_runs.csv")
    assert runs["seed"].to_list() == [0, 1]
    assert runs["mrr"].n_unique() == 2
    assert runs["mrr"].min() > 0.5
    (row,) = pl.read_csv(tmp_path / "trained_models.csv").to_dicts()
    assert (row["graph"], row["seeds"]) == ("families", 2)
    np.testing.assert_allclose(row["mrr_mean"], runs["mrr"].mean())
    np.testing.assert_allclose(row["mrr_sd"], runs["mrr"].std())
    assert not list(tmp_path.glob("trained_models.*g"))
    # The second time, nothing is trained.
    assert here(*arguments).returncode == 0
    assert pl.read_csv(tmp_path / "trained_models_runs.csv").equals(runs)


def test_trained_models_need_their_graphs(tmp_path, here):
    done = here("trained_models", "--graph", "nations", "--out", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("trained_models.py: error: --data must name the folder that holds nations")
    done = here("trained_models", "--graph", "umls", "--data", tmp_path, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert str(tmp_path / "umls") in done.stderr
    assert done.stderr.count("\n") == 1


def test_family_tree_statistics(tmp_path):
    done = script("family_tree_statistics", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    for suffix in (".csv", ".png", ".svg", ".pdf"):
        assert (tmp_path / f"family_tree_statistics{suffix}").stat().st_size > 500
    table = pl.read_csv(tmp_path / "family_tree_statistics.csv")
    answers = table.filter(count="answers at 0.75", of="mean")
    assert 12 <= answers["mean_generated"].item() <= 17
    facts = table.filter(count="graph", of="facts")
    assert 175_000 < facts["mean_generated"].item() < 205_000 < facts["mean_strict depth"].item()
    shares = table.filter(count="share of queries").select("mean_generated", "mean_strict depth")
    np.testing.assert_allclose(shares.sum().row(0), 1, rtol=1e-12)
    assert "published" not in done.stdout


def test_the_published_family_tree_lies_among_the_generated(owkg_data, tmp_path):
    done = script("family_tree_statistics", "--out", tmp_path, data=owkg_data)
    assert done.returncode == 0, done.stderr
    table = pl.read_csv(tmp_path / "family_tree_statistics.csv")
    counts = table.filter(
        pl.col("count").is_in(["graph", "generations above", "facts"]), pl.col("sd_generated") > 0
    )
    z = (counts["mean_published"] - counts["mean_generated"]) / counts["sd_generated"]
    assert len(z) >= 28
    assert z.abs().max() < 4
    benchmark = table.filter(of="mean").drop_nulls("mean_benchmark")
    assert benchmark["count"].to_list() == [f"answers at {d}" for d in (0.75, 0.95, 0.85, 0.65)]
    assert benchmark["mean_benchmark"].is_between(12, 16).all()


def test_equal_seeds_give_equal_example_ranks(tmp_path, here):
    tables = []
    # Also in another process, where strings have other hashes.
    for run, out, seed in ((script, "a", 1), (here, "b", 1), (here, "c", 2)):
        assert run("example_ranks", "--quick", "--seed", seed, "--out", tmp_path / out).returncode == 0
        tables.append(read_ranks(tmp_path / out / "example" / "oracle.parquet").frame)
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])


@pytest.mark.parametrize("name", ["yang2022 figure1", "yang2022 closed-forms", "hoyt2022 chance-adjustment"])
def test_bad_places_are_named_before_any_work(name, tmp_path, here):
    (tmp_path / "file").write_text("")
    done = here(name, "--out", tmp_path / "file" / "out")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "file" in done.stderr
    done = here(name, "--out", tmp_path / "out", data=tmp_path / "nowhere")
    assert done.returncode == 2
    assert "OWKG_DATA" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_seed_coverage(tmp_path, here):
    done = here("seed_coverage", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "95 % intervals and tests at .05" in done.stdout
    table = pl.read_csv(tmp_path / "seed_coverage.csv")
    strong = table.filter(seed_effect=0.2)
    assert strong["coverage"].item() > 0.85
    assert strong["size"].item() == pytest.approx(1 - strong["coverage"].item())
    # A test that takes the seeds as given finds differences between equal models.
    assert strong["size_over_queries_alone"].item() > strong["size"].item() + 0.05

"""The published study of judged link prediction: printed numbers found again, files written, damage named."""

import gzip
import json
import shutil
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from owkg.cli.options import Format
from owkg.kg import KnowledgeGraph, graph_statistics
from simulations.printed import verdict
from simulations.zhou2022 import judged_benchmark, tables
from simulations.zhou2022.printed import cells
from simulations.zhou2022.published import (
    CATEGORIES,
    POOLED,
    PRINTED_POOL,
    PRINTED_TAU,
    SC,
    WN,
    O,
    S,
    read_study,
)

ROOT = Path(__file__).parents[3]
RESULTS = "kgc_sparsity/results"


@pytest.fixture(scope="module")
def study(owkg_data):
    return read_study(owkg_data)


@pytest.fixture(scope="module")
def main():
    return judged_benchmark.main


def test_the_pool_is_the_printed_one(study):
    found = tables.pool_table(study)
    ours = dict(found.select("what", "ours").rows())
    assert {k: ours[k] for k in PRINTED_POOL} == PRINTED_POOL
    assert dict(found.drop_nulls().select("what", "paper").rows()) == PRINTED_POOL
    # All pooled triples are candidates of the sampled queries.
    assert ours["pooled triples of no query of FB-Test-S"] == 0
    assert (ours["queries of FB-Test-S"], ours["queries of FB-Test-S-C"]) == (1745, 2883)
    assert ours["queries of FB-Test-S-C that FB-Test-S has not"] == 2883 - 1745
    assert ours["filtered by rules"] + ours["judged by hand"] == ours["pooled triples"]
    assert ours["positives at depth 10"] == ours[f"triples of {SC}"] - ours[f"triples of {S}"] == 1715
    assert ours["pooled at depth 10"] == ours["pooled triples"]


def test_the_printed_taus(study):
    found = tables.ranking_table(study)
    assert len(found) == 3 * len(study.metrics)
    micro = found.filter(metric="micro_mrr")
    for (first, second), printed in PRINTED_TAU.items():
        if second in (S, SC):
            row = micro.filter(first=first, second=second)
            assert round(row["tau"].item(), 4) == printed == row["paper"].item()
    assert found["paper"].count() == 2
    depth = tables.depth_table(study).filter(metric="micro_mrr", against=0, depth=2)
    assert round(depth["tau"].item(), 3) == PRINTED_TAU[S, "depth 2"]


@pytest.mark.parametrize("metric", ["micro_mr", "macro_hits@10", "ndcg_cut_20"])
def test_coefficients_are_those_of_scipy(study, metric):
    rows = tables.ranking_table(study).filter(metric=metric, first=S, second=SC)
    one, two = (study.evaluation.filter(test_set=name).sort("system")[metric] for name in (S, SC))
    assert rows["tau"].item() == pytest.approx(stats.kendalltau(one, two).statistic, abs=1e-12)
    assert rows["spearman"].item() == pytest.approx(stats.spearmanr(one, two).statistic, abs=1e-12)


@pytest.mark.parametrize("test_set", [S, SC])
def test_own_shares_give_the_published_totals(study, test_set):
    shares = tables.shares_of(study, test_set)
    assert sum(shares.values()) == pytest.approx(1, abs=1e-12)
    own = tables.reweighted_values(study, test_set, shares)
    published = study.evaluation.filter(test_set=test_set).sort("system")
    assert own["system"].to_list() == published["system"].to_list()
    assert len(own.columns) == 13
    for metric in own.columns[1:]:
        np.testing.assert_allclose(own[metric], published[metric], rtol=0, atol=1e-9)


def test_all_weight_on_a_category_is_the_mean_of_its_sides(study):
    own = tables.shares_of(study, SC)
    for category in CATEGORIES:
        names = study.categories.filter(category=category)["relation"]
        shares = {name: own[name] for name in names if name in own}
        found = tables.reweighted_values(study, SC, shares)["micro_mrr"]
        cells = study.cells.filter(test_set=SC, category=category).sort("system")
        sides = [cells.filter(side=side)["micro_mrr"].to_numpy() for side in ("head", "tail")]
        np.testing.assert_allclose(found, np.mean(sides, axis=0), rtol=1e-12)


def test_cells_and_reweighted_rankings(study):
    cells = tables.cell_table(study)
    assert cells.select("side", "category").n_unique() == len(cells) == 8
    assert cells.filter(side="tail")[S].sum() == 1023
    assert cells.filter(side="head")[SC].sum() == 2738
    # No answer was added to these, so that both test sets rank alike.
    alike = cells.filter(category="one_to_one").select(tables.CELL_METRICS)
    assert (alike.to_numpy() == 1).all()
    reweighted = tables.reweighted_table(study)
    ranks = tables.ranking_table(study)
    for metric in tables.CELL_METRICS:
        own = reweighted.filter(metric=metric, shares=SC)
        for first in (S, O):
            plain = ranks.filter(metric=metric, first=first, second=SC)["tau"].item()
            assert own[f"tau to {first}"].item() == pytest.approx(plain, abs=1e-12)
    # By relation, not by category, the order changes with the shares.
    micro = reweighted.filter(metric="micro_mrr").select("shares", f"tau to {S}").rows()
    assert {name: round(tau, 4) for name, tau in micro} == {SC: -0.2308, S: -0.2051, O: -0.2564}


def test_the_pooled_systems_gain_places_but_not_significantly(study):
    found = tables.pooled_table(study)
    row = found.filter(metric="micro_mrr").row(0, named=True)
    assert (round(row["pooled"], 2), round(row["others"], 2)) == (2.83, -2.43)
    ranks = {name: part.sort("system") for (name,), part in study.evaluation.group_by("test_set")}
    gain = stats.rankdata(ranks[SC]["micro_mrr"]) - stats.rankdata(ranks[S]["micro_mrr"])
    of_pool = ranks[S]["system"].is_in(POOLED).to_numpy()

    def apart(chosen):
        return gain[chosen].mean() - np.delete(gain, chosen).mean()

    every = [abs(apart(list(chosen))) for chosen in combinations(range(13), 6)]
    assert row["difference"] == pytest.approx(apart(np.flatnonzero(of_pool)))
    assert row["p"] == pytest.approx(np.mean(np.array(every) > abs(row["difference"]) - 1e-9))
    assert round(row["p"], 3) == 0.147
    assert (len(found), (found["difference"] > 0).sum()) == (104, 100)
    for name, group in (("pooled", of_pool), ("others", ~of_pool)):
        tau = stats.kendalltau(*(ranks[of]["micro_mrr"].to_numpy()[group] for of in (S, SC))).statistic
        assert row[f"tau_{name}"] == pytest.approx(tau)
        assert abs(tau) < 0.1


def test_the_pool_is_of_six_systems(study):
    assert [tables.most_pooled(study, depth) for depth in (1, 2, 3)] == [6, 12, 18]
    assert len(POOLED) == 6
    assert set(POOLED) < set(study.evaluation["system"])


def test_divergence_and_spread(study):
    one, other = pl.Series(["a", "a", "b"]), pl.Series(["b", "c"])
    p, q = np.array([3, 2, 1]) / 6, np.array([1, 2, 2]) / 5
    assert tables.divergence(one, other, ["a", "b", "c"]) == pytest.approx(stats.entropy(p, q), rel=1e-13)
    found = tables.spread_table(study)
    own = study.relations.filter(test_set=S, system="hitter")["micro_mrr"].to_numpy()
    row = found.filter(test_set=S).row(0)[1:]
    assert row == pytest.approx((len(own), *np.quantile(own, [0.25, 0.5, 0.75])))
    median = dict(found.select("test_set", "median").rows())
    assert 0 < median[O] - median[SC] < median[O] - median[S]


def test_the_ends_of_the_depths(study):
    found = tables.depth_table(study)
    assert len(found) == 2 * 11 * len(study.metrics)
    assert (found.filter(pl.col("against") == pl.col("depth"))["tau"] == 1).all()
    across = [found.filter(against=a, depth=d)["tau"].to_numpy() for a, d in ((0, 10), (10, 0))]
    np.testing.assert_allclose(*across, atol=1e-12)
    # Of FB-Test-S and FB-Test-S-C, but for the metrics of HAKE that differ between the files.
    plain = tables.ranking_table(study).filter(first=S, second=SC)
    sound = np.array([not name.startswith("macro_") for name in study.metrics])
    np.testing.assert_allclose(across[0][sound], plain["tau"].to_numpy()[sound], atol=1e-12)


def test_p_values_are_of_paired_t_tests_and_what_they_tell(study):
    checks = dict(
        tables.check_table(study).select(pl.concat_str("check", "of", separator=": "), "difference").rows()
    )
    units = [value for name, value in checks.items() if name.startswith("paired t over units")]
    assert len(units) == 6
    assert max(units) < 1e-6
    # Another number of units does not give whole numbers.
    values = study.evaluation.filter(test_set=SC)
    pairs = study.p_values.filter(test_set=SC)
    assert tables._off_whole(pairs, values, "micro_hits@1", 2883) > 0.1
    found = tables.significance_table(study)
    assert len(found) == 3 * len(study.metrics)
    assert (found["pairs"] == 78).all()
    row = found.filter(test_set=SC, metric="micro_mrr").row(0, named=True)
    p = np.sort(pairs["micro_mrr"].to_numpy())
    assert row["area"] == pytest.approx(p.mean(), rel=1e-12)
    assert row["significant"] == np.mean(p < 0.05)
    assert row["holm"] == pytest.approx(np.logical_and.accumulate(p < 0.05 / np.arange(78, 0, -1)).mean())
    assert row["benjamini_hochberg"] == np.mean(stats.false_discovery_control(p) < 0.05)
    assert (found["holm"] <= found["benjamini_hochberg"]).all()
    assert (found["benjamini_hochberg"] <= found["significant"]).all()


def test_only_the_macro_metrics_of_hake_disagree(study):
    found = tables.check_table(study).filter(pl.col("difference") > 1e-3)
    assert sorted(found.select("check", "of").rows()) == [
        ("depth 10 is the file", f"{SC}, macro metrics, hake"),
        *(("macro MRR is recip_rank", f"{name}, hake") for name in (O, S, SC, WN)),
    ]


def test_counts_of_triples_that_are_printed_wrong(study):
    ours = dict(tables.pool_table(study).select("what", "ours").rows())
    assert ours["judged by hand"] == 12_570 < 12_599
    assert ours["pooled triples"] == 22_492 - ours[f"triples of {S}"] == 21_469
    assert {"atte"} == {name for name in study.evaluation["system"] if name in ("atte", "roth")}
    assert 3_600 < study.evaluation.filter(test_set=WN)["micro_mr"].mean() < 3_700


def test_macro_metrics_are_not_above_micro_metrics_at_every_depth(study):
    found = tables.depth_table(study).filter(against=0)
    tau = {(m, d): t for m, d, t in found.select("metric", "depth", "tau").rows()}
    assert tau["macro_mrr", 1] == pytest.approx(tau["micro_mrr", 1], abs=1e-12)
    assert tau["macro_hits@10", 1] < tau["micro_hits@10", 1] - 0.01
    for metric in ("mrr", "hits@10"):
        assert all(tau[f"macro_{metric}", d] > tau[f"micro_{metric}", d] for d in range(2, 11))


def test_micro_metrics_tell_more_pairs_apart_on_complete_labels(study):
    area = {
        (s, m): a for s, m, a in tables.significance_table(study).select("test_set", "metric", "area").rows()
    }
    micro = [area[SC, f"micro_{name}"] for name in ("mrr", "hits@10")]
    macro = [area[SC, name] for name in ("macro_mrr", "macro_hits@10", "map_cut_20", "ndcg_cut_20")]
    assert max(micro) < 0.103 < 0.121 < min(macro)
    # On sparse labels it is the other way round, for MRR.
    assert all(area[name, "macro_mrr"] < area[name, "micro_mrr"] for name in (O, WN))


def test_heads_of_many_to_one_relations_are_never_in_reverse(study):
    row = tables.cell_table(study).filter(side="head", category="many_to_one").select(tables.CELL_METRICS)
    assert min(row.row(0)) > 0.09


def test_some_printed_digits_are_cut(study, owkg_data):
    cut = {cell.place for cell in cells(owkg_data) if verdict(cell) == "cut"}
    assert cut == {
        "Table 3, head N-N, Hits@3",
        "Table 4, Complete, Hits@1",
        "Table 4, Complete, Hits@3",
        f"section 3.2, KL({O} || {S})",
        f"section 3.2, KL(all || {O})",
    }


def test_files_and_tables_are_written(main, owkg_data, tmp_path, capsys):
    main(owkg_data, tmp_path, Format.JSON)
    shown = json.loads(capsys.readouterr().out)
    written = {path.name for path in tmp_path.iterdir()}
    assert {Path(path).name for path in shown.pop("files")} == written
    for name, rows in shown.items():
        table = pl.read_csv(tmp_path / f"judged_benchmark_{name}.csv", infer_schema_length=None)
        assert len(table) == len(rows) > 0
        assert table.columns == list(rows[0])
    for stem in ("depth_micro", "depth_macro", "asl", "ranks", "readings"):
        assert {f"judged_benchmark_{stem}{suffix}" for suffix in (".png", ".svg", ".pdf")} <= written
    assert all(path.stat().st_size > 150 for path in tmp_path.iterdir())


def test_tables_are_printed_in_words(main, owkg_data, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(main.__globals__, "draw", lambda *_: [])
    main(owkg_data, tmp_path)
    shown = capsys.readouterr().out
    printed = "FB-Test-O to FB-Test-S 0.7949 (paper 0.7949), FB-Test-S to FB-Test-S-C -0.2308 (paper -0.2308)"
    assert f"micro MRR: {printed}, FB-Test-S to depth 2 0.3590 (paper 0.359)" in shown
    assert shown.count("python -m simulations.printed --paper zhou2022") == 1
    assert f"wrote {tmp_path / 'judged_benchmark_pool.csv'}" in shown


def test_without_data_there_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.delenv("OWKG_DATA", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = [sys.executable, "-m", "simulations.zhou2022", "published", "--out", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("python -m simulations.zhou2022: error: --data must name the folder")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_without_the_files_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"fb_test_o_evaluation.csv: no such file"):
        read_study(tmp_path)


EVALUATION = f"{RESULTS}/fb_test_s_evaluation.csv"
TESTS = f"{RESULTS}/fb_test_o_discriminative_power.csv.gz"
DEPTH = f"{RESULTS}/fb_test_s_c_pooling_depth.csv.gz"


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (EVALUATION, lambda lines: lines[:-1], r"evaluation.csv: must have a row of fb15k-237-tucker"),
        (
            EVALUATION,
            lambda lines: [*lines, lines[1]],
            r"evaluation.csv, line 15: fb15k-237-\w+ must be a known row that appears once",
        ),
        (
            EVALUATION,
            lambda lines: [*lines[:2], lines[2].replace("0.", "x.", 1)],
            r"line 3: 'x.\d+' in the column",
        ),
        (EVALUATION, lambda lines: [*lines[:2], lines[2].replace("0.", "nan0.", 1)], "line 3: 'nan0"),
        (EVALUATION, lambda lines: [*lines[:2], lines[2] + ",1"], "line 3: 106 fields, not 105"),
        (
            EVALUATION,
            lambda lines: [lines[0].replace("macro_mrr", "other"), *lines[1:]],
            "must have the column macro_mrr",
        ),
        (EVALUATION, lambda lines: [], "an empty file"),
        (EVALUATION, lambda lines: [lines[0].replace("macro_mrr", "map"), *lines[1:]], "two columns of one"),
        (DEPTH, lambda lines: lines[:-1], r"pooling_depth.csv.gz: must have a row of \d+, fb15k"),
        (TESTS, lambda lines: lines[:3], "must have one p-value for each of 78 pairs"),
        (
            TESTS,
            lambda lines: [*lines[:2], lines[2].replace(",0.", ",7.", 1)],
            "line 3: 7.* is not a p-value",
        ),
        (
            "kgc_sparsity/pooling_depth.txt.gz",
            lambda lines: [lines[0][:-1] + "11"],
            "line 1: '11' is not a depth",
        ),
        ("kgc_sparsity/annotations.txt.gz", lambda lines: lines[:9], "pooled triples are missing"),
        (
            "kgc_sparsity/filtered.txt.gz",
            lambda lines: [lines[0][:-1] + "?"],
            r"line 1: '\?' is neither Y nor N",
        ),
        (
            "kgc_sparsity/fb_test_s.txt",
            lambda lines: [*lines, lines[4]],
            "line 1024: must not repeat a triple",
        ),
        ("kgc_sparsity/fb_test_s.txt", lambda lines: [lines[0], "a\tb"], "line 2: 2 fields, not 3"),
        (
            "kgc_sparsity/relation_category/one_to_one.txt",
            lambda lines: [*lines, lines[0]],
            "has two categories",
        ),
    ],
)
def test_damage_is_named_with_its_file(name, change, message, owkg_data, tmp_path):
    for folder in ("kgc_sparsity", "fb15k237", "wn18rr"):
        shutil.copytree(owkg_data / folder, tmp_path / folder, ignore=shutil.ignore_patterns("train*"))
    path = tmp_path / name
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as file:
        lines = file.read().splitlines()
    path.unlink()
    with opened(path, "wt") as file:
        file.write("".join(f"{line}\n" for line in change(lines)))
    with pytest.raises(ValueError, match=message) as error:
        read_study(tmp_path)
    assert str(tmp_path) in str(error.value)


def test_a_file_that_is_cut_short_is_named(owkg_data, tmp_path):
    shutil.copytree(owkg_data / "kgc_sparsity", tmp_path / "kgc_sparsity")
    path = tmp_path / DEPTH
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"pooling_depth.csv.gz: must be a whole gzip file"):
        read_study(tmp_path)


def test_an_empty_intersection_of_three_splits_lets_facts_leak():
    """A fact that trains and is asked, which the printed condition does not exclude."""
    facts = {"train": [0, 0, 1], "valid": [0, 0, 2], "test": [0, 0, 1]}
    splits = {name: np.array([fact], np.int32) for name, fact in facts.items()}
    assert not set.intersection(*({tuple(fact)} for fact in facts.values()))
    found = graph_statistics(KnowledgeGraph(("a", "b", "c"), ("r",), splits))
    assert found["leakage"]["test"] == {"train": 1, "valid": 0}

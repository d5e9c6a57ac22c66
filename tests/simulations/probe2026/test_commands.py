"""Table 2 and the figures of PROBE: from trained models, and from rank tables of one's own."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import owkg
from owkg.kg import KnowledgeGraph
from owkg.ranks import read_ranks
from simulations.probe2026 import figures
from simulations.probe2026.__main__ import main as MAIN  # noqa: N812
from simulations.probe2026.table2 import ROBUSTNESS, SHARPNESS, table_2
from simulations.rank_tables import DataSet

INPUT = Path(__file__).parents[2] / "golden" / "input"
OWN = ("--kg", INPUT / "graph", "--ranks", INPUT / "oracle.csv", "--ranks", INPUT / "frequency.csv")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Where `table2 --quick` has been."""
    folder = tmp_path_factory.mktemp("probe")
    assert MAIN(["table2", "--quick", "--out", str(folder)]) == 0
    return folder


def test_table_2_has_a_row_for_each_part_model_and_parameter(out):
    table = pl.read_csv(out / "probe" / "table2.csv", glob=False)
    assert table.select("part", "model").unique().height == 4
    for part, column, asked in (("P1", "sharpness", SHARPNESS), ("P2", "robustness", ROBUSTNESS)):
        rows = table.filter(part=part)
        assert rows.filter(model="RotatE")[column].to_list() == list(asked)
        for (_,), of in rows.group_by(column):
            assert of.sort("value", descending=True)["place"].to_list() == [1, 2]
    # Sharpness falls on every miss; and both parts hold MRR, rescaled.
    for (_,), of in table.filter(part="P1").group_by("model"):
        assert (np.diff(of["value"]) < 0).all()
    same = [table.filter(part=p, sharpness=1.0, robustness=0.0)["value"].to_list() for p in ("P1", "P2")]
    assert same[0] == same[1]


def test_runs_are_kept(out, call):
    runs = {path: path.stat().st_mtime_ns for path in (out / "probe" / "runs").rglob("*.npz")}
    before = (out / "probe" / "table2.csv").read_bytes()
    code, printed, _ = call("table2", "--quick", "--out", out)
    assert code == 0
    assert "P2: PROBE by robustness (place)" in printed
    assert (out / "probe" / "table2.csv").read_bytes() == before
    assert {path: path.stat().st_mtime_ns for path in (out / "probe" / "runs").rglob("*.npz")} == runs


def test_figures_of_trained_models(out, call):
    code, printed, _ = call("figures", "--quick", "--out", out)
    assert code == 0
    folder = out / "probe" / "families"
    for name in ("figure1", "figure2", "figure3", "probe_surface", "probe_order"):
        for suffix in (".png", ".svg", ".pdf"):
            assert (folder / f"{name}{suffix}").stat().st_size > 500
            assert f"wrote {folder / name}{suffix}" in printed
    ranks = pl.read_csv(folder / "figure1a.csv", glob=False)
    np.testing.assert_allclose(ranks.group_by("model").agg(pl.col("share").sum())["share"], 1, rtol=1e-12)
    assert ranks["first"].to_list()[:4] == [1, 2, 4, 8]
    popular = pl.read_csv(folder / "figure1b.csv", glob=False)
    assert popular.columns == ["model", "popularity", "mrr", "tasks"]


def test_table_2_of_own_rank_tables(tmp_path, call):
    code, _, error = call("table2", *OWN, "--sharpness", 1, "--robustness", 0.5, "--out", tmp_path)
    assert code == 0, error
    table = pl.read_csv(tmp_path / "probe" / "table2.csv", glob=False)
    assert table.select("part", "data", "model").rows() == [
        *(("P1", "graph", "oracle"), ("P1", "graph", "frequency")),
        *(("P2", "graph", "oracle"), ("P2", "graph", "frequency")),
    ]
    ranks = read_ranks(INPUT / "oracle.csv").frame
    number = owkg.read_graph(INPUT / "graph").num_entities
    rank = (ranks["optimistic"] + ranks["pessimistic"]).to_numpy() / 2
    by_hand = ((1 / rank - 1 / number) / (1 - 1 / number)).mean()
    assert table["value"][0] == pytest.approx(by_hand, rel=1e-12)


def test_seeds_are_averaged():
    row = {"head": "a", "relation": "r", "tail": "b", "side": "tail", "candidates": 5, "popularity": 3}
    graph = KnowledgeGraph(tuple("abcde"), ("r",), {"train": np.array([[0, 0, 1]], np.int32)})

    def value(*ranks):
        frame = pl.DataFrame(
            [row | {"optimistic": r, "pessimistic": r, "seed": s} for s, r in enumerate(ranks)]
        )
        return table_2([DataSet("one", graph, {"m": frame})])["value"].to_numpy()

    np.testing.assert_allclose(value(1, 4), (value(1) + value(4)) / 2, rtol=1e-12)


def test_functions_of_rank_and_popularity():
    scores = figures.scores_of_ranks(50)
    a, rank = (scores[name].to_numpy() for name in ("sharpness", "rank"))
    np.testing.assert_allclose(scores["power"], rank**-a, rtol=1e-12)
    np.testing.assert_allclose(scores["probe"], (rank**-a - 50.0**-a) / (1 - 50.0**-a), atol=1e-12)
    weights = figures.weights(99)
    b, popularity = (weights[name].to_numpy() for name in ("robustness", "popularity"))
    assert (popularity.min(), popularity.max()) == (0, 99)
    np.testing.assert_allclose(weights["weight"], (popularity + 1.0) ** -b, rtol=1e-12)


def test_shares_of_entities_by_popularity():
    facts = np.array([[0, 0, 1], [0, 0, 2], [0, 0, 0]], np.int32)
    graph = KnowledgeGraph(tuple("abcd"), ("r",), {"train": facts, "test": facts[:1]})
    assert figures.popularities(graph).rows() == [*(("train", 1, 0.75), ("train", 3, 0.25)), ("test", 1, 0.5)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--ranks", INPUT / "oracle.csv"), "--ranks needs one --kg"),
        ((*OWN, "--ranks", INPUT / "oracle.csv"), "oracle.csv: model 'oracle' is in another"),
        (("--kg", INPUT / "graph", "--kg", INPUT / "graph"), "--kg must name folders with different names"),
        ((*OWN, "--robustness", -1), "robustness"),
    ],
    ids=["no graph", "twice", "one name", "robustness"],
)
def test_what_cannot_be_is_refused_in_one_line(arguments, message, tmp_path, call):
    code, _, error = call("table2", *arguments, "--out", tmp_path)
    assert code == 2
    assert error.count("\n") == 1
    assert message in error


def test_ranks_of_another_graph_are_named(tmp_path, call):
    table = read_ranks(INPUT / "oracle.csv").frame.with_columns(head=pl.lit("nobody"))
    table.write_csv(tmp_path / "other.csv")
    code, _, error = call(
        "figures", "--kg", INPUT / "graph", "--ranks", tmp_path / "other.csv", "--out", tmp_path
    )
    assert code == 2
    assert "other.csv: row 1: the graph has no entity 'nobody'" in error


def test_the_order_of_the_models_depends_on_both_parameters():
    """As the README says of the table of this repository."""
    path = Path(__file__).parents[3] / "docs" / "reproduction" / "probe_table2.csv"
    table = pl.read_csv(path, glob=False).filter(data="codex-s")
    for part, column, ahead in (("P1", "sharpness", 0.25), ("P2", "robustness", 1.0)):
        places = table.filter(part=part).pivot("model", index=column, values="place")
        better = places.filter(pl.col("TransE") < pl.col("RotatE"))
        assert better[column].to_list() == [ahead]
        assert len(places) == 4

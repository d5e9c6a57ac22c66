"""Designs from Python: the same pools, files and plans as those of the command."""

import polars as pl
import pytest

import owkg
from owkg import pools
from owkg.cli.main import main
from owkg.judge import read_judgements, write_judgements
from owkg.judge.runs import write_run
from owkg.pools.units import settings_of
from tests.estimation.worlds import world
from tests.pools.folders import filled, folder_of_graph

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """(run, all true answers, folder of the graph, files of the runs)."""
    run, before, truth = world(queries=80)
    folder = tmp_path_factory.mktemp("front")
    (folder / "kg").mkdir()
    files = []
    for name in ("m0", "m1", "m2"):
        files.append(folder / f"{name}.run")
        write_run(run.filter(model=name), files[-1])
    return run, truth, folder_of_graph(folder / "kg", run, before, truth), files


def _asked(drawn):
    return pools.asked_candidates(drawn).select("query", "answer")


@pytest.mark.parametrize(
    ("what", "options"),
    [
        (pools.Queries(30, strata="size"), ("--draw", "queries:30", "--strata", "size")),
        (pools.Candidates(60, "p@3", ("m0", "m2")), ("--draw", "candidates:60", "--for", "m0-m2:p@3")),
        (pools.Below(20, depth=5), ("--draw", "below:20", "--below-depth", "5")),
        ("prefixes:30", ("--draw", "prefixes:30")),
    ],
    ids=str,
)
def test_a_draw_is_that_of_the_command(campaign, what, options, tmp_path):
    run, _, graph, files = campaign
    depth = 3 if "--below-depth" in options else 5
    drawn = pools.draw(files, graph, what, depth=depth, seed=7, out=tmp_path / "one")
    line = [*map(str, files), "--kg", str(graph), "--depth", str(depth), "--seed", "7"]
    assert main(["pool", *line, *options, "--out", str(tmp_path / "two")]) == 0
    for name in ("design.tsv", "design.json", "sheet.tsv", "pool.tsv", "pool.qrels"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    # In memory and read again it is the same.
    memory = pools.draw(run, owkg.read_graph(graph), what, depth=depth, seed=7)
    assert _asked(memory).equals(_asked(drawn))
    assert _asked(pools.read_pool(tmp_path / "two")).equals(_asked(drawn))


def test_more_and_estimates(campaign, tmp_path):
    _, truth, graph, files = campaign
    (tmp_path / "names.tsv").write_text("r1\tis a child of\n")
    words = {"names": tmp_path / "names.tsv"}
    drawn = pools.draw(files, graph, pools.Queries(30), depth=5, seed=7, out=tmp_path / "pool", **words)
    longer = drawn.more(20)
    sheet = pools.draw_further(tmp_path / "pool", 20, **words)
    assert all("is a child of" in one.read_text() for one in (tmp_path / "pool" / "sheet.tsv", sheet))
    assert _asked(pools.read_pool(tmp_path / "pool")).equals(_asked(longer))
    for one in (tmp_path / "pool" / "sheet.tsv", sheet):
        filled(truth, one)
    found = owkg.estimate(tmp_path / "pool", metrics="rr")
    judged = pl.concat([pools.read_sheet(tmp_path / "pool" / "sheet.tsv"), pools.read_sheet(sheet)])
    assert owkg.estimate(longer, judged, "rr").metrics.equals(found.metrics)
    table = pools.plan_further(tmp_path / "pool", widths={"rr": 0.05})
    assert table.equals(pools.plan_further(longer, judged, "rr", widths={"rr": 0.05}))
    assert table["count"].item() - table["more"].item() == 50


def test_a_plan_has_widths_and_wishes(campaign):
    _, _, graph, files = campaign
    found = pools.plan(files, graph, depth=5, widths={"rr": 0.1})
    assert found.widths["metric"].unique().to_list() == ["RR@5"]
    assert found.wishes["unit"].to_list() == ["queries", "prefixes"]
    assert any("their judgements are kept" in note for note in found.notes)
    usual = pools.plan(files, graph, depth=5)
    assert usual.wishes is None
    assert usual.widths["metric"].n_unique() == len(pools.front.METRICS)


def test_topics_have_judgements_in_place_of_a_graph(tmp_path):
    queries = [f"topic {i}" for i in range(20)]
    runs = {
        name: {query: {f"d{j * step}": float(-j) for j in range(4)} for query in queries}
        for name, step in (("a", 1), ("b", 2))
    }
    known = pl.DataFrame({"query": queries, "answer": "d2", "relevance": 1})
    qrels = known.with_columns(side=pl.lit("tail"), entity="query", relation=pl.lit(owkg.kg.names.TOPIC))
    drawn = pools.draw(runs, qrels, pools.Queries(10), depth=3)
    assert (drawn.people.label == 1).sum() == 20
    assert "d2" not in pools.asked_candidates(drawn)["answer"].to_list()
    write_judgements(qrels, tmp_path / "known.qrels")
    again = pools.draw(runs, tmp_path / "known.qrels", pools.Queries(10), depth=3)
    assert read_judgements(tmp_path / "known.qrels", topics="allowed").height == 20
    assert _asked(again).equals(_asked(drawn))
    assert len(pools.asked_candidates(pools.draw(runs, None, pools.Queries(20), depth=3))) == 20 * 4


def test_what_cannot_be_drawn(campaign):
    _, _, graph, files = campaign
    for what, message in (
        (pools.Queries(0), "`what` must be one of queries:N"),
        (pools.Queries(900), "`what` must be at most the 80 queries"),
        (pools.Queries(9, "relation"), "`strata` must be size or left out"),
        (3, "`what` must be Queries, Prefixes, Candidates or Below, or text"),
        ("facts:9", "`what` must be one of queries:N"),
        (pools.Candidates(9, "rr"), "`for` must be P@k or RBP"),
    ):
        with pytest.raises(ValueError, match=message):
            pools.draw(files, graph, what, depth=5)
    with pytest.raises(ValueError, match="`graph` must be given to make a pool of head"):
        pools.draw(files, None, "queries:9", depth=5)
    with pytest.raises(ValueError, match="`metrics` must be one of rr@k"):
        pools.plan(files, graph, "amr", depth=5)
    with pytest.raises(ValueError, match="`widths` must be"):
        pools.plan(files, graph, depth=5, widths={"rr": -1.0})


def test_designs_as_settings():
    assert settings_of(pools.Prefixes(5, "size")) == {
        "draw": "prefixes:5", "strata": "size", "for": None, "below_depth": 100
    }  # fmt: skip
    assert settings_of(pools.Candidates(5, ("p@3", "rbp")))["for"] == "p@3,rbp"

"""Systems that join a drawn pool: what is judged stays, and estimates are those of a pool of all of them."""

import json

import numpy as np
import polars as pl
import pytest

import owkg
from owkg import pools
from owkg.cli.main import main
from owkg.estimation import Asked, DrawnPool, Unit, draw, estimate, free_proxy, population
from owkg.judge import write_judgements, write_run
from owkg.pools.adding import joined
from owkg.pools.drawn import read_drawn
from owkg.pools.units import settings_of
from tests.estimation.worlds import world
from tests.pools.folders import filled, folder_of_graph

DEPTH = 5
FIRST = ("m0", "m1")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """(run of three systems, all true answers, folder of the graph)."""
    run, before, truth = world(3, queries=80)
    return run, truth, folder_of_graph(tmp_path_factory.mktemp("graph"), run, before, truth)


@pytest.fixture
def drawn(campaign, tmp_path):
    """Draws a design from the pool of the first two systems, and fills its sheet in."""
    run, truth, graph = campaign

    def made(what):
        folder = tmp_path / "pool"
        pools.draw(_of(run, *FIRST), graph, what, depth=DEPTH, seed=4, out=folder)
        filled(truth, folder / "sheet.tsv")
        return folder

    return made


def _of(run, *models):
    return run.filter(pl.col("model").is_in(models))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("what", [pools.Queries(30), pools.Queries(40, "size"), pools.Prefixes(40)], ids=str)
def test_queries_are_those_of_a_pool_of_all_systems(campaign, drawn, what, tmp_path):
    run, truth, graph = campaign
    folder = drawn(what)
    sheet = (folder / "sheet.tsv").read_bytes()
    added = pools.add_systems(folder, _of(run, "m2"), graph)
    assert (folder / "sheet.tsv").read_bytes() == sheet
    assert added.systems == ["m2"]
    sheets = [pools.read_sheet(folder / name, blank=True) for name in ("sheet.tsv", "sheet2.tsv")]
    asked = pl.concat(sheets)
    assert asked.select("query", "answer").is_unique().all()
    filled(truth, folder / "sheet2.tsv")

    pools.draw(run, graph, what, depth=DEPTH, seed=4, out=tmp_path / "all")
    filled(truth, tmp_path / "all" / "sheet.tsv")
    found, expected = owkg.estimate(folder), owkg.estimate(tmp_path / "all")
    assert found.metrics.drop("judgements", "equivalent_judgements").equals(
        expected.metrics.drop("judgements", "equivalent_judgements")
    )
    assert found.differences.equals(expected.differences)
    # Files say the same as those of the other pool.
    one, other = (pl.read_csv(path / "pool.tsv", separator="\t") for path in (folder, tmp_path / "all"))
    assert one.equals(other)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_folder_goes_on_as_before(campaign, drawn):
    run, truth, graph = campaign
    folder = drawn(pools.Candidates(80))
    (folder / "mine.txt").write_text("notes")
    added = pools.add_systems(folder, _of(run, "m2"), graph)
    said = json.loads((folder / "design.json").read_text())
    assert said["added"] == [{"systems": ["m2"], "sheet": "sheet2.tsv"}]
    assert [batch["sheet"] for batch in said["batches"]] == ["sheet.tsv", "sheet2.tsv"]
    assert (folder / "mine.txt").read_text() == "notes"
    assert json.loads((folder / "metadata.json").read_text())["systems"] == ["m0", "m1", "m2"]
    # Only what the new system alone lists is asked about, in strata of its own.
    again, sheets = read_drawn(folder)
    assert sheets == ["sheet.tsv", "sheet2.tsv"]
    drawing = again.drawing
    assert drawing.batches[1].tolist() == added.drawn.drawing.batches[1].tolist()
    is_new = (again.people.places[:2, drawing.frame] == 0).all(0)
    strata = set(drawing.stratum[is_new].tolist())
    assert strata.isdisjoint(drawing.stratum[~is_new].tolist())
    assert set(np.flatnonzero(drawing.batches[1]).tolist()) == strata
    # The next sheet is the third, and draws from all strata.
    assert pools.draw_further(folder, 60).name == "sheet3.tsv"
    for name in ("sheet2.tsv", "sheet3.tsv"):
        filled(truth, folder / name)
    found = owkg.estimate(folder)
    assert (found.judged, found.unjudged) == (80 + added.to_judge + 60, 0)
    assert found.metrics["model"].to_list() == ["m0", "m1", "m2"]


def test_intervals_of_enlarged_strata_cover():
    """Of 300 draws of candidates that a system joins, single intervals cover the truth of the whole pool."""
    run, before, truth = world(5, queries=120, systems=3)
    small, whole = (population(_of(run, *names), DEPTH, before) for names in (FIRST, (*FIRST, "m2")))
    proxies = free_proxy(small), free_proxy(whole)
    settings = settings_of(pools.Candidates(150))
    true = np.where(whole.label == 1, 1, np.maximum(whole.labelled(truth), 0)).astype(float)
    expected = np.append(true, 0)[whole.slot].mean((1, 2))
    held = []
    for seed in range(300):
        drawing = draw(small, Asked(Unit.CANDIDATES, 150), seed=seed, proxy=proxies[0])
        first = DrawnPool(small, drawing, proxies[0], before, DEPTH)
        pool = DrawnPool(whole, joined(first, whole, proxies[1], settings), proxies[1], before, DEPTH)
        chosen = pool.drawing.frame[pool.drawing.order()[0]]
        judged = whole.pairs(chosen).with_columns(relevance=pl.Series(true[chosen].astype(np.int64)))
        found = estimate(pool, judged, ["p"], compare=False).metrics
        held.append((found["ci_low"].to_numpy() <= expected) & (expected <= found["ci_high"].to_numpy()))
    assert np.mean(held, axis=0).min() > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 300)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_cannot_join(campaign, drawn, tmp_path):
    run, _, graph = campaign
    folder = drawn(pools.Queries(30))
    files = {path.name: path.read_bytes() for path in folder.iterdir()}

    def refused(message, runs, kg=graph, pool=folder):
        with pytest.raises(ValueError, match=message):
            pools.add_systems(pool, runs, kg)

    refused("`runs` must hold further systems: m1 is already in the pool", _of(run, "m1"))
    other = _of(run, "m2")
    refused("`graph` must be the graph of the pool, whose answers in train left the lists", other, None)
    lacking = other.filter(pl.col("query") != other["query"][0])
    refused("`runs` must answer every query of the pool: m2 lacks 1 of 80, such as", lacking)
    refused(
        "`runs` must answer the queries of the pool, got none", other.with_columns(query=pl.lit("e|r0|?"))
    )
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
    below = tmp_path / "below"
    deep = _of(run, *FIRST)
    pools.draw(deep, graph, pools.Below(20, depth=5), depth=2, out=below)
    refused("`runs` must be left out if answers below the pool were drawn", other, pool=below)
    only_test = owkg.read_graph(graph)._replace(splits={"test": owkg.read_graph(graph).splits["test"]})
    refused("`graph` must be the graph of the pool: it has no split train", other, only_test)
    closed = tmp_path / "closed"
    write_run(deep, tmp_path / "deep.run")
    write_judgements(campaign[1], tmp_path / "truth.qrels")
    line = f"pool {tmp_path}/deep.run --kg {graph} --depth 5 --truth {tmp_path}/truth.qrels --closed-world"
    assert main([*line.split(), "--judged-queries-only", "--draw", "queries:9", "--out", str(closed)]) == 0
    refused("`runs` must be left out if the truth judged the whole pool", other, pool=closed)
    plain = tmp_path / "plain"
    plain.mkdir()
    refused("must be a folder that owkg pool wrote", other, pool=plain)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_system_that_lists_nothing_new_needs_no_sheet(campaign, drawn):
    run, _, graph = campaign
    folder = drawn(pools.Queries(30))
    added = pools.add_systems(folder, _of(run, "m1").with_columns(model=pl.lit("copy")), graph)
    assert (added.sheet, added.to_judge) == (None, 0)
    rows = owkg.estimate(folder, metrics=["rr"]).metrics.select("model", "value", "ci_low", "ci_high")
    assert rows.filter(model="m1").drop("model").equals(rows.filter(model="copy").drop("model"))


def test_a_system_joins_a_pool_of_topics(campaign, tmp_path):
    runs = {name: {f"topic {i}": {"x": 1, f"{name}{i}": 2} for i in range(20)} for name in "abc"}
    pools.draw({name: runs[name] for name in "ab"}, None, pools.Queries(12), depth=2, out=tmp_path / "pool")
    with pytest.raises(ValueError, match="`graph` must be left out if queries are topics"):
        pools.add_systems(tmp_path / "pool", {"c": runs["c"]}, campaign[2])
    added = pools.add_systems(tmp_path / "pool", {"c": runs["c"]})
    assert added.to_judge == 12
    sheet = pools.read_sheet(
        tmp_path / "pool" / "sheet2.tsv", pools.asked_candidates(added.drawn), blank=True
    )
    assert sheet["answer"].str.starts_with("c").all()

"""A metric, a measure of lists and a kind of file of a user's own, named in one place, known everywhere."""

import sys

import numpy as np
import polars as pl
import pytest

from owkg import plugins
from owkg.cli.main import main
from owkg.ir import Measure
from owkg.metrics import Entry, ListGain, evaluate, metric, register_metric, tasks, unregister_metric
from owkg.metrics.list_gains import GAINS
from owkg.rank_weights import MRR, RankWeight, rank_weight
from owkg.ranks import Importer, convert, read_ranks, register_importer, write_ranks
from owkg.ranks.imported import OWN

MODULE = """
import numpy as np, polars as pl
from owkg.ir import Measure
from owkg.metrics import Entry, ListGain, register_metric
from owkg.rank_weights import RankWeight
from owkg.ranks import Importer, register_importer

SQUARED = RankWeight("squared-rr", lambda rank: rank**-2.0)
register_metric(Entry("squared-rr", "squared-rr", "mean of r^-2", "(0, 1]", "larger", "closed", "own",
               lambda: SQUARED))
register_metric(ListGain("second", ("2nd",), lambda p: 1.0 * (p == 2),
                  lambda added, answers, k: np.ones(len(answers)), "whether an answer is second", "own"))
register_metric(Entry("Last", "Last", "1 if the last of the list is relevant", "[0, 1]", "larger", "-", "own",
               lambda: Measure("Last", lambda judged: np.ones(len(judged.queries)))))

def read(path, graph):
    rows = [line.split() for line in path.read_text().splitlines()]
    return pl.DataFrame([
        {"head": h, "relation": r, "tail": t, "side": "tail", "optimistic": int(n), "pessimistic": int(n),
         "candidates": 9} for h, r, t, n in rows
    ])

register_importer(Importer("plain", "a plain list", read, holds=lambda path: path.suffix == ".plain"))
"""
QUERIES = 40


def _table(seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    rank = rng.integers(1, 10, QUERIES)
    return pl.DataFrame(
        {
            "head": [f"h{i}" for i in range(QUERIES)],
            "relation": "r",
            "tail": [f"t{i}" for i in range(QUERIES)],
            "side": "tail",
            "optimistic": rank,
            "pessimistic": rank,
            "candidates": 20,
        }
    )


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a module that registers all, which commands have been told of, and some files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.setenv(plugins.VARIABLE, str(tmp_path / "mine.py"))
    monkeypatch.setattr(plugins, "_waiting", None)
    for i in range(2):
        write_ranks(_table(i), f"m{i}.parquet")
        write_ranks(_table(i).with_columns(model=pl.lit(f"m{i}")), f"folder/m{i}.parquet")
        lines = [f"q{q} Q0 d{d} 1 {(d * 7 + q * i) % 10} m{i}" for q in range(8) for d in range(10)]
        (tmp_path / f"m{i}.run").write_text("\n".join(lines) + "\n")
    (tmp_path / "qrels").write_text("".join(f"q{q} 0 d{q} 1\n" for q in range(8)))
    (tmp_path / "a.plain").write_text("x r y 2\nx r z 5\nw r z 1\n")
    (tmp_path / "b.plain").write_text("x r y 3\nx r z 1\nw r z 2\n")
    yield tmp_path
    for name in ("squared-rr", "macro-second@K", "Last"):
        unregister_metric(name)
    GAINS.pop("second", None)
    OWN.clear()
    sys.modules.pop("mine", None)


SETTING = "--strength 0.7 --sparsity 0.3 --num-answers 5 --num-entities 50"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("metrics m0.parquet --metric squared-rr --format json", "squared-rr"),
        ("metrics m0.parquet --metric zsquared-rr,macro-squared-rr,asquared-rr --format json", "zsquared-rr"),
        ("metrics m0.parquet --metric squared-rr --interval bca --replicates 20", "squared-rr"),
        ("metrics folder --metric squared-rr,macro-second@3 --format json", "macro-second@3"),
        ("metrics m0.parquet --metric macro-2nd@3 --format json", "macro-second@3"),
        ("metrics --list --format json", "squared-rr"),
        ("metrics --list --format csv", "macro-second@K"),
        ("ir --list", "Last"),
        ("compare m0.parquet m1.parquet --metric squared-rr --test t --format json", "squared-rr"),
        ("compare folder --metric macro-second@3 --test t --format json", "macro-second@3"),
        ("compare m0.run m1.run --qrels qrels --metric Last,AP --test t --format json", "Last"),
        ("stability m0.parquet m1.parquet --metric squared-rr --draws 5 --size .5", "squared-rr"),
        ("audit m0.parquet m1.parquet --metric squared-rr --sparsity .3 --test t", "squared-rr"),
        (f"theory --metric squared-rr {SETTING} --format json", "squared-rr"),
        (f"simulate --metric squared-rr {SETTING} --trials 64 --format json", "squared-rr"),
        (f"power --metric squared-rr --other-strength 0.8 {SETTING} --format json", "squared-rr"),
        ("ir m0.run --qrels qrels --metric last --format json", "Last"),
        ("ranks convert a.plain --out a.csv", "3 ranks"),
        ("metrics a.plain --metric mrr --format json", "mrr"),
        ("compare a.plain b.plain --metric mrr --test t --format json", "mrr"),
        ("stability a.plain b.plain --metric mrr --draws 5 --size .5", "mrr"),
        ("audit a.plain b.plain --metric mrr --sparsity .3 --test t", "mrr"),
    ],
)  # fmt: skip
def test_every_command_knows_it(own, capsys, command, name):
    code = main(command.split())
    out, err = capsys.readouterr()
    assert code == 0, err
    assert name in out


def test_python_knows_it_without_the_variable(own, monkeypatch):
    squared = RankWeight("cubed-rr", lambda rank: rank**-3.0)
    of = Entry("cubed-rr", "cubed-rr", "mean of r^-3", "(0, 1]", "larger", "closed", "own", lambda: squared)
    register_metric(of)
    register_metric(of)  # as a cell of a notebook that is run again
    try:
        found = evaluate(tasks([1, 2], candidates=9), [metric("cubed-rr"), metric("acubed-rr")])
        one = found["realistic"]["cubed-rr"]
        assert one.value == pytest.approx(0.5625)
        expected = np.mean(np.arange(1, 10) ** -3.0)
        assert one.expectation == pytest.approx(expected, rel=1e-12)
        assert found["realistic"]["acubed-rr"].value == pytest.approx((0.5625 - expected) / (1 - expected))
        assert rank_weight("cubed_rr") is squared
    finally:
        unregister_metric("cubed-rr")
    with pytest.raises(ValueError, match="unknown metric 'cubed-rr'"):
        metric("cubed-rr")


GAIN = ListGain("own", (), lambda p: 1.0 / p, lambda added, answers, k: np.ones(len(answers)), "f", "own")
RECIPROCAL = RankWeight("own", lambda rank: 1 / rank)
GOOD = Entry("own", "own", "f", "[0, 1]", "larger", "-", "own", lambda: RECIPROCAL)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("mrr", r"`entry` must be an owkg.metrics.Entry or ListGain, got 'mrr'"),
        (GOOD._replace(formula=3), "must be an owkg.metrics.Entry"),
        (GOOD._replace(name="mrr", example="mrr"), "must have unused names, got 'mrr', which is mrr"),
        (GOOD._replace(aliases=("ndcg",)), "unused names, got 'ndcg', which is nDCG"),
        (GOOD._replace(aliases=("zmrr",)), "unused names, got 'zmrr', which is zmrr"),
        (GOOD._replace(aliases=("OWN",)), "aliases in lower case"),
        (GOOD._replace(name="a,b", example="a,b"), "without commas"),
        (GOOD._replace(aliases="abc"), "a tuple of aliases"),
        (GOOD._replace(make=lambda a, b: None), "must make the metric of its parameters"),
        (GAIN._replace(name="ndcg"), "unused names, got 'macro-ndcg@20', which is macro-ndcg@20"),
        (GAIN._replace(discount=lambda p: p * np.nan), "n finite numbers"),
        (GAIN._replace(ideal=lambda added, answers, k: added), "an ideal of lists"),
        (GOOD._replace(example="other"), "must have an example of 'own', got 'other'"),
        (GOOD._replace(better="up"), "`better` larger, smaller or -, got 'up'"),
        (GOOD._replace(better="smaller"), "for which smaller is better"),
        (GOOD._replace(make=lambda: 3), "must make a RankWeight, a Metric or a Measure, got 3"),
        (GOOD._replace(make=lambda: MRR), "must make a metric called own, got 'mrr'"),
        (GOOD._replace(make=lambda: RankWeight("own", lambda rank: "x")), "`weight` of metric 'own'"),
    ],
)
def test_what_cannot_be_registered_is_named(entry, message):
    gains = dict(GAINS)
    with pytest.raises(ValueError, match=message):
        register_metric(entry)
    with pytest.raises(ValueError, match="unknown metric 'own'"):
        metric("own")
    assert gains == GAINS


def test_what_was_registered_stays_where_the_next_one_is_refused():
    register_metric(GOOD)
    try:
        with pytest.raises(ValueError, match="must make a RankWeight"):
            register_metric(GOOD._replace(make=lambda: 3))
        assert metric("own").rank_weight is RECIPROCAL
    finally:
        unregister_metric("own")


def test_modules_are_imported_in_their_order_and_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = "p = Path('log'); p.write_text((p.read_text() if p.exists() else '') + '{} ')\n"
    begin = "from pathlib import Path\nfrom owkg.metrics import metric\nmetric('mrr')\n"
    for name in ("first", "other", "polars"):
        (tmp_path / f"{name}.py").write_text(begin + told.format(name))
    monkeypatch.setenv(plugins.VARIABLE, "first.py,other.py,first.py,polars.py")
    monkeypatch.setattr(plugins, "_waiting", None)
    plugins.load()
    assert (tmp_path / "log").read_text() == "first other polars "
    assert sys.modules["polars"] is pl
    monkeypatch.setenv(plugins.VARIABLE, "first.py,missing.py")
    monkeypatch.setattr(plugins, "_waiting", None)
    with pytest.raises(ValueError, match=r"the module 'missing\.py' cannot be imported"):
        plugins.load()
    monkeypatch.setattr(plugins, "_waiting", [])


def test_what_is_wrong_with_a_file_names_it(own):
    def fails(path, graph):
        raise KeyError("head")

    def unread(path):
        return path.read_text() == ""

    register_importer(Importer("bad", "a bad list", fails, holds=lambda path: path.suffix == ".bad"))
    (own / "a.bad").touch()
    with pytest.raises(ValueError, match=r"a\.bad: cannot be read as a bad list: KeyError: 'head'"):
        read_ranks("a.bad")
    register_importer(
        Importer("bad", "a", lambda path, graph: pl.DataFrame(), holds=lambda p: p.suffix == ".bad")
    )
    with pytest.raises(ValueError, match=r"a\.bad: no column head"):
        convert("a.bad")
    register_importer(Importer("unread", "an unread list", fails, holds=unread))
    with pytest.raises(ValueError, match=r"m0\.parquet: `holds` of the importer 'unread' fails"):
        read_ranks("m0.parquet")


def test_a_measure_gives_a_finite_number_a_query(own, capsys):
    for values in ("np.full(len(judged.queries), np.nan)", "np.ones(1)"):
        of = Measure("Own", eval(f"lambda judged: {values}", {"np": np}))  # noqa: S307
        register_metric(Entry("Own", "Own", "f", "[0, 1]", "larger", "-", "own", lambda of=of: of))
        try:
            assert main(["ir", "m0.run", "--qrels", "qrels", "--metric", "Own"]) == 2
        finally:
            unregister_metric("Own")
        err = capsys.readouterr().err
        assert (
            err
            == "owkg: error: --metric must give a finite number for each of 8 queries, which Own does not.\n"
        )


def test_importers(own):
    table = read_ranks("a.plain")
    assert table.frame["optimistic"].to_list() == [2, 5, 1]
    assert convert("a.plain", "plain").table.equals(table.frame)
    with pytest.raises(ValueError, match=r"`split` has no effect on a plain list, which a\.plain is"):
        convert("a.plain", split="test")
    with pytest.raises(
        ValueError, match="`kind` must be one of table, list, scores, run, sampled, plain, got 'x'"
    ):
        convert("a.plain", "x")
    with pytest.raises(ValueError, match="`importer` must have a new name, got 'run'"):
        register_importer(Importer("run", "x", lambda path, graph: None, holds=lambda path: True))
    with pytest.raises(ValueError, match=r"`importer` must be an owkg\.ranks\.Importer with read and holds"):
        register_importer(Importer("x", "x", lambda path, graph: None))


@pytest.mark.parametrize("name", ["not_there", "broken.py"])
def test_a_module_that_cannot_be_imported_is_one_line(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    monkeypatch.setenv(plugins.VARIABLE, name)
    monkeypatch.setattr(plugins, "_waiting", None)
    assert main(["metrics", "--list"]) == 2
    assert capsys.readouterr().err.startswith(
        f"owkg: error: OWKG_PLUGINS: the module '{name}' cannot be imported: "
    )

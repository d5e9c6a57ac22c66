"""The front doors: what the commands do in one call each, from plain strings."""

import warnings

import jax
import numpy as np
import polars as pl
import pytest

import owkg
from owkg.errors import ArgumentError
from owkg.metrics.front import metrics_named
from owkg.metrics.registry import LISTING
from owkg.ranks import validated

GRAPH = "tests/golden/input/graph"
INPUT = "tests/golden/input"


@pytest.fixture(scope="module")
def root(request):
    return request.config.rootpath


@pytest.fixture(scope="module")
def graph(root):
    return owkg.read_graph(root / GRAPH)


@pytest.fixture(scope="module")
def systems(root):
    return {name: owkg.read_ranks(root / INPUT / f"{name}.csv") for name in ("random", "frequency", "oracle")}


def test_the_rooms_and_doors_are_there():
    assert set(dir(owkg)) == set(owkg.__all__)
    assert all(getattr(owkg, name) is not None for name in owkg.__all__)
    assert callable(owkg.evaluate)
    assert callable(owkg.compare)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        owkg.nothing  # noqa: B018


def test_scores_become_ranks(graph):
    """Of a perfect scorer every rank is 1; both sides at once; the file says how it was filtered."""
    test = graph.splits["test"]
    perfect = {}
    for side, answer in (("head", 0), ("tail", 2)):
        perfect[side] = np.zeros((len(test), graph.num_entities))
        perfect[side][np.arange(len(test)), test[:, answer]] = 1
    ranks = owkg.rank(perfect, graph, split="test", model="perfect")
    assert (ranks.frame["pessimistic"] == 1).all()
    assert len(ranks) == 2 * len(test)
    assert ranks.about == {"split": "test", "filter": ["train", "valid", "test"]}
    alone = owkg.rank(perfect["tail"], graph, split="test", side="tail", model="perfect")
    assert alone.frame.equals(ranks.frame.filter(side="tail"))
    raw = owkg.rank(perfect["tail"], graph, filter=())
    assert (raw.frame["candidates"] == graph.num_entities).all()


def test_ranks_are_written_and_read_with_what_they_are_about(graph, tmp_path):
    scores = np.random.default_rng(0).random((len(graph.splits["valid"]), graph.num_entities))
    ranks = owkg.rank(scores, graph, split="valid")
    ranks.write(tmp_path / "ranks.parquet")
    again = owkg.read_ranks(tmp_path / "ranks.parquet")
    assert again.frame.equals(ranks.frame)
    assert dict(again.about) == dict(ranks.about)
    ranks.write(tmp_path / "ranks.csv")
    assert owkg.read_ranks(tmp_path / "ranks.csv").about == {}
    assert "ranking tasks" in repr(ranks)
    assert ranks._repr_html_().startswith("<div>")


def test_a_rank_table_is_checked_once(systems, monkeypatch):
    table = systems["oracle"]
    assert validated(table) is table.frame
    monkeypatch.setattr("owkg.ranks.table.validated_at", lambda *_, **__: pytest.fail("checked again"))
    owkg.evaluate(table, "mrr")


@pytest.mark.parametrize("by", [(), "relation", "side", ("relation", "side", "ties")])
def test_evaluate(systems, by):
    """Equal to the means of the ranks themselves, of every group."""
    table = systems["oracle"].frame.with_columns(mrr=(pl.col("optimistic") + pl.col("pessimistic")) / 2)
    found = owkg.evaluate(systems["oracle"], ["mrr", "hits@10", "macro-mrr"], by=by)
    first = ["model", *(["relation"] if "relation" in by else [])]
    rest = ["side", "ties", "metric", "value", "ci_low", "ci_high", "expectation"]
    assert found.columns[: len(first) + len(rest)] == [*first, *rest]
    assert set(found["side"]) == ({"head", "tail"} if "side" in by else {"both"})
    assert found["ties"].n_unique() == (4 if "ties" in by else 1)
    realistic = found.filter(metric="mrr", ties="realistic")
    for row in realistic.iter_rows(named=True):
        part = table if row["side"] == "both" else table.filter(side=row["side"])
        part = part.filter(relation=row["relation"]) if "relation" in row else part
        assert row["value"] == pytest.approx((1 / part["mrr"]).mean())
    known = found.drop_nulls("ci_low")
    assert (known["ci_low"] <= known["value"]).all()
    assert (known["value"] <= known["ci_high"]).all()


def test_evaluate_takes_frames_and_usual_metrics(systems):
    found = owkg.evaluate(systems["oracle"].frame, ci=None)
    assert {"mrr", "hits@10", "amri", "macro-mrr"} <= set(found["metric"])
    assert found["ci_low"].null_count() == len(found)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (["mmr"], {}, "`metrics` must name metrics: unknown metric 'mmr': did you mean mr, zmr, mrr"),
        ([], {}, "`metrics` must name at least one metric"),
        ("mrr", {"by": "colour"}, "`by` must be from side, ties, relation, category, popularity"),
        ("mrr", {"by": ("relation", "category")}, "with at most one besides side and ties"),
        ("mrr", {"side": "left"}, "`side` must be of head, tail, relation, both, got left"),
        (3, {}, "`metrics` must be names of metrics, got 3"),
        ("mrr", {"seed": -1}, "`seed` must be one key of jax.random.key, or a seed, got -1"),
        ("mrr", {"ties": "best"}, "`ties` must be one of"),
        ("mrr", {"ci": 2}, "`ci`"),
    ],
)
def test_evaluate_refuses(systems, arguments, options, message):
    with pytest.raises(ValueError, match=r"must|unknown|level") as error:
        owkg.evaluate(systems["oracle"], arguments, **options)
    assert message in str(error.value)


@pytest.mark.parametrize("ranks", [None, b"oracle.csv", 3])
def test_evaluate_takes_ranks_or_a_path(ranks, root, systems):
    assert owkg.evaluate(root / INPUT / "oracle.csv", "mrr").equals(owkg.evaluate(systems["oracle"], "mrr"))
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        owkg.evaluate("none.csv")
    with pytest.raises(ArgumentError, match=r"`ranks` must be a table of owkg\.read_ranks") as error:
        owkg.evaluate(ranks, "mrr")
    assert error.value.name == "ranks"


@pytest.mark.filterwarnings("ignore:.*the intervals may be too narrow")
def test_compare(systems, root):
    """The tables of the command; of frames as of files."""
    qrels = [root / INPUT / "full.qrels", root / INPUT / "sparse.qrels"]
    found = owkg.compare(systems, ["mrr", "macro-mrr"], qrels=qrels, draws=500, replicates=20, by="side")
    assert found.values["qrels"].unique(maintain_order=True).to_list() == ["full", "sparse"]
    values = owkg.evaluate(systems["oracle"], ["mrr"])["value"].item()
    oracle = found.values.filter(system="oracle", metric="mrr", qrels="full")
    assert oracle["value"].item() == pytest.approx(values, rel=0.05)  # the exact rule, not the realistic one
    assert len(found.pairs) == 2 * 2 * 3
    assert found.agreement["qrels"].unique().to_list() == ["sparse"]
    assert set(found.parts["side"]) == {"head", "tail"}
    paths = [root / INPUT / f"{name}.csv" for name in systems]
    again = owkg.compare(paths, ["mrr", "macro-mrr"], qrels=qrels, draws=500, replicates=20, by="side")
    for (_, one), (_, other) in zip(found.items(), again.items(), strict=True):
        assert one.equals(other)
    named = owkg.compare(systems, "mrr", qrels={"all": owkg.judge.read_judgements(qrels[0])}, draws=500)
    assert named.values["qrels"].unique().to_list() == ["all"]
    assert "pairs:" in repr(named)
    assert "<h4>values</h4>" in named._repr_html_()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": "z"}, "`test` must be one of"),
        ({"correction": "bonferroni"}, "`correction` must be one of holm, bh, none"),
        ({"by": "relations"}, "`by` must be of side, relation, category"),
        ({"qrels": "test"}, "`qrels` must be a file, or a split of `graph`"),
        ({"metrics": "zmrr"}, "must be means"),
        ({"ci": 1}, "`ci`"),
        ({"seed": None}, "`seed` must be"),
        ({"qrels": 3}, "`qrels` must be frames, files or splits, got int"),
    ],
)
def test_compare_refuses(systems, options, message):
    with pytest.raises(ValueError, match="must") as error:
        owkg.compare(systems, **options)
    assert message in str(error.value)
    with pytest.raises(ValueError, match="at least two systems"):
        owkg.compare({"one": systems["oracle"]})


@pytest.mark.parametrize("systems", [3, "oracle.csv", {"one": 4, "other": 5}])
def test_what_are_no_systems(systems):
    with pytest.raises(ArgumentError, match="`systems` must be"):
        owkg.compare(systems)


def test_rank_refuses(graph):
    with pytest.raises(ValueError, match="`split` must be one of train, valid, test"):
        owkg.rank(np.zeros((1, 1)), graph, split="tests")
    with pytest.raises(ValueError, match="`scores` must be of shape"):
        owkg.rank(np.zeros((1, 1)), graph)
    with pytest.raises(ValueError, match="`side` must be head, tail or relation, got 'both'"):
        owkg.rank(np.zeros((1, 1)), graph, side="both")
    with pytest.raises(ValueError, match="`path` must be a path, got 3"):
        owkg.read_ranks(3)
    with pytest.raises(ValueError, match="`scores` must have the sides"):
        owkg.rank({"left": np.zeros((1, 1))}, graph)
    scores = np.zeros((len(graph.splits["test"]), graph.num_entities))
    for given, options, message in (
        (scores, {"filter": "foo"}, "`filter` must be of train, valid, test, got foo"),
        (np.ma.array(scores), {}, "`scores` must not be masked"),
        ([[1.0], [1.0, 2.0]], {}, "`scores` must be"),
    ):
        with pytest.raises(ArgumentError, match=message):
            owkg.rank(given, graph, **options)


def test_what_is_refused_is_shown_in_a_line(graph, systems):
    for call in (
        lambda: owkg.read_ranks(graph),
        lambda: owkg.read_graph(systems["oracle"].frame),
        lambda: owkg.compare({"a": graph, "b": graph}, "mrr"),
        lambda: owkg.read_graph(""),
        lambda: owkg.read_ranks(""),
        lambda: owkg.evaluate(""),
    ):
        with pytest.raises(ArgumentError) as error:
            call()
        assert len(str(error.value)) < 1100
        assert "\n" not in str(error.value)
    assert repr(graph).startswith(f"KnowledgeGraph({graph.num_entities:,} entities, ")


def test_two_metrics_of_one_name():
    """The same one twice is one; another of its name would be lost."""
    half = owkg.rank_weights.RankWeight("mrr", lambda rank: 0 * rank + 0.5)
    for given in (["mrr", half], [half, "mrr"]):
        with pytest.raises(ArgumentError, match=r"`metrics` must have different names, got two .* 'mrr'"):
            owkg.evaluate(_ranked([1, 2]), given)
    for entry in LISTING:
        name = entry.example
        assert len(metrics_named([name, name])) == 1, name


def test_mrr_beside_measures_of_lists_says_that_it_is_rr(capsys):
    runs = {
        name: pl.DataFrame({"query": ["q", "q", "p"], "answer": answers, "score": [3.0, 2.0, 1.0]})
        for name, answers in (("a", ["x", "y", "x"]), ("b", ["y", "x", "x"]))
    }
    qrels = pl.DataFrame({"query": ["q", "p"], "answer": ["x", "x"], "relevance": [1, 1]})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = owkg.compare(runs, ["mrr", "nDCG@10"], qrels=qrels)
    assert set(found.values["metric"]) == {"RR", "nDCG@10"}
    assert "mean of RR" in capsys.readouterr().err + " ".join(str(one.message) for one in told)
    with pytest.raises(ArgumentError, match=r"must be TREC runs .* got a rank table"):
        owkg.compare({"a": _table(), "b": _table()}, ["nDCG@10"], qrels=qrels)


def _table():
    return owkg.RankTable(_ranked([1, 2]))


def test_metrics_are_named_in_theory_and_simulation_too():
    world = {"strength": 0.7, "sparsity": 0.35, "num_answers": 9, "num_entities": 99}
    named, given = (owkg.theory.moments(of, **world) for of in ("hits_at_10", owkg.rank_weights.hits_at(10)))
    assert named == given
    key = jax.random.key(0)
    drawn = [
        owkg.simulate.estimate(key, of, trials=64, **world).mean for of in ("mrr", owkg.rank_weights.MRR)
    ]
    assert (drawn[0] == drawn[1]).all()
    rest = {name: world[name] for name in ("sparsity", "num_answers", "num_entities")}
    pair = {"strength": 0.7, "other_strength": 0.75, "inconsistency": 0.05}
    queries = [owkg.theory.required_queries(of, **pair, **rest) for of in ("mrr", owkg.rank_weights.MRR)]
    assert queries[0] == queries[1]
    with pytest.raises(ValueError, match=r"`metric` must be .* unknown metric 'mmr': did you mean mr, mrr"):
        owkg.theory.moments("mmr", **world)
    with pytest.raises(ValueError, match=r"`metrics` must be .* unknown metric 'mmr'"):
        owkg.simulate.estimate(key, ["mrr", "mmr"], trials=64, **world)
    for bad in ("amri", "macro-mrr", "hits@0"):
        with pytest.raises(ArgumentError, match="`metric` must be"):
            owkg.theory.required_queries(bad, **pair, **rest)
    with pytest.raises(ArgumentError) as error:  # what theory does not take is not proposed
        owkg.theory.moments("imrr", **world)
    assert "imr," not in str(error.value)


def _ranked(optimistic, **columns):
    rows = {"head": [f"h{i}" for i in range(len(optimistic))], "relation": "r", "tail": "t", "side": "tail"}
    return pl.DataFrame(
        rows | {"optimistic": optimistic, "pessimistic": optimistic, "candidates": 9} | columns
    )


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"by": None}, "by"),
        ({"by": [3]}, "by"),
        ({"side": None}, "side"),
        ({"side": [["head"]]}, "side"),
        ({"ties": 3}, "ties"),
        ({"ties": "best"}, "ties"),
        ({"on_progress": 3}, "on_progress"),
        ({"metrics": b"mrr"}, "metrics"),
        ({"metrics": "macro-gmr"}, "metrics"),
    ],
)
def test_evaluate_names_the_argument(options, name):
    with pytest.raises(ArgumentError) as error:
        owkg.evaluate(_ranked([1, 2]), **options)
    assert error.value.name == name


_FACT = {"side": "tail", "entity": "h0", "relation": "r", "answer": "t", "relevance": 1}


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"by": 3}, "by"),
        ({"correction": ["holm"]}, "correction"),
        ({"replicates": 1}, "replicates"),
        ({"replicates": "x"}, "replicates"),
        ({"intersect": "yes"}, "intersect"),
        ({"on_progress": 3}, "on_progress"),
        ({"graph": "graph"}, "graph"),
        ({"qrels": [3]}, "qrels"),
        ({"qrels": []}, "qrels"),
        ({"qrels": {}}, "qrels"),
        ({"ties": ""}, "ties"),
        ({"systems": {"a": _ranked([1]), "b": _ranked([2])}}, "systems"),
        ({"qrels": {"a": 3}}, "qrels"),
        ({"qrels": pl.DataFrame()}, "qrels"),
        ({"qrels": pl.DataFrame([_FACT]).drop("relevance")}, "qrels"),
        ({"qrels": pl.DataFrame([_FACT | {"relevance": True}])}, "qrels"),
        ({"qrels": pl.DataFrame([_FACT | {"relevance": -5}])}, "qrels"),
        ({"qrels": pl.DataFrame([_FACT | {"side": "TAIL"}])}, "qrels"),
        ({"qrels": pl.DataFrame([_FACT, _FACT | {"relevance": 0}])}, "qrels"),
        ({"systems": {1: _ranked([1]), "b": _ranked([2])}}, "systems"),
        ({"systems": {"": _ranked([1]), "b": _ranked([2])}}, "systems"),
    ],
)
def test_compare_names_the_argument(options, name):
    systems = options.pop("systems", {"a": _ranked([1, 2]), "b": _ranked([2, 3])})
    with pytest.raises(ArgumentError) as error:
        owkg.compare(systems, "mrr", draws=9, **options)
    assert error.value.name == name


def test_qrels_of_categories_are_read_as_text():
    systems = {"a": _ranked([1, 2]), "b": _ranked([2, 3])}
    frame = pl.DataFrame([_FACT, _FACT | {"entity": "h1"}])
    plain = owkg.compare(systems, "mrr", qrels={"x": frame}, draws=9).values
    categories = frame.with_columns(pl.col("entity", "relation", "answer").cast(pl.Categorical))
    assert owkg.compare(systems, "mrr", qrels={"x": categories}, draws=9).values.equals(plain)


def test_an_index_of_ranks_that_are_better_small_is_compared():
    """AMRI by hand: 1 - (MR - 1) / (E - 1), with E = (N + 1) / 2."""
    a, b = [1, 2, 4, 1, 3], [2, 2, 5, 3, 3]
    found = owkg.compare({"a": _ranked(a), "b": _ranked(b)}, "amri", draws=99)
    expected = [1 - (np.mean(ranks) - 1) / (5 - 1) for ranks in (a, b)]
    assert found.values["value"].to_list() == pytest.approx(expected)
    assert found.pairs["difference"].item() == pytest.approx(expected[0] - expected[1])
    assert found.values["rank"].to_list() == [1, 2]


def test_a_rank_weight_is_its_micro_mean():
    weight = owkg.rank_weights.RankWeight("r^-2", lambda rank: rank**-2.0)
    assert owkg.evaluate(_ranked([1, 2]), weight)["value"].item() == pytest.approx((1 + 1 / 4) / 2)
    pairs = owkg.compare({"a": _ranked([1, 2]), "b": _ranked([2, 2])}, [weight, "mrr"], draws=9).pairs
    assert pairs["metric"].to_list() == ["r^-2", "mrr"]


def test_a_rank_table_of_a_frame_is_validated():
    with pytest.raises(ValueError, match="optimistic must be a whole number of at least 1"):
        owkg.RankTable(_ranked([-5]))
    for bad in (pl.DataFrame({"x": [1]}), 3):
        with pytest.raises(ValueError, match=r"no column|must be a DataFrame"):
            owkg.RankTable(bad)


def test_by_divides_what_was_asked_for():
    table = pl.concat([_ranked([1, 2]), _ranked([1, 3], side="head")])
    assert owkg.evaluate(table, "mrr", by="side", side="head")["side"].to_list() == ["head"]
    assert owkg.evaluate(table, "mrr", by="side")["side"].to_list() == ["head", "tail"]
    assert owkg.evaluate(table, "mrr", by="ties", ties="exact")["ties"].to_list() == ["exact"]
    assert len(owkg.evaluate(table, "mrr", by="ties")) == 4


def test_errors_of_tables_name_the_argument():
    bad = _ranked([1]).with_columns(optimistic=pl.lit(0))
    for call, name in (
        (lambda: owkg.evaluate(bad, "mrr"), "ranks"),
        (lambda: owkg.compare({"a": bad, "b": bad}, "mrr"), "systems"),
        (lambda: owkg.compare({"a": _ranked([1]), "b": _ranked([1, 2])}, "mrr"), "systems"),
        (lambda: owkg.evaluate(_ranked([1]), "mrr", side="head"), "side"),
    ):
        with pytest.raises(ArgumentError) as error:
            call()
        assert error.value.name == name


def test_runs_under_a_frame_of_qrels(root, graph):
    """As under the file that holds the same."""
    runs = {name: root / INPUT / f"{name}.run" for name in ("one", "two")}
    file = root / INPUT / "full.qrels"
    options = {"graph": graph, "draws": 99, "intersect": True, "ties": "exact"}
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        by_file = owkg.compare(runs, "mrr", qrels={"q": file}, **options)
        by_frame = owkg.compare(runs, "mrr", qrels={"q": owkg.judge.read_judgements(file)}, **options)
    assert by_frame.values.equals(by_file.values)
    assert by_frame.pairs.equals(by_file.pairs)

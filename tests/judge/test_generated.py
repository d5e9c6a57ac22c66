"""Generated lists: bounds of truncated score matrices, what they attain, the test of filtering, files."""

import json

import numpy as np
import polars as pl
import pytest

import owkg
from owkg.cli.main import main
from owkg.judge.generated import filtered_before, partial_metrics, ranks_of_lists, read_generated
from owkg.kg import KnowledgeGraph, write_labelled

N, QUERIES = 14, 9
RNG = np.random.default_rng(0)
LABELS = tuple(f"e{i}" for i in range(N))


def world(seed=0):
    rng = np.random.default_rng(seed)
    facts = np.array([(q, 0, t) for q in range(QUERIES) for t in rng.choice(N, 4, replace=False)], np.int32)
    rng.shuffle(facts)
    return KnowledgeGraph(LABELS, ("r",), {"train": facts[:18], "test": facts[18:]})


def lists(scores, depth, **columns):
    rows = []
    for q in range(QUERIES):
        order = np.argsort(-scores[q])[:depth]
        rows += [
            ("m", f"e{q}|r|?", "tail", f"e{q}", "r", True, i + 1, LABELS[a]) for i, a in enumerate(order)
        ]
    names = ["model", "query", "side", "entity", "relation", "ranked", "place", "text"]
    return pl.DataFrame(rows, names, orient="row").with_columns(**columns)


def true_ranks(graph, scores):
    frame = owkg.rank(scores[graph.splits["test"][:, 0]], graph).frame
    return frame.sort("head", "tail")["optimistic"].to_numpy()


@pytest.mark.parametrize("seed", range(20))
def test_bounds_of_every_depth_hold_the_rank_and_are_attained(seed):
    graph, scores = world(seed), np.random.default_rng(seed + 100).normal(size=(QUERIES, N))
    expected = true_ranks(graph, scores)
    truth = np.zeros((QUERIES, N), bool)
    truth[graph.splits["test"][:, 0], graph.splits["test"][:, 2]] = True
    for depth in range(1, N + 1):
        found = ranks_of_lists(lists(scores, depth), graph)
        frame = found.table.frame.sort("head", "tail")
        low, high = (frame[name].to_numpy() for name in ("optimistic", "pessimistic"))
        assert (low <= expected).all()
        assert (expected <= high).all()
        # Completions: what is true and not listed comes next, or last.
        listed = np.argsort(np.argsort(-scores, 1), 1) < depth
        for way, end in ((1, low), (-1, high)):
            whole = np.where(listed, scores + 100, np.where(truth, way * 10, 0) + RNG.random(scores.shape))
            np.testing.assert_array_equal(true_ranks(graph, whole), end)
        for row in partial_metrics(found, ["mrr", "hits@3", "p-mrr@1/2"]).iter_rows(named=True):
            value = {"mrr": 1 / expected, "hits@3": expected <= 3, "p-mrr@0.5": expected**-0.5}[
                row["metric"]
            ].mean()
            assert row["low"] - 1e-9 <= value <= row["high"] + 1e-9
            assert row["low"] - 1e-9 <= row["uniform"] <= row["high"] + 1e-9
            assert row["none"] <= row["last"] + 1e-9
    assert (low == high).all()
    assert found.report["ceiling"] == 1


def test_uniform_is_the_mean_over_places():
    graph, scores = world(), RNG.normal(size=(QUERIES, N))
    found = ranks_of_lists(lists(scores, 3), graph)
    frame = found.table.frame
    low, high = frame["optimistic"].to_numpy(), frame["pessimistic"].to_numpy()
    mean = np.mean([(1 / np.arange(a, b + 1)).mean() for a, b in zip(low, high, strict=True)])
    row = partial_metrics(found, "mrr").row(0, named=True)
    assert row["uniform"] == pytest.approx(mean)
    assert row["none"] == pytest.approx(np.where(found.listed, 1 / high, 0).mean())
    assert found.report["ceiling"] == pytest.approx(found.listed.mean())


def test_by_hand():
    """To e0: e5 trains, e6 and e7 are tested; "x" is nobody; "six" is e6."""
    facts = np.array([(0, 0, 5), (0, 0, 6), (0, 0, 7)], np.int32)
    graph = KnowledgeGraph(LABELS, ("r",), {"train": facts[:1], "test": facts[1:]})

    def of(answers, **more):
        rows = [
            ("m", "e0|r|?", "tail", "e0", "r", more.get("ranked", True), i + 1, a)
            for i, a in enumerate(answers)
        ]
        names = ["model", "query", "side", "entity", "relation", "ranked", "place", "text"]
        found = ranks_of_lists(pl.DataFrame(rows, names, orient="row"), graph, aliases={"six": "e6"})
        return found.table.frame.sort("tail").select("optimistic", "pessimistic").rows(), found.report

    last = N - 3 + 1
    # e1 is wrong, e5 is known, x may be a candidate.
    assert of(["e1", "e5", "six"])[0] == [(2, 2), (2, last)]
    assert of(["x", "e1", "e1", "six", "e6"])[0] == [(2, 3), (2, last)]
    assert of(["e7", "e1", "six"], ranked=False)[0] == [(1, 2), (1, 2)]
    report = of(["x", "e1", "e1", "six", "e6"])[1]
    assert (report["answers"], report["duplicates"], report["unknown"]) == (5, 2, 1)
    with pytest.raises(ValueError, match="`aliases` must name entities of the graph, got 'e99'"):
        ranks_of_lists(lists(RNG.normal(size=(QUERIES, N)), 2), world(), aliases={"a": "e99"})


def test_queries_without_a_list():
    graph, scores = world(), RNG.normal(size=(QUERIES, N))
    found = ranks_of_lists(lists(scores, 3).filter(pl.col("entity") != "e0"), graph)
    own = found.table.frame.filter(head="e0")
    if len(own):
        assert (own["optimistic"] == 1).all()
        assert (own["pessimistic"] == own["candidates"]).all()
        assert found.report["unanswered"] == 1


def crowd(rng, queries, strength_known, strength_tested, *, filtered):
    """Lists of queries with one tested and one known answer, which a model lists with these probabilities."""
    entities = tuple(f"e{i}" for i in range(queries + 60))
    head = np.arange(queries)
    train = np.stack([head, 0 * head, queries + rng.integers(0, 20, queries)], 1).astype(np.int32)
    test = np.stack([head, 0 * head, queries + 20 + rng.integers(0, 20, queries)], 1).astype(np.int32)
    graph = KnowledgeGraph(entities, ("r",), {"train": train, "test": test})
    rows = []
    for q in range(queries):
        own = [f"e{queries + 40 + x}" for x in rng.choice(20, 5, replace=False)]
        if rng.random() < strength_known and not filtered:
            own.insert(0, entities[train[q, 2]])
        if rng.random() < strength_tested:
            own.insert(0, entities[test[q, 2]])
        rows += [("m", f"e{q}|r|?", "tail", f"e{q}", "r", True, i + 1, a) for i, a in enumerate(own)]
    names = ["model", "query", "side", "entity", "relation", "ranked", "place", "text"]
    return pl.DataFrame(rows, names, orient="row"), graph


def test_power_and_false_alarms_of_the_test_of_filtering():
    rng = np.random.default_rng(1)
    power = [filtered_before(*crowd(rng, 500, 0.4, 0.3, filtered=True)).p_value < 0.01 for _ in range(300)]
    alarms = [filtered_before(*crowd(rng, 500, 0.3, 0.3, filtered=False)).p_value < 0.01 for _ in range(120)]
    assert np.mean(power) >= 0.99
    # At most 1 %, within the error of 120 draws.
    assert np.mean(alarms) <= 0.03
    better = filtered_before(*crowd(rng, 500, 0.6, 0.3, filtered=False))
    assert better.p_value > 0.5
    assert better.queries == 500


def test_models_are_kept_apart(tmp_path, capsys):
    """Each model has metrics, a report and a test of its own."""
    graph = world()
    write_labelled(graph, tmp_path / "graph")
    rows = [
        {"head": f"e{q}", "relation": "r", "answers": [answer], "model": name}
        for name, answer in (("good", "e1"), ("bad", "zzz"))
        for q in range(6)
    ]
    source = written(tmp_path / "lists.jsonl", rows)
    line = ["ranks", "generated", str(source), "--kg", str(tmp_path / "graph"), "--format", "json"]
    assert main(line) == 0
    together = {one["model"]: one for one in json.loads(capsys.readouterr().out)["models"]}
    for name in ("good", "bad"):
        written(source, [row for row in rows if row["model"] == name])
        assert main(line) == 0
        assert json.loads(capsys.readouterr().out)["models"] == [together[name]]
    assert together["bad"]["report"]["ceiling"] == 0
    written(source, rows)
    with pytest.raises(ValueError, match="`lists` must have one model, got bad, good"):
        filtered_before(read_generated(source), graph)


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_command(tmp_path, capsys):
    graph = world()
    write_labelled(graph, tmp_path / "graph")
    rows = [
        {"head": f"e{q}", "relation": "r", "answers": ["e1", "e2", "who"], "ranked": bool(q % 2)}
        for q in range(6)
    ]
    rows += [{"query": "e6|r|?", "answers": []}, {"query": "?|r|e7", "answers": ["e0"]}]
    source = written(tmp_path / "lists.jsonl", rows)
    (tmp_path / "names.tsv").write_text("who\te3\n")
    line = ["ranks", "generated", str(source), "--kg", str(tmp_path / "graph")]
    assert main([*line, "--format", "json", "--aliases", str(tmp_path / "names.tsv")]) == 0
    (told,) = json.loads(capsys.readouterr().out)["models"]
    assert told["report"]["lists"] == 8
    assert told["report"]["unknown"] == 0
    assert [row["metric"] for row in told["metrics"]] == ["mrr", "hits@1", "hits@10"]
    assert main([*line, "--out", str(tmp_path / "ranks.parquet"), "--metric", "mrr"]) == 0
    out, err = (" ".join(text.split()) for text in capsys.readouterr())
    assert "8 lists (3 without an order) of 19 answers" in out
    assert "6 are outside the vocabulary" in out
    count = len(owkg.read_ranks(tmp_path / "ranks.parquet").frame)
    assert err == f"wrote {tmp_path / 'ranks.parquet'}: {count} ranks"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: must be one whole JSON object"),
        ('{"answers": }', "line 1: must be JSON"),
        ("[1]", "entry 1: must be an object, got int"),
        ("[" * 100_000, "line 1: must be JSON that is not nested so deep"),
        ('{"answers": "a", "query": "a|r|?"}', "line 1: must have answers, a list of text"),
        ('{"answers": [], "query": "a r"}', "line 1: a query must be 'head"),
        (
            '{"answers": [], "head": "a", "tail": "b", "relation": "r"}',
            "line 1: must give the query as head and relation",
        ),
        (
            '{"answers": [], "head": "a", "relation": "r", "ranked": 3}',
            "line 1: ranked must be true or false",
        ),
        ('{"answers": [], "query": "a|r|?"}\n' * 2, "has two lists of generated for 'a|r|\\?'"),
        ("\n", "line 1: must hold something"),
    ],
)
def test_bad_files(text, message, tmp_path):
    (tmp_path / "lists.jsonl").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_generated(tmp_path / "lists.jsonl")


def test_other_queries_and_metrics():
    graph = world()
    other = lists(RNG.normal(size=(QUERIES, N)), 2, query=pl.lit("e13|s|?"))
    with pytest.raises(ValueError, match="`lists` must answer queries of test, got only others"):
        ranks_of_lists(other, graph)
    found = ranks_of_lists(lists(RNG.normal(size=(QUERIES, N)), 2), graph)
    with pytest.raises(
        ValueError, match="`metrics` must be plain means of weights that fall with the rank, got mr"
    ):
        partial_metrics(found, "mr")


def test_an_array_of_lists(tmp_path):
    """As SimKGC and KICGPT write them, and as one object a line."""
    held = [{"head": "a", "relation": "r", "answers": ["c", " d "]}, {"query": "?|r|b", "answers": []}]
    for name, text in (
        ("a.json", json.dumps(held, indent=1)),
        ("b.json", "\n" + json.dumps(held)),
        ("c.jsonl", "\n".join(map(json.dumps, held))),
    ):
        (tmp_path / name).write_text(text)
        assert read_generated(tmp_path / name).select("query", "place", "text").rows() == [
            ("a|r|?", 1, "c"),
            ("a|r|?", 2, " d "),
            ("?|r|b", 0, None),
        ]
    graph = KnowledgeGraph(("a", "c", "d", " d "), ("r",), {"test": np.array([[0, 0, 3]], np.int32)})
    assert ranks_of_lists(read_generated(tmp_path / "a.json"), graph).listed.sum() == 1
    graph = graph._replace(entities=("a", "c", "e", "d"))
    assert ranks_of_lists(read_generated(tmp_path / "a.json"), graph).listed.sum() == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[{"head": "a", "relation": "r", "answers": ["c"]}, {"head": "a"}]',
            "x, entry 2: must have answers",
        ),
        ('[{"head": "a", "relation": "r", "answers": ["c"]},\n 3]', "x, entry 2: must be an object, got int"),
        ('[{"head": "a",\n "relation" "r"}]', "x, line 2: must be JSON"),
        ('[{"head": "a", "head": "b", "relation": "r", "answers": []}]', "got 'head' twice"),
        ("[]", "x: holds no list"),
        ('{\n"head": "a", "relation": "r", "answers": []}', "x, line 1: must be one whole JSON object"),
        (
            '{"head": "a", "relation": "r", "answers": ["c"]}\n{"query": "?|r|c", "answers": ["\\ud800"]}',
            r"x, line 2: must be Unicode, got .ud800, half of a letter",
        ),
        ("\x89PNG", "x, line 1: must be JSON"),
        ("PAR1", "x: must be lists as JSON, text in UTF-8, but is a Parquet file"),
    ],
)
def test_bad_arrays(text, message, tmp_path):
    (tmp_path / "x").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_generated(tmp_path / "x")

"""Runs in files and frames: read back as written, ordered as trec_eval orders, aligned."""

import gzip

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytrec_eval import RelevanceEvaluator

from owkg.judge.runs import (
    aligned,
    known_pairs,
    ranked,
    read_runs,
    run_from_lists,
    top,
    without_known,
    write_run,
)
from owkg.judge.schema import RUN
from owkg.kg import KnowledgeGraph
from owkg.ranks import write_ranks

LABELS = {"entities": ["a", "b", "c", "d"], "relations": ["r", "s|t"]}
GRAPH = KnowledgeGraph(
    ("a", "b", "c", "d"),
    ("r", "s|t"),
    {"train": np.array([[0, 0, 1], [2, 0, 1]], np.int32), "test": np.array([[0, 0, 3]], np.int32)},
)


def one(model="m", scores=((3.0, 2.0, 1.0),), answers=((1, 2, 3),), entity=(0,), side="tail"):
    relation = [0] * len(entity)
    return run_from_lists(model, side, list(entity), relation, answers, scores, **LABELS)


def test_lists_become_rows():
    run = run_from_lists(
        "m", ["tail", "head"], [0, 1], [0, 1], [[1, -1], [2, 3]], [[0.5, np.nan], [1.0, 2.0]], **LABELS
    )
    assert run.columns == list(RUN)
    assert run.drop("model").rows() == [
        ("a|r|?", "tail", "a", "r", "b", 0.5),
        ("?|s|t|b", "head", "b", "s|t", "c", 1.0),
        ("?|s|t|b", "head", "b", "s|t", "d", 2.0),
    ]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"answers": ((1, 2, 9),)}, "answers"),
        ({"answers": ((1, 2, 2),)}, "'c' to 'a|r|?' twice"),
        ({"scores": ((1.0, 2.0),)}, "scores"),
        ({"scores": ((1.0, np.nan, 2.0),)}, "NaN in row 2"),
        ({"entity": (7,)}, "entity"),
        ({"entity": (0, 0), "answers": ((1,), (2,)), "scores": ((1.0,), (1.0,))}, "'a|r|?' twice"),
        ({"model": ""}, "model"),
        ({"side": "left"}, "side"),
    ],
)
def test_bad_lists(arguments, shown):
    with pytest.raises(ValueError, match=shown.replace("|", r"\|").replace("?", r"\?")):
        one(**arguments)


@given(scores=st.lists(st.sampled_from([0.0, 1.0, -1.0, 0.5]), min_size=4, max_size=4))
def test_the_order_is_that_of_trec_eval(scores):
    """The reciprocal rank of each answer in turn tells the order that trec_eval sees."""
    run = one(scores=(scores,), answers=((0, 1, 2, 3),))
    ours = ranked(run).select("answer", "rank").rows()
    for answer, rank in ours:
        evaluator = RelevanceEvaluator({"q": {answer: 1}}, {"recip_rank"})
        theirs = evaluator.evaluate({"q": dict(zip("abcd", scores, strict=True))})["q"]["recip_rank"]
        assert theirs == pytest.approx(1 / rank)
    for depth in (1, 2, 4, 9):
        assert top(run, depth)["answer"].to_list() == [answer for answer, _ in ours[:depth]]


@given(seed=st.integers(0, 2**32 - 1), suffix=st.sampled_from([".txt", ".trec.gz"]), spaced=st.booleans())
def test_what_is_written_is_read_again(tmp_path_factory, seed, suffix, spaced):
    rng = np.random.default_rng(seed)
    names = ["a b", "b", "c", "d e"] if spaced else LABELS["entities"]
    labels = {"entities": names, "relations": ["r", "s t|u" if spaced else "s|t"]}
    runs = [
        run_from_lists(
            model,
            side,
            rng.permutation(4)[:2],
            rng.integers(2, size=2),
            np.stack([rng.permutation(4)[:3] for _ in range(2)]),
            rng.normal(size=(2, 3)) * 10.0 ** rng.integers(-9, 9),
            **labels,
        )
        for model, side in (("one", "tail"), ("two", "head"))
    ]
    run = pl.concat(runs)
    path = tmp_path_factory.mktemp("runs") / f"run{suffix}"
    write_run(run, path)
    found = read_runs([path])
    assert found.columns == list(RUN)
    assert found.sort(RUN).equals(run.sort(RUN))
    assert read_runs([path], depth=1).equals(top(run, 1))
    first = path.read_bytes()
    write_run(run.reverse(), path)
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    ("column", "label"), [("answer", ""), ("model", "a\tb"), ("model", " a"), ("model", "a\nb")]
)
def test_labels_that_cannot_be_written(tmp_path, column, label):
    run = one().with_columns(pl.lit(label).alias(column))
    run = run if column == "model" else run.unique("query", maintain_order=True)
    with pytest.raises(ValueError, match=column):
        write_run(run, tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_systems_of_one_tag_are_named_by_their_files(tmp_path):
    for name in ("x.run", "y.run", "d/x.run"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a|r|? Q0 b 1 0.5 m\n")
    x, y, other = (tmp_path / name for name in ("x.run", "y.run", "d/x.run"))
    with pytest.warns(UserWarning, match="named 'm': these are named by their files, x, y"):
        assert read_runs([x, y])["model"].to_list() == ["x", "y"]
    with pytest.warns(UserWarning, match="named by their files"):
        assert read_runs([x, other])["model"].to_list() == [str(x), str(other)]
    y.write_text("a|r|? Q0 b 1 0.5 m\na|r|? Q0 b 1 0.5 n\n")
    with pytest.warns(UserWarning, match="x, y/m"):
        assert read_runs([x, y])["model"].to_list() == ["x", "y/m", "n"]
    with pytest.raises(
        ValueError, match=r"y\.run: holds 2 systems \('m', 'n'\), which cannot all be named 'b'"
    ):
        read_runs({"a": x, "b": y})
    with pytest.raises(ValueError, match=r"x\.run: is given twice"):
        read_runs([x, x])
    assert read_runs({"a": x, "b": other, "c": {"a|r|?": {"b": 1}}})["model"].to_list() == ["a", "b", "c"]


def test_several_tags_of_one_file(tmp_path):
    (tmp_path / "x.run").write_text("a|r|? Q0 b 1 0.5 m\na|r|? Q0 b 1 0.5 n\n")
    assert read_runs([tmp_path / "x.run"])["model"].to_list() == ["m", "n"]


def test_a_document_twice_is_named_with_its_line(tmp_path):
    with gzip.open(tmp_path / "x.run.gz", "wt") as file:
        file.write("a|r|? Q0 b 1 0.5 m\na|r|? Q0 b 2 0.4 m\n")
    with pytest.raises(ValueError, match=r"x\.run\.gz, line 2: the answer 'b'"):
        read_runs([tmp_path / "x.run.gz"])


def test_rank_tables_are_runs_of_the_tested_answers(tmp_path):
    row = {"head": "a", "relation": "r", "tail": "b", "side": "tail", "candidates": 9}
    ranks = pl.DataFrame(
        [
            row | {"optimistic": 2, "pessimistic": 5},
            row | {"tail": "c", "optimistic": 1, "pessimistic": 1},
            row | {"side": "head", "optimistic": 4, "pessimistic": 4},
        ]
    )
    write_ranks(ranks, tmp_path / "plain.parquet")
    found = read_runs([tmp_path / "plain.parquet"])
    assert found.select("model", "query", "answer", "score").rows() == [
        ("plain", "a|r|?", "b", -3.5),
        ("plain", "a|r|?", "c", -1.0),
        ("plain", "?|r|b", "a", -4.0),
    ]
    scored = ranks.with_columns(score=pl.Series([0.25, 0.5, -1.0]))
    write_ranks(scored, tmp_path / "scored.csv")
    assert read_runs([tmp_path / "scored.csv"])["score"].to_list() == [0.25, 0.5, -1.0]
    seeds = [ranks.with_columns(model=pl.lit("m"), seed=pl.lit(seed)) for seed in (0, 1)]
    write_ranks(pl.concat(seeds), tmp_path / "seeds.csv")
    assert read_runs([tmp_path / "seeds.csv"])["model"].unique().sort().to_list() == ["m/0", "m/1"]
    write_ranks(pl.concat([ranks, ranks]), tmp_path / "twice.csv")
    with pytest.raises(ValueError, match=r"twice\.csv: .*twice"):
        read_runs([tmp_path / "twice.csv"])


@pytest.mark.parametrize("paths", [[], "x.run", 3])
def test_bad_paths(paths):
    with pytest.raises(ValueError, match="`paths`"):
        read_runs(paths)


def test_scores_in_npz_are_no_run(tmp_path):
    with pytest.raises(ValueError, match="scores"):
        read_runs([tmp_path / "x.npz"])


def test_known_answers_leave():
    run = one(answers=((0, 1, 3),))
    assert without_known(run, GRAPH, ["train"])["answer"].to_list() == ["a", "d"]
    assert without_known(run, GRAPH, ["train", "test"])["answer"].to_list() == ["a"]
    assert without_known(run, GRAPH, []).equals(run)
    with pytest.raises(ValueError, match="`splits` must be among train, test, got 'valid'"):
        without_known(run, GRAPH, ["valid"])
    pairs = known_pairs(GRAPH, ["train"]).select("query", "answer").rows()
    assert sorted(pairs) == [("?|r|b", "a"), ("?|r|b", "c"), ("a|r|?", "b"), ("c|r|?", "b")]


def test_systems_must_answer_the_same_queries():
    both = one("m", ((1.0,), (1.0,)), ((1,), (2,)), (0, 1))
    run = pl.concat([both, one("n", ((1.0,),), ((3,),), (0,))])
    with pytest.raises(ValueError, match=r"1 of 2 .*'b\|r\|\?' in 'n'"):
        aligned(run)
    found, dropped = aligned(run, intersect=True)
    assert dropped == 1
    assert found.select("model", "query").rows() == [("m", "a|r|?"), ("n", "a|r|?")]
    whole, none = aligned(both)
    assert none == 0
    assert whole.equals(both)


def test_no_query_in_common():
    run = pl.concat([one("m"), one("n", entity=(1,))])
    with pytest.raises(ValueError, match="all 2 systems"):
        aligned(run, intersect=True)


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (pl.col("score").cast(pl.String), "score as a number"),
        (pl.lit(None, pl.String).alias("answer"), "a answer in every row|an answer in every row"),
        (pl.lit(1).alias("entity"), "entity as text"),
        (pl.lit("left").alias("side"), "'left'"),
        (pl.lit("b").alias("answer"), "'b' to 'a.r.?"),
    ],
)
def test_malformed_runs(change, shown):
    with pytest.raises(ValueError, match=shown):
        ranked(one().with_columns(change))


@pytest.mark.parametrize("depth", [0, 1.5, "2", None])
def test_bad_depth(depth):
    with pytest.raises(ValueError, match="`depth`"):
        top(one(), depth)


def test_no_frame_and_no_column():
    with pytest.raises(ValueError, match="`run` must be a polars DataFrame"):
        top([], 1)
    with pytest.raises(ValueError, match="score is missing"):
        top(one().drop("score"), 1)

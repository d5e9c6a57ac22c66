"""Queries with a key: against brute force on small worlds, temporal, hyper-relational and typed."""

import numpy as np
import polars as pl
import pytest

import owkg
from owkg.kg import KnowledgeGraph
from owkg.ranks import rank_queries
from owkg.ranks.annotate import annotated
from owkg.ranks.keyed import rank_query_files

ENTITIES = tuple("abcdef")


def world(rng):
    """Tasks and known facts with times and qualifiers, and spans in which facts hold."""
    n = int(rng.integers(3, 14))
    facts = pl.DataFrame(
        {
            "head": rng.choice(ENTITIES, n),
            "relation": rng.choice(["r", "s"], n),
            "tail": rng.choice(ENTITIES, n),
            "time": rng.integers(0, 3, n),
            "qualifiers": [None if x > 1 else f"q{x}" for x in rng.integers(0, 3, n)],
            "from": [None if x > 2 else int(x) for x in rng.integers(0, 4, n)],
        }
    ).with_columns(to=pl.col("from").fill_null(0) + pl.Series(rng.integers(0, 2, n)))
    tasks = facts.sample(min(4, n), seed=int(rng.integers(1 << 30))).drop("from", "to")
    tasks = tasks.with_columns(side=pl.Series(rng.choice(["head", "tail"], len(tasks))))
    return tasks, facts, rng.integers(0, 4, (len(tasks), len(ENTITIES))) / 4


def brute(tasks, facts, scores, key, during, typed):
    found = []
    for row, own in zip(tasks.iter_rows(named=True), scores, strict=True):
        given, asked = ("head", "tail") if row["side"] == "tail" else ("tail", "head")
        left = set()
        for fact in [] if facts is None else facts.iter_rows(named=True):
            same = all(fact[name] == row[name] for name in (given, "relation", *key))
            holds = during is None or (
                (fact["from"] is None or fact["from"] <= row[during])
                and (fact["to"] is None or row[during] <= fact["to"])
            )
            if same and holds:
                left.add(fact[asked])
        among = [e for e in ENTITIES if typed is None or (row["relation"], row["side"], e) in typed]
        among = [e for e in among if e not in left and e != row[asked]]
        mine = own[ENTITIES.index(row[asked])]
        others = np.array([own[ENTITIES.index(e)] for e in among])
        found.append((1 + int((others > mine).sum()), 1 + int((others >= mine).sum()), 1 + len(others)))
    return found


@pytest.mark.parametrize("part", range(10))
def test_against_brute_force(part):
    """250 worlds each: raw, static, time-aware, by qualifiers, by spans, among the entities of a type."""
    rng = np.random.default_rng(part)
    for _ in range(250):
        tasks, facts, scores = world(rng)
        key = [(), ("time",), ("qualifiers",), ("time", "qualifiers")][rng.integers(4)]
        during = "time" if rng.random() < 0.3 else None
        known = None if rng.random() < 0.1 else facts
        typed = None
        if rng.random() < 0.3:
            typed = {
                (r, s, e)
                for r in "rs"
                for s in ("head", "tail")
                for e in rng.choice(ENTITIES, 3, replace=False)
            }
        given = (
            None
            if typed is None
            else pl.DataFrame(sorted(typed), ["relation", "side", "entity"], orient="row")
        )
        numbered = tasks.with_row_index("number")  # a task may stand there twice
        table = rank_queries(
            scores, numbered, ENTITIES, known=known, key=key, during=during, query="number", candidates=given
        ).frame
        assert table.select("optimistic", "pessimistic", "candidates").rows() == brute(
            tasks, known, scores, key, during, typed
        )


def test_a_plain_graph_is_a_special_case():
    rng = np.random.default_rng(0)
    facts = np.unique(rng.integers(0, [9, 2, 9], (60, 3)), axis=0).astype(np.int32)
    rng.shuffle(facts)
    labels = tuple(f"e{i}" for i in range(9))
    graph = KnowledgeGraph(labels, ("r", "s"), {"train": facts[:30], "test": facts[30:]})
    scores = rng.normal(size=(len(facts) - 30, 9))
    named = [(labels[h], "rs"[r], labels[t]) for h, r, t in facts]
    known = pl.DataFrame(named, ["head", "relation", "tail"], orient="row")
    tasks = known[30:].with_columns(side=pl.lit("tail"))
    one = rank_queries(scores, tasks, labels, known=known).frame
    other = owkg.rank(scores, graph).frame
    for column in ("head", "tail", "optimistic", "pessimistic", "candidates", "filtered"):
        assert one[column].to_list() == other[column].to_list()


def test_filtered_says_whether_the_known_facts_hold_those_of_the_tasks():
    tasks = pl.DataFrame({"head": "a", "relation": "r", "tail": ["b", "c"], "time": 1, "side": "tail"})
    other = tasks.with_columns(tail=pl.lit("d")).drop("side")[:1]
    scores = [[0.0, 3.0, 2.0, 1.0]] * 2
    for facts, filtered, ranks in (
        ([tasks.drop("side"), other], True, [1, 1]),
        ([tasks.drop("side")[:1], other], False, [1, 1]),
        ([other], False, [1, 2]),
        (None, False, [1, 2]),
    ):
        known = None if facts is None else pl.concat(facts)
        table = rank_queries(scores, tasks, "abcd", known=known, key="time", query="time").frame
        assert table["filtered"].to_list() == [filtered] * 2
        assert table["optimistic"].to_list() == ranks


def test_queries_of_other_times_are_other_queries():
    rng = np.random.default_rng(1)
    tasks = pl.DataFrame(
        {"head": "a", "relation": "r", "tail": list("bcd"), "time": [1, 1, 2], "side": "tail"}
    )
    known = tasks.drop("side")
    table = rank_queries(rng.normal(size=(3, 6)), tasks, ENTITIES, known=known, key="time", model="m")
    assert table.frame["relation"].to_list() == ["r|time=1", "r|time=1", "r|time=2"]
    assert owkg.evaluate(table, "macro-mrr", side="tail", ci=None)["value"].is_not_null().all()
    each = 1 / table.frame["optimistic"].to_numpy()
    macro = owkg.evaluate(table, "macro-mrr", side="tail", ties="realistic", ci=None)["value"].item()
    assert macro == pytest.approx((each[:2].mean() + each[2]) / 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": "place"}, "`tasks` must have the column place"),
        ({"during": "time"}, "`known` must have the column from"),
        ({"entities": "abcdeg"}, "`tasks` must name entities in answer, got 'f'"),
        ({"entities": "aabcde"}, "`entities` must be distinct labels"),
        ({"scores": np.ones((2, 6))}, r"`scores` must be \[tasks, entities\], \[1, 6\]"),
        (
            {"candidates": pl.DataFrame({"entity": ["a"], "relation": ["x"]})},
            "`candidates` must have an entity for every task; . tasks have none, such as a ",
        ),
        ({"scores": np.full((1, 6), np.nan)}, "NaN"),
        (
            {"known": pl.DataFrame({"head": "a", "relation": "r", "tail": "f", "time": "1"}), "key": "time"},
            "`known` must hold time with the type of `tasks`, got String, not Int64",
        ),
    ],
)
def test_bad_input(change, message):
    tasks = pl.DataFrame({"head": ["a"], "relation": ["r"], "tail": ["f"], "time": [1], "side": ["tail"]})
    given = {
        "scores": np.ones((1, 6)),
        "tasks": tasks,
        "entities": ENTITIES,
        "known": tasks.drop("side"),
    } | change
    with pytest.raises(ValueError, match=message):
        rank_queries(given.pop("scores"), given.pop("tasks"), given.pop("entities"), **given)


def test_dates_and_times_are_alike_whatever_holds_them(tmp_path):
    """Text in one file, dates or times in another: the same ranks."""
    from datetime import date, datetime

    tasks = pl.DataFrame(
        {"head": ["a"], "relation": ["r"], "tail": ["b"], "side": ["tail"], "time": ["2014-01-01"]}
    )
    tasks.write_csv(tmp_path / "tasks.csv")
    np.savez(tmp_path / "scores.npz", scores=np.arange(6.0)[None], entity_labels=np.array(ENTITIES))
    facts = pl.DataFrame({"head": ["a"] * 2, "relation": ["r"] * 2, "tail": ["b", "f"]})
    found = []
    for time in ("2014-01-01", date(2014, 1, 1), datetime(2014, 1, 1)):
        known = tmp_path / "known.parquet"
        facts.with_columns(time=pl.lit(time)).write_parquet(known)
        spans = tmp_path / "spans.parquet"
        facts.with_columns(pl.lit(time).alias("from"), pl.lit(time).alias("to")).write_parquet(spans)
        files = (tmp_path / "scores.npz", tmp_path / "tasks.csv")
        for options in ({"known": known, "key": "time"}, {"known": spans, "during": "time"}):
            table = rank_query_files(*files, **options)
            found.append(table.frame.select("relation", "optimistic", "candidates").row(0))
            assert table.about["own_facts_known"] == 1
    assert set(found) == {("r|time=2014-01-01", 4, 5)}
    facts.with_columns(time=pl.Series([date(2014, 1, 1), date(2014, 1, 2)])).write_parquet(known)
    tasks.with_columns(time=pl.lit("soon")).write_csv(tmp_path / "tasks.csv")
    with pytest.raises(
        ValueError, match="`tasks` must hold dates or times in time, as other tables do, got 'soon'"
    ):
        rank_query_files(*files, known=known, key="time")


def test_static_and_raw_queries_are_told_apart():
    tasks = pl.DataFrame({"head": "a", "relation": "r", "tail": "b", "side": "tail", "time": [1, 2]})
    known = tasks.drop("side")
    scores = np.arange(12.0).reshape(2, 6)
    with pytest.raises(
        ValueError, match="`tasks` must be distinct: the tail of \\(a, r, b\\) is asked for twice"
    ):
        rank_queries(scores, tasks, ENTITIES, known=known)
    for facts in (known, None):
        table = rank_queries(scores, tasks, ENTITIES, known=facts, query="time")
        assert table.frame["relation"].to_list() == ["r|time=1", "r|time=2"]
        assert table.frame["optimistic"].to_list() == [5, 5]
        owkg.evaluate(table, "mrr", ci=None)


def test_a_graph_knows_the_relation_without_the_key():
    graph = KnowledgeGraph(tuple(ENTITIES), ("r",), {"train": np.array([[0, 0, 2]], np.int32)})
    tasks = pl.DataFrame({"head": "a", "relation": "r", "tail": "b", "side": "tail", "time": [1, 2]})
    table = rank_queries(np.arange(12.0).reshape(2, 6), tasks, ENTITIES, known=tasks.drop("side"), key="time")
    assert annotated(table.frame, graph)["category"].to_list() == ["1-1", "1-1"]


def test_sets_of_many_tasks_are_shared_and_known_facts_are_looked_at_in_parts(monkeypatch):
    rng = np.random.default_rng(4)
    size = 300
    labels = [f"e{i}" for i in range(size)]
    named = rng.integers(size, size=(2, 400))
    tasks = pl.DataFrame(
        {"head": [labels[i] for i in named[0]], "relation": "r", "tail": [labels[i] for i in named[1]]}
    )
    tasks = tasks.unique(maintain_order=True).with_columns(side=pl.lit("tail"), time=1)
    known = tasks.select("head", "relation", "tail").with_columns(
        pl.lit(0).alias("from"), pl.lit(2).alias("to")
    )
    typed = pl.DataFrame({"entity": labels[::2], "relation": "r"})
    scores = rng.random((len(tasks), size))
    options = {"known": known, "during": "time", "candidates": typed}
    whole = rank_queries(scores, tasks, labels, **options)
    monkeypatch.setattr("owkg.ranks.keyed._PAIRS", 3)
    assert rank_queries(scores, tasks, labels, **options).frame.equals(whole.frame)
    assert whole.frame["candidates"].is_between(size // 2 - 20, size // 2 + 1).all()


@pytest.mark.parametrize("time", [None, float("nan")])
def test_a_task_without_its_time_is_refused(time):
    tasks = pl.DataFrame(
        {"head": ["a", "b"], "relation": "r", "tail": "c", "side": "tail", "time": [1.0, time]}
    )
    known = pl.DataFrame({"head": ["a"], "relation": "r", "tail": "b", "from": 0.0, "to": 2.0})
    with pytest.raises(ValueError, match="`tasks` must have a time in every row of time, got none in row 2"):
        rank_queries(np.zeros((2, 6)), tasks, ENTITIES, known=known, during="time")


@pytest.mark.parametrize("column", ["head", "relation", "tail"])
def test_labels_that_are_missing_are_refused(column):
    tasks = pl.DataFrame({"head": ["a", "b"], "relation": "r", "tail": "c", "side": "tail"})
    none = tasks.with_columns(pl.when(pl.col("head") == "b").then(None).otherwise(column).alias(column))
    with pytest.raises(ValueError, match=f"`tasks` must have a {column} in every row, got none in row 2"):
        rank_queries(np.zeros((2, 6)), none, ENTITIES)


def test_known_facts_may_be_queries_and_answers():
    rng = np.random.default_rng(6)
    for _ in range(50):
        tasks, facts, scores = world(rng)
        tasks = tasks.with_row_index("number")
        named = [
            (f"{h}|{r}|?", t, *more) if rng.random() < 0.5 else (f"?|{r}|{t}", h, *more)
            for h, r, t, *more in facts.select("head", "relation", "tail", "from", "to").rows()
        ]
        columns = {"query": str, "answer": str, "from": pl.Int64, "to": pl.Int64}
        known = pl.DataFrame(named, columns, orient="row").with_columns(split=pl.lit("train"))
        options = {"during": "time", "query": "number"}
        one = rank_queries(scores, tasks, ENTITIES, known=known, **options)
        assert one.frame.equals(rank_queries(scores, tasks, ENTITIES, known=facts, **options).frame)
    with pytest.raises(ValueError, match=r"`known` must have queries .* got 'a'"):
        rank_queries(scores, tasks, ENTITIES, known=pl.DataFrame({"query": ["a"], "answer": ["b"]}))

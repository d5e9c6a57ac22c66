"""Strengths and correlations from judgements: by hand, in a known world, coverage, drawn answers."""

import numpy as np
import polars as pl
import pytest

from owkg.auditing import audit, judged_strengths, missing_share
from owkg.auditing.judged import _correlation
from owkg.kg import KnowledgeGraph

NAMES = tuple("abcdefghij")
GRAPH = KnowledgeGraph(
    NAMES,
    ("r",),
    {"train": np.array([[9, 0, 8]], np.int32), "test": np.array([[0, 0, 1], [2, 0, 3]], np.int32)},
)


def ranks(a, c):
    """Ranks of (a, r, b) and (c, r, d), tails alone."""
    row = {"relation": "r", "side": "tail", "candidates": 10, "filtered": True}
    rows = [
        row | {"head": "a", "tail": "b", "optimistic": a},
        row | {"head": "c", "tail": "d", "optimistic": c},
    ]
    return pl.DataFrame(rows).with_columns(pessimistic="optimistic")


def run(lists):
    parts = [
        {
            "model": "m",
            "query": f"{h}|r|?",
            "side": "tail",
            "entity": h,
            "relation": "r",
            "answer": x,
            "score": -i,
        }
        for h, listed in lists.items()
        for i, x in enumerate(listed)
    ]
    return pl.DataFrame(parts).with_columns(pl.col("score").cast(pl.Float64))


def judged(rows):
    parts = [(f"{h}|r|?", "tail", h, "r", a, g) for h, a, g in rows]
    return pl.DataFrame(parts, ["query", "side", "entity", "relation", "answer", "relevance"], orient="row")


JUDGED = judged([("a", "e", 1), ("a", "f", 1), ("a", "g", 0), ("c", "h", 1)])


def test_by_hand():
    # To a: e and f are true and lead the list, then g; b has one candidate before it, e, so it is found.
    # To c: d is second, after g, which is not true; h is below g.
    one = judged_strengths(
        {"m": ranks(2, 2)}, {"m": run({"a": "ebfg", "c": "gdh"})}, JUDGED, GRAPH, design="complete"
    )
    assert one.select("queries", "known", "found").rows() == [(2, 2, 3)]
    assert one["missing_strength"].item() == pytest.approx(2 / 3)
    assert one["test_strength"].item() == pytest.approx(1 / 2)
    assert one["sparsity"].item() == pytest.approx(3 / 5)
    missing, found = np.array([0, 0, 1, 1, 1]), np.array([1, 0, 1, 1, 0])
    assert one["correlation"].item() == pytest.approx(np.corrcoef(missing, found)[0, 1])


def test_what_is_not_listed_is_not_found():
    one = judged_strengths(
        {"m": ranks(1, 1)}, {"m": run({"a": "beg", "c": "dgj"})}, JUDGED, GRAPH, design="complete"
    )
    assert one["missing_strength"].item() == pytest.approx(1 / 3)
    assert one["test_strength"].item() == 1


def test_known_answers_judged_not_relevant_leave_what_is_found():
    lists = {"m": run({"a": "ebfg", "c": "gdh"})}
    one = judged_strengths(
        {"m": ranks(2, 2)}, lists, pl.concat([JUDGED, judged([("a", "b", 0)])]), GRAPH, design="complete"
    )
    assert one.select("queries", "known", "found").rows() == [(2, 1, 3)]
    none = judged([("a", "b", 0), ("c", "d", 0)])
    one = judged_strengths({"m": ranks(2, 2)}, lists, pl.concat([JUDGED, none]), GRAPH, design="complete")
    assert one["sparsity"].item() == 1
    assert one["test_strength"].item() is None
    assert one["correlation"].item() is None


def test_without_lists_only_the_sparsity_is_known(tmp_path):
    tables = {"m": ranks(2, 2), "n": ranks(3, 4)}
    found = audit(tables, "mrr", graph=GRAPH, judged=JUDGED)
    for name in ("missing_strength", "test_strength", "correlation", "correlation_low"):
        assert found.judged[name].is_null().all()
    assert (found.judged["sparsity"] == 3 / 5).any()
    assert found.assumptions["correlation"] is None


def test_all_found_has_no_correlation():
    one = judged_strengths(
        {"m": ranks(1, 1)}, {"m": run({"a": "befg", "c": "dhj"})}, JUDGED, GRAPH, design="complete"
    )
    assert one["missing_strength"].item() == one["test_strength"].item() == 1
    assert one["correlation"].item() is None


def drawn(rng, queries, beta, l1, l2):
    """Counts of each query: known, known and found, missing, missing and found."""
    size = rng.integers(1, 9, queries)
    missing = rng.binomial(size, beta)
    own = rng.beta(8, 8, queries) * 2  # queries are easy or hard
    known = size - missing
    one, other = (rng.binomial(n, np.clip(p * own, 0, 1)) for n, p in ((known, l2), (missing, l1)))
    return known, one, missing, other


@pytest.mark.parametrize(("queries", "beta", "l1", "l2"), [(120, 0.5, 0.3, 0.4), (400, 0.3, 0.4, 0.2)])
def test_coverage_of_the_correlation(queries, beta, l1, l2):
    """The correlation of all answers of a large population of queries stands in for the true one."""
    rng = np.random.default_rng(3)
    whole = [x.astype(float) for x in drawn(rng, 2_000_000, beta, l1, l2)]
    truth, low, high = _correlation(*whole, 0.95).values()
    held = []
    for _ in range(1500):
        sample = [x.astype(float) for x in drawn(rng, queries, beta, l1, l2)]
        found = _correlation(*sample, 0.95)
        held.append(found["correlation_low"] <= truth <= found["correlation_high"])
    assert high - low < 0.01
    assert 0.93 < np.mean(held) < 0.97


def tails(head, tail):
    columns = {"query": [f"e{i}|r|?" for i in head], "side": "tail", "entity": [f"e{i}" for i in head]}
    return pl.DataFrame(columns | {"relation": "r", "answer": [f"e{i}" for i in tail], "relevance": 1})


def test_a_sample_of_answers_stands_for_all():
    """Queries with many known answers lack few: judging the queries of drawn answers needs their weights."""
    rng = np.random.default_rng(4)
    queries, entities = 600, 700
    known = np.where(np.arange(queries) % 2, 1, 20)
    missing = np.where(known == 1, 2, 1)
    heads = np.repeat(np.arange(queries), known)
    place = np.concatenate([np.arange(n) for n in known])
    names = tuple(f"e{i}" for i in range(entities))
    test = np.stack([heads, np.zeros_like(heads), 600 + place], 1).astype(np.int32)
    graph = KnowledgeGraph(names, ("r",), {"train": np.array([[0, 0, 699]], np.int32), "test": test})
    truth = missing.sum() / (missing.sum() + known.sum())
    held, values = [], []
    for _ in range(60):
        chosen = rng.choice(len(test), 300, replace=False)
        sample = tails(test[chosen, 0], test[chosen, 2])
        asked = np.unique(test[chosen, 0])
        h = np.repeat(asked, missing[asked])
        found = tails(h, 650 + np.concatenate([np.arange(n) for n in missing[asked]]))
        (row,) = missing_share(found, graph, sample=sample, design="complete").rows(named=True)
        values.append(row["sparsity_at_least"])
        held.append(row["ci_low"] <= truth <= row["ci_high"])
    plain = missing_share(found, graph, design="complete")["sparsity_at_least"].item()
    assert np.mean(values) == pytest.approx(truth, abs=0.01)
    assert abs(plain - truth) > 0.03
    assert np.mean(held) > 0.85


def test_the_audit_uses_them():
    lists = {"m": run({"a": "ebfg", "c": "gdh"}), "n": run({"a": "gbef", "c": "dgh"})}
    lists["n"] = lists["n"].with_columns(model=pl.lit("n"))
    tables = {"m": ranks(2, 2), "n": ranks(2, 1)}
    options = {"graph": GRAPH, "lists": lists, "judged": JUDGED, "test": "t"}
    found = audit(tables, "mrr", design="complete", **options)
    told = "judgements of a random sample of queries, judged completely"
    assert found.assumptions["sparsity_from"] == found.assumptions["correlation_from"] == told
    whole = found.judged.filter(pl.col("side").is_null())
    assert set(found.assumptions["correlation"]) == {"m", "n"} == set(whole["model"])
    assert found.assumptions["sparsity"] == list(whole.select("sparsity_low", "sparsity_high").row(0))
    assert found.assumptions["sparsity_at_least"] is None
    assert len(found.judged) > len(whole)
    assert found.payload()["judged"][0]["found"] == 3
    # The truth that a benchmark keeps beside its sparse test is not known.
    facts = {**GRAPH.splits, "missing": np.array([[0, 0, 4], [0, 0, 5], [2, 0, 7]], np.int32)}
    facts["test_full"], facts["test_sparse"] = (
        np.concatenate([facts["test"], facts["missing"]]),
        facts.pop("test"),
    )
    world = audit(tables, "mrr", design="complete", **{**options, "graph": GRAPH._replace(splits=facts)})
    assert world.judged.equals(found.judged)
    assert world.pairs.equals(found.pairs)
    # Both hold, where both are there: a statement never makes a range wider.
    low, high = found.assumptions["sparsity"]
    stated = {"sparsity": ((low + high) / 2, 0.999), "correlation": 0}
    both = audit(tables, "mrr", design="complete", **stated, **options).assumptions
    assert both["correlation_from"] == "given"
    assert both["sparsity"] == [(low + high) / 2, high]
    assert both["sparsity_from"] == f"given, and {told}"
    apart = audit(tables, "mrr", design="complete", sparsity=low / 2, **options).assumptions
    assert (apart["sparsity"], apart["sparsity_from"]) == ([low / 2, low / 2], "given")
    assert any("Judging found more answers (3)" in note for note in apart["notes"])


def test_complete_judgements_of_fifty_queries_say_how_uneven_rates_are():
    """Rates of 0.1 and 0.9: far from even; and a stated range that holds what is fitted is narrowed by it."""
    rng = np.random.default_rng(0)
    queries = 60
    known, missing = np.tile([9, 1], queries // 2), np.tile([1, 9], queries // 2)
    heads, place = (np.repeat(np.arange(queries), known), np.concatenate([np.arange(n) for n in known]))
    names = tuple(f"e{i}" for i in range(100))
    test = np.stack([heads, np.zeros_like(heads), 60 + place], 1).astype(np.int32)
    graph = KnowledgeGraph(names, ("r",), {"train": np.array([[0, 0, 99]], np.int32), "test": test})
    found = tails(
        np.repeat(np.arange(queries), missing), 75 + np.concatenate([np.arange(n) for n in missing])
    )
    heads, answers = ([f"e{i}" for i in ids] for ids in (test[:, 0], test[:, 2]))
    row = {"head": heads, "relation": "r", "tail": answers, "side": "tail", "candidates": 90}
    ranks = rng.integers(1, 20, (2, len(test)))
    tables = {
        name: pl.DataFrame(row | {"optimistic": own, "pessimistic": own, "filtered": True})
        for name, own in zip("ab", ranks, strict=True)
    }
    options = {"graph": graph, "judged": found, "design": "complete", "test": "t"}
    said = audit(tables, "mrr", **options).assumptions
    low, high = said["unevenness"]
    assert 0.5 < low < high
    assert said["unevenness_from"] == said["sparsity_from"]
    assert any("differ as complete judgements show" in note for note in said["notes"])
    both = audit(tables, "mrr", unevenness=(0, 3), **options).assumptions
    assert both["unevenness"] == [low, high]
    assert both["unevenness_from"] == f"given, and {said['unevenness_from']}"
    given = audit(tables, "mrr", unevenness=0, **options).assumptions
    assert (given["unevenness"], given["unevenness_from"]) == ([0, 0], "given")
    few = found.filter(pl.col("entity").is_in([f"e{i}" for i in range(40)]))
    assert audit(tables, "mrr", **options | {"judged": few}).assumptions["unevenness"] == [0, 1.5]


@pytest.mark.parametrize("design", ["complete", "pool", "unknown"])
def test_what_contradicts_the_stated_sparsity_needs_no_lists(design):
    tables = {"m": ranks(2, 2), "n": ranks(2, 1)}
    found = audit(tables, "mrr", graph=GRAPH, judged=JUDGED, design=design, sparsity=0.1, test="t")
    assert found.pairs["verdict"].to_list() == ["open: judging found more than the stated sparsity allows"]
    assert any("Judging found more answers (3)" in note for note in found.assumptions["notes"])


@pytest.mark.parametrize("design", [None, "pool", "sampled-pool", "budget", "sheet", "unknown"])
def test_other_designs_give_a_lower_bound_and_no_more(design):
    """The box has no upper end: no full-test metric, no probability, no correlation, no strength."""
    lists = {name: run({"a": a, "c": c}) for name, a, c in (("m", "ebfg", "gdh"), ("n", "gbef", "dgh"))}
    tables = {"m": ranks(2, 2), "n": ranks(2, 1)}
    found = audit(tables, "mrr", graph=GRAPH, lists=lists, judged=JUDGED, design=design, test="t")
    said = found.assumptions
    assert (said["sparsity"], said["correlation"]) == (None, None)
    assert 0 < said["sparsity_at_least"] <= 3 / 5
    assert said["correlation_from"] == "not stated: 0 is assumed"
    for table, columns in (
        (found.models, ("strength", "full", "full_low", "full_high")),
        (found.pairs, ("probability_low", "probability_high")),
        (found.judged, ("sparsity_high", "missing_strength", "test_strength", "correlation")),
    ):
        for column in columns:
            assert table[column].is_null().all(), column


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "relation"}, "`by` must be of side, category, got relation"),
        ({"qrels": judged([("e", "f", 1)])}, "`qrels` must judge queries that test answers, got none"),
        ({"sample": judged([("a", "e", 1)])}, "`sample` must hold answers of test, got 'e' to 'a|r|\\?'"),
        ({"sample": pl.DataFrame({"query": ["a"]})}, "`sample` .*answer"),
    ],
)
def test_bad_input(options, message):
    given = {"qrels": JUDGED} | options
    with pytest.raises(ValueError, match=message):
        judged_strengths(
            {"m": ranks(2, 2)}, {"m": run({"a": "ebfg", "c": "gdh"})}, given.pop("qrels"), GRAPH, **given
        )


def test_a_sample_without_judgements():
    with pytest.raises(ValueError, match="`sample` is of judgements, and there are none"):
        audit({"m": ranks(2, 2), "n": ranks(1, 2)}, "mrr", sample=JUDGED)

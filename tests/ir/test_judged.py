"""Measures of judged lists against trec_eval, plain definitions, hand-made lists and limits."""

import jax
import numpy as np
import polars as pl
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from owkg import ir
from owkg.ir import POOLED, UNJUDGED, judge

# Our measure, and what trec_eval calls it.
CUTS = (1, 2, 3, 5, 10, 100)
AT = {
    "map_cut": ir.average_precision,
    "ndcg_cut": ir.ndcg,
    "P": ir.precision,
    "recall": ir.recall,
    "success": ir.success,
}
WHOLE = {
    "map": ir.average_precision,
    "ndcg": ir.ndcg,
    "Rprec": ir.r_precision,
    "bpref": ir.bpref,
    "infAP": ir.inf_ap,
    "recip_rank": ir.reciprocal_rank,
}


def world(
    seed: int,
    queries: int,
    *,
    relevances: int,
    pooled: float = 0.0,
    ties: bool = False,
    integers: bool = False,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A random run and random judgements; lists of 0 to 30 answers, some not judged."""
    rng = np.random.default_rng(seed)
    run, qrels = [], []
    for number in range(queries):
        query = number if integers else f"q{number}"
        name = int if integers else "d{}".format
        pool = rng.permutation(40)
        judged = pool[: rng.integers(1, 25)]
        # Every fourth query has no relevant answer; the first judgement is never only pooled.
        relevance = rng.integers(0, relevances + 1, judged.size) * (rng.random() < 0.75)
        relevance[1:][rng.random(judged.size - 1) < pooled] = POOLED
        qrels += [(query, name(a), int(g)) for a, g in zip(judged, relevance, strict=True)]
        answers = rng.permutation(40)[: rng.integers(number == 0, 31)]  # some list is not empty
        # Multiples of 1/64 differ in single precision too, which is what trec_eval sorts by.
        score = rng.integers(0, 5, 40) if ties else rng.permutation(40) / 64 - 0.25
        run += [(query, name(a), float(s)) for a, s in zip(answers, score, strict=False)]
    kind = pl.Int64 if integers else pl.String
    return (
        pl.DataFrame(run, {"query": kind, "answer": kind, "score": pl.Float64}, orient="row"),
        pl.DataFrame(qrels, {"query": kind, "answer": kind, "relevance": pl.Int64}, orient="row"),
    )


def trec_eval(run: pl.DataFrame, qrels: pl.DataFrame, level: int) -> dict[str, np.ndarray]:
    """trec_eval's value by measure, the queries in ascending order; 0 for a query without a list."""

    def nested(frame: pl.DataFrame) -> dict:
        table: dict = {}
        for query, answer, value in frame.iter_rows():
            table.setdefault(str(query), {})[str(answer)] = value
        return table

    names = {*WHOLE, *(f"{name}.{','.join(map(str, CUTS))}" for name in AT)}
    evaluator = pytrec_eval.RelevanceEvaluator(nested(qrels), names, relevance_level=level)
    found = evaluator.evaluate(nested(run))
    order = [str(q) for q in qrels["query"].unique().sort()]
    keys = [*WHOLE, *(f"{name}_{k}" for name in AT for k in CUTS)]
    return {key: np.array([found.get(q, {}).get(key, 0.0) for q in order]) for key in keys}


def check_against_trec_eval(run: pl.DataFrame, qrels: pl.DataFrame, level: int = 1) -> None:
    expected = trec_eval(run, qrels, level)
    judged = judge(run, qrels, relevance_level=level)
    assert judged.queries.equals(qrels["query"].unique().sort())
    for name, measure in WHOLE.items():
        np.testing.assert_allclose(measure(judged), expected[name], rtol=0, atol=1e-12, err_msg=name)
    for name, measure in AT.items():
        for k in CUTS:
            key = f"{name}_{k}"
            np.testing.assert_allclose(measure(judged, k), expected[key], rtol=0, atol=1e-12, err_msg=key)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("queries", [1, 2, 60])
@pytest.mark.parametrize(
    ("relevances", "level", "pooled"), [(1, 1, 0.0), (3, 1, 0.0), (3, 2, 0.0), (1, 1, 0.4), (3, 2, 0.3)]
)
def test_measures_agree_with_trec_eval(seed, queries, relevances, level, pooled):
    check_against_trec_eval(*world(seed, queries, relevances=relevances, pooled=pooled), level)


@pytest.mark.parametrize("queries", [1023, 1024])
def test_many_queries_agree_with_trec_eval(queries):  # padding is to powers of two
    check_against_trec_eval(*world(6, queries, relevances=3, pooled=0.2))


@pytest.mark.parametrize("length", [1023, 1024, 1025])
def test_long_lists_agree_with_trec_eval(length):
    rng = np.random.default_rng(length)
    names = [str(i) for i in range(length)]
    run = pl.DataFrame({"query": "q", "answer": names, "score": rng.permutation(length) / 64})
    qrels = pl.DataFrame({"query": "q", "answer": names, "relevance": rng.integers(1, 4, length)})
    check_against_trec_eval(run, qrels)


@pytest.mark.parametrize("integers", [False, True])
def test_ties_are_broken_as_trec_eval_breaks_them(integers):
    check_against_trec_eval(*world(5, 40, relevances=2, ties=True, integers=integers))


def test_answers_of_equal_score_are_ordered_by_bytes():
    answers = ["Z", "a", "z", "é", "10", "9", "a b", "ß", "漢"]
    run = pl.DataFrame({"query": "q", "answer": answers, "score": [0.0, -0.0, 0.0] * 3})
    for answer in answers:
        qrels = pl.DataFrame({"query": ["q"], "answer": [answer], "relevance": [1]})
        check_against_trec_eval(run, qrels)


def test_unjudged_and_missing_queries_are_among_those_compared():
    run, qrels = world(0, 60, relevances=3, pooled=0.4)
    judged = judge(run, qrels)
    assert {POOLED, UNJUDGED, 0, 1, 2, 3} == set(judged.relevance.tolist())
    assert (judged.retrieved == 0).any()
    assert (judged.relevant == 0).any()
    assert (judged.nonrelevant == 0).any()


# --- plain definitions, for what trec_eval does not have


def lists(run: pl.DataFrame, qrels: pl.DataFrame) -> list[list[int]]:
    """The relevances of each query's answers in ranked order, in plain Python; untied scores."""
    relevance = {(q, a): g for q, a, g in qrels.iter_rows()}
    rows = sorted(run.iter_rows(), key=lambda row: -row[2])
    return [
        [relevance.get((q, a), UNJUDGED) for of, a, _ in rows if of == q] for q in sorted(set(qrels["query"]))
    ]


@pytest.mark.parametrize("persistence", [0.1, 0.5, 0.8, 0.95])
def test_rbp_and_its_residual_follow_their_definitions(persistence):
    run, qrels = world(1, 30, relevances=3, pooled=0.2)
    judged = judge(run, qrels, relevance_level=2)
    binary, graded, residual = [], [], []
    for relevances in lists(run, qrels):
        weight = [(1 - persistence) * persistence**i for i in range(len(relevances))]
        binary.append(sum(w for w, g in zip(weight, relevances, strict=True) if g >= 2))
        graded.append(sum(w * g / 4 for w, g in zip(weight, relevances, strict=True) if g > 0))
        residual.append(1 - sum(w for w, g in zip(weight, relevances, strict=True) if g >= 0))
    np.testing.assert_allclose(ir.rbp(judged, persistence), binary, rtol=1e-13)
    np.testing.assert_allclose(ir.rbp(judged, persistence, largest_relevance=4), graded, rtol=1e-13)
    np.testing.assert_allclose(ir.rbp_residual(judged, persistence), residual, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("k", [1, 4, 200])
def test_judged_at_and_cut_reciprocal_rank_follow_their_definitions(k):
    run, qrels = world(2, 30, relevances=1, pooled=0.3)
    judged = judge(run, qrels)
    plain = lists(run, qrels)
    known = [sum(g >= 0 for g in relevances[:k]) / k for relevances in plain]
    first = [
        max((1 / (i + 1) for i, g in enumerate(relevances[:k]) if g > 0), default=0) for relevances in plain
    ]
    np.testing.assert_allclose(ir.judged_at(judged, k), known, rtol=1e-15)
    np.testing.assert_allclose(ir.reciprocal_rank(judged, k), first, rtol=1e-15)


def one_list(relevances: list[int], unretrieved: tuple[int, ...] = ()) -> ir.Judged:
    """A query with the relevances in ranked order and those of answers that were not retrieved."""
    run = [("q", str(i), float(-i)) for i in range(len(relevances))]
    qrels = [("q", str(i), g) for i, g in enumerate([*relevances, *unretrieved]) if g != UNJUDGED]
    return judge(
        pl.DataFrame(run, ["query", "answer", "score"], orient="row"),
        pl.DataFrame(qrels, ["query", "answer", "relevance"], orient="row"),
    )


def test_a_list_worked_out_by_hand():
    judged = one_list([1, 0, UNJUDGED, 1, 0, 1], unretrieved=(1, 0))
    worked = {
        "average_precision": (1 + 2 / 4 + 3 / 6) / 4,
        "r_precision": 2 / 4,
        "reciprocal_rank": 1.0,
        "bpref": (1 + (1 - 1 / 3) + (1 - 2 / 3)) / 4,
        "ndcg": (1 + 1 / np.log2(5) + 1 / np.log2(7))
        / (1 + 1 / np.log2(3) + 1 / np.log2(4) + 1 / np.log2(5)),
    }
    for name, value in worked.items():
        np.testing.assert_allclose(getattr(ir, name)(judged), [value], rtol=1e-14, err_msg=name)
    np.testing.assert_allclose(ir.average_precision(judged, 4), [1.5 / 4], rtol=1e-14)
    np.testing.assert_allclose(ir.judged_at(judged, 4), [3 / 4], rtol=1e-14)
    np.testing.assert_allclose(ir.rbp(judged, 0.5), [0.5 * (1 + 1 / 8 + 1 / 32)], rtol=1e-14)
    np.testing.assert_allclose(ir.rbp_residual(judged, 0.5), [1 / 8 + 1 / 64], rtol=1e-14)


def test_pooled_answers_are_inferred_and_unpooled_ones_are_not():
    # Above the last answer: 1 relevant, 1 not, and 2 that are pooled or outside the pool.
    ap = ir.inf_ap(one_list([1, 0, POOLED, POOLED, 1]))
    np.testing.assert_allclose(ap, [(1 + (1 + 4 * 1 / 2) / 5) / 2], atol=1e-4)
    ap = ir.inf_ap(one_list([1, 0, UNJUDGED, UNJUDGED, 1]))
    np.testing.assert_allclose(ap, [(1 + (1 + 2 * 1 / 2) / 5) / 2], atol=1e-4)


# --- properties

frames = st.builds(
    lambda seed, queries, relevances, pooled: world(seed, queries, relevances=relevances, pooled=pooled),
    st.integers(0, 10**6),
    st.integers(2, 14),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.3]),
)

MEASURES = {
    **WHOLE,
    **{name: lambda judged, measure=measure: measure(judged, 5) for name, measure in AT.items()},
    "judged": lambda judged: ir.judged_at(judged, 5),
    "rbp": lambda judged: ir.rbp(judged, 0.8),
    "graded rbp": lambda judged: ir.rbp(judged, 0.8, largest_relevance=4),
    "rbp_residual": lambda judged: ir.rbp_residual(judged, 0.8),
}


@given(frames, st.integers(0, 10**6))
def test_the_order_of_the_rows_does_not_matter(frame, seed):
    run, qrels = frame
    judged = judge(run, qrels)
    shuffled = judge(*(frame.sample(fraction=1, shuffle=True, seed=seed) for frame in (run, qrels)))
    for name, measure in MEASURES.items():
        np.testing.assert_array_equal(measure(shuffled), measure(judged), err_msg=name)


@given(frames)
def test_a_query_scores_the_same_among_others_and_alone(frame):
    run, qrels = frame
    together = judge(run, qrels)
    place = int(np.argmax(together.retrieved))
    only = pl.col("query") == together.queries[place]
    alone = judge(run.filter(only), qrels.filter(only))
    for name, measure in MEASURES.items():
        np.testing.assert_allclose(measure(alone), measure(together)[[place]], rtol=1e-14, err_msg=name)


@given(frames)
def test_every_measure_is_in_the_unit_interval_and_float64(frame):
    judged = judge(*frame)
    for name, measure in MEASURES.items():
        values = measure(judged)
        assert type(values) is np.ndarray, name
        assert values.dtype == np.float64, name
        assert values.shape == (len(judged.queries),), name
        assert ((values >= 0) & (values <= 1 + 1e-12)).all(), name
    assert (ir.rbp(judged, 0.8) + ir.rbp_residual(judged, 0.8) <= 1 + 1e-12).all()


@given(frames)
def test_the_judgements_own_order_is_perfect(frame):
    _, qrels = frame
    run = qrels.rename({"relevance": "score"})
    judged = judge(run, qrels)
    some = judged.relevant > 0
    for name in ("map", "ndcg", "Rprec", "bpref", "recip_rank", "ndcg_cut", "success"):
        np.testing.assert_allclose(MEASURES[name](judged), some, rtol=0, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(ir.inf_ap(judged), some, rtol=0, atol=1e-4)  # smoothed


@given(frames)
def test_without_pooled_answers_inferred_ap_is_ap(frame):
    run, qrels = frame
    judged = judge(run, qrels.filter(pl.col("relevance") != POOLED))
    ap = ir.average_precision(judged)
    # Answers outside the pool are not relevant either way; the smoothing adds below 1e-4.
    np.testing.assert_allclose(ir.inf_ap(judged), ap, rtol=0, atol=1e-4)


@pytest.mark.parametrize("x64", [False, True])
def test_results_do_not_depend_on_the_callers_precision(x64):
    judged = judge(*world(3, 20, relevances=3))
    expected = {name: measure(judged) for name, measure in MEASURES.items()}
    with jax.enable_x64(x64):
        for name, measure in MEASURES.items():
            np.testing.assert_array_equal(measure(judged), expected[name], err_msg=name)


def test_columns_of_other_kinds_are_understood():
    run, qrels = world(4, 20, relevances=2, integers=True)
    expected = ir.ndcg(judge(run, qrels))
    narrow = run.with_columns(pl.col("query").cast(pl.UInt8), pl.col("answer").cast(pl.Int32), extra=1)
    floats = qrels.with_columns(pl.col("relevance").cast(pl.Float32))
    np.testing.assert_array_equal(ir.ndcg(judge(narrow, floats)), expected)
    text = (frame.with_columns(pl.col("answer").cast(pl.String)) for frame in (run, qrels))
    np.testing.assert_array_equal(ir.ndcg(judge(*text)), expected)
    coded = run.with_columns(pl.col("answer").cast(pl.String).cast(pl.Categorical))
    named = qrels.with_columns(pl.col("answer").cast(pl.String))
    np.testing.assert_array_equal(ir.ndcg(judge(coded, named)), expected)


def test_whole_scores_beyond_double_precision_and_infinite_ones_are_in_order():
    qrels = pl.DataFrame({"query": ["q"], "answer": ["a"], "relevance": [1]})
    run = pl.DataFrame({"query": ["q", "q"], "answer": ["a", "b"], "score": [2**53 + 1, 2**53]})
    assert ir.reciprocal_rank(judge(run, qrels)) == [1.0]
    run = run.with_columns(score=pl.Series([0.0, -np.inf]))
    assert ir.reciprocal_rank(judge(run, qrels)) == [1.0]


# --- bad input

RUN = pl.DataFrame({"query": ["q", "q"], "answer": ["a", "b"], "score": [2.0, 1.0]})
QRELS = pl.DataFrame({"query": ["q", "q"], "answer": ["a", "c"], "relevance": [1, 0]})


def with_column(frame: pl.DataFrame, column: str, values: list) -> pl.DataFrame:
    return frame.with_columns(pl.Series(column, values))


@pytest.mark.parametrize(
    ("run", "qrels", "message"),
    [
        (RUN.clear(), QRELS, "`run` must have at least one row"),
        (RUN, QRELS.clear(), "`qrels` must have at least one row"),
        (RUN.drop("score"), QRELS, r"`run` must have the columns .* \(without score\)"),
        (RUN, QRELS.drop("query", "relevance"), r"got answer \(without query, relevance\)"),
        (RUN.select(), QRELS, "got none"),
        ({"query": ["q"]}, QRELS, "`run` must be a polars DataFrame, got dict"),
        (RUN, None, "`qrels` must be a polars DataFrame, got NoneType"),
        (
            with_column(RUN, "score", [1.0, np.nan]),
            QRELS,
            r"`score` must be a number, got nan at index \(1,\)",
        ),
        (with_column(RUN, "score", [None, 1.0]), QRELS, r"`score` must be a number, got nan at index \(0,\)"),
        (with_column(RUN, "score", [None, 1]), QRELS, r"`score` must be a number, got nan at index \(0,\)"),
        (with_column(RUN, "score", ["1", "2"]), QRELS, "`score` must be a number, got String"),
        (with_column(RUN, "answer", ["a", "a"]), QRELS, r"`run` must list .* got \('q', 'a'\) twice"),
        (
            with_column(RUN, "answer", [None, "a"]),
            QRELS,
            r"must name the answer in every row, got none at index \(0,\)",
        ),
        (with_column(RUN, "answer", [1.5, 2]), QRELS, "`run` must name each answer by text or .*Float64"),
        (
            with_column(RUN, "answer", [1, 2]),
            QRELS,
            "`qrels` must have the type of `run` in the column answer, Int64",
        ),
        (with_column(RUN, "query", ["q", "x"]), QRELS, "`run` must answer queries that .* got 'x'"),
        (RUN, with_column(QRELS, "answer", ["a", "a"]), r"`qrels` must list .* got \('q', 'a'\) twice"),
        (
            RUN,
            with_column(QRELS, "relevance", [1.0, np.nan]),
            r"`relevance` must be .* got nan at index \(1,\)",
        ),
        (RUN, with_column(QRELS, "relevance", [1, None]), r"`relevance` must be .* got nan at index \(1,\)"),
        (RUN, with_column(QRELS, "relevance", [0.5, 1]), "`relevance` must be a whole number .* got 0.5"),
        (
            RUN,
            with_column(QRELS, "relevance", [1, -2]),
            r"`relevance` must be .* at least -1, got -2 at index \(1,\)",
        ),
        (RUN, with_column(QRELS, "relevance", ["1", "0"]), "`relevance` must be .* got String"),
        (RUN, with_column(QRELS, "relevance", [True, False]), "`relevance` must be .* got Boolean"),
        (
            with_column(RUN, "answer", [2**63, 1]),
            with_column(QRELS, "answer", [1, 2]),
            "`run` must name each answer below 2",
        ),
    ],
)
def test_bad_frames_are_refused(run, qrels, message):
    with pytest.raises(ValueError, match=message):
        judge(run, qrels)


@pytest.mark.parametrize("level", [0, -1, 1.5, np.nan, "1", None, [1, 2]])
def test_bad_relevance_levels_are_refused(level):
    with pytest.raises(ValueError, match="`relevance_level` must be"):
        judge(RUN, QRELS, relevance_level=level)


@pytest.mark.parametrize("name", ["precision", "recall", "success", "judged_at", "average_precision", "ndcg"])
@pytest.mark.parametrize("k", [0, -3, 2.5, np.nan, "5", [1, 2], True])
def test_bad_cuts_are_refused(name, k):
    with pytest.raises(ValueError, match="`k` must be"):
        getattr(ir, name)(judge(RUN, QRELS), k)


@pytest.mark.parametrize("name", ["precision", "recall", "success", "judged_at"])
def test_a_cut_cannot_be_left_out_where_it_is_part_of_the_measure(name):
    with pytest.raises(ValueError, match="`k` must be"):
        getattr(ir, name)(judge(RUN, QRELS), None)


@pytest.mark.parametrize("persistence", [0, 1, -0.1, 1.1, np.nan, "0.8", [0.1, 0.2]])
@pytest.mark.parametrize("name", ["rbp", "rbp_residual"])
def test_bad_persistence_is_refused(name, persistence):
    with pytest.raises(ValueError, match="`persistence` must be"):
        getattr(ir, name)(judge(RUN, QRELS), persistence)


@pytest.mark.parametrize("largest", [0, 1, 2.5])
def test_a_largest_relevance_below_those_that_occur_is_refused(largest):
    judged = judge(RUN, with_column(QRELS, "relevance", [0, 2]))
    with pytest.raises(ValueError, match="`largest_relevance` must be a whole number of at least 2"):
        ir.rbp(judged, 0.8, largest_relevance=largest)

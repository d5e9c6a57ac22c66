"""The audit of rank tables: the contract, what it shares with other commands, closed worlds, bad input."""

import json
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import owkg
from owkg.auditing import audit, best_weight_of, result
from owkg.auditing.calibration import most_missing
from owkg.auditing.result import BOX, GRID, MODELS, PAIRS, POWER, VERDICTS
from owkg.auditing.tables import GIVEN, Box, _verdicts, unevenness_points
from owkg.kg import KnowledgeGraph

ENTITIES = 200


def table(ranks, sizes=None, **columns):
    """Of queries h0, h1, ... with one answer each, or as many as `sizes` says."""
    sizes = np.ones(len(ranks), int) if sizes is None else np.asarray(sizes)
    query = np.repeat(np.arange(len(sizes)), sizes)
    frame = pl.DataFrame({"head": [f"h{q}" for q in query], "relation": "r"})
    frame = frame.with_columns(tail=pl.Series([f"t{i}" for i in range(len(ranks))]), side=pl.lit("tail"))
    ranks = np.asarray(ranks)
    return frame.with_columns(
        optimistic=pl.Series(ranks),
        pessimistic=pl.Series(ranks),
        candidates=pl.Series(ENTITIES - sizes[query] + 1),
        **columns,
    )


def drawn(strength, sizes, seed):
    """Ranks by the model of Yang et al. without missing facts."""
    rng = np.random.default_rng(seed)
    n = int(np.sum(sizes))
    return np.where(rng.uniform(size=n) < strength, 1, rng.integers(1, ENTITIES - 9, n))


SIZES = np.random.default_rng(5).integers(1, 6, 300)
SYSTEMS = {name: table(drawn(s, SIZES, i), SIZES) for i, (name, s) in enumerate({"a": 0.3, "b": 0.5}.items())}


@pytest.fixture(scope="module")
def found():
    return audit(SYSTEMS, ["mrr", "hits@10"], average=["answers", "queries"], sparsity=(0.1, 0.3), test="t")


@pytest.mark.parametrize("average", ["answers", "queries"])
def test_wilcoxon_says_what_it_tests_of_means_over_answers(average):
    told = audit(SYSTEMS, "mrr", average=average, test="wilcoxon").assumptions["notes"]
    assert any("symmetric around 0" in note for note in told) is (average == "answers")


def test_contract(found):
    got = json.loads(json.dumps(found.payload(), allow_nan=False))
    assert set(got) == {"models", "pairs", "assumptions"}
    assert len(got["models"]) == 8
    assert len(got["pairs"]) == 4
    assert {"model", "metric", "value", "ci_low", "ci_high", "strength", "full"} <= set(got["models"][0])
    assert set(got["models"][0]["full"]) == {"value", "low", "high"} == set(got["models"][0]["strength"])
    pair = got["pairs"][0]
    assert {"first", "second", "metric", "difference", "p_value", "breakdown", "probability"} <= set(pair)
    assert {"breakdown_sparsity", "breakdown_correlation", "required_queries", "verdict"} <= set(pair)
    assert {"certified", "demonstrated", "share"} <= set(pair["breakdown"])
    assert set(pair["probability"]) == {"low", "high"}
    assert pair["verdict"] in VERDICTS
    assert got["assumptions"]["sparsity"] == [0.1, 0.3]
    assert got["assumptions"]["correlation"] is None
    schemas = {"models": MODELS, "pairs": PAIRS, "grid": GRID, "box": BOX, "power": POWER}
    frames = dict(found.items())
    for name, schema in schemas.items():
        assert frames[name].schema == pl.Schema(schema), name
        assert len(frames[name]), name


def test_values_are_those_of_evaluate_and_differences_those_of_compare(found):
    models = found.models.filter(average="answers")
    for name in ("a", "b"):
        other = owkg.evaluate(SYSTEMS[name], ["mrr", "hits@10"], side="tail")
        own = models.filter(model=name)
        for column in ("value", "ci_low", "ci_high"):
            np.testing.assert_allclose(
                own.sort("metric")[column], other.sort("metric")[column], rtol=1e-3, err_msg=column
            )
    compared = owkg.compare(SYSTEMS, ["mrr", "hits@10"], test="t").pairs.sort("metric")
    pairs = found.pairs.filter(average="answers").sort("metric")
    # b is ahead of a: compare gives a less b.
    np.testing.assert_allclose(pairs["difference"], -compared["difference"].to_numpy())
    np.testing.assert_allclose(pairs["p_value"], compared["p_value"])
    assert pairs["first"].to_list() == ["b", "b"]


def test_macro_is_the_mean_of_each_query(found):
    frame = SYSTEMS["b"].with_columns(value=1 / pl.col("optimistic"))
    mean = frame.group_by("head").agg(pl.col("value").mean())["value"].mean()
    own = found.models.filter(model="b", metric="mrr", average="queries")
    assert own["value"].item() == pytest.approx(mean)


def test_nothing_stated_nothing_claimed():
    one = audit(SYSTEMS, "mrr", test="t")
    for name in ("strength", "full", "full_low", "full_high"):
        assert one.models[name].null_count() == 2
    assert one.pairs["probability_low"].null_count() == 1
    assert one.assumptions["sparsity"] is None
    assert one.grid["sparsity"].unique().sort().to_list() == pytest.approx(np.arange(0, 0.95, 0.1).tolist())
    assert one.pairs["verdict"].to_list() == [result.UNSTATED]


def test_a_model_of_known_strength():
    """Ranks on a thinned test, by the model itself: the strength comes back within the interval."""
    rng, inside, queries = np.random.default_rng(8), [], 700
    for _ in range(4):
        whole = rng.integers(2, 9, queries)
        known = rng.binomial(whole, 0.6)
        counts, missing = known[known > 0], (whole - known)[known > 0]
        query = np.repeat(np.arange(len(counts)), counts)
        last = ENTITIES - counts[query] + 1
        strengths = rng.uniform(0.2, 0.8, 2)
        systems = {}
        for name, strength in zip("mn", strengths, strict=True):
            above = rng.binomial(missing, strength)[query]
            positive = rng.uniform(size=len(query)) < strength
            rank = np.where(positive, rng.integers(1, above + 2), rng.integers(above + 1, last + 1))
            systems[name] = table(rank, counts)
        share = missing.sum() / (missing.sum() + counts.sum())
        found = audit(systems, "mrr", sparsity=share, test="t")
        for model, strength in zip(found.models.sort("model").iter_rows(named=True), strengths, strict=True):
            inside.append(model["strength_low"] <= strength <= model["strength_high"])
            assert model["strength"] == pytest.approx(strength, abs=0.08)
    assert np.mean(inside) > 0.8


def seeded(strengths, first):
    """Runs of a model whose strength differs over seeds."""
    several = enumerate(strengths, first)
    return pl.concat([table(drawn(x, SIZES, i), SIZES).with_columns(seed=i) for i, x in several])


SEEDED = {"a": seeded((0.33, 0.36, 0.39), 20), "b": seeded((0.46, 0.5, 0.54, 0.58), 30)}


def test_order_is_by_value():
    one = audit({"b": SYSTEMS["b"], "a": SYSTEMS["a"]}, "mrr", test="t")
    assert one.models["model"].to_list() == ["b", "a"]


@pytest.mark.parametrize("average", ["answers", "queries"])
def test_systems_with_seeds(average):
    """One pair, with the interval and the p-value of compare; wider than of the means as one run."""
    found = audit(SEEDED, ["mrr", "hits@10"], average=average, sparsity=(0.1, 0.3), test="t")
    assert found.models["model"].to_list() == ["b", "a"] * 2
    (first, _) = found.pairs.rows(named=True)
    assert (first["first"], first["second"]) == ("b", "a")
    # The macro mean of the audit is of the mean of each query, that of compare of its best answer.
    if average == "answers":
        same = owkg.compare(SEEDED, "mrr", test="t")
        pair = same.pairs.row(0, named=True)
        assert first["difference"] == pytest.approx(-pair["difference"])
        assert (first["ci_low"], first["ci_high"]) == pytest.approx((-pair["upper"], -pair["lower"]))
        assert first["p_value"] == pytest.approx(pair["p_value"])
        (b, a) = found.models.filter(metric="mrr").rows(named=True)
        for one, other in zip((a, b), same.values.rows(named=True), strict=True):
            ends = (one["value"], one["ci_low"], one["ci_high"])
            assert ends == pytest.approx((other["value"], other["lower"], other["upper"]), abs=1e-9)
    alone = {name: frame.filter(seed=frame["seed"][0]) for name, frame in SEEDED.items()}
    single = audit(alone, ["mrr", "hits@10"], average=average, sparsity=(0.1, 0.3), test="t")
    spread = {name: frame["full_high"] - frame["full_low"] for name, frame in
              (("seeds", found.models), ("single", single.models))}  # fmt: skip
    assert (spread["seeds"] > spread["single"]).all()
    assert found.pairs["demonstrated"].is_null().all()
    assert not len(found.weights)
    assert any(note.startswith("Seeds: a has 3 (deviation of mrr 0.0") for note in found.assumptions["notes"])
    assert found.assumptions["answers"] == single.assumptions["answers"]


def test_systems_with_seeds_and_a_graph():
    """The graph says which answers are known; without lists the numbers are the same."""
    frame = SEEDED["a"].filter(seed=20)
    labels = frame["head"].unique().to_list(), frame["tail"].unique().to_list()
    entities = (*labels[0], *labels[1], *(f"e{i}" for i in range(ENTITIES)))
    at = {name: i for i, name in enumerate(entities)}
    test = np.array([[at[h], 0, at[t]] for h, t in frame.select("head", "tail").rows()], np.int32)
    train = np.array([[at["e0"], 0, at["e1"]]], np.int32)
    graph = KnowledgeGraph(entities, ("r",), {"train": train, "test": test})
    found = audit(SEEDED, "mrr", graph=graph, sparsity=(0.1, 0.3), test="t")
    assert found.pairs["certified"].equals(
        audit(SEEDED, "mrr", sparsity=(0.1, 0.3), test="t").pairs["certified"]
    )


def test_seeds_that_are_one_run_twice_are_certified_as_it():
    again = {
        name: pl.concat([frame.with_columns(seed=seed) for seed in range(2)])
        for name, frame in SYSTEMS.items()
    }
    with pytest.warns(UserWarning, match="score the same on every query"):
        found = audit(again, ["mrr", "hits@10"], sparsity=(0.1, 0.3), test="t")
    single = audit(SYSTEMS, ["mrr", "hits@10"], sparsity=(0.1, 0.3), test="t")
    assert found.pairs["verdict"].equals(single.pairs["verdict"])
    for name in ("certified", "share", "probability_low", "breakdown_sparsity"):
        one, other = (frame[name].fill_null(-1).to_numpy() for frame in (found.pairs, single.pairs))
        np.testing.assert_allclose(one, other, rtol=1e-3, err_msg=name)


def test_seeds_that_cannot_be_audited():
    answer = {
        "query": "h0|r|?",
        "side": "tail",
        "entity": "h0",
        "relation": "r",
        "answer": "t0",
        "score": 1.0,
    }
    lists = {name: pl.DataFrame([{"model": name} | answer]) for name in SEEDED}
    with pytest.raises(
        ValueError, match=r"`lists` must be left out if systems have several seeds.*'a' has 3"
    ):
        audit(SEEDED, "mrr", lists=lists, test="t")
    short = SEEDED | {"a": SEEDED["a"].filter((pl.col("seed") != 21) | (pl.col("tail") != "t0"))}
    message = (
        "`systems` must rank the same answers.*'a, seed 21' must rank the answers that 'a, seed 20' ranks"
    )
    with pytest.raises(ValueError, match=message):
        audit(short, "mrr", test="t")


def test_seeds_add_what_no_number_of_queries_takes_away():
    """Two seeds that are far apart: no number of queries shows the order."""
    apart = {"a": seeded((0.2, 0.8), 40), "b": seeded((0.44, 0.46), 50)}
    found = audit(apart, "mrr", test="t")
    assert found.pairs["required_queries"].to_list() == [None]
    assert found.power["wrong_order"][-1] > 0.05
    assert found.pairs["verdict"].to_list() == ["open"]


def test_equal_systems():
    one = audit({"x": SYSTEMS["a"], "y": SYSTEMS["a"]}, "mrr", sparsity=(0.1, 0.4), test="t")
    (row,) = one.pairs.rows(named=True)
    assert row["difference"] == 0
    assert row["certified"] == 0
    assert row["required_queries"] is None
    assert row["probability_low"] == pytest.approx(0.5)
    assert row["breakdown_sparsity"] == 0
    assert row["breakdown_correlation"] == pytest.approx(0, abs=1e-6)
    assert row["verdict"] == "open"


def test_required_queries_and_power_agree():
    near = table(drawn(0.47, SIZES, 7), SIZES)
    one = audit({"near": near, "b": SYSTEMS["b"]}, "mrr", test="t")
    needed = one.pairs["required_queries"].item()
    wrong = np.interp(np.log(needed), np.log(one.power["queries"]), one.power["wrong_order"])
    assert wrong == pytest.approx(0.05, abs=0.02)


def test_weights_are_those_of_the_two_tables():
    one = audit(SYSTEMS, "mrr", test="t")
    found = best_weight_of(SYSTEMS["b"], SYSTEMS["a"])
    metrics = one.weights.filter(pl.col("metric") != "best weight")
    np.testing.assert_allclose(metrics["required_queries"], found.metrics["required_queries"])
    best = one.weights.filter(metric="best weight")
    np.testing.assert_allclose(best["held_out"], found.frontier["held_out"])
    few = {name: frame.filter(pl.col("head").is_in(["h0", "h1", "h2"])) for name, frame in SYSTEMS.items()}
    assert audit(few, "mrr", test="t").weights.is_empty()


@pytest.mark.parametrize("ties", ["optimistic", "realistic", "pessimistic", "exact"])
def test_queries_required_are_those_of_the_pairs_under_every_tie_rule(ties):
    tied = {
        name: frame.with_columns(pessimistic=pl.min_horizontal(pl.col("optimistic") + 1 + i, "candidates"))
        for i, (name, frame) in enumerate(SYSTEMS.items())
    }
    one = audit(tied, "mrr", average=["answers", "queries"], test="t", ties=ties)
    both = one.pairs.join(one.weights, on=["first", "second", "metric", "average"])
    assert both["required_queries"].to_list() == both["required_queries_right"].to_list()
    assert both["required_queries"].n_unique() == len(both) == 2


def test_best_weights_take_half_ranks():
    near = [table(drawn(strength, SIZES, 7), SIZES) for strength in (0.5, 0.47)]
    tied = [frame.with_columns(pessimistic=pl.col("optimistic") + i) for i, frame in enumerate(near)]
    plain, half = (
        best_weight_of(*both, metrics="mrr").metrics["required_queries"].item() for both in (near, tied)
    )
    one = audit(dict(zip("ba", tied, strict=True)), "mrr", test="t")
    assert one.pairs["required_queries"].item() == half != plain


SURE, UNSURE, TURNS = (
    {"probability_low": low, "probability_high": high} for low, high in ((0.96, 0.99), (0.9, 0.99), (0, 0.04))
)
RHO = {"a": (0.0, 0.1)}
STATED, INDEPENDENT, FOUND, FOUND_INDEPENDENT, NOTHING = BOXES = [
    Box(sparsity, correlation, {"sparsity": sparsity and GIVEN, "correlation": None}, found)
    for sparsity, correlation, found in (
        ((0.1, 0.3), RHO, None),
        ((0.1, 0.3), None, None),
        (None, RHO, (0.1, 0.2)),
        (None, None, (0.1, 0.2)),
        (None, None, None),
    )
]
CONDITIONAL = [result.HOLDS_IN_RANGE, result.HOLDS_IF_INDEPENDENT]
CONDITIONAL += [result.HOLDS_IF_FOUND, result.HOLDS_IF_FOUND_AND_INDEPENDENT]


@pytest.mark.parametrize(
    ("row", "verdicts"),
    [
        ({"certified": None}, [result.HOLDS] * 5),
        # At most 43 of 143 are missing, if that is stated.
        ({"certified": 60}, [result.HOLDS] * 2 + [result.OPEN] * 2 + [result.UNSTATED]),
        (SURE, CONDITIONAL),
        (TURNS, [result.REVERSED_IN_RANGE, result.REVERSED_IF_INDEPENDENT, result.OPEN, result.OPEN]),
        (SURE | {"p_value": 0.2}, [result.OPEN] * 5),
        (UNSURE, [result.OPEN] * 4),
        (UNSURE | {"demonstrated": 50}, [result.JUDGE_FIRST] * 4),
        ({}, [result.OPEN] * 4 + [result.UNSTATED]),
        ({"demonstrated": 50}, [result.JUDGE_FIRST] * 5),
        ({"certified": None, "p_value": 0.5}, [result.OPEN] * 5),
        ({"certified": None, "p_value": 0.0, "ci_low": -0.1}, [result.OPEN] * 5),
    ],
)
def test_verdicts(row, verdicts):
    """With sparsity and correlation stated, with either, with none; what is not stated is named."""
    none = {"probability_low": None, "probability_high": None, "demonstrated": None}
    whole = none | {"certified": 40, "p_value": 0.001, "ci_low": 0.02, "difference": 0.1} | row
    told = [_verdicts(pl.DataFrame([whole]), box, 100, 0.95)[0] for box in BOXES[: len(verdicts)]]
    assert told == verdicts
    # Fewer statements never claim more.
    assert all(result.no_stronger(one, told[0]) for one in told)


def test_a_wider_range_of_unevenness_is_tried_where_a_narrower_one_is():
    default = set(unevenness_points(0.0, 1.5))
    for wider in ((0.0, 2.0), (0.0, 2.5), (0.0, 3.0)):
        assert default <= set(unevenness_points(*wider))
    assert unevenness_points(0.5, 0.6)[0] == (0.55, 0.0)
    assert len(unevenness_points(0.0, 0.0)) == 1


def test_verdicts_with_judged_answers():
    row = {"probability_low": 0.96, "probability_high": 0.99, "demonstrated": None}
    row |= {"certified": 36, "p_value": 0.001, "ci_low": 0.02, "difference": 0.1}

    def of(box, found, **other):
        return _verdicts(pl.DataFrame([row | other]), box, 100, 0.95, found)

    for box in BOXES:
        assert of(box, 7, certified=0, demonstrated=0) == [result.TURNED]
    # Of at most 42 missing ones 8 are found: 34 are left, fewer than turn the order.
    assert of(STATED, 8) == [result.HOLDS]
    assert of(STATED, 4) == [result.HOLDS_IN_RANGE]
    # More are found than the statement allows: nothing follows from it.
    assert of(STATED, 44) == of(INDEPENDENT, 44) == [result.CONTRADICTED]
    assert of(STATED, 44, certified=None) == [result.HOLDS]


def test_the_order_of_verdicts():
    strong, weak = (result.HOLDS, result.HOLDS_IN_RANGE), (*CONDITIONAL[1:], result.OPEN, result.JUDGE_FIRST)
    assert result.no_stronger(strong[1], strong[0])
    assert not result.no_stronger(strong[0], strong[1])
    for one in weak:
        assert all(result.no_stronger(one, other) for other in VERDICTS)
        assert not any(result.no_stronger(other, one) for other in strong)
    # What judging shows follows whatever was said before, and anything may follow it.
    assert all(result.no_stronger(one, result.TURNED) for one in VERDICTS)
    assert all(result.no_stronger(result.TURNED, one) for one in VERDICTS)


def whole_run(name, scores, path):
    lines = []
    for query, own in scores.items():
        ordered = sorted(own, key=own.get, reverse=True)
        lines += [f"{query} Q0 {a} {i + 1} {own[a]} {name}" for i, a in enumerate(ordered)]
    path.write_text("\n".join(lines) + "\n")
    return path


def runs_of_all(tmp_path, leave_out=0):
    rng = np.random.default_rng(2)
    entities = [f"e{i}" for i in range(12)]
    queries = [f"e{i}|r|?" for i in range(8)]
    files = []
    for name in ("one", "two"):
        scores = {
            q: dict(zip(entities[leave_out:], rng.uniform(size=12 - leave_out), strict=True)) for q in queries
        }
        files.append(whole_run(name, scores, tmp_path / f"{name}.run"))
    qrels = tmp_path / "test.qrels"
    qrels.write_text("".join(f"e{i}|r|? 0 e{11 - i} 1\n" for i in range(8)))
    return files, qrels


def test_runs_that_list_every_candidate_need_no_graph(tmp_path):
    files, qrels = runs_of_all(tmp_path)
    found = audit(files, "mrr", qrels=qrels, test="t")
    assert set(found.models["model"]) == {"one", "two"}
    whole = KnowledgeGraph(
        tuple(f"e{i}" for i in range(12)), ("r",), {"train": np.array([[8, 0, 9]], np.int32)}
    )
    other = audit(files, "mrr", qrels=qrels, graph=whole, test="t")
    assert found.models.equals(other.models)
    # The runs are the lists, as where a graph and lists are given.
    lists = audit(files, "mrr", qrels=qrels, graph=whole, lists=files, test="t")
    assert found.pairs.equals(lists.pairs)
    assert found.facts.equals(lists.facts)
    assert len(found.facts)


def test_runs_that_do_not(tmp_path):
    files, qrels = runs_of_all(tmp_path, leave_out=7)
    with pytest.raises(ValueError, match=r"one\.run.*"):
        audit(files, "mrr", qrels=qrels, test="t")


@pytest.mark.parametrize(
    ("systems", "options", "message"),
    [
        ({"a": SYSTEMS["a"]}, {}, "at least two systems, got 1"),
        ({name: table([1]) for name in ("a", "b")}, {}, "`systems` must rank two queries at least"),
        ({"a": SYSTEMS["a"], "b": SYSTEMS["b"][:-5]}, {}, "must rank the answers that 'a' ranks"),
        ({"a": SYSTEMS["a"], "b": SYSTEMS["b"].with_columns(candidates=ENTITIES)}, {}, "candidates"),
        ({k: v.with_columns(filtered=False) for k, v in SYSTEMS.items()}, {}, "filtered"),
        ({k: v.with_columns(weight=2.0) for k, v in SYSTEMS.items()}, {}, "`systems` must not be weighted"),
        (
            {"a": SYSTEMS["a"], "b": SYSTEMS["b"][:-5]},
            {},
            "`systems` must rank the same answers among the same candidates: 'b' must",
        ),
        (SYSTEMS, {"sparsity": 1}, "sparsity"),
        (SYSTEMS, {"sparsity": (0.5, 0.2)}, "sparsity"),
        (SYSTEMS, {"sparsity": (0.1, 0.2, 0.3)}, "sparsity"),
        (SYSTEMS, {"sparsity": float("nan")}, "sparsity"),
        (SYSTEMS, {"sparsity": 0.1, "correlation": 0.99}, "correlation"),
        (SYSTEMS, {"metrics": "mr"}, "mr"),
        (SYSTEMS, {"metrics": "macro-mrr"}, "average"),
        (SYSTEMS, {"metrics": "amri"}, "fall with the rank"),
        (SYSTEMS, {"average": "both"}, "average"),
        (SYSTEMS, {"ci": 1.5}, "ci"),
        (SYSTEMS, {"lists": {"a": pl.DataFrame()}}, "lists"),
        (SYSTEMS, {"judged": pl.DataFrame()}, "graph"),
    ],
)
def test_bad_input(systems, options, message):
    with pytest.raises(ValueError, match=message):
        audit(systems, **({"metrics": "mrr", "test": "t"} | options))


def test_a_refuted_sparsity_is_said():
    sure = {name: table(np.ones(300, int)) for name in ("x", "y")}
    with pytest.raises(
        ValueError,
        match=r"sparsity.*impossible for every system: no strength gives a mrr of 1.*lower sparsity may",
    ):
        audit(sure, "mrr", sparsity=(0.8, 0.9), test="t")
    # Below 0 missing answers stand low, and the value is one that the model gives.
    found = audit(sure, "mrr", sparsity=(0.8, 0.9), correlation=(-0.1, -0.05), test="t").models
    assert (found["refuted"] == 0).all()
    with pytest.raises(
        ValueError, match=r"under the stated correlations .* lower sparsity, or another correlation, may"
    ):
        audit(sure, "mrr", sparsity=(0.8, 0.9), correlation=0.1, test="t")


def test_a_system_that_refutes_the_box_does_not_end_the_audit():
    """Its full-test metric is null, as are probabilities of its pairs; a part that is refuted is left out."""
    sure = SYSTEMS | {"x": table(np.ones(len(SYSTEMS["a"]), int), SIZES)}
    one = audit(sure, "mrr", sparsity=(0.7, 0.8), test="t")
    models = {row["model"]: row for row in one.models.iter_rows(named=True)}
    assert models["x"]["full"] is models["x"]["full_low"] is models["x"]["strength_high"] is None
    assert models["x"]["refuted"] == 1
    assert models["a"]["full_low"] < models["a"]["full"] < models["a"]["full_high"]
    pairs = {(row["first"], row["second"]): row for row in one.pairs.iter_rows(named=True)}
    assert pairs["x", "a"]["probability_low"] is pairs["x", "a"]["probability_high"] is None
    assert pairs["x", "a"]["verdict"] == "open"
    assert any("(x) is impossible under 100% of the" in note for note in one.assumptions["notes"])
    part = audit(sure, "mrr", sparsity=(0.0, 0.8), test="t").models.filter(model="x")
    assert 0 < part["refuted"].item() < 1
    assert part["full_high"].item() == 1


def test_a_larger_box_has_wider_intervals():
    boxes = (
        {"sparsity": 0.3, "correlation": 0.05},
        {"sparsity": (0.2, 0.4), "correlation": (-0.1, 0.2)},
        {"sparsity": (0, 0.9), "correlation": (-1, 1)},
    )
    found = [audit(SYSTEMS, ["mrr", "hits@10"], test="t", **box) for box in boxes]
    for small, large in pairwise(found):
        for name in ("full", "strength"):
            assert (large.models[f"{name}_low"] <= small.models[f"{name}_low"] + 1e-3).all()
            assert (large.models[f"{name}_high"] >= small.models[f"{name}_high"] - 1e-3).all()
        assert (large.pairs["probability_low"] <= small.pairs["probability_low"] + 1e-3).all()
        assert (large.pairs["probability_high"] >= small.pairs["probability_high"] - 1e-3).all()


def test_a_sparsity_of_0_is_what_was_observed():
    """The full test is the test: also below chance, and with the errors of the queries alone."""
    bad = {"a": table(np.full(len(SYSTEMS["a"]), ENTITIES - 10), SIZES), "b": SYSTEMS["b"]}
    one = audit(bad, "mrr", sparsity=0, test="t")
    np.testing.assert_allclose(one.models["full"], one.models["value"])
    two = audit(SYSTEMS, "mrr", sparsity=0, test="t").pairs.row(0, named=True)
    assert two["probability_low"] == pytest.approx(1 - two["p_value"] / 2, abs=0.01)


def test_sparsities_beyond_the_calibration_are_noted():
    """Once an average: the sparsity from which on more answers are missing than on its worlds."""
    most, known = (
        most_missing("mrr"),
        {"answers": (SIZES * (SIZES + 1)).sum() / SIZES.sum(), "queries": SIZES.mean() + 1},
    )
    last = {name: most / (most + size) for name, size in known.items()}
    assert 0.8 < last["answers"] < last["queries"] < 0.9
    for sparsity in ((0.1, 0.5), None):
        one = audit(SYSTEMS, ["mrr", "hits@10"], average=[*known], sparsity=sparsity, test="t")
        noted = [note for note in one.assumptions["notes"] if "extrapolated" in note]
        for note, name in zip(noted, known, strict=True):
            assert note.startswith(f"Above a sparsity of {last[name]:.2f} the error of the model is extrapo")
            assert f"means over {name}" in note
    # Of queries with one answer none of the grid is, and a larger one may be stated.
    one = {name: table(np.random.default_rng(i).integers(9, 90, 50)) for i, name in enumerate("ab")}
    for sparsity, noted in ((None, False), (0.9, False), (0.95, True)):
        notes = " ".join(audit(one, "mrr", sparsity=sparsity, test="t").assumptions["notes"])
        assert ("extrapolated" in notes) is noted


def test_what_is_beyond_strength_1_is_no_order():
    """Two values that a sparsity takes to their best are not told apart, and intervals have a width."""
    rng, sizes = np.random.default_rng(2), np.full(400, 5)
    drawn = {name: 1 + 15 * (rng.random(2000) < share) for name, share in (("a", 0.005), ("b", 0.03))}
    both = {name: table(ranks, sizes) for name, ranks in drawn.items()}
    alone = audit(both, "hits@10", sparsity=0, test="t")
    assert alone.pairs["probability_low"].item() > 0.999
    one = audit(both, "hits@10", sparsity=(0.0, 0.6), test="t")
    at_best = one.models.filter(pl.col("full_high") == 1)
    assert len(at_best) == 2
    assert (at_best["full_low"] < 1).all()
    assert one.pairs["probability_low"].item() < 0.95


def test_where_the_box_is_refuted_it_is_said():
    rng = np.random.default_rng(2)
    both = {name: table(1 + (rng.random(400) < share)) for name, share in (("a", 0.001), ("b", 0.03))}
    one = audit(both, "mrr", sparsity=(0.0, 0.4), test="t", unevenness=0)
    assert one.models["refuted"].is_between(0.5, 1, closed="left").all()
    notes = [note for note in one.assumptions["notes"] if "is impossible under" in note]
    assert len(notes) == 2


def test_ties_are_not_in_favour_of_an_order():
    """Of 90 tied answers 11 facts turn the order; a certificate that ignored the ties said 31."""
    rows = {"relation": "r", "tail": "t", "side": "tail", "candidates": 99}
    c, d = (
        pl.DataFrame([rows | {"head": f"h{i}", "optimistic": low, "pessimistic": 2} for i in range(90)])
        for low in (1, 2)
    )
    # Each fact gives c its last place, and d a first one and the answer's: 1.49 of 15, or of 22.5.
    for rule, number in (("realistic", 11), ("exact", 16)):
        row = audit({"c": c, "d": d}, "mrr", sparsity=0.15, test="t", ties=rule).pairs.row(0, named=True)
        assert row["first"] == "c"
        assert row["certified"] == number
    assert audit({"c": c, "d": d}, "mrr", sparsity=0.15, test="t").pairs["verdict"].item() != result.HOLDS
    row = audit({"c": c, "d": d}, "hits@1", test="t", ties="optimistic").pairs.row(0, named=True)
    assert row["certified"] > 0


@pytest.mark.parametrize(
    ("ranks", "metric"), [([1] * 30, "hits@10"), ([1] * 29 + [20], "hits@10"), ([2, 2], "mrr")]
)
def test_full_test_intervals_hold_what_is_observed(ranks, metric):
    """However few the queries are and however little they scatter: missing answers make nothing surer."""
    both = {"a": table(ranks), "b": table(np.array(ranks) + 30)}
    for sparsity in (0.0, 0.1):
        row = audit(both, metric, sparsity=sparsity, test="t").models.row(0, named=True)
        whole = row["full_high"] - row["full_low"], row["ci_high"] - row["ci_low"]
        assert whole[0] >= 0.97 * whole[1] > 0.05  # chance is the least
        if not sparsity:
            assert (row["full_low"], row["full_high"]) == pytest.approx((row["ci_low"], row["ci_high"]))


def test_few_queries_that_agree_are_not_sure():
    for queries, most in ((2, 0.9), (3, 0.97)):
        both = {"a": table([1] * queries), "b": table([2] * queries)}
        row = audit(both, "mrr", sparsity=0.1, test="t").pairs.row(0, named=True)
        assert 0.5 < row["probability_low"] < most
        assert row["ci_low"] < 0 < row["ci_high"] <= 1
        assert row["verdict"] == "open"


@pytest.mark.parametrize("rho", [0.024, -0.17, 0.33])
def test_the_grid_and_the_map_are_at_the_stated_correlation(rho):
    one = audit(SYSTEMS, "mrr", sparsity=0.5, correlation=rho, unevenness=0, test="t")
    at = one.grid.filter(sparsity=0.5)
    for column in ("strength", "full", "full_low", "full_high"):
        np.testing.assert_allclose(at[column], one.models[column])
    middle = one.box.filter(sparsity=0.5, correlation_difference=0.0)["probability"]
    np.testing.assert_allclose(middle, one.pairs["probability_low"], rtol=1e-6)
    each = one.grid.filter(sparsity=0.3)["full"]
    assert not np.allclose(
        each, audit(SYSTEMS, "mrr", correlation=0.0, test="t").grid.filter(sparsity=0.3)["full"]
    )


def test_the_breaking_correlation_is_that_of_the_stated_sparsity():
    found = [
        audit(SYSTEMS, "mrr", sparsity=beta, test="t").pairs["breakdown_correlation"].to_list()
        for beta in (0.31, 0.33, (0.31, 0.33))
    ]
    for one, other, both in zip(*found, strict=True):
        assert one is None or one != other
        assert one is None or both == pytest.approx(min(one, other), abs=1e-3)


def test_averages_count_once_and_borrowed_errors_are_noted():
    one = audit(SYSTEMS, ["hits@3", "mrr"], average=["micro", "answers", "macro"], test="t")
    assert len(one.models) == 2 * 2 * len(SYSTEMS)
    notes = " ".join(one.assumptions["notes"])
    assert "hits@3: hits@1" in notes
    assert "mrr: mrr" not in notes
    same = audit(SYSTEMS, ["p-mrr@0.5", "p-mrr@1"], test="t").assumptions["notes"]
    assert not any("not calibrated" in note for note in same)


def test_the_two_means_over_queries_have_two_names():
    """The query-averaged MRR is of all answers; macro-mrr, of the best one, is larger, and another name."""
    one = audit(SYSTEMS, "mrr", average="queries", test="t")
    values = dict(one.models.select("model", "value").rows())
    best = owkg.evaluate(SYSTEMS["a"], "macro-mrr", side="tail", ci=None)["value"].item()
    rows = SYSTEMS["a"].group_by("head").agg((1 / pl.col("optimistic")).mean().alias("own"))
    assert values["a"] == pytest.approx(rows["own"].mean())
    assert values["a"] < best - 0.01
    assert any("query-averaged" in note and "not macro-mrr" in note for note in one.assumptions["notes"])
    with pytest.raises(ValueError, match="`average` queries gives the query-averaged mrr, of all answers"):
        audit(SYSTEMS, "macro-mrr", test="t")

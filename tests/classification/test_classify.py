"""`owkg.classify`: groups, models, thresholds; on CoDEx's hard negatives equal to scikit-learn."""

import jax
import numpy as np
import polars as pl
import pytest
from sklearn import metrics as sk

import owkg
from owkg.classification import METRICS, fitted, predicted
from owkg.errors import ArgumentError
from owkg.evaluation import scored_triples
from owkg.models import Trained, model


def test_the_columns(rng, scored):
    found = owkg.classify(scored(rng, 60))
    assert found.values.columns[:5] == ["metric", "value", "ci_low", "ci_high", "expectation"]
    assert found.triples.columns[-1] == "predicted"
    assert found.values["metric"].to_list() == list(METRICS)
    inside = found.values.filter(pl.col("ci_low").is_not_null())
    assert (inside["ci_low"] <= inside["value"]).all()
    assert (inside["value"] <= inside["ci_high"]).all()
    assert found.thresholds is not None
    assert found.pairs is None
    assert set(found.triples["split"]) == {"test"}


def test_a_constant_scorer_knows_the_relations(rng, scored):
    table = scored(rng, 300).with_columns(
        pl.when(pl.col("relation") == "0").then(pl.lit("positive")).otherwise(pl.col("label")).alias("label")
    )
    found = owkg.classify(table).values
    alone = owkg.classify(table.with_columns(score=pl.lit(7.0))).values
    assert found["constant"].to_list() == alone["value"].to_list() == alone["constant"].to_list()
    assert found["constant"][0] > found["expectation"][0] + 0.05
    measured = table.filter(pl.col("split") == "test")
    majority = owkg.classify(table, "accuracy", thresholds="global").values["constant"][0]
    common = table.filter(pl.col("split") == "valid")["label"].mode()[0]
    assert majority == (measured["label"] == common).mean()


def test_columns_of_results_in_the_table_change_nothing(rng, scored):
    table = scored(rng, 80)
    more = table.with_columns(predicted=pl.lit("positive"), predicted_by_constant=pl.lit("negative"))
    for thresholds in ("relation", 2.0):
        plain = owkg.classify(table, thresholds=thresholds)
        assert owkg.classify(more, thresholds=thresholds).values.equals(plain.values)
    twice = owkg.classify(table, "accuracy", by=["relation", "relation"]).values
    assert twice.equals(owkg.classify(table, "accuracy", by="relation").values)
    with pytest.raises(ArgumentError, match="`by` must be columns of the table such as relation, got value"):
        owkg.classify(table.with_columns(value=pl.lit(1)), by="value")


def test_groups_are_the_tables_of_each(rng, scored):
    table = scored(rng, 120)
    found = owkg.classify(table, ["accuracy", "roc-auc"], by="relation", thresholds="global")
    for name in table["relation"].unique():
        own = table.filter((pl.col("relation") == name) & (pl.col("split") == "test"))
        alone = found.triples.filter(pl.col("relation") == name)
        row = found.values.filter(pl.col("relation") == name)
        accuracy = (alone["label"] == alone["predicted"]).mean()
        area = sk.roc_auc_score((own["label"] == "positive").to_numpy(), own["score"].to_numpy())
        assert row["value"].to_list() == pytest.approx([accuracy, area])


def test_models_are_fitted_each_by_itself_and_compared(rng, scored):
    one = scored(rng, 200)
    other = one.with_columns(score=pl.col("score") + pl.Series(rng.normal(size=200)))
    both = pl.concat(
        [one.select(pl.lit("a").alias("model"), pl.all()), other.select(pl.lit("b").alias("model"), pl.all())]
    )
    found = owkg.classify(both)
    for name, part in (("a", one), ("b", other)):
        alone = owkg.classify(part).values
        assert found.values.filter(pl.col("model") == name).drop("model").equals(alone)
    assert found.pairs is not None
    values = {(m, n): v for m, n, v in found.values.select("model", "metric", "value").iter_rows()}
    for row in found.pairs.iter_rows(named=True):
        assert row["difference"] == pytest.approx(values["a", row["metric"]] - values["b", row["metric"]])
        assert row["ci_low"] <= row["difference"] <= row["ci_high"]
    last = both["split"].to_list()[:200][::-1].index("test") + 1
    with pytest.raises(ArgumentError, match="must be the same for all models, but differ for a and b"):
        owkg.classify(pl.concat([both[:-last], both[400 - last + 1 :]]))


def test_differences_cover_and_p_values_hold_their_level(rng):
    """Two models of equal strength on the same 150 triples."""
    held, small = [], []
    for _ in range(300):
        positive = rng.random(150) < 0.5
        shared = rng.normal(size=150)
        parts = []
        for name in "ab":
            score = positive + 0.7 * shared + 0.7 * rng.normal(size=150)
            parts.append(pl.DataFrame({"model": name, "head": [str(i) for i in range(150)], "relation": "r",
                                       "tail": "t", "label": positive, "score": score}))  # fmt: skip
        found = owkg.classify(
            pl.concat(parts), ["accuracy", "f1", "roc-auc", "average-precision"], thresholds=0.5
        )
        assert found.pairs is not None
        held.append(((found.pairs["ci_low"] <= 0) & (found.pairs["ci_high"] >= 0)).to_list())
        small.append((found.pairs["p"] <= 0.05).to_list())
    assert (np.mean(held, axis=0) > 0.92).all()
    assert (np.mean(small, axis=0) < 0.08).all()


def test_a_threshold_of_ones_own_needs_no_validation_set(rng, scored):
    table = scored(rng, 50, split=("test",))
    found = owkg.classify(table, ["accuracy"], thresholds=3.0)
    expected = ((table["score"] >= 3) == (table["label"] == "positive")).mean()
    assert found.values["value"].to_list() == [expected]


def test_without_a_validation_set_what_needs_no_threshold(rng, scored):
    table = scored(rng, 50, split=("test",))
    found = owkg.classify(table)
    assert found.values["metric"].to_list() == ["roc-auc", "pr-auc", "average-precision"]
    assert found.thresholds is None
    with pytest.raises(
        ArgumentError, match="`fit` must be a split of the table, because thresholds for accuracy"
    ):
        owkg.classify(table, "accuracy")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": "foo"}, "`metrics` must be from accuracy, .*, got foo"),
        ({"metrics": []}, "`metrics` must name at least one"),
        ({"thresholds": "each"}, "`thresholds` must be relation, global or a number, got 'each'"),
        ({"thresholds": float("nan")}, "`thresholds` must be finite"),
        ({"split": "dev"}, "`split` must be one of test, valid, got 'dev'"),
        ({"fit": "test"}, "`fit` must be a split of the table other than"),
        ({"fit": "dev"}, "`fit` must be a split of the table other than"),
        ({"by": "colour"}, "`by` must be columns of the table such as relation, got colour"),
        ({"ci": 95}, "`ci` must be in"),
    ],
)
def test_bad_arguments(rng, scored, options, message):
    with pytest.raises(ArgumentError, match=message):
        owkg.classify(scored(rng, 40), **options)


def test_unknown_triples_are_between_two_thresholds():
    scores = {"negative": (0.0, 1.0), "unknown": (2.0, 3.0), "positive": (4.0, 5.0)}
    rows = [
        {"split": split, "head": f"{label}{i}", "relation": "r", "tail": "t", "label": label, "score": score}
        for split in ("valid", "test")
        for label, several in scores.items()
        for i, score in enumerate(several)
    ]
    found = owkg.classify(pl.DataFrame(rows), ["accuracy", "macro-f1"])
    assert found.values["value"].to_list() == [1, 1]
    assert found.thresholds is not None
    assert found.thresholds.row(0) == (None, 1.5, 3.5, 6)


@pytest.mark.parametrize("thresholds", ["relation", "global"])
def test_hard_negatives_of_codex_equal_to_scikit_learn(owkg_data, thresholds):
    graph = owkg.read_graph(owkg_data / "codex-s")
    scorer = model("distmult", dim=16)
    trained = Trained(scorer, *scorer.init(jax.random.key(0), graph.num_entities, graph.num_relations))
    table = scored_triples(trained, graph)
    counts = {row[:2]: row[2] for row in table.group_by("split", "label").len().iter_rows()}
    assert counts == {
        ("valid", "positive"): 1827,
        ("valid", "negative"): 1827,
        ("test", "positive"): 1828,
        ("test", "negative"): 1828,
    }
    found = owkg.classify(table, thresholds=thresholds)
    test = table.filter(pl.col("split") == "test")
    positive, score = (test["label"] == "positive").to_numpy(), test["score"].to_numpy()
    called = predicted(test, fitted(table.filter(pl.col("split") == "valid"), thresholds)) == "positive"
    precision, recall, _ = sk.precision_recall_curve(positive, score)
    expected = [
        sk.accuracy_score(positive, called),
        sk.precision_score(positive, called),
        sk.recall_score(positive, called),
        sk.f1_score(positive, called),
        sk.f1_score(positive, called, average="macro"),
        sk.roc_auc_score(positive, score),
        sk.auc(recall, precision),
        sk.average_precision_score(positive, score),
    ]
    np.testing.assert_allclose(found.values["value"], expected, rtol=0, atol=1e-12)

"""The table of claims: its rows, its differences from the same resamples, its remarks."""

import jax
import numpy as np
import polars as pl
import pytest

from simulations.open_world import runs
from simulations.open_world.curves import Curves
from simulations.yang2022 import contradiction_plots, curve_plots, figures3to5
from simulations.yang2022.claims import _of_density, claim, claims
from simulations.yang2022.flattening import flattening
from simulations.yang2022.halves import confirmed
from simulations.yang2022.inconsistency import inconsistency
from simulations.yang2022.resampling import interval, query_counts

KEY = jax.random.key(21)
METRICS = ("mrr", "log-mrr", "p-mrr@1/4")


def study(density=0.75, *, sets=("sparse", "correlated"), seed=0, checkpoints=12, queries=40):
    """Three configurations whose curves bend, more against one another on the correlated test."""
    rng = np.random.default_rng(seed)
    strength = np.tile(np.linspace(0.1, 0.8, checkpoints), 3)[:, None]
    easy = 0.1 * rng.normal(size=queries)
    tilt = np.repeat([-1, 0, 1], checkpoints)[:, None]
    values = {}
    for name, size in (("full", 0), ("sparse", 0.02), ("correlated", 0.08)):
        bent = strength if name == "full" else 0.5 + 0.15 * np.log(strength) + size * tilt
        noise = 0.05 * rng.normal(size=(len(METRICS), 3 * checkpoints, queries))
        values[name] = np.maximum(bent + easy + noise, 1e-3).astype(np.float32)
    return Curves(
        density,
        METRICS,
        ("RotatE 100", "RotatE 500", "ComplEx"),
        ("rotate", "rotate", "complex"),
        np.repeat(range(3), checkpoints).astype(np.int32),
        np.tile(np.arange(1, checkpoints + 1), 3).astype(np.int64),
        {name: values[name] for name in ("full", *sets)},
    )


@pytest.fixture(scope="module")
def table():
    return claims(KEY, [study(0.95, seed=1), study(0.75)], replicates=60)


def only(table, **where):
    rows = table.filter([pl.col(name).eq_missing(pl.lit(value)) for name, value in where.items()])
    assert len(rows) == 1, rows
    return rows.row(0, named=True)


def test_every_claim_is_there_once(table):
    assert table.columns == [
        *("claim", "density", "test_set", "metric", "configuration", "minus"),
        *("value", "lower", "upper", "unit", "remark"),
    ]
    keys = table.select("claim", "density", "test_set", "metric", "configuration", "minus")
    assert keys.is_unique().all()
    pooled = table.filter((pl.col("configuration") == "all") & pl.col("minus").is_null())
    assert pooled["claim"].n_unique() == 13
    # The last of the reference metric alone.
    assert len(pooled) == 2 * 2 * (3 * 12 + 1)
    of_each = table.filter(pl.col("configuration") != "all")
    assert of_each["metric"].unique().to_list() == ["mrr"]
    assert len(of_each) == 2 * 2 * 3 * 6
    differences = table.filter(pl.col("minus").is_not_null())
    # To MRR: 2 metrics, 4 shares, 2 test sets; to the independent set: 3 metrics, 3 shares.
    assert len(differences) == 2 * (2 * 4 * 2 + 3 * 3)


def test_values_lie_in_their_intervals(table):
    whole = table.drop_nulls("value").filter(pl.col("claim") != "confirmed")
    assert whole.filter((pl.col("lower") > pl.col("value")) | (pl.col("value") > pl.col("upper"))).is_empty()
    assert whole["lower"].null_count() == 0
    shares = whole.filter(pl.col("unit").str.contains("share of pairs") & pl.col("minus").is_null())
    assert (shares["lower"] >= 0).all()
    assert (shares["upper"] <= 1).all()


def test_halves_confirm_one_another(table):
    for test_set in ("sparse", "correlated"):
        row = only(table, claim="confirmed", density=0.75, test_set=test_set)
        key = jax.random.split(_of_density(KEY, 0.75))[1]
        found = confirmed(key, study(0.75), "mrr", test_set)
        assert row["value"] == found.share
        assert row["lower"] is row["upper"] is None
        assert row["remark"].startswith(f"{found.found:.0f} pairs a half; ")


def test_rows_are_what_the_parts_say(table):
    curves = study(0.75)
    counts = query_counts(jax.random.split(_of_density(KEY, 0.75))[0], 40, 60)
    bent = flattening(curves, "mrr", "sparse", counts)
    where = {"density": 0.75, "metric": "mrr", "configuration": "all", "minus": None}
    row = only(table, claim="slope_ratio", test_set="sparse", **where)
    np.testing.assert_allclose(row["value"], bent.slope_ratio.value.mean())
    assert row["remark"] == "mean over 3 of 3 configurations"
    row = only(table, claim="ratio_of_slopes", test_set="sparse", **where)
    np.testing.assert_allclose(row["value"], bent.slope_high.value.mean() / bent.slope_low.value.mean())
    row = only(table, claim="log_fits_better", test_set="sparse", **where)
    better = int((bent.r2_gain.value > 0).sum())
    assert row["value"] == better / 3
    assert row["remark"] == f"better in {better}; share of 3 of 3 configurations"
    row = only(table, claim="slope_low", test_set="sparse", **(where | {"configuration": "ComplEx"}))
    np.testing.assert_allclose(row["value"], bent.slope_low.value[2])

    shares = {m: inconsistency(curves, m, ["sparse", "correlated"], counts) for m in METRICS}
    for metric, minus, test_set, difference in (
        ("mrr", None, "correlated", shares["mrr"]["correlated"].inconsistent),
        (
            "mrr",
            "sparse",
            "correlated",
            shares["mrr"]["correlated"].inconsistent - shares["mrr"]["sparse"].inconsistent,
        ),
        (
            "p-mrr@1/4",
            "mrr",
            "sparse",
            shares["p-mrr@1/4"]["sparse"].inconsistent - shares["mrr"]["sparse"].inconsistent,
        ),
    ):
        row = only(
            table, claim="inconsistent", test_set=test_set, **(where | {"metric": metric, "minus": minus})
        )
        low, high = interval(difference)
        np.testing.assert_allclose(row["value"], difference.value)
        np.testing.assert_allclose([row["lower"], row["upper"]], [max(low, -1 if minus else 0), high])
        assert row["remark"] == "432 pairs"


def test_correlation_is_seen_where_it_was_put(table):
    rows = table.filter((pl.col("claim") == "inconsistent") & (pl.col("minus") == "sparse"))
    assert len(rows) == 6
    assert (rows["lower"] > 0).all()


def test_equal_keys_give_equal_tables_and_other_keys_other_intervals():
    curves = [study()]
    one, same, other = (claims(jax.random.key(k), curves, replicates=10) for k in (1, 1, 2))
    assert one.equals(same)
    assert not one.equals(other)
    # Halves are drawn; every other value is of the queries as they are.
    of_one, of_other = (t.filter(pl.col("claim") != "confirmed")["value"] for t in (one, other))
    assert of_one.equals(of_other)


def test_a_density_has_the_same_rows_alone(table):
    alone = claims(KEY, [study(0.75)], replicates=60)
    assert alone.equals(table.filter(density=0.75))
    # Other densities, other queries and halves.
    other = claims(KEY, [study(0.75)._replace(density=0.95)], replicates=60)
    assert not other.drop("density").equals(alone.drop("density"))


def test_a_table_by_density(table):
    rows = claim(table, "inconsistent", metric="mrr")
    assert rows.columns == ["density", "value", "lower", "upper"]
    assert rows["density"].to_list() == [0.95, 0.75]
    assert len(claim(table, "inconsistent", metric="mrr", test_set="correlated", minus="sparse")) == 2
    assert claim(table, "inconsistent", metric="mrr", minus="sparse").is_empty()


def test_options_choose():
    curves = [study(0.85, sets=("sparse",))]
    seen = []
    table = claims(
        KEY,
        curves,
        metrics=["log-mrr", "p-mrr@1/4", "mrr"],
        references=["mrr", "p-mrr@1/4"],
        apart="model",
        replicates=5,
        on_progress=lambda *done: seen.append(done),
    )
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert set(table["minus"].drop_nulls()) == {"mrr", "p-mrr@1/4"}
    assert set(table.filter(pl.col("configuration") != "all")["metric"]) == {"mrr", "p-mrr@1/4"}
    assert set(table.filter(pl.col("claim") == "distinct")["remark"]) == {"288 pairs"}


def test_a_wider_level_is_wider():
    narrow, wide = (
        claim(claims(KEY, [study()], metrics=["mrr"], level=level), "contradicting", metric="mrr")
        for level in (0.5, 0.99)
    )
    assert narrow["value"].equals(wide["value"])
    assert wide["lower"][0] < narrow["lower"][0] < narrow["upper"][0] < wide["upper"][0]


def test_what_cannot_be_measured_is_a_row_without_a_value():
    curves = study(checkpoints=12)
    early = (curves.config != 2) | (curves.step < 3)
    curves = curves._replace(
        config=curves.config[early],
        step=curves.step[early],
        values={name: values[:, early] for name, values in curves.values.items()},
    )
    table = claims(KEY, [curves], metrics=["mrr"], replicates=5)
    where = {"claim": "slope_ratio", "test_set": "sparse", "minus": None}
    row = only(table, configuration="ComplEx", **where)
    assert row["value"] is row["lower"] is row["upper"] is None
    assert row["remark"] == (
        "not measurable: 1 checkpoints in the lowest third and "
        "1 checkpoints in the highest third, 3 are needed"
    )
    row = only(table, configuration="all", **where)
    assert row["value"] is not None
    assert row["remark"] == "mean over 2 of 3 configurations; not measurable: ComplEx"


def test_an_interval_without_all_resamples_is_none():
    curves = study(sets=("sparse",))
    # One query alone holds a configuration above zero: where it is not drawn, there is no logarithm.
    curves.values["full"][0, 12:24, 1:] = 0
    row = only(claims(KEY, [curves], metrics=["mrr"], replicates=20), claim="r2_log", configuration="all")
    assert row["value"] is not None
    assert row["lower"] is row["upper"] is None
    assert "of 20 resamples have no such number" in row["remark"]


# --- bad input


def test_bad_input_is_found_before_any_work():
    good, seen = study(), []

    def refused(message, *args, **options):
        with pytest.raises(ValueError, match=message):
            claims(KEY, *args, on_progress=lambda *done: seen.append(done), **options)

    refused("`curves` must be a list", [])
    refused("`curves` must be a list", good)
    refused("`curves` must have different densities", [good, good])
    alone = good._replace(config=np.zeros_like(good.config))
    refused(r"at least two configurations to compare, got 1 \(RotatE 100\)", [good, alone])
    refused(r"`metric` must be one of mrr, log-mrr, p-mrr@1/4, got 'hits@1'", [good], metrics=["hits@1"])
    refused("`metrics` must name at least one", [good], metrics=[], references=[])
    refused("`references` must be some of mrr, got log-mrr", [good], metrics=["mrr"], references=["log-mrr"])
    refused("`apart` must be one of", [good], apart="x")
    refused("`level` must be", [good], level=1.0)
    refused("`level` must be", [good], level="x")
    refused("`z` must be", [good], z=-1)
    refused("`replicates` must be", [good], replicates=1)
    with pytest.raises(ValueError, match="`key` must be one key"):
        claims(-1, [good])
    holed = study(seed=5, density=0.5)
    holed.values["correlated"][0, 0, 0] = np.nan
    refused(r"`curves.values\['correlated'\]` must be finite, got nan", [good, holed])
    assert seen == []


def test_the_model_that_chose_is_not_compared_on_its_test_set(tmp_path, monkeypatch):
    """Yang et al. (2022), section 6.2: the others are, on both test sets."""
    curves = study()
    drawn = []
    monkeypatch.setattr(curve_plots, "correlation_figure", lambda curves, stem: drawn.append(curves) or [])
    monkeypatch.setattr(contradiction_plots, "share_figures", lambda table, out: [])
    of_three = runs.Study([], curves.labels, [], [curves], {}, None)
    pairs = {}
    for chooser in (None, "RotatE 500"):
        done = of_three._replace(chooser=chooser)
        figures3to5.draw_figure5_correlation(done, tmp_path, 0)
        figures3to5.write_claims(done, tmp_path, 0)
        table = pl.read_csv(tmp_path / "claims.csv").filter(claim="inconsistent", metric="mrr")
        pairs[chooser] = dict(table.filter(pl.col("minus").is_null()).select("test_set", "remark").rows())
    assert drawn[0] is curves
    assert drawn[1].labels == ("RotatE 100", "ComplEx")
    np.testing.assert_array_equal(drawn[1].config, np.repeat([0, 1], 12))
    np.testing.assert_array_equal(drawn[1].values["full"], curves.values["full"][:, curves.config != 1])
    assert pairs == {
        None: {"sparse": "432 pairs", "correlated": "432 pairs"},
        "RotatE 500": {"sparse": "432 pairs", "correlated": "144 pairs"},
    }
    of_two = of_three._replace(configurations=curves.labels[:2], chooser="RotatE 100")
    assert figures3to5._without_chooser(of_two) is of_two

"""Growth of time and memory: slopes, bends, what stops a kernel, and projections."""

import polars as pl
import pytest

from benchmarks import growth
from benchmarks.growth import KERNELS, WISHED, Cluster, measured, projected, slopes

SIZES = [10**3, 10**4, 10**5, 10**6]


def rows(kernel="trials", seconds=lambda n: n * 1e-6, gib=lambda n: 0.25 + n * 1e-6, sizes=SIZES):
    return [
        {
            "kernel": kernel,
            "size": n,
            "took_s": seconds(n) + 2,
            "stopped": "",
            "seconds": seconds(n),
            "peak_gib": gib(n),
        }
        for n in sizes
    ]


def test_slope_and_memory_of_the_last_step():
    (linear, square) = slopes(
        pl.DataFrame(rows() + rows("moments", lambda n: 1e-3 + n**2 * 1e-12, lambda n: 0.5))
    ).to_dicts()
    assert linear["slope"] == pytest.approx(1)
    assert linear["bytes_an_item"] == pytest.approx(2**30 * 1e-6)
    assert linear["leaves_linear_time_at"] is None
    # At 10^4 and at 10^5 an item takes 1.1e-7 s, at 10^6 1.0e-6 s.
    assert square["leaves_linear_time_at"] == 10**6
    assert square["slope"] == pytest.approx(1.96, abs=0.01)
    assert square["fits_this_machine_up_to"] is None


def test_memory_that_grows_by_noise_or_is_read_in_parts_does_not_count():
    found = rows(gib=lambda n: 0.4 + n * 1e-8) + rows("rank files")
    for row in slopes(pl.DataFrame(found)).to_dicts():
        assert (row["bytes_an_item"], row["fits_this_machine_up_to"]) == (None, None)


def test_what_stops_a_kernel(monkeypatch):
    monkeypatch.setattr(growth, "free_memory", lambda: 8 * 2**30)
    found = rows()
    assert growth._too_large(found, 10**7, 60) == "memory"  # 10.25 GiB
    assert growth._too_large(found[:1], 10**9, 0.0) == ""  # nothing is known of its growth
    assert growth._too_large(rows(gib=lambda n: 0.25), 10**7, 60) == ""
    assert growth._too_large(rows(gib=lambda n: 0.25), 10**7, 5) == "time"


def test_projections_divide_what_can_be_divided_and_name_what_breaks():
    found = rows("trials", lambda n: n * 1e-6, lambda n: 0.25) + rows(
        "known answers", gib=lambda n: 0.25 + n * 1e-7
    )
    cluster = Cluster(machines=4, cores=100, gib=500.0)
    trials, known = projected(pl.DataFrame(found), cluster).to_dicts()
    here = int(known["divided"].split()[0])
    assert trials["here_hours"] == pytest.approx(10**12 * 1e-6 / 3600)
    assert trials["cluster_hours"] == pytest.approx(trials["here_hours"] * here / 400)
    assert (trials["breaks"], known["breaks"]) == ("", "memory")
    assert known["cluster_hours"] == known["here_hours"]
    assert known["needed_gib"] == pytest.approx(1000.25)
    assert known["fits_a_machine_up_to"] == 4 * 10**9


@pytest.mark.parametrize(
    ("seconds", "more"),
    [(lambda n: 1 + n * 1e-6, 1e-6), (lambda n: n**1.5 * 1e-9, (1 - 10**-1.5) / 9e5), (lambda n: 2.0, 0)],
    ids=["fixed cost", "superlinear", "constant"],
)
def test_every_item_more_takes_as_long_as_in_the_last_step(seconds, more):
    (row,) = projected(pl.DataFrame(rows("known answers", seconds))).to_dicts()
    assert row["here_hours"] * 3600 == pytest.approx(seconds(10**6) + more * (10**10 - 10**6))


def test_every_projection_is_of_a_kernel_and_a_kernel_can_be_measured(monkeypatch):
    assert {one.kernel for one in WISHED} <= set(KERNELS)
    cluster = growth.CLUSTER
    machines = f"{cluster.name} machines, each with {cluster.cores} cores and {cluster.gib:g} GiB"
    assert machines in " ".join(growth.__doc__.split())
    monkeypatch.setattr(growth, "_ENOUGH_S", 0.01)
    found = measured("known answers", 10**3)
    assert found["seconds"] > 0
    assert found["peak_gib"] > 0

"""The scripts run from a clean folder, write what they promise, and fail early on bad places."""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]


def script(name, *arguments, data=None):
    environment = {k: v for k, v in os.environ.items() if k != "OWKG_DATA"}
    environment |= {"PYTHONPATH": str(ROOT)} | ({"OWKG_DATA": str(data)} if data else {})
    return subprocess.run(
        [sys.executable, str(ROOT / "simulations" / f"{name}.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


@pytest.mark.parametrize("name", ["figure1_expectation", "figure2_correlation", "queries_required"])
def test_quick_figures(name, tmp_path):
    done = script(name, "--quick", "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for suffix in (".csv", ".png", ".pdf"):
        path = tmp_path / f"{name}{suffix}"
        assert path.stat().st_size > 500
        assert f"wrote {path}" in done.stdout
    if name != "queries_required":
        z = pl.read_csv(tmp_path / f"{name}.csv")["standardised_difference"].drop_nulls()
        assert abs(z.mean()) < 0.25
        assert 0.85 < z.std() < 1.15


def test_published_points_are_compared(owkg_data, tmp_path):
    done = script("figure1_expectation", "--quick", "--out", tmp_path, data=owkg_data)
    assert "published, all: 568 points" in done.stdout
    assert (tmp_path / "figure1_published.csv").exists()


@pytest.mark.parametrize("name", ["figure1_expectation", "closed_form_table"])
def test_bad_places_are_named_before_any_work(name, tmp_path):
    (tmp_path / "file").write_text("")
    done = script(name, "--out", tmp_path / "file" / "out")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "file" in done.stderr
    done = script(name, "--out", tmp_path / "out", data=tmp_path / "nowhere")
    assert done.returncode == 2
    assert "OWKG_DATA" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []

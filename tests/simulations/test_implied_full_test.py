"""The numbers of docs/evidence/calibration.md on implied full-test metrics."""

from pathlib import Path

import pytest

from simulations.implied_full_test import errors

PAGE = (Path(__file__).parents[2] / "docs" / "evidence" / "calibration.md").read_text(encoding="utf-8")


def test_the_page_says_what_is_computed(owkg_data):
    found = errors(owkg_data / "family_tree_published")
    assert found["density"].to_list() == [0.95, 0.85, 0.75, 0.65]
    shown = [f"{x:.3f}" for x in found["rms_error"]]
    assert f"| error of the implied macro MRR | {' | '.join(shown)} |" in PAGE
    assert found["sparse_off_by"].max() == pytest.approx(0.65, abs=0.005)
    assert (found["rms_error"] < 0.1 * found["sparse_off_by"]).all()

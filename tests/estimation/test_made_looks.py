"""Looks at growing samples: which are allowed, and at which level."""

import numpy as np
import pytest

from owkg.estimation.looks import look_levels
from owkg.estimation.made_looks import Looks, look

NONE = Looks(None, ())


def test_one_look_and_a_pilot_are_at_the_level_itself():
    level, looks, notes = look(30, 200, None, NONE, 0.95)
    assert (level, looks, notes) == (0.95, Looks(None, (30,)), [])
    level, looks, notes = look(60, 200, None, looks, 0.95)
    assert (level, looks) == (0.95, Looks(None, (30, 60)))
    assert "there are two looks, after 30, 60 units" in notes[0]
    # The same number again is the same look.
    for again in (30, 60):
        assert look(again, 200, None, looks, 0.95)[1] == looks


def test_a_third_look_needs_a_plan_unless_all_is_judged():
    looks = Looks(None, (60, 30))
    with pytest.raises(
        ValueError, match=r"`looks` must name all looks, such as 30,60,90: .* after 30, 60 judged"
    ):
        look(90, 200, None, looks, 0.95)
    assert look(200, 200, None, looks, 0.95)[0] == 0.95
    level, now, notes = look(90, 200, [30, 60, 90], looks, 0.95)
    assert level == look_levels([30, 60, 90], 200, 0.95)[2]
    assert now == Looks((30, 60, 90), (60, 30, 90))
    assert "the plan was made after a look (60, 30)" in notes[0]


def test_a_plan_is_kept():
    level, looks, notes = look(30, 200, [30, 60], NONE, 0.95)
    assert (looks, notes) == (Looks((30, 60), (30,)), [])
    assert level > 0.99
    level, looks, _ = look(60, 200, None, looks, 0.95)
    assert level == look_levels([30, 60], 200, 0.95)[1]
    assert looks == Looks((30, 60), (30, 60))
    for planned, judged, message in (
        ([30, 90], 90, "must be as planned before the first look, 30, 60, got 30, 90"),
        (None, 45, "must include the number of judged units, 45, got 30, 60"),
    ):
        with pytest.raises(ValueError, match=message):
            look(judged, 200, planned, looks, 0.95)


def test_a_plan_names_looks_that_were_made():
    with pytest.raises(ValueError, match=r"`looks` must include the looks already made, 30, got 60, 90"):
        look(60, 200, [60, 90], Looks(None, (30,)), 0.95)


def test_looks_that_nobody_records_are_not_counted():
    level, looks, notes = look(30, 200, None, Looks(), 0.9)
    assert (level, looks, notes) == (0.9, Looks(), [])
    assert look(np.int64(60).item(), 200, [60], Looks(), 0.9)[1] == Looks((60,), None)

"""The figures of an audit: each part, the chosen pair, what is stated, and bad input."""

import numpy as np
import polars as pl
import pytest

from owkg import plots
from owkg.auditing.result import BOX, GRID, MODELS, PAIRS, Audit

NAMES = ("a", "b", "c")
VERDICTS = {"ab": "holds under the stated range", "bc": "open", "ac": "reversed under the stated range"}


def framed(rows, schema):
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema)


def audited(*, sparsity=(0.2, 0.4), metrics=("mrr", "hits@10")):
    models, pairs, grid, box = [], [], [], []
    for metric in metrics:
        where = {"metric": metric, "average": "answers"}
        for i, name in enumerate(NAMES):
            value = 0.6 - 0.2 * i
            full = None if sparsity is None else value + 0.1
            row = {"value": value, "ci_low": value - 0.05, "ci_high": value + 0.05, "full": full}
            row |= {f"full_{end}": full and full + by for end, by in (("low", -0.1), ("high", 0.1))}
            models.append(where | {"model": name} | row)
            for s in (0.0, 0.3, 0.6):
                own = {"sparsity": s, "full": value + s / 3, "full_low": value, "full_high": value + s}
                grid.append(where | {"model": name} | own)
        for pair, verdict in VERDICTS.items():
            both = dict(zip(("first", "second"), pair, strict=True))
            broken = 0.45 if pair == "ab" else None
            pairs.append(where | both | {"verdict": verdict, "breakdown_sparsity": broken})
            for s in (0.0, 0.3, 0.6):
                for rho in (-0.6, -0.2, 0.0, 0.2, 0.6):
                    p = None if rho == 0.2 and s == 0.6 else 0.5 + rho / 2
                    point = {"sparsity": s, "correlation_difference": rho, "probability": p}
                    box.append(where | both | point)
    empty = pl.DataFrame()
    assumptions = {"sparsity": sparsity and list(sparsity), "correlation": [0.0, 0.1]}
    frames = (framed(models, MODELS), framed(pairs, PAIRS), framed(grid, GRID), framed(box, BOX))
    return Audit(*frames, empty, empty, empty, empty, empty, assumptions)


def points(panel):
    return {line.get_label(): line for line in panel.lines if not line.get_label().startswith("_")}


def test_the_ladder_links_neighbours_by_their_verdicts():
    (panel,) = audited().plot(parts="ladder").axes
    assert [label.get_text() for label in panel.get_yticklabels()] == ["a", "b", "c"]
    found = points(panel)
    np.testing.assert_allclose(found["known answers"].get_xdata(), [0.6, 0.4, 0.2])
    np.testing.assert_allclose(found["complete test, implied"].get_xdata(), [0.7, 0.5, 0.3])
    links = [line for line in panel.lines if line.get_label().startswith("_")]
    assert [line.get_linestyle() for line in links] == ["-", "--"]
    texts = [text.get_text().replace("\n", " ") for text in panel.texts]
    assert texts == ["holds under the stated range", "open"]
    assert panel.get_xlabel() == "mrr"


def test_without_a_stated_sparsity_nothing_is_implied():
    ladder, sparsity, _ = audited(sparsity=None).plot().axes[:3]
    assert "complete test, implied" not in points(ladder)
    assert not sparsity.patches


def test_what_sparsities_imply_and_where_the_pair_breaks():
    fig = audited().plot(parts="sparsity", pair=("b", "a"), metric="hits@10")
    (panel,) = fig.axes
    lines = [line for line in panel.lines if len(line.get_xdata()) == 3]
    np.testing.assert_allclose(lines[2].get_ydata(), [0.2, 0.3, 0.4])
    assert lines[0].get_color() != lines[1].get_color() != lines[2].get_color()
    texts = [text.get_text().strip() for text in panel.texts]
    assert texts[0] == "sure below 0.45"
    assert sorted(texts[1:]) == ["a", "b", "c"]
    assert len(panel.collections) == 2  # bands of the pair
    assert (panel.patches[0].get_x(), panel.patches[0].get_width()) == pytest.approx((0.2, 0.2))
    assert panel.get_ylabel() == "hits@10, complete test"


def test_the_map_is_cropped_and_frames_the_stated_range():
    panel = audited().plot(parts="map", pair=("b", "c")).axes[0]
    (image,) = panel.collections
    shown = image.get_array()
    assert shown.shape == (3, 3)
    np.testing.assert_allclose(shown[1], 0.5)
    assert np.ma.getmaskarray(shown).sum() == 1
    for frame in panel.patches:  # white around black
        assert frame.get_bbox().bounds == pytest.approx((0.2, -0.1, 0.2, 0.2))
    assert len(panel.patches) == 2
    assert panel.get_title(loc="left") == "Is b better than c?"
    assert panel.get_ylabel() == "correlation: c minus b"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": "power"}, "`parts` must be of ladder, sparsity, map, got power"),
        ({"metric": "mr"}, "`metric` must be one of mrr, hits@10, got 'mr'"),
        ({"average": "queries"}, "`average` must be one of answers, got 'queries'"),
        ({"pair": ("a", "x")}, "`pair` must be two of a, b, c, got 'x'"),
        ({"pair": ("a", "a")}, "two different models, got 'a' twice"),
    ],
)
def test_what_an_audit_does_not_have_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        plots.audit_figure(audited(), **options)

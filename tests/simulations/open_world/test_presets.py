"""The configurations can be built, and those of the paper are the published ones."""

from collections import Counter

import pytest

from simulations.open_world.presets import PRESETS

EACH = pytest.mark.parametrize("preset", PRESETS)


@EACH
def test_every_configuration_is_one(preset):
    for one in PRESETS[preset]:
        how = one.training()
        assert (how.model, how.steps, how.valid_every) == (one.model, one.looks[-1], 0)
        assert list(one.looks) == sorted(set(one.looks))
        assert one.looks[0] >= 1
        third = one.looks[:3][-1]
        assert one.training(max_steps=third).steps == third
        assert one.looks_until(third) == one.looks[:3]


@EACH
def test_labels_and_folders_are_different(preset):
    for names in ([one.label for one in PRESETS[preset]], [one.folder for one in PRESETS[preset]]):
        assert len(set(names)) == len(names)
        assert all(names)


def test_cpu_has_twelve_of_six_models():
    models = Counter(one.model for one in PRESETS["cpu"])
    assert sum(models.values()) >= 12
    assert set(models) >= {"betae", "rotate", "complex", "protate"}
    assert len(models) == 6


def test_paper_is_as_published():
    found = PRESETS["paper"]
    assert Counter(one.model for one in found) == {"betae": 5, "rotate": 5, "complex": 3, "protate": 5}
    steps = {
        "betae": (400_000, 1333),
        "rotate": (100_000, 1000),
        "complex": (100_000, 333),
        "protate": (12_000, 240),
    }
    for one in found:
        total, looks = steps[one.model]
        how = one.training()
        # The last look is the last multiple of the interval.
        assert total - one.looks[0] < one.looks[-1] <= total
        assert len(one.looks) == looks
        assert (how.learning_rate, how.optimiser, how.schedule) == (1e-4, "adam", "drop")
        assert (how.loss, how.subsampling, how.filtered_negatives) == ("logistic", True, True)
    sizes = Counter((o.training().batch_size, o.training().num_negatives) for o in found)
    assert sizes == {(1024, 128): 14, (256, 128): 1, (1024, 512): 1, (512, 256): 1, (128, 512): 1}
    assert dict(found[10].training().options)["init_scale"] == pytest.approx(502 / 500)
    assert dict(found[4].training().options)["margin"] == 240

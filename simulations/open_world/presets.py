"""Presets: models, hyperparameters and evaluation steps."""

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from owkg.train import Training, training


@dataclass(frozen=True)
class Configuration:
    """One line of the figures.

    Attributes:
        label: label in figures and tables.
        model: a name of `owkg.models.MODELS`.
        settings: fields of `Training` and options of the model.
        looks: numbers of steps after which the full test is ranked, increasing; the last one ends the
            training.
    """

    label: str
    model: str
    settings: dict[str, Any] = field(hash=False)
    looks: tuple[int, ...]

    @property
    def folder(self) -> str:
        """Folder name of the configuration."""
        return re.sub(r"[^a-z0-9]+", "-", self.label.lower()).strip("-")

    def training(self, *, max_steps: int | None = None, seed: int = 0) -> Training:
        """Training settings; no facts are held back, because nothing is validated."""
        quiet = {"valid_every": 0, "steps": min(self.looks[-1], max_steps or self.looks[-1]), "seed": seed}
        return training(self.model, **(self.settings | quiet))

    def looks_until(self, max_steps: int | None) -> tuple[int, ...]:
        """Looks up to a number of steps; None: all looks.

        Raises:
            ValueError: if there is no look up to that step.
        """
        found = tuple(step for step in self.looks if max_steps is None or step <= max_steps)
        if not found:
            raise ValueError(
                f"`max_steps` must reach the first look of {self.label}, {self.looks[0]}, got {max_steps}."
            )
        return found


def _denser_first(steps: int, count: int, first: int) -> tuple[int, ...]:
    """At most `count` numbers of steps, dense at the beginning, where models learn most."""
    return tuple(np.unique(np.geomspace(first, steps, count).round().astype(int)).tolist())


def _every(interval: int, steps: int) -> tuple[int, ...]:
    return tuple(range(interval, steps + 1, interval))


# As in the released code of Yang et al. (2022), but without weighting negatives by their scores.
_SAMPLED = {
    "training_loop": "negatives",
    "loss": "logistic",
    "optimiser": "adam",
    "batch_size": 1024,
    "subsampling": True,
    "filtered_negatives": True,
}
_QUICKER = _SAMPLED | {"learning_rate": 1e-2, "num_negatives": 64}
# Training against all entities at once learns a few times more per second.
_ALL = {"training_loop": "1vsall", "loss": "cross_entropy", "n3": 0.0}


_THIRTEEN_STEPS = 400


def _cpu() -> tuple[Configuration, ...]:
    adaptive = _QUICKER | {"loss": "self_adversarial"}
    beta = _ALL | {"optimiser": "adam", "learning_rate": 3e-3, "hidden": 256}
    given: tuple[tuple[str, str, dict[str, Any], int, int], ...] = (
        # label, model, settings, steps, first look
        ("BetaE 32", "betae", beta | {"dim": 32, "margin": 6.0}, 2400, 250),
        ("BetaE 16", "betae", beta | {"dim": 16, "margin": 6.0}, 2400, 300),
        ("RotatE 64", "rotate", _QUICKER | {"dim": 64, "margin": 6.0}, 1500, 60),
        ("RotatE 64 self-adv.", "rotate", adaptive | {"dim": 64, "margin": 6.0}, 1500, 60),
        ("RotatE 32", "rotate", _QUICKER | {"dim": 32, "margin": 12.0}, 1500, 80),
        ("ComplEx 100", "complex", _ALL | {"dim": 100, "learning_rate": 0.1}, 1500, 25),
        ("ComplEx 16", "complex", _ALL | {"dim": 16, "learning_rate": 0.1}, 3000, 80),
        ("ComplEx 64 sampled", "complex", _QUICKER | {"dim": 64, "learning_rate": 3e-3}, 3000, 60),
        ("pRotatE 64", "protate", _QUICKER | {"dim": 64, "margin": 12.0, "learning_rate": 3e-3}, 1500, 60),
        ("pRotatE 32", "protate", _QUICKER | {"dim": 32, "margin": 6.0, "learning_rate": 3e-3}, 1500, 60),
        ("TransE 64", "transe", _QUICKER | {"dim": 64, "margin": 6.0}, 3000, 60),
        ("DistMult 64", "distmult", _ALL | {"dim": 64, "learning_rate": 0.1}, 1500, 25),
    )
    return tuple(
        Configuration(label, model, settings, _denser_first(steps, 60, first))
        for label, model, settings, steps, first in given
    )


def _quick() -> tuple[Configuration, ...]:
    complex_ = _ALL | {"dim": 32, "learning_rate": 0.1, "batch_size": 256}
    rotate = _QUICKER | {"dim": 32, "margin": 6.0, "batch_size": 256, "num_negatives": 32}
    return (
        Configuration("ComplEx 32", "complex", complex_, _denser_first(600, 30, 20)),
        Configuration("RotatE 32", "rotate", rotate, _denser_first(1200, 30, 50)),
    )


def _pool() -> tuple[Configuration, ...]:
    sampled = _QUICKER | {"dim": 32, "margin": 6.0, "batch_size": 256, "num_negatives": 32}
    every = _ALL | {"learning_rate": 0.1, "batch_size": 256}
    given: tuple[tuple[str, str, dict[str, Any], int], ...] = (
        ("ComplEx 32", "complex", every | {"dim": 32}, 200),
        ("ComplEx 8", "complex", every | {"dim": 8}, 200),
        ("DistMult 32", "distmult", every | {"dim": 32}, 200),
        ("RotatE 32", "rotate", sampled, 400),
        ("pRotatE 32", "protate", sampled | {"learning_rate": 3e-3}, 400),
        ("TransE 32", "transe", sampled, 400),
    )
    return tuple(Configuration(label, model, own, (steps,)) for label, model, own, steps in given)


def _thirteen() -> tuple[Configuration, ...]:
    """The systems of Zhou et al. (2022); RotH is AttE in their files, as on small graphs."""
    labels = ("TransE", "RotatE", "HAKE", "AttE", "DistMult", "RESCAL", "ComplEx", "TuckER", "BiQUE")
    labels += ("ConvE", "CompGCN", "InteractE", "HittER")
    small = {"preset": "small"}
    return tuple(Configuration(label, label.lower(), small, (_THIRTEEN_STEPS,)) for label in labels)


def _paper() -> tuple[Configuration, ...]:
    # Model, dimension, gamma, batch, negatives, as published; BetaE with 128 negatives like the other models.
    steps = {
        "betae": (400_000, 300),
        "rotate": (100_000, 100),
        "complex": (100_000, 300),
        "protate": (12_000, 50),
    }
    given = (
        ("betae", 500, 60, 1024, 128),
        ("betae", 100, 60, 1024, 128),
        ("betae", 1000, 60, 1024, 128),
        ("betae", 500, 15, 1024, 128),
        ("betae", 500, 240, 1024, 128),
        ("rotate", 500, 24, 1024, 128),
        ("rotate", 1000, 24, 1024, 128),
        ("rotate", 100, 24, 1024, 128),
        ("rotate", 500, 12, 256, 128),
        ("rotate", 500, 12, 1024, 512),
        ("complex", 500, 500, 1024, 128),
        ("complex", 1000, 500, 1024, 128),
        ("complex", 500, 200, 512, 256),
        ("protate", 500, 24, 1024, 128),
        ("protate", 500, 6, 1024, 128),
        ("protate", 1000, 24, 1024, 128),
        ("protate", 500, 24, 128, 512),
        ("protate", 250, 24, 1024, 128),
    )
    names = {"betae": "BetaE", "rotate": "RotatE", "complex": "ComplEx", "protate": "pRotatE"}
    found = []
    for number, (model, dim, gamma, batch, negatives) in enumerate(given):
        # ComplEx uses gamma only for the width of its initial embeddings.
        widths = {"init_law": "uniform", "init_scale": (gamma + 2) / dim, "reciprocal": False}
        own = widths if model == "complex" else {"margin": float(gamma)}
        settings = (
            _SAMPLED
            | own
            | {
                "dim": dim,
                "batch_size": batch,
                "num_negatives": negatives,
                "learning_rate": 1e-4,
                "schedule": "drop",
                "checkpoint_every": 50,
                "n3": 0.0,
            }
        )
        total, interval = steps[model]
        found.append(Configuration(f"{number} {names[model]}", model, settings, _every(interval, total)))
    return tuple(found)


PRESETS: dict[str, tuple[Configuration, ...]] = {
    "quick": _quick(),
    "pool": _pool(),
    "thirteen": _thirteen(),
    "cpu": _cpu(),
    "paper": _paper(),
}
"""Presets by name: "quick" for a first look, "pool" for several systems at once, "thirteen" for the systems
of Zhou et al. (2022), "cpu" for an hour on two cores, "paper" as published.
"""

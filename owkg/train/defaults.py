"""How each model is trained unless told otherwise: data."""

from typing import Any

_SAMPLED = {
    "training_loop": "negatives",
    "loss": "self_adversarial",
    "batch_size": 1024,
    "num_negatives": 128,
    "subsampling": True,
    "optimiser": "adam",
    "learning_rate": 1e-3,
}
_FACTORED = {
    "training_loop": "1vsall",
    "loss": "cross_entropy",
    "batch_size": 1000,
    "optimiser": "adagrad",
    "learning_rate": 0.1,
    "n3": 0.01,
}
_LABELLED = {
    "training_loop": "kvsall",
    "loss": "bce",
    "batch_size": 128,
    "label_smoothing": 0.1,
    "optimiser": "adam",
    "learning_rate": 1e-3,
}

# Fields of `Training` and options of the model, after Sun et al. 2019 (sampled), Lacroix et al. 2018
# (factored), Dettmers et al. 2018 and Balazevic et al. 2019 (labelled).
DEFAULTS: dict[str, dict[str, Any]] = {
    "transe": _SAMPLED | {"margin": 9.0},
    "rotate": _SAMPLED,
    "protate": _SAMPLED,
    "betae": _SAMPLED,
    "distmult": _FACTORED,
    "complex": _FACTORED,
    "rescal": _FACTORED | {"n3": 0.0},
    "tucker": _LABELLED,
    "conve": _LABELLED,
}
"""What `training(model)` begins with, by model."""

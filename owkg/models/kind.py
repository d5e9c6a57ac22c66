"""Kind of model: everything that other parts of owkg need to know about it, as data."""

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import NamedTuple

import jax
import numpy as np

from owkg import checks
from owkg.errors import ArgumentError
from owkg.keys import seeded, settled
from owkg.models.model import Model


class Peer(NamedTuple):
    """Representation of a kind of model in another library.

    Attributes:
        named: class of the model in the library, if owkg accepts its model objects.
        arrays: names of the arrays in a saved state: entities and relations; or real and imaginary parts of
            entities, then relations; or both parts of both; or the arguments of `joined`. Empty: the usual
            names of the library.
        layout: layout of complex numbers as reals (`owkg.models.import_embeddings`).
        relation_layout: meaning of the relations of rotations.
        norm: default norm of the distance, if the kind has this option; 0: a setting of the library that
            users must give.
        unit: arrays that the library scales to length 1 for scores, and the norm of this length; 0: the norm
            of the distance.
        joined: function from these arrays to parameters of the model by name. None: the arrays are entities
            and relations.
        settings: required settings of the scoring function in the library, if owkg accepts its model objects.
        differs: reason why the library's score differs, so that its models cannot be converted; "" if it does
            not.
    """

    named: str = ""
    arrays: tuple[str, ...] = ()
    layout: str | None = None
    relation_layout: str | None = None
    norm: int = 1
    unit: tuple[tuple[str, ...], int] = ((), 2)
    joined: Callable[..., Mapping[str, np.ndarray]] | None = None
    settings: tuple[tuple[str, object], ...] = ()
    differs: str = ""


@dataclass(frozen=True, eq=False)
class Kind:
    """Kind of model.

    Attributes:
        name: name of the kind: a lower-case letter, then lower-case letters, digits and _.
        config: frozen dataclass of the options, including `dim` and `reciprocal`, each with a default.
        build: function from options to the model.
        equation: equation of the score.
        source: paper.
        columns: reals of an entity per unit of `dim`.
        training: defaults of `owkg.train.training`: fields of `owkg.train.Training` and options.
        presets: recipes by name, which override `training`: published recipes by the name of their graph, and
            "small" for graphs of some thousand facts on a CPU.
        peers: representations in other libraries, by their names in `owkg.interop.LIBRARIES`.
        made_by: command that makes the model, if it is not trained.
    """

    name: str
    config: type
    build: Callable[..., Model]
    equation: str
    source: str
    columns: int = 1
    training: Mapping[str, object] = field(default_factory=dict)
    presets: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    peers: Mapping[str, Peer] = field(default_factory=dict)
    made_by: str = ""

    @property
    def options(self) -> dict[str, object]:
        """Options with their defaults."""
        return {one.name: one.default for one in fields(self.config)}

    def made(self, **options: object) -> Model:
        """Model with these options; equal options give the same object.

        Raises:
            ValueError: if there is no such option, or a value is out of range.
        """
        for option in options:
            if option not in self.options:
                names = ", ".join(self.options)
                raise ArgumentError(option, f"is not an option of {self.name}; its options are {names}.")
        return _built(self, self.config(**options))


@cache
def _built(kind: Kind, config: object) -> Model:
    return kind.build(config)


def whole_kind(kind: object) -> Kind:
    """`kind`, checked to be complete and to agree with its model.

    Raises:
        ArgumentError: if something is missing or wrong; the message names it.
    """
    if not isinstance(kind, Kind):
        raise ArgumentError("kind", f"must be an `owkg.models.Kind`, got {kind!r}.")
    if not isinstance(kind.name, str) or not re.fullmatch("[a-z][a-z0-9_]*", kind.name):
        raise ArgumentError("name", f"must be lower-case letters, digits and _, got {kind.name!r}.")
    for name in ("equation", "source"):
        if not isinstance(text := getattr(kind, name), str) or not text:
            raise ArgumentError(name, f"must be text, got {text!r}.")
    checks.whole("columns", kind.columns, 1)
    for name, of in (("training", object), ("presets", Mapping), ("peers", Peer)):
        given = getattr(kind, name)
        if not isinstance(given, Mapping) or not all(isinstance(one, of) for one in given.values()):
            raise ArgumentError(
                name,
                f"must be a dictionary (of dictionaries for presets, of `Peer` for peers), got {given!r}.",
            )
    _require_options(kind)
    if not callable(kind.build):
        raise ArgumentError("build", f"must be a function from options to a model, got {kind.build!r}.")
    model = kind.made()
    if not isinstance(model, Model) or (model.name, model.config) != (kind.name, kind.config()):
        raise ArgumentError("build", f"must return the Model {kind.name!r} with its options, got {model!r}.")
    with settled():
        params, _ = jax.eval_shape(lambda key: model.init(key, 5, 3), seeded(0))
    wanted = {"entity": (5, kind.columns * model.config.dim), "relation": (3 + 3 * model.config.reciprocal,)}
    for name, shape in wanted.items():
        got = params[name].shape if name in params else "none"
        if got[: len(shape)] != shape:
            raise ArgumentError(
                "build",
                f"must return a model whose `{name}` has shape {shape}... for 5 entities and 3 relations, "
                f"got {got}.",
            )
    return kind


def _require_options(kind: Kind) -> None:
    config = kind.config
    frozen = getattr(getattr(config, "__dataclass_params__", None), "frozen", False)
    if not isinstance(config, type) or not frozen:
        raise ArgumentError("config", f"must be a frozen dataclass of options, got {config!r}.")
    for name in ("dim", "reciprocal"):
        if name not in kind.options:
            raise ArgumentError("config", f"must have the option {name}, got {', '.join(kind.options)}.")
    if bare := [name for name, default in kind.options.items() if default is MISSING]:
        raise ArgumentError("config", f"must have a default for each option; {bare[0]} has none.")


# Default training: after Sun et al. 2019 (sampled), Lacroix et al. 2018 (factored), Chami et al. 2020 with
# their full cross-entropy (classified), Dettmers et al. 2018 and Balazevic et al. 2019 (labelled).
SAMPLED = {
    "training_loop": "negatives",
    "loss": "self_adversarial",
    "batch_size": 1024,
    "num_negatives": 128,
    "subsampling": True,
    "optimiser": "adam",
    "learning_rate": 1e-3,
}
FACTORED = {
    "training_loop": "1vsall",
    "loss": "cross_entropy",
    "batch_size": 1000,
    "optimiser": "adagrad",
    "learning_rate": 0.1,
    "n3": 0.01,
}
CLASSIFIED = {
    "training_loop": "1vsall",
    "loss": "cross_entropy",
    "batch_size": 500,
    "optimiser": "adam",
    "learning_rate": 1e-3,
}
LABELLED = {
    "training_loop": "kvsall",
    "loss": "bce",
    "batch_size": 128,
    "label_smoothing": 0.1,
    "optimiser": "adam",
    "learning_rate": 1e-3,
}

# Published recipes that several models share, for FB15k-237 and for WN18RR: the scripts of Sun et al. 2019,
# of Chami et al. 2020 (for RotH) and of Balazevic et al. 2019 (for MuRP).
SUN_FB15K237 = SAMPLED | {
    "dim": 1000,
    "margin": 9.0,
    "num_negatives": 256,
    "learning_rate": 5e-5,
    "schedule": "drop",
    "steps": 100_000,
}
SUN_WN18RR = SUN_FB15K237 | {
    "dim": 500,
    "margin": 6.0,
    "batch_size": 512,
    "num_negatives": 1024,
    "temperature": 0.5,
    "steps": 80_000,
}
# For graphs of some thousand facts on a CPU; a run takes seconds.
SMALL = {"training_loop": "1vsall", "loss": "cross_entropy", "batch_size": 512, "epochs": 40}
SMALL_CLASSIFIED = SMALL | {"optimiser": "adam", "learning_rate": 0.01, "dim": 64}
SMALL_FACTORED = SMALL | {"optimiser": "adagrad", "learning_rate": 0.1, "dim": 128, "n3": 0.01}
SMALL_SAMPLED = SAMPLED | {
    "dim": 64,
    "margin": 9.0,
    "batch_size": 512,
    "num_negatives": 64,
    "subsampling": False,
    "learning_rate": 5e-3,
    "epochs": 40,
}
BINARY = {"training_loop": "negatives", "loss": "binary", "num_negatives": 50, "filtered_negatives": False}
CHAMI_FB15K237 = BINARY | {
    "dim": 32,
    "batch_size": 500,
    "optimiser": "adagrad",
    "learning_rate": 0.05,
    "epochs": 300,
}
CHAMI_WN18RR = BINARY | {
    "dim": 500,
    "batch_size": 1000,
    "optimiser": "adam",
    "learning_rate": 1e-3,
    "epochs": 300,
}
BALAZEVIC_FB15K237 = BINARY | {
    "dim": 200,
    "batch_size": 128,
    "optimiser": "sgd",
    "learning_rate": 10.0,
    "epochs": 500,
}
BALAZEVIC_WN18RR = BALAZEVIC_FB15K237 | {"learning_rate": 50.0}


def with_biases(
    entity: np.ndarray, head_bias: np.ndarray, tail_bias: np.ndarray, *relation: np.ndarray
) -> dict[str, np.ndarray]:
    """Parameters of a model with entity biases, with rows of relations joined from parts.

    A part with one row, such as a curvature shared by all relations, is repeated for each relation.
    """
    rows = max(map(len, relation))
    parts = [np.broadcast_to(part, (rows, *part.shape[1:])) for part in relation]
    return {
        "entity": entity,
        "relation": np.concatenate(parts, axis=1),
        "head_bias": head_bias.reshape(-1),
        "tail_bias": tail_bias.reshape(-1),
    }


def of_first_half(
    entity: np.ndarray, head_bias: np.ndarray, tail_bias: np.ndarray, shift: np.ndarray, *relation: np.ndarray
) -> dict[str, np.ndarray]:
    """Parameters of `with_biases` from the first half of the shifts; the authors store twice as many."""
    return with_biases(entity, head_bias, tail_bias, np.split(shift, 2, axis=1)[0], *relation)


KGEMB = ("entity.weight", "bh.weight", "bt.weight", "rel.weight")
"""Arrays of every model in the code of Chami et al. 2020."""


def of_pykeen(entities: int, relations: int) -> tuple[str, ...]:
    """Names of the arrays of entity representations, then relation representations, in a PyKEEN state."""
    numbered = (("entity", i) for i in range(entities)), (("relation", i) for i in range(relations))
    return tuple(f"{of}_representations.{i}._embeddings.weight" for part in numbered for of, i in part)

"""Configuration of a training: one frozen record, from defaults, a TOML file and options."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from owkg.errors import ArgumentError, naming
from owkg.models import MODELS, Model, model
from owkg.models import options as check

# Losses of each training loop.
LOSSES = {
    "1vsall": ("cross_entropy", "bce"),
    "kvsall": ("cross_entropy", "bce"),
    "negatives": ("margin", "logistic", "binary", "self_adversarial"),
}


@dataclass(frozen=True)
class Training:
    """Configuration of a training, which together with the graph determines the result.

    A query is a fact asked on one side: (h, r, ?) or (?, r, t). An epoch asks every query once.

    Attributes:
        model: name in `owkg.models.MODELS`.
        options: options of the model, as (name, value).
        training_loop: "1vsall": the answer of a fact against all entities; "kvsall": all known answers of a
            query against all entities; "negatives": the answer against randomly drawn entities.
        loss: "cross_entropy" or "bce" for 1vsall and kvsall; "margin", "logistic", "binary" or
            "self_adversarial" for negatives.
        batch_size: queries per step.
        label_smoothing: share of the target that is spread evenly over all entities, in [0, 1).
        num_negatives: entities drawn for each query, or for all queries of a side if `shared_negatives`.
        shared_negatives: whether the queries of a side share their negatives.
        filtered_negatives: whether known answers (of train) are excluded from the negatives.
        loss_margin: margin between positive and negative scores in the margin loss.
        temperature: temperature of the weights of self-adversarial negatives.
        subsampling: whether a fact has the weight 1 / sqrt(answers of (h, r, ?) + answers of (?, r, t) + 6);
            no effect if the training loop is "kvsall".
        sides: weights of the two sides of a fact, with negatives. "both": equal. "bernoulli": proportional to
            how often Wang et al. 2014 corrupt the side, the head with probability tph / (tph + hpt), from
            tails per head and heads per tail of the relation.
        answer_frequency: share s of the weight of a query that is proportional to the frequency of its answer
            in facts; the weight is s frequency / largest frequency + 1 - s.
        optimiser: "adagrad", "adam", "adamax" or "sgd".
        gradient_clip: largest norm of all gradients of a step together; larger gradients are scaled down. 0:
            no limit.
        weight_decay: factor of decay; a step that moves a parameter also shrinks it by this times the
            learning rate.
        learning_rate: learning rate at its peak.
        schedule: schedule of the learning rate. "constant"; "linear" or "cosine": down to 0 after the last
            step; "exponential": times `decay` each epoch; "drop": a tenth from half of the steps on (Sun et
            al. 2019).
        decay: factor per epoch of the exponential schedule, at most 1.
        warmup_steps: steps over which the learning rate rises linearly to its peak.
        epochs: length of the training in epochs.
        steps: length of the training in steps; overrides `epochs` if not 0.
        n3: weight of the mean over queries of sum |x|^3 over their embeddings.
        l2: weight of the mean over queries of sum |x|^2 over their embeddings.
        precision: precision of the computation, "float32" or "bfloat16"; parameters stay float32.
        updates: rows that the optimiser updates in a step. "dense": whole tables; "rows": only the entities
            of the step; "auto": by the size of the graph (`owkg.train.updates`).
        seed: seed of everything random.
        record_every: epochs between rows of the training path.
        valid_every: epochs between validations; 0: no validation.
        valid_metric: metric of `owkg.metrics` for validation; larger values must be better.
        patience: number of validations without a new best before training stops; 0: never stop early.
        checkpoint_every: epochs between checkpoints; 0: only at the end and at every new best.
    """

    model: str = "complex"
    options: tuple[tuple[str, object], ...] = ()
    training_loop: str = "1vsall"
    loss: str = "cross_entropy"
    batch_size: int = 1000
    label_smoothing: float = 0.0
    num_negatives: int = 128
    shared_negatives: bool = False
    filtered_negatives: bool = True
    loss_margin: float = 1.0
    temperature: float = 1.0
    subsampling: bool = False
    sides: str = "both"
    answer_frequency: float = 0.0
    optimiser: str = "adagrad"
    gradient_clip: float = 0.0
    weight_decay: float = 0.0
    learning_rate: float = 0.1
    schedule: str = "constant"
    decay: float = 0.99
    warmup_steps: int = 0
    epochs: int = 100
    steps: int = 0
    n3: float = 0.0
    l2: float = 0.0
    precision: str = "float32"
    updates: str = "auto"
    seed: int = 0
    record_every: int = 1
    valid_every: int = 10
    valid_metric: str = "mrr"
    patience: int = 10
    checkpoint_every: int = 10

    def __post_init__(self) -> None:
        self.built()
        check.one_of(self, "training_loop", *LOSSES)
        if self.loss not in LOSSES[self.training_loop]:
            losses = " or ".join(map(repr, LOSSES[self.training_loop]))
            raise ArgumentError(
                "loss",
                f"must be {losses} where the training loop is {self.training_loop}, got {self.loss!r}.",
            )
        check.whole_numbers(self, "batch_size", "num_negatives", "epochs", "record_every")
        # Intervals are whole epochs; 0 means never.
        check.whole_numbers(
            self, "steps", "warmup_steps", "valid_every", "patience", "checkpoint_every", "seed", low=0
        )
        check.flags(self, "shared_negatives", "filtered_negatives", "subsampling")
        check.positive(self, "learning_rate", "decay", "loss_margin")
        if self.decay > 1:
            raise ArgumentError("decay", f"must be at most 1, got {self.decay!r}.")
        if not isinstance(self.valid_metric, str):
            raise ArgumentError("valid_metric", f"must be the name of a metric, got {self.valid_metric!r}.")
        check.nonnegative(self, "n3", "l2", "temperature", "gradient_clip", "weight_decay")
        check.share(self, "label_smoothing", "answer_frequency")
        check.one_of(self, "sides", "both", "bernoulli")
        check.one_of(self, "optimiser", "adagrad", "adam", "adamax", "sgd")
        check.one_of(self, "schedule", "constant", "linear", "cosine", "exponential", "drop")
        check.one_of(self, "precision", "float32", "bfloat16")
        check.one_of(self, "updates", "auto", "dense", "rows")
        if self.updates == "rows" and self.training_loop != "negatives":
            raise ArgumentError(
                "updates",
                f"must be dense or auto where the training loop is {self.training_loop}, whose steps touch "
                f"all entities, got 'rows'.",
            )
        if self.updates == "rows" and self.built().of_neighbours:
            raise ArgumentError(
                "updates",
                f"must be dense or auto for {self.model}, whose scores depend on neighbours, got 'rows'.",
            )
        if self.sides != "both" and self.training_loop != "negatives":
            raise ArgumentError("sides", f"must be both without negatives, got {self.sides!r}.")
        if self.answer_frequency and self.training_loop == "kvsall":
            raise ArgumentError(
                "answer_frequency",
                f"must be 0 where the training loop is kvsall, whose queries have many answers, got "
                f"{self.answer_frequency!r}.",
            )
        if self.seed >= 2**32:
            raise ArgumentError("seed", f"must be below 2**32, got {self.seed!r}.")

    def built(self) -> Model:
        """The model to train."""
        return model(self.model, **dict(self.options))


_FIELDS = tuple(field.name for field in fields(Training) if field.name not in ("model", "options"))


def training(model: object = "complex", *, preset: object = None, **settings: object) -> Training:
    """Configuration for training `model`: its defaults or a preset, with `settings` in place of some values.

    Args:
        model: name in `owkg.models.MODELS`, in any case.
        preset: published recipe, by a name in the `presets` of the `owkg.models.Kind`. None: the defaults.
        **settings: fields of `Training` and options of the model, by name; `epochs` replaces the `steps` of a
            preset.

    Raises:
        ValueError: if a name is neither a field nor an option, a value is out of range, or the model has no
            such preset.

    Examples:
        >>> training("complex", dim=32, epochs=5).loss
        'cross_entropy'
    """
    name = model.lower() if isinstance(model, str) else ""
    if name not in MODELS:
        raise ArgumentError("model", f"must be one of {', '.join(MODELS)}, got {model!r}.")
    chosen = {**MODELS[name].training, **_recipe(name, preset), **settings}
    if "epochs" in settings and "steps" not in settings:
        chosen.pop("steps", None)
    loop, loss = (chosen.get(one, getattr(Training, one)) for one in ("training_loop", "loss"))
    if "loss" not in settings and isinstance(loop, str) and loop in LOSSES and loss not in LOSSES[loop]:
        losses = ", ".join(LOSSES[loop])
        raise ArgumentError(
            "loss", f"must be one of {losses} with the training loop {loop}, got the default {loss}."
        )
    return changed(Training(name), **chosen)


def _recipe(model: str, preset: object) -> Mapping[str, object]:
    """Settings of a preset of a model; empty without a preset."""
    presets = MODELS[model].presets
    if preset is None:
        return {}
    if not isinstance(preset, str) or preset not in presets:
        must = f"must be {' or '.join(presets)} for" if presets else "must not be given with"
        raise ArgumentError(
            "preset", f"{must} {model}{'' if presets else ', which has none'}, got {preset!r}."
        )
    return presets[preset]


def changed(config: Training, **settings: object) -> Training:
    """`config` with some fields and options of the model replaced by `settings`."""
    own = {name: value for name, value in settings.items() if name in _FIELDS}
    options = dict(config.options) | {name: value for name, value in settings.items() if name not in own}
    return replace(config, options=tuple(sorted(options.items())), **own)


def config_text(config: Training) -> str:
    """`config` as TOML: every field, and the resolved options of the model."""
    values = {"model": config.model} | {name: getattr(config, name) for name in _FIELDS}
    tables = (
        "\n".join(f"{name} = {_toml(value)}" for name, value in table.items())
        for table in (values, asdict(config.built().config))
    )
    return "\n\n[options]\n".join(tables) + "\n"


def _toml(value: str | bool | float) -> str:
    return json.dumps(value) if isinstance(value, str | bool) else repr(value)


def read_config(path: Path, **settings: object) -> Training:
    """Configuration from a TOML file, with some values replaced by `settings`.

    Args:
        path: TOML file with fields of `Training`, and options of the model in its table [options]. Defaults
            fill in the rest.
        **settings: fields and options; if `model` differs from the model in the file, the defaults of the new
            model apply.

    Raises:
        ValueError: if the file is not TOML or has an unknown field; the message begins with the path.
    """
    if "preset" in settings:
        raise ArgumentError("preset", "cannot be given with a file or a run, which has its own settings.")
    if not path.is_file():
        raise ValueError(f"{path}: must be a file, and there is none.")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError(f"{path}: must be TOML that is not nested so deeply.") from None
    except ValueError as error:  # not TOML, or not UTF-8
        raise ValueError(f"{path}: must be TOML ({error}).") from None
    options = content.pop("options", {})
    if not isinstance(options, dict):
        raise ValueError(f"{path}: options must be a table, got {options!r}.")
    for name in content:
        if name != "model" and name not in _FIELDS:
            raise ValueError(f"{path}: {name} is not a field; the fields are model, {', '.join(_FIELDS)}.")
    for name in options:
        if name in _FIELDS:
            raise ValueError(f"{path}: {name} must be given above the table [options].")
    with naming(str, f"{path}: "):  # names are keys of the file
        training(**(content | options))
    return training(**(content | options | settings))

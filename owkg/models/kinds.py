"""The models by name, with what a table of them says."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple

from owkg.models.complex import ComplEx, complex_model
from owkg.models.model import Model
from owkg.models.transe import TransE, transe_model


class Kind(NamedTuple):
    """A kind of model.

    Attributes:
        config: the frozen dataclass of its options.
        build: from options to the model.
        equation: of the score.
        source: the paper.
    """

    config: type
    build: Callable[[Any], Model]
    equation: str
    source: str


MODELS: dict[str, Kind] = {
    "transe": Kind(TransE, transe_model, "margin - |h + r - t|, L1 or L2", "Bordes et al. 2013"),
    "complex": Kind(ComplEx, complex_model, "Re sum h r conj(t), complex", "Trouillon et al. 2016"),
}
"""Every kind of model, by name."""


def model(name: str, **options: Any) -> Model:
    """The model of a name in `MODELS`.

    Args:
        name: of the kind.
        **options: fields of its configuration; what is not named is as there by default.

    Raises:
        ValueError: if there is no such model, it has no such option, or an option is out of range.

    Examples:
        >>> model("complex", dim=32).config
        ComplEx(dim=32, reciprocal=True, init_law='normal', init_scale=0.001)
        >>> model("complex", dim=32) is model("complex", dim=32)
        True
    """
    if name not in MODELS:
        raise ValueError(f"`model` must be one of {', '.join(MODELS)}, got {name!r}.")
    kind = MODELS[name]
    known = [field.name for field in fields(kind.config)]
    for option in options:
        if option not in known:
            raise ValueError(f"`{option}` is no option of {name}; its options are {', '.join(known)}.")
    return kind.build(kind.config(**options))

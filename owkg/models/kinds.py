"""The models by name, with equation and source."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple

from owkg.errors import ArgumentError
from owkg.models.betae import BetaE, betae_model
from owkg.models.complex import ComplEx, complex_model
from owkg.models.conve import ConvE, conve_model
from owkg.models.distmult import DistMult, distmult_model
from owkg.models.model import Model
from owkg.models.protate import PRotatE, protate_model
from owkg.models.rescal import Rescal, rescal_model
from owkg.models.rotate import RotatE, rotate_model
from owkg.models.transe import TransE, transe_model
from owkg.models.tucker import TuckER, tucker_model


class Kind(NamedTuple):
    """A kind of model.

    Attributes:
        config: the frozen dataclass of its options.
        build: from options to the model.
        equation: of the score.
        source: the paper.
        columns: reals of an entity, for each of `dim`.
    """

    config: type
    build: Callable[[Any], Model]
    equation: str
    source: str
    columns: int = 1

    @property
    def options(self) -> dict[str, Any]:
        """The options, each with what it is by default."""
        return {field.name: field.default for field in fields(self.config)}


_SUN = "Sun et al. 2019"

MODELS: dict[str, Kind] = {
    "transe": Kind(TransE, transe_model, "margin - |h + r - t|, L1 or L2", "Bordes et al. 2013"),
    "distmult": Kind(DistMult, distmult_model, "sum h r t", "Yang et al. 2015"),
    "complex": Kind(ComplEx, complex_model, "Re sum h r conj(t), complex", "Trouillon et al. 2016", 2),
    "rotate": Kind(RotatE, rotate_model, "margin - |h e^(i r) - t|, complex, L1 or L2", _SUN, 2),
    "protate": Kind(PRotatE, protate_model, "margin - |modulus| sum |sin(h + r - t)|", _SUN),
    "rescal": Kind(Rescal, rescal_model, "h^T R t", "Nickel et al. 2011"),
    "tucker": Kind(TuckER, tucker_model, "W x_1 r x_2 h x_3 t", "Balazevic et al. 2019"),
    "conve": Kind(ConvE, conve_model, "relu(vec(relu([h; r] * filters)) W) t + b", "Dettmers et al. 2018"),
    "betae": Kind(BetaE, betae_model, "margin - KL(t || MLP(h, r)), Beta", "Ren and Leskovec 2020", 2),
}
"""Every kind of model, by name."""


def kind(name: Any) -> Kind:
    """The kind of a name in `MODELS`; ValueError if there is none."""
    if not isinstance(name, str) or name not in MODELS:
        raise ArgumentError("model", f"must be one of {', '.join(MODELS)}, got {name!r}.")
    return MODELS[name]


def model(name: Any, /, **options: Any) -> Model:
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
    chosen = kind(name)
    for option in options:
        if option not in chosen.options:
            raise ArgumentError(
                option, f"is no option of {name}; its options are {', '.join(chosen.options)}."
            )
    return chosen.build(chosen.config(**options))

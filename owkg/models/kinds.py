"""Models by name: the models of owkg, one file each, and the models that users register."""

from collections.abc import Iterator, Mapping

from owkg import plugins
from owkg.errors import ArgumentError
from owkg.models import (
    atte,
    atth,
    betae,
    bique,
    compgcn,
    conve,
    cp,
    distmult,
    hake,
    hitter,
    hole,
    interacte,
    mode,
    mure,
    murp,
    protate,
    refe,
    refh,
    rescal,
    rgcn,
    rotate,
    rote,
    roth,
    simple,
    table,
    transe,
    transh,
    tucker,
)
from owkg.models import complex as complex_
from owkg.models.kind import Kind, whole_kind
from owkg.models.model import Model

_FILES = (transe, distmult, complex_, rotate, protate, rescal, tucker, conve, betae)
_FILES += (hole, simple, cp, bique, mure, rote, refe, atte, interacte)
_FILES += (transh, hake, mode, murp, roth, refh, atth)
_FILES += (rgcn, compgcn, hitter)
_FILES += (table,)


class _Registered(Mapping[str, Kind]):
    """Kinds by name; reading it first imports the modules of users (`owkg.plugins`)."""

    def __init__(self, *kinds: Kind) -> None:
        self.held = {kind.name: kind for kind in kinds}

    def __getitem__(self, name: str) -> Kind:
        plugins.load()
        return self.held[name]

    def __iter__(self) -> Iterator[str]:
        plugins.load()
        return iter(self.held)

    def __len__(self) -> int:
        plugins.load()
        return len(self.held)


MODELS = _Registered(*(file.KIND for file in _FILES))
"""All kinds of models, by name."""
_OURS = frozenset(MODELS.held)


def register_model(kind: object) -> None:
    """Adds a kind of model, so that `model`, `owkg.train` and the commands find it by its name.

    Commands, and worker processes of a training, import the module that calls this function if the
    environment variable OWKG_PLUGINS names it.

    Raises:
        ArgumentError: if a model of owkg has the same name, or the kind is incomplete: see `Kind`.
    """
    own = whole_kind(kind)
    if own.name in _OURS and MODELS.held[own.name] is not own:
        raise ArgumentError("name", f"must not be the name of another model, got {own.name!r}.")
    MODELS.held[own.name] = own


def kind(name: object) -> Kind:
    """Kind with a name in `MODELS`; ValueError if there is none."""
    if not isinstance(name, str) or name not in MODELS:
        raise ArgumentError("model", f"must be one of {', '.join(trainable())}, got {name!r}.")
    return MODELS[name]


def trainable() -> list[str]:
    """Names of the kinds that `owkg.train` can train; other commands make the remaining kinds."""
    return [name for name, one in MODELS.items() if not one.made_by]


def unscored(of: Model, what: str) -> ArgumentError:
    """Error for a model whose score of `what`, in words, is not finite."""
    made_by = MODELS[of.name].made_by if of.name in MODELS else ""
    why = f"; {made_by} was not run on this query; with --splits all it is run on every query"
    return ArgumentError(
        "trained",
        f"must give scores that are finite, got NaN or infinity for {what}{why if made_by else ''}.",
    )


def model(name: object, /, **options: object) -> Model:
    """Model with a name in `MODELS`.

    Args:
        name: name of the kind.
        **options: fields of its configuration; the remaining fields have their defaults.

    Raises:
        ValueError: if there is no such model, it has no such option, or an option is out of range.

    Examples:
        >>> model("complex", dim=32).config
        ComplEx(dim=32, reciprocal=True, init_law='normal', init_scale=0.001)
        >>> model("complex", dim=32) is model("complex", dim=32)
        True
    """
    return kind(name).made(**options)

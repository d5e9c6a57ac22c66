"""States of other libraries: arrays under their own names, as embeddings that owkg scores."""

import json
import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.evaluation import ranks
from owkg.files.storage import written_aside
from owkg.kg import KnowledgeGraph
from owkg.kg.graph import graph_checked
from owkg.models import MODELS, Embeddings, Peer, import_embeddings
from owkg.models.embeddings import FORMATS, suffix_checked
from owkg.models.embeddings_files import ROW_LABELS, Content
from owkg.ranks import RankTable

LIBRARIES: dict[str, tuple[str, str]] = {
    "pykeen": (
        "entity_representations.0._embeddings.weight",
        "relation_representations.0._embeddings.weight",
    ),
    "pyg": ("node_emb.weight", "rel_emb.weight"),
    "torchkge": ("ent_emb.weight", "rel_emb.weight"),
    "openke": ("ent_embeddings.weight", "rel_embeddings.weight"),
    "libkge": ("_entity_embedder._embeddings.weight", "_relation_embedder._embeddings.weight"),
    "dglke": ("entity", "relation"),
    "kbc": ("embeddings.0.weight", "embeddings.1.weight"),
    "kgemb": ("entity.weight", "rel.weight"),
    "hake": ("entity_embedding", "relation_embedding"),
}
"""Names of the arrays of entities and relations in the states of each library: PyKEEN, PyG's KGEModel,
TorchKGE, OpenKE, LibKGE, DGL-KE (its two .npy files), and the authors' code of CP and BiQUE (kbc), RotE to
AttH (KGEmb), and HAKE and ModE (KGE-HAKE). Models with other names list them in their `owkg.models.Peer`."""


class ImportedEmbeddings(NamedTuple):
    """Embeddings of another library, with the model that they belong to.

    Attributes:
        embeddings: arrays and labels.
        model: name of the model in `owkg.models.MODELS`.
        options: options of the model.
    """

    embeddings: Embeddings
    model: str
    options: dict[str, Any]

    def ranks(self, graph: KnowledgeGraph, **options: Any) -> RankTable:
        """Ranks on a graph with these labels; options as in `owkg.evaluation.ranks`.

        The embeddings are float32, and the scores float64 unless `precision` sets another: in float32, sums
        in another order than the library's reverse near ties.
        """
        options = {"precision": "float64"} | options
        trained = import_embeddings(self.embeddings, graph, self.model, **self.options)
        about = {name: options[name] for name in ("split", "precision") if name in options}
        return RankTable.trusted(ranks(trained, graph, **options), about)

    def write(self, path: str | PathLike[str]) -> None:
        """Writes a file for `owkg rank --embeddings`, .npz or .safetensors.

        Raises:
            ValueError: if the name has another suffix.
        """
        place = suffix_checked(checks.path("path", path))
        found = self.embeddings
        arrays, layout = dict(found.arrays), found.layout
        if place.suffix == ".safetensors" and any(np.iscomplexobj(array) for array in arrays.values()):
            # The format has no complex numbers.
            arrays = {
                name: np.concatenate([np.real(a), np.imag(a)], 1) if np.iscomplexobj(a) else a
                for name, a in arrays.items()
            }
            layout = "real-imaginary"
        rows = zip(ROW_LABELS, (found.entities, found.relations), strict=True)
        labels = {name: list(texts) for name, texts in rows if texts is not None}
        said = {"layout": layout, "relation_layout": found.relation_layout, "model": self.model}
        said |= {"options": json.dumps(self.options)}
        _, write = FORMATS[place.suffix]
        with written_aside(place) as aside:
            write(aside, Content(arrays, labels, {name: text for name, text in said.items() if text}))


def read_state(path: str | PathLike[str]) -> dict[str, np.ndarray]:
    """Arrays of a state by name, from safetensors, or from a torch file by its weights-only loader.

    If the arrays are in a dictionary inside the file (state_dict, model_state_dict, model), owkg reads that
    dictionary. A file that the weights-only loader does not allow, such as PyKEEN's trained_model.pkl, raises
    an error that says what to write instead.

    Raises:
        ValueError: naming the file, if it is neither, or holds no arrays.
        OSError: if it cannot be opened.
    """
    place = checks.path("path", path)
    if place.is_dir():
        raise ValueError(
            f"{place}: must be a file, such as model.pt of `torch.save(model.state_dict(), ...)`."
        )
    place.open("rb").close()
    if place.suffix == ".safetensors":
        from safetensors.numpy import load_file

        try:
            return dict(load_file(place))
        except Exception as error:
            raise ValueError(f"{place}: must be a .safetensors file of plain arrays ({error}).") from None
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ValueError(
            f"{place}: needs torch, which is not installed; a .safetensors file does not need it."
        ) from None
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        raise ValueError(
            f"{place}: needs torch 2.6 or newer, because the loader of {torch.__version__} may run code; "
            "a .safetensors file does not need torch."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            held = torch.load(place, map_location="cpu", weights_only=True)
    except Exception:
        raise ValueError(
            f"{place}: must be a state that torch's weights-only loader can read. Save a whole model by "
            "`torch.save(model.state_dict(), 'model.pt')`."
        ) from None
    for _ in range(4):
        if not isinstance(held, Mapping):
            held = held[0] if isinstance(held, list | tuple) and held else {}
            continue
        named = (held.get(name) for name in ("model_state_dict", "state_dict", "model"))
        inner = next((one for one in named if isinstance(one, Mapping | list | tuple)), None)
        if inner is None:
            break
        held = inner
    found = held.items() if isinstance(held, Mapping) else ()
    arrays = {str(name): _array(one) for name, one in found if isinstance(one, torch.Tensor)}
    if not arrays:
        raise ValueError(f"{place}: holds no arrays.")
    return arrays


def embeddings_of_state(
    state: Mapping[str, Any] | str | PathLike[str],
    library: str,
    model: str,
    *,
    entities: Sequence[str],
    relations: Sequence[str],
    **options: Any,
) -> ImportedEmbeddings:
    """Embeddings in a state of another library.

    Args:
        state: arrays by name, such as `model.state_dict()`, or the path of a file (`read_state`).
        library: name of the library, a key of `LIBRARIES`.
        model: transe, distmult, complex, rotate or rescal, or another model whose `owkg.models.Kind` has
            peers.
        entities, relations: labels by id. If a state has two rows for each relation, the inverse relations
            are its second half, as in LibKGE's reciprocal_relations_model; in PyKEEN's states, the two rows
            of a relation are adjacent.
        **options: options of the model, such as norm. Default: the library's own.

    Raises:
        ValueError: if the library or the model is unknown, an array (which the message names) is missing, or
            the numbers of rows and labels differ.
    """
    if not isinstance(library, str) or library not in LIBRARIES:
        raise ArgumentError("library", f"must be one of {', '.join(LIBRARIES)}, got {library!r}.")
    if model not in (held := [name for name, kind in MODELS.items() if library in kind.peers]):
        raise ArgumentError(
            "model", f"must be one of {', '.join(held)}, which owkg reads from {library}, got {model!r}."
        )
    kind, source = MODELS[model], library
    own = kind.peers[library]
    if own.differs:
        raise ArgumentError("model", f"must be another one, as the {model} of {library} {own.differs}.")
    if isinstance(state, str | PathLike):
        state, source = read_state(state), str(state)
    if not isinstance(state, Mapping):
        raise ArgumentError("state", f"must be arrays by name, or a file, got {type(state).__name__}.")
    if own.relation_layout == "scaled" and "margin" not in options:
        raise ArgumentError(
            "margin", f"must be given: the phases of {library}'s {kind.config.__name__} are scaled by it."
        )
    if "norm" in kind.options and not own.norm and "norm" not in options:
        raise ArgumentError(
            "norm",
            f"must be given: a state of {library}'s {kind.config.__name__} does not hold it (1, or "
            "scoring_fct_norm).",
        )
    for name, labels in (("entities", entities), ("relations", relations)):
        if isinstance(labels, str) or not isinstance(labels, Sequence | np.ndarray):
            raise ArgumentError(name, f"must be labels by id, got {labels!r}.")
    given = {name: _array(one) for name, one in state.items()}
    found = []
    for name in own.arrays or LIBRARIES[library]:
        # A state may be part of a larger one, with a prefix before its names.
        ends = [array for key, array in given.items() if key == name or key.endswith(f".{name}")]
        # LibKGE's reciprocal model holds the embedders of the model that it wraps under two names.
        ends = ends[:1] if ends and all(np.array_equal(one, ends[0]) for one in ends[1:]) else ends
        if len(ends) != 1:
            raise ArgumentError(
                "state",
                f"must hold one array {name!r} ({library}, {model}), got {', '.join(sorted(given)[:8])}.",
            )
        found.append(ends[0])
    arrays = parameters_of(own, found)
    relation, inverse = arrays["relation"], {}
    if len(relation) == 2 * len(relations) and len(relations):
        if library == "pykeen":
            # A relation and its inverse have adjacent ids.
            inverse, relation = {"relation_inverse": relation[1::2]}, relation[::2]
        else:
            half = len(relations)
            inverse, relation = {"relation_inverse": relation[half:]}, relation[:half]
            if library not in ("libkge", "kbc", "kgemb"):  # these three always store them so
                warnings.warn(
                    f"{source}: has two rows for each relation; owkg takes row i + {half:,} as the inverse "
                    "of relation i.",
                    stacklevel=2,
                )
    arrays |= {"relation": relation} | inverse
    for name, labels in (("entity", entities), ("relation", relations)):
        if len(arrays[name]) != len(labels):
            raise ArgumentError(
                "entities" if name == "entity" else "relations",
                f"must have a label for each of {len(arrays[name])} rows, got {len(labels)}.",
            )
    if "norm" in kind.options:
        options = {"norm": own.norm} | options
    for name in (*own.unit[0], *(key for key in inverse if "relation" in own.unit[0])):
        length = np.linalg.norm(arrays[name], own.unit[1] or options["norm"], axis=1, keepdims=True)
        arrays[name] = arrays[name] / np.maximum(length, 1e-12)
    labels = tuple(map(str, entities)), tuple(map(str, relations))
    found = Embeddings(arrays, *labels, own.layout, own.relation_layout, source=source)
    return ImportedEmbeddings(found, model, options)


def parameters_of(peer: Peer, found: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays of a library as parameters of the model, by name."""
    if peer.joined is not None:
        try:
            return dict(peer.joined(*found))
        except ValueError:
            shapes = ", ".join(str(one.shape) for one in found)
            raise ArgumentError("state", f"must hold arrays that fit together, got {shapes}.") from None
    for one, other in ((0, 1), (2, 3)) if len(found) > 2 else ():
        if other < len(found) and found[one].shape != found[other].shape:
            shapes = f"{found[one].shape} and {found[other].shape}"
            raise ArgumentError("state", f"must hold real and imaginary parts of one shape, got {shapes}.")
    if len(found) == 4:
        entity, relation = found[0] + 1j * found[1], found[2] + 1j * found[3]
    elif len(found) == 3:
        entity, relation = found[0] + 1j * found[1], found[2]
    else:
        entity, relation = found
    return {"entity": entity.reshape(len(entity), -1), "relation": relation.reshape(len(relation), -1)}


def ranks_of_state(
    state: Mapping[str, Any] | str | PathLike[str],
    library: str,
    model: str,
    graph: KnowledgeGraph,
    *,
    split: str = "test",
    precision: str = "float64",
    **options: Any,
) -> RankTable:
    """Ranks of a state whose rows are in the order of a graph's ids.

    Args:
        state, library, model, options: as in `embeddings_of_state`.
        graph: graph whose ids are the rows of the state.
        split: split to rank. Default "test".
        precision: "float32" or "float64", as in `owkg.evaluation.ranks`. Default "float64".

    Raises:
        ValueError: as `embeddings_of_state`.
    """
    graph = graph_checked(graph)
    labels: Any = {"entities": graph.entities, "relations": graph.relations}
    found = embeddings_of_state(state, library, model, **labels, **options)
    return found.ranks(graph, split=split, precision=precision)


def _array(one: ArrayLike) -> np.ndarray:
    """Array in single precision; a torch tensor is moved off its device."""
    if (detach := getattr(one, "detach", None)) is not None:
        tensor = detach().cpu()
        array = (tensor if tensor.is_complex() else tensor.float()).numpy()
    else:
        array = np.asarray(one)
    if array.dtype.kind not in "fciu":
        raise ArgumentError("state", f"must hold arrays of numbers, got {array.dtype}.")
    return array.astype(np.complex64 if np.iscomplexobj(array) else np.float32)

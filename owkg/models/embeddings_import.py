"""Import of embeddings from a file as the parameters of a model, with rows in the order of a graph's ids."""

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from owkg.errors import ArgumentError
from owkg.keys import seeded, settled
from owkg.kg import KnowledgeGraph
from owkg.models.embeddings import Embeddings, read_embeddings, with_inverse
from owkg.models.embeddings_layout import COMPLEX_LAYOUTS, RELATION_LAYOUTS, as_scaled, declared, in_halves
from owkg.models.kinds import kind, model
from owkg.models.model import Model, Trained

_SHOWN = 3  # labels in a message


@settled()
def import_embeddings(
    source: str | Path | Embeddings,
    graph: KnowledgeGraph,
    name: str,
    *,
    layout: str | None = None,
    relation_layout: str | None = None,
    **options: object,
) -> Trained:
    """Trained model from a file of embeddings, with rows in the order of a graph's ids.

    Args:
        source: path of the file, or the result of `read_embeddings`.
        graph: graph with the labels of the file, in any order (`owkg.kg.seen_part` leaves out other labels).
            Rows without labels must be in the order of its ids; owkg then prints a warning. Statistics that
            the model derives from train facts (`Model.graph`) use the split train of this graph.
        name: name of the model.
        layout: layout of complex numbers as reals: "real-imaginary" (all real parts, then all imaginary
            parts), "interleaved" (`torch.view_as_real`, with or without its last axis), or "complex" (the
            array is complex). None: the layout that the file names, or "complex".
        relation_layout: meaning of the relations of rotate: "complex" numbers of modulus 1, "phases" in
            radians, or "scaled" phases, r of `owkg.models.rotate`. None: the meaning that the file names, or
            "complex".
        **options: options of the model. `dim`, `relation_dim` and `reciprocal` follow from the arrays unless
            given; other options, such as `norm`, come from the file, or from the defaults of
            `owkg.models.model`.

    Raises:
        ValueError: for the reasons in `read_embeddings`; if the labels are not the labels of the graph; if
            the arrays do not fit the model or have no stated layout; or if the file names another model. The
            message names the labels or the array. Warns (UserWarning) if options differ from the options in
            the file.
    """
    found = with_labels(source if isinstance(source, Embeddings) else read_embeddings(source), graph)
    path = found.source
    entity_order = _order(path, "entity", found.entities or (), graph.entities)
    relation_order = _order(path, "relation", found.relations or (), graph.relations)
    kind(name)
    said = _said(found, name)
    layout = declared(found, name, "layout", layout, COMPLEX_LAYOUTS)
    relation_layout = declared(found, name, "relation_layout", relation_layout, RELATION_LAYOUTS)
    arrays = in_halves(found, name, layout)
    chosen = _built(path, name, said | _deduced(path, name, arrays), options)
    _note_other(found, options)
    if chosen.phase_unit:
        for key in arrays.keys() & {"relation", "relation_inverse"}:
            arrays[key] = as_scaled(found, chosen, arrays[key], relation_layout)
    _join_inverse(path, chosen, arrays)
    params, statistics = _fitted(path, chosen, arrays, graph)
    orders = dict.fromkeys(chosen.entity_params, entity_order)
    orders |= dict.fromkeys(chosen.relation_params, relation_order)
    for name, order in orders.items():
        # Inverse relations come after the relations.
        halves = range(0, len(params[name]), len(order))
        params[name] = params[name][np.concatenate([at + order for at in halves])]
    facts = graph.splits.get("train", np.empty((0, 3), np.int32))
    statistics |= chosen.of_graph(facts, **graph.sizes)
    return Trained(chosen, *jax.tree.map(jnp.asarray, (params, statistics)))


def with_labels(found: Embeddings, graph: KnowledgeGraph) -> Embeddings:
    """Embeddings with labels; if they have none, the labels of the graph, in the order of its ids.

    Raises:
        ValueError: if the number of rows differs from the number of the graph's ids; the message names the
            array. Warns (UserWarning) if rows are taken in the order of the graph's ids.
    """
    arrays, taken, own = dict(found.arrays), [], {}
    for name, kind_, labels in (
        ("entity", "entities", graph.entities),
        ("relation", "relations", graph.relations),
    ):
        if getattr(found, kind_) is not None:
            continue
        if name == "relation":
            with_inverse(found.source, arrays, len(labels))
        if len(arrays[name]) != len(labels):
            raise ValueError(
                f"{found.source}: {name!r} has {len(arrays[name]):,} rows and no '{name}_labels', so it must "
                f"have a row for each of the graph's {len(labels):,} {kind_}, in the order of its ids; or "
                f"write the labels too: {name}_labels=numpy.array([...], str)."
            )
        own[kind_], taken = labels, [*taken, name]
    if taken:
        lacking = " and no ".join(f"{name}_labels" for name in taken)
        warnings.warn(
            f"{found.source}: has no {lacking}, so its rows are taken in the order of the graph's ids "
            "(graph.entities, graph.relations).",
            stacklevel=3,
        )
    return found._replace(arrays=arrays, **own)


def _order(path: str, what: str, found: Sequence[str], wanted: Sequence[str]) -> np.ndarray:
    """Row in the file of each label of the graph."""
    place = {label: row for row, label in enumerate(found)}
    refuse_labels(path, what, [label for label in wanted if label not in place], "are not in the file")
    refuse_labels(path, what, sorted(place.keys() - set(wanted)), "are not in the graph")
    return np.array([place[label] for label in wanted], np.int64)


def refuse_labels(path: str | Path, what: str, labels: Sequence[str], why: str) -> None:
    """Raises ValueError, with examples, if there are any `labels`; `why` begins with "are not in"."""
    if labels:
        where, _, hint = why.partition(";")
        some = ", ".join(map(repr, labels[:_SHOWN])) + (", ..." if len(labels) > _SHOWN else "")
        raise ValueError(
            f"{path}: its {what} labels must be the labels of the graph, but {len(labels):,} {where}: "
            f"{some}{hint and ';' + hint}."
        )


def _said(found: Embeddings, name: str) -> dict[str, object]:
    """Options of the model in the file; ValueError if the file names another model."""
    if found.model not in (None, name):
        raise ValueError(f"{found.source}: must be of the model {name}, got {found.model}.")
    return {option: value for option, value in found.options.items() if option in kind(name).options}


def _note_other(found: Embeddings, options: Mapping[str, object]) -> None:
    """Warns if given options differ from the options in the file."""
    for option in sorted(found.options.keys() & options.keys()):
        if found.options[option] != options[option]:
            said, given = found.options[option], options[option]
            text = f"{found.source}: has {option} {said!r}, but {given!r} was given and is used."
            warnings.warn(text, stacklevel=3)


def _deduced(path: str, name: str, arrays: dict[str, np.ndarray]) -> dict[str, object]:
    """Options that follow from the shapes of the arrays."""
    chosen = kind(name)
    columns = arrays["entity"].shape[1]
    if columns % chosen.columns:
        many = "an even number" if chosen.columns == 2 else f"{chosen.columns} times a number"
        raise ValueError(f"{path}: 'entity' must have {many} of columns for {name}, got {columns}.")
    deduced = {
        "dim": columns // chosen.columns,
        "relation_dim": arrays["relation"].shape[1],
        "reciprocal": "relation_inverse" in arrays,
    }
    return {option: value for option, value in deduced.items() if option in chosen.options}


def _built(path: str, name: str, deduced: dict[str, object], options: dict[str, object]) -> Model:
    """The model; errors about options that follow from the file name the file."""
    try:
        return model(name, **deduced | options)
    except ArgumentError as error:
        # An option from the file may be the argument of the error, or an option that its message refers to.
        named = {error.name, *re.findall(r"`(\w+)`", error.message)}
        if named & (deduced.keys() - options.keys()):
            raise ValueError(f"{path}: {error}") from None
        raise


def _join_inverse(path: str, model: Model, arrays: dict[str, np.ndarray]) -> None:
    """Appends the inverse relations, if the model has them, to the relations."""
    inverse, relation = arrays.pop("relation_inverse", None), arrays["relation"]
    if (inverse is not None) != model.config.reciprocal:
        has = "no" if inverse is None else "an"
        raise ValueError(
            f"{path}: has {has} array 'relation_inverse', but `reciprocal` is {model.config.reciprocal}."
        )
    if inverse is not None:
        if inverse.shape != relation.shape:
            expected = f"must have the shape of 'relation', {relation.shape}"
            raise ValueError(f"{path}: 'relation_inverse' {expected}, got {inverse.shape}.")
        arrays["relation"] = np.concatenate([relation, inverse])


def _fitted(
    path: str, model: Model, arrays: dict[str, np.ndarray], graph: KnowledgeGraph
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(Parameters, statistics) from the arrays, checked against the model."""
    wanted = jax.eval_shape(lambda key: model.init(key, graph.num_entities, graph.num_relations), seeded(0))
    shapes = {name: array.shape for part in wanted for name, array in part.items()}
    for name in sorted(arrays.keys() - shapes.keys()):
        raise ValueError(f"{path}: {model.name} has no array {name!r}; it has {', '.join(shapes)}.")
    for name, shape in shapes.items():
        if name not in arrays:
            raise ValueError(
                f"{path}: must have an array {name!r} of shape {shape} for {model.name}, got none."
            )
        if arrays[name].shape != shape:
            raise ValueError(
                f"{path}: {name!r} must have shape {shape} for {model.name} of dim {model.config.dim}, got "
                f"{arrays[name].shape}."
            )
    # Integers are stored as floats.
    params, statistics = (
        {name: arrays[name].astype(of.dtype) for name, of in part.items()} for part in wanted
    )
    return params, statistics

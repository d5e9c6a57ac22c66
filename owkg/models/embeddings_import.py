"""Embeddings of a file as the parameters of a model, rows in the order of a graph's ids."""

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
    """A model whose parameters are those of a file, rows in the order of a graph's ids.

    Args:
        source: the path of the file, or what `read_embeddings` found in it.
        graph: whose labels the file has, in any order (`owkg.kg.seen_part` leaves out others). Rows without
            labels are in the order of its ids, of which a warning tells. What a model knows of train facts
            (`Model.graph`) is of its split train.
        name: of the model.
        layout: how real numbers make complex ones: "real-imaginary" (all real parts, then all imaginary
            parts), "interleaved" (`torch.view_as_real`, with or without its last axis), or "complex" (they
            do not). None: as the file says, else "complex".
        relation_layout: what the relations of rotate are: "complex" numbers of modulus 1, "phases" in
            radians, or "scaled" phases, r of `owkg.models.rotate`. None: as the file says, else "complex".
        **options: of the model. `dim`, `relation_dim` and `reciprocal` follow from the arrays where not
            given; others, such as `norm`, are as the file says, else as `owkg.models.model` has them.

    Raises:
        ValueError: as `read_embeddings`; if the labels are not those of the graph, naming some; if the
            arrays are not those of the model, or of no stated layout, naming one; or if the file says another
            model. Warns (UserWarning) of options that are not those of the file.
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
        # Inverse relations stand below the relations.
        halves = range(0, len(params[name]), len(order))
        params[name] = params[name][np.concatenate([at + order for at in halves])]
    facts = graph.splits.get("train", np.empty((0, 3), np.int32))
    statistics |= chosen.of_graph(facts, **graph.sizes)
    return Trained(chosen, *jax.tree.map(jnp.asarray, (params, statistics)))


def with_labels(found: Embeddings, graph: KnowledgeGraph) -> Embeddings:
    """The embeddings with labels: where they have none, those of the graph, in the order of its ids.

    Raises:
        ValueError: naming the array, if its rows are not as many as the graph's ids. Warns (UserWarning) of
            rows that are taken for those of the graph's ids.
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
                f"have a row for each of the graph's {len(labels):,} {kind_}, in the order of its ids; else "
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
    """Where in the file the row of each label of the graph is."""
    place = {label: row for row, label in enumerate(found)}
    refuse_labels(path, what, [label for label in wanted if label not in place], "are not in the file")
    refuse_labels(path, what, sorted(place.keys() - set(wanted)), "are not in the graph")
    return np.array([place[label] for label in wanted], np.int64)


def refuse_labels(path: str | Path, what: str, labels: Sequence[str], why: str) -> None:
    """Raises ValueError if there are any `labels`, naming some; `why` begins "are not in"."""
    if labels:
        where, _, hint = why.partition(";")
        some = ", ".join(map(repr, labels[:_SHOWN])) + (", ..." if len(labels) > _SHOWN else "")
        raise ValueError(
            f"{path}: its {what} labels must be those of the graph, but {len(labels):,} {where}: "
            f"{some}{hint and ';' + hint}."
        )


def _said(found: Embeddings, name: str) -> dict[str, object]:
    """The options of the model that the file says; ValueError if it says another model."""
    if found.model not in (None, name):
        raise ValueError(f"{found.source}: says that it is of {found.model}, not of {name}.")
    return {option: value for option, value in found.options.items() if option in kind(name).options}


def _note_other(found: Embeddings, options: Mapping[str, object]) -> None:
    """Warns of options that are given and not those of the file."""
    for option in sorted(found.options.keys() & options.keys()):
        if found.options[option] != options[option]:
            said, given = found.options[option], options[option]
            text = f"{found.source}: says that {option} is {said!r}; it is taken to be {given!r}."
            warnings.warn(text, stacklevel=3)


def _deduced(path: str, name: str, arrays: dict[str, np.ndarray]) -> dict[str, object]:
    """The options that the shapes of a file decide."""
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
    """The model; errors of options that the file decides name the file."""
    try:
        return model(name, **deduced | options)
    except ArgumentError as error:
        # What a file decides may be named as the argument, or as what that must be like.
        named = {error.name, *re.findall(r"`(\w+)`", error.message)}
        if named & (deduced.keys() - options.keys()):
            raise ValueError(f"{path}: {error}") from None
        raise


def _join_inverse(path: str, model: Model, arrays: dict[str, np.ndarray]) -> None:
    """Puts the inverse relations, if the model has them, below the relations."""
    inverse, relation = arrays.pop("relation_inverse", None), arrays["relation"]
    if (inverse is not None) != model.config.reciprocal:
        has = "no" if inverse is None else "an"
        raise ValueError(
            f"{path}: holds {has} array 'relation_inverse', but `reciprocal` is {model.config.reciprocal}."
        )
    if inverse is not None:
        if inverse.shape != relation.shape:
            expected = f"must have the shape of 'relation', {relation.shape}"
            raise ValueError(f"{path}: 'relation_inverse' {expected}, got {inverse.shape}.")
        arrays["relation"] = np.concatenate([relation, inverse])


def _fitted(
    path: str, model: Model, arrays: dict[str, np.ndarray], graph: KnowledgeGraph
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(parameters, statistics) among the arrays, if they are those of the model."""
    wanted = jax.eval_shape(lambda key: model.init(key, graph.num_entities, graph.num_relations), seeded(0))
    shapes = {name: array.shape for part in wanted for name, array in part.items()}
    for name in sorted(arrays.keys() - shapes.keys()):
        raise ValueError(f"{path}: {model.name} has no array {name!r}; it has {', '.join(shapes)}.")
    for name, shape in shapes.items():
        if name not in arrays:
            raise ValueError(f"{path}: holds no array {name!r}, which {model.name} needs, of shape {shape}.")
        if arrays[name].shape != shape:
            raise ValueError(
                f"{path}: {name!r} must have shape {shape} for {model.name} of dim {model.config.dim}, got "
                f"{arrays[name].shape}."
            )
    # Whole numbers are held as floats.
    params, statistics = (
        {name: arrays[name].astype(of.dtype) for name, of in part.items()} for part in wanted
    )
    return params, statistics

"""Every number that the paper on PROBE (WSDM 2026) prints, compared with ours."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import stats

from owkg.kg import entity_popularity, read_graph
from simulations.printed import Cell

_TABLE1 = {
    "FB15k237": ("fb15k237", "14,541 237 272,115 37.5 7,614"),
    "WN18RR": ("wn18rr", "40,943 11 86,835 4.3 482"),
}
_COLUMNS = ("entities", "relations", "training triples", "mean degree", "largest degree")

_MODELS = ("RotatE", "TuckEr", "pLogicNet", "RNNLogic")
_TABLE2 = {
    ("P1", "FB15k237"): """0.544 0.424 0.314 0.252
                           0.579 0.463 0.355 0.294
                           0.549 0.431 0.324 0.264
                           0.534 0.421 0.320 0.263""",
    ("P1", "WN18RR"): """0.587 0.520 0.464 0.431
                         0.560 0.509 0.469 0.447
                         0.629 0.546 0.474 0.434
                         0.575 0.524 0.482 0.458""",
    ("P2", "FB15k237"): """0.314 0.261 0.224 0.177
                           0.355 0.294 0.250 0.194
                           0.324 0.275 0.242 0.204
                           0.320 0.260 0.219 0.170""",
    ("P2", "WN18RR"): """0.464 0.445 0.423 0.375
                         0.469 0.445 0.420 0.367
                         0.474 0.440 0.409 0.354
                         0.482 0.454 0.426 0.368""",
}
"""A row for each model; the columns of P1 rise in sharpness, the columns of P2 in robustness."""

# Section 4.2 on WN18RR: the existing metric is MRR, the third column of P1 and the first of P2.
_PLACES = (
    ("P1", "RNNLogic", 3, "1st"),
    ("P1", "RNNLogic", 1, "4th"),
    ("P1", "RotatE", 3, "4th"),
    ("P1", "RotatE", 1, "2nd"),
    ("P2", "pLogicNet", 1, "2nd"),
    ("P2", "pLogicNet", 4, "4th"),
    ("P2", "RotatE", 1, "4th"),
    ("P2", "RotatE", 4, "1st"),
)


def cells(data: Path) -> Iterator[Cell]:
    """Printed numbers of both tables, and the places in section 4.2, which follow from Table 2."""
    for dataset, (folder, printed) in _TABLE1.items():
        graph = read_graph(data / folder)
        degree = entity_popularity(train := graph.splits["train"], graph.num_entities)
        ends = np.bincount(train[:, [0, 2]].ravel())
        # Degrees are of the entities in training triples (P3); a loop counts twice.
        found = graph.num_entities, graph.num_relations, len(train), ends[degree > 0].mean(), ends.max()
        for column, text, ours in zip(_COLUMNS, printed.split(), found, strict=True):
            yield Cell(f"Table 1, {dataset}, {column}", text, float(ours))
    for (part, dataset), rows in _TABLE2.items():
        for model, row in zip(_MODELS, rows.splitlines(), strict=True):
            for column, text in enumerate(row.split(), start=1):
                why = "the models' ranks are not published"
                yield Cell(f"Table 2, {part}, {dataset}, {model}, column {column}", text, None, why)
    for part, model, column, printed in _PLACES:
        place = places(part, "WN18RR", column)[_MODELS.index(model)]
        yield Cell(
            f"section 4.2, place of {model} by column {column} of {part}",
            printed,
            float(place),
            "P2" * (model == "RNNLogic"),
        )


def places(part: str, dataset: str, column: int) -> np.ndarray:
    """Place of each model by a column of Table 2, 1 for the best, [models]."""
    scores = np.array([row.split() for row in _TABLE2[part, dataset].splitlines()], np.float64)
    return stats.rankdata(-scores[:, column - 1], "min")

"""Metrics of PyKEEN's models through each way into owkg: how far they are from PyKEEN's own metrics.

The script trains TransE, ComplEx and RotatE with PyKEEN for a few epochs. It evaluates each model with
PyKEEN, then with owkg through the result, the embeddings, a file of the embeddings, and the state, and prints
the largest difference of each way over all shared metrics, sides and tie rules. Through the result, PyKEEN
itself scores in single precision, and its metrics in single precision are compared. Through the embeddings,
owkg scores in double precision, and PyKEEN's metrics in double precision are compared: in single precision, a
sum of distances depends on its order, so that near ties depend on the last bit; one near tie reversed at the
first rank moves MRR by 1e-5. Two more rows have the distance between PyKEEN's metrics in double and in single
precision, and between owkg's and PyKEEN's in single precision. The script needs both PyKEEN and owkg;
FB15k-237 takes a few minutes a model.

    python benchmarks/interop_pykeen.py data/fb15k237 --epochs 2
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import owkg
from owkg.interop import pykeen, ranks_of_state
from owkg.models import read_embeddings
from owkg.terminal.tables import line, printed

_SHARED = {
    "mrr": "inverse_harmonic_mean_rank",
    "mr": "arithmetic_mean_rank",
    "gmr": "geometric_mean_rank",
    "hits@1": "hits_at_1",
    "hits@3": "hits_at_3",
    "hits@5": "hits_at_5",
    "hits@10": "hits_at_10",
    "amr": "adjusted_arithmetic_mean_rank",
    "amri": "adjusted_arithmetic_mean_rank_index",
    "amrr": "adjusted_inverse_harmonic_mean_rank",
}
_MODELS = ("TransE", "ComplEx", "RotatE")


def factories(folder: Path) -> list[Any]:
    """Training, validation and testing factories of a folder of triples, with the ids of training."""
    from pykeen.triples import TriplesFactory  # pyright: ignore[reportMissingImports]

    found: list[Any] = []
    for split in ("train", "valid", "test"):
        path = next(p for p in (folder / f"{split}.txt", folder / f"{split}.txt.gz") if p.is_file())
        ids: dict[str, Any] = {}
        if found:
            ids = {"entity_to_id": found[0].entity_to_id, "relation_to_id": found[0].relation_to_id}
        found.append(TriplesFactory.from_path(path, **ids))
    return found


def trained(name: str, splits: list[Any], dim: int, epochs: int) -> Any:
    """Result of a PyKEEN pipeline."""
    from pykeen.pipeline import pipeline  # pyright: ignore[reportMissingImports]

    training, validation, testing = splits
    return pipeline(
        training=training,
        validation=validation,
        testing=testing,
        model=name,
        model_kwargs={"embedding_dim": dim},
        optimizer_kwargs={"lr": 0.01},
        training_kwargs={"num_epochs": epochs, "batch_size": 1024, "use_tqdm": False},
        evaluation_kwargs={"use_tqdm": False, "batch_size": 64},
        evaluator_kwargs={"filtered": True},
        random_seed=1,
        device="cpu",
    )


def in_double(result: Any, splits: list[Any]) -> dict[str, float]:
    """PyKEEN's metrics of its model in double precision; the model is changed."""
    from pykeen.evaluation import RankBasedEvaluator  # pyright: ignore[reportMissingImports]

    found = RankBasedEvaluator(filtered=True).evaluate(
        model=result.model.double(),
        mapped_triples=splits[2].mapped_triples,
        additional_filter_triples=[one.mapped_triples for one in splits[:2]],
        batch_size=8,
        use_tqdm=False,
    )
    return found.to_flat_dict()


def difference(table: Any, theirs: dict[str, float]) -> tuple[int, float]:
    """(metrics compared, largest difference: relative to the value, or absolute if the value is below 1)."""
    mine = owkg.evaluate(table, list(_SHARED), by=["side", "ties"], side=["head", "tail", "both"], ci=None)
    found = []
    for row in mine.iter_rows(named=True):
        key = f"{row['side']}.{row['ties']}.{_SHARED[row['metric']]}"
        if key in theirs:
            found.append(abs(row["value"] - theirs[key]) / max(1, abs(theirs[key])))
    return len(found), max(found)


def measured(name: str, ways: dict[str, Callable[[], Any]], theirs: dict[str, float]) -> list[list[str]]:
    """A row for each way into owkg: metrics, largest difference, seconds."""
    rows = []
    for way, table in ways.items():
        start = time.perf_counter()
        count, largest = difference(table(), theirs)
        rows.append([name, way, f"{count}", f"{largest:.1e}", f"{time.perf_counter() - start:.1f}"])
    return rows


def _keys(theirs: dict[str, float]) -> list[str]:
    return [key for key in theirs if key.partition(".")[2].partition(".")[2] in _SHARED.values()]


def main() -> None:
    """Trains, compares and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder of train, valid and test as .txt or .txt.gz")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--dim", type=int, default=32)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    splits = factories(arguments.folder)
    known = splits[:2]
    rows = []
    for name in _MODELS:
        start = time.perf_counter()
        result = trained(name, splits, arguments.dim, arguments.epochs)
        theirs = result.metric_results.to_flat_dict()
        line(
            f"{name}: PyKEEN trained and evaluated in {time.perf_counter() - start:.0f} s, "
            f"MRR {theirs['both.realistic.inverse_harmonic_mean_rank']:.4f}"
        )
        graph = pykeen.graph(dict(zip(("train", "valid", "test"), splits, strict=True)))
        options: dict[str, Any] = {"norm": int(result.model.interaction.p)} if name == "TransE" else {}
        state = result.model.state_dict()
        own = pykeen.embeddings(result, splits[0])

        def by_file(own: Any = own, graph: Any = graph) -> Any:
            with tempfile.TemporaryDirectory() as folder:
                own.write(path := Path(folder) / "model.safetensors")
                return own._replace(embeddings=read_embeddings(path)).ranks(graph)

        single: dict[str, Callable[[], Any]] = {
            "result": lambda result=result: pykeen.ranks(result, splits[2], known=known),
            "embeddings, all in single": lambda own=own, graph=graph: own.ranks(graph, precision="float32"),
        }
        double: dict[str, Callable[[], Any]] = {
            "embeddings": lambda own=own, graph=graph: own.ranks(graph),
            "file of embeddings": by_file,
            "state": lambda state=state, graph=graph, name=name, options=options: ranks_of_state(
                state, "pykeen", name.lower(), graph, **options
            ),
        }
        rows += measured(name, single, theirs)
        wide = in_double(result, splits)
        rows += measured(name, double, wide)
        keys = _keys(theirs)
        moved = max(abs(wide[key] - theirs[key]) / max(1, abs(theirs[key])) for key in keys)
        rows.append([name, "PyKEEN: double against single", f"{len(keys)}", f"{moved:.1e}", ""])
    printed("largest difference from PyKEEN's metrics", ["model", "way", "metrics", "difference", "s"], rows)


if __name__ == "__main__":
    main()

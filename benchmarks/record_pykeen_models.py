"""Small embeddings that PyKEEN trains on Nations, and its own metrics, recorded for tests.

Needs PyKEEN and NumPy only, not owkg, so that it runs in its own environment:

    python -m venv pykeen-env
    pykeen-env/bin/pip install pykeen==1.11.1
    pykeen-env/bin/python benchmarks/record_pykeen_models.py --out tests/models/data

`nations.npz` has the triples, by ids, and the labels. `NAME.npz` has the embeddings as the model's
representations give them, complex numbers for ComplEx and RotatE, with rows in another order than the ids.
`metrics.json` has the metrics of `RankBasedEvaluator` on the test set, filtered by train, valid and test.

Defaults of the models of PyKEEN 1.11.1: TransE has the L1 norm. RotatE has the L2 norm of the complex
difference, that is, the length over all real and imaginary parts, not the sum of moduli of its authors. The
relations of RotatE have modulus 1. No model predicts heads by inverse relations.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20220301
DIM, EPOCHS = 6, 200
MODELS = ("TransE", "DistMult", "ComplEx", "RotatE")
KEYS = (
    "adjusted_arithmetic_mean_rank",
    "adjusted_arithmetic_mean_rank_index",
    "adjusted_geometric_mean_rank_index",
    "adjusted_inverse_harmonic_mean_rank",
    "arithmetic_mean_rank",
    "count",
    "geometric_mean_rank",
    "hits_at_1",
    "hits_at_3",
    "hits_at_10",
    "inverse_harmonic_mean_rank",
    "median_rank",
    "z_inverse_harmonic_mean_rank",
)
LIMIT = 60_000  # largest size of all files in bytes


def labels_of(ids: dict[str, int]) -> np.ndarray:
    """Labels in the order of their ids."""
    return np.array(sorted(ids, key=ids.__getitem__), np.str_)


def recorded(name: str, dataset: Any, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], dict]:
    """(the file of a trained model, its metrics by PyKEEN's side.ties.metric)."""
    from pykeen.evaluation import RankBasedEvaluator  # pyright: ignore
    from pykeen.pipeline import pipeline  # pyright: ignore

    training = dataset.training
    done = pipeline(
        dataset=dataset,
        model=name,
        model_kwargs={"embedding_dim": DIM},
        training_kwargs={"num_epochs": EPOCHS, "use_tqdm": False, "use_tqdm_batch": False},
        random_seed=SEED,
        evaluation_kwargs={"use_tqdm": False},
        device="cpu",
    )
    found = RankBasedEvaluator(clear_on_finalize=False).evaluate(
        done.model,
        dataset.testing.mapped_triples,
        additional_filter_triples=[training.mapped_triples, dataset.validation.mapped_triples],
        use_tqdm=False,
    )
    values = {key: float(value) for key, value in found.to_flat_dict().items()}
    kept = {key: value for key, value in values.items() if key.rpartition(".")[2] in KEYS}
    arrays = {}
    for kind, ids, rows in (
        ("entity", training.entity_to_id, done.model.entity_representations[0]),
        ("relation", training.relation_to_id, done.model.relation_representations[0]),
    ):
        order = rng.permutation(len(ids))
        arrays[kind] = rows().detach().numpy()[order]
        arrays[f"{kind}_labels"] = labels_of(ids)[order]
    return arrays, kept


def main() -> int:
    """Records and writes the files; the exit code is 2 if that fails."""
    parser = argparse.ArgumentParser(description="Records small models of PyKEEN and its metrics of them.")
    parser.add_argument("--out", type=Path, default=Path("tests/models/data"))
    out = parser.parse_args().out
    try:
        import pykeen.version  # pyright: ignore
        import torch  # pyright: ignore
        from pykeen.datasets import Nations  # pyright: ignore
    except ImportError as error:
        print(
            f"record_pykeen_models.py: error: PyKEEN cannot be imported ({error}); "
            "install it into an environment of its own: pip install pykeen==1.11.1",
            file=sys.stderr,
        )
        return 2
    if not out.is_dir():
        print(
            f"record_pykeen_models.py: error: {out} must be a folder that can be written to.", file=sys.stderr
        )
        return 2
    dataset, rng = Nations(), np.random.default_rng(SEED)
    parts = {"train": dataset.training, "valid": dataset.validation, "test": dataset.testing}
    files = {"nations": {name: part.mapped_triples.numpy().astype(np.uint8) for name, part in parts.items()}}
    files["nations"] |= {
        "entities": labels_of(dataset.training.entity_to_id),
        "relations": labels_of(dataset.training.relation_to_id),
    }
    metrics = {}
    for name in MODELS:
        files[name.lower()], metrics[name.lower()] = recorded(name, dataset, rng)
    record = {
        "versions": {"pykeen": pykeen.version.get_version(), "torch": torch.__version__},
        "made": f"by benchmarks/record_pykeen_models.py, seed {SEED}, dim {DIM}, {EPOCHS} epochs",
        "metrics": metrics,
    }
    for name, arrays in files.items():
        np.savez_compressed(out / f"{name}.npz", **arrays)
    (out / "metrics.json").write_text(json.dumps(record, indent=0, allow_nan=False) + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in [*out.glob("*.npz"), out / "metrics.json"])
    print(f"{out}: {len(MODELS)} models, {size:,} bytes, PyKEEN {record['versions']['pykeen']}")
    for name, found in metrics.items():
        print(f"{name}: test MRR {found['both.realistic.inverse_harmonic_mean_rank']:.6f}")
    return 0 if size <= LIMIT else 2


if __name__ == "__main__":
    sys.exit(main())

"""Time of PyKEEN for the evaluation of `benchmarks/evaluation.py`, and of its bare products; prints JSON.

Needs PyKEEN, torch and NumPy only, not owkg; `benchmarks/evaluation.py --pykeen PYTHON` runs it.

    pykeen-env/bin/python benchmarks/evaluation_pykeen.py graph.npz 256 1
"""

import json
import resource
import sys
import time
from collections.abc import Callable

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from pykeen.evaluation import RankBasedEvaluator  # pyright: ignore[reportMissingImports]
from pykeen.models import ComplEx  # pyright: ignore[reportMissingImports]
from pykeen.triples import CoreTriplesFactory  # pyright: ignore[reportMissingImports]

# PyKEEN's default on a processor; with 1,024 its ComplEx allocates 30 GB, [batch, entities, 2 dim] at once.
_BATCH = 32
# Number of rows of the bare products.
_ROWS = 1024


def fastest(call: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of `repeats` calls."""
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def main() -> None:
    """Measures and prints."""
    path, dim, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with np.load(path, allow_pickle=False) as file:
        train, valid, test = (
            torch.from_numpy(file[name].astype(np.int64)) for name in ("train", "valid", "test")
        )
        entities, relations = file["sizes"].tolist()
    factory = CoreTriplesFactory(train, num_entities=entities, num_relations=relations)
    model = ComplEx(triples_factory=factory, embedding_dim=dim, random_seed=0)

    def evaluate(triples: torch.Tensor) -> None:
        RankBasedEvaluator().evaluate(
            model, triples, batch_size=_BATCH, additional_filter_triples=[train, valid], use_tqdm=False
        )

    def multiply() -> None:
        for _ in range(-(-2 * len(test) // _ROWS)):
            torch.mm(asked, candidates)

    asked, candidates = torch.randn(_ROWS, 2 * dim), torch.randn(2 * dim, entities)
    evaluate(test[:_BATCH])
    multiply()
    seconds, bare = fastest(lambda: evaluate(test), repeats), fastest(multiply, repeats)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        json.dumps(
            {"seconds": seconds, "products_s": bare, "times_the_products": seconds / bare, "peak_gib": peak}
        )
    )


if __name__ == "__main__":
    main()

"""Seconds of PyKEEN's training steps for `benchmarks/training.py`; prints JSON.

Needs PyKEEN and torch only, not owkg; `benchmarks/training.py --pykeen PYTHON` runs it. The steps are from
its own loop against negatives (SLCWA), with self-adversarial loss and Adam, on a random graph.

    pykeen-env/bin/python benchmarks/training_pykeen_steps.py TransH 6004 28 150000 200 1024 128 3
"""

import json
import sys
import time
from contextlib import suppress
from typing import Any

import pykeen.models  # pyright: ignore[reportMissingImports]
import torch  # pyright: ignore[reportMissingImports]
from pykeen.losses import NSSALoss  # pyright: ignore[reportMissingImports]
from pykeen.training import SLCWATrainingLoop, TrainingCallback  # pyright: ignore[reportMissingImports]
from pykeen.triples import CoreTriplesFactory  # pyright: ignore[reportMissingImports]

# Options of models that do not take only `embedding_dim`, or need facts in both directions.
_OPTIONS = {"CP": {"rank": 1}}
_INVERSE = ("CompGCN",)


class OverError(Exception):
    """Raised when the steps are done."""


class Clock(TrainingCallback):
    """Records when each batch ended, and ends training after `batches` batches."""

    def __init__(self, batches: int) -> None:
        super().__init__()
        self.batches, self.ends = batches, [time.perf_counter()]

    def on_batch(self, epoch: int, batch: Any, batch_loss: float, **_: Any) -> None:
        """Called after each batch."""
        self.ends.append(time.perf_counter())
        if len(self.ends) > self.batches:
            raise OverError


def main() -> None:
    """Measures and prints."""
    kind, *numbers = sys.argv[1:]
    entities, relations, facts, dim, batch, negatives, repeats = map(int, numbers)
    torch.manual_seed(0)
    columns = [torch.randint(high, (facts,)) for high in (entities, relations, entities)]
    inverse = kind in _INVERSE
    train = CoreTriplesFactory(
        torch.stack(columns, 1), entities, (1 + inverse) * relations, create_inverse_triples=inverse
    )
    options = {"embedding_dim": dim, "random_seed": 0, "loss": NSSALoss()} | _OPTIONS.get(kind, {})
    model = getattr(pykeen.models, kind)(triples_factory=train, **options)
    loop = SLCWATrainingLoop(
        model=model,
        triples_factory=train,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
        negative_sampler_kwargs={"num_negs_per_pos": negatives},
    )
    clock = Clock(repeats + 1)
    with suppress(OverError):
        loop.train(train, num_epochs=repeats + 1, batch_size=batch, use_tqdm=False, callbacks=[clock])
    steps = [after - before for before, after in zip(clock.ends[1:], clock.ends[2:], strict=False)]
    print(json.dumps({"pykeen_s": min(steps), "pykeen": pykeen.version.get_version()}))


if __name__ == "__main__":
    main()

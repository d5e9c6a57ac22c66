"""Metrics of PyKEEN's ComplEx or RotatE after some processor minutes of training; prints JSON.

Needs PyKEEN and torch only, not owkg. The folder has train, valid and test as `.txt` or `.txt.gz` of head,
relation and tail. ComplEx is trained against all entities (LCWA, cross-entropy, Adagrad, inverse relations),
RotatE against drawn negatives (self-adversarial, Adam). The minutes are training time, summed over
processors, so that other load on the machine does not count. Evaluation is filtered by all splits.

    pykeen-env/bin/python benchmarks/training_pykeen.py data/fb15k237 complex 6
"""

import json
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from pykeen.evaluation import RankBasedEvaluator  # pyright: ignore[reportMissingImports]
from pykeen.losses import CrossEntropyLoss, NSSALoss  # pyright: ignore[reportMissingImports]
from pykeen.models import ComplEx, RotatE  # pyright: ignore[reportMissingImports]
from pykeen.training import (  # pyright: ignore[reportMissingImports]
    LCWATrainingLoop,
    SLCWATrainingLoop,
    TrainingCallback,
)
from pykeen.triples import TriplesFactory  # pyright: ignore[reportMissingImports]

_DIM, _NEGATIVES = 64, 128
# Standard deviation of the initial embeddings, as in owkg; PyKEEN's default, 1, reaches less in so short a
# time.
_SCALE = 1e-3
# Triples in a batch, and PyKEEN's default for evaluation on a processor.
_BATCH, _ASKED = 1024, 32


class OverError(Exception):
    """Raised when the minutes are over."""


class Clock(TrainingCallback):
    """Ends training after some seconds of processor time, and counts its batches."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.end, self.batches = time.process_time() + seconds, 0

    def on_batch(self, epoch: int, batch: Any, batch_loss: float, **_: Any) -> None:
        """Called after each batch."""
        self.batches += 1
        if time.process_time() > self.end:
            raise OverError


def trained(kind: str, train: TriplesFactory, seconds: float) -> tuple[Any, int]:
    """The model, and the number of batches that it was trained on."""
    clock = Clock(seconds)
    options = {"triples_factory": train, "embedding_dim": _DIM, "random_seed": 0}
    if kind == "complex":
        small = partial(torch.nn.init.normal_, std=_SCALE)
        model = ComplEx(
            loss=CrossEntropyLoss(), entity_initializer=small, relation_initializer=small, **options
        )
        optimiser = torch.optim.Adagrad(model.parameters(), lr=0.1)
        loop = LCWATrainingLoop(model=model, triples_factory=train, optimizer=optimiser)
    else:
        model = RotatE(loss=NSSALoss(margin=9, adversarial_temperature=1), **options)
        optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
        negatives = {"num_negs_per_pos": _NEGATIVES}
        loop = SLCWATrainingLoop(
            model=model, triples_factory=train, optimizer=optimiser, negative_sampler_kwargs=negatives
        )
    with suppress(OverError):
        loop.train(train, num_epochs=10_000, batch_size=_BATCH, use_tqdm=False, callbacks=[clock])
    return model, clock.batches


def main() -> None:
    """Trains, evaluates and prints."""
    folder, kind, minutes = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    paths = {name: next(folder.glob(f"{name}.txt*")) for name in ("train", "valid", "test")}
    train = TriplesFactory.from_path(paths["train"], create_inverse_triples=kind == "complex")
    ids = {"entity_to_id": train.entity_to_id, "relation_to_id": train.relation_to_id}
    valid, test = (TriplesFactory.from_path(paths[name], **ids).mapped_triples for name in ("valid", "test"))
    begin = time.monotonic()
    model, batches = trained(kind, train, 60 * minutes)
    took = time.monotonic() - begin
    found = RankBasedEvaluator().evaluate(
        model,
        test,
        batch_size=_ASKED,
        additional_filter_triples=[train.mapped_triples, valid],
        use_tqdm=False,
    )
    row = {"model": kind, "processor_minutes": minutes, "batches": batches, "minutes_by_the_clock": took / 60}
    print(json.dumps(row | {"mrr": found.get_metric("both.realistic.inverse_harmonic_mean_rank")}))


if __name__ == "__main__":
    main()

"""Seconds of PyTorch for the training steps of `benchmarks/training.py`; prints JSON.

Needs torch only, not owkg; `benchmarks/training.py --torch PYTHON` runs it. The step follows the code of the
authors of RotatE: gather the embeddings of all negatives, score, self-adversarial loss, backward, Adam.

    torch-env/bin/python benchmarks/training_torch.py rotate 6004 28 500 1024 128 3
"""

import json
import math
import sys
import time

import torch  # pyright: ignore[reportMissingImports]
from torch.nn.functional import logsigmoid  # pyright: ignore[reportMissingImports]

_MARGIN = 12.0


def main() -> None:
    """Measures and prints."""
    kind, *numbers = sys.argv[1:]
    entities, relations, dim, batch, negatives, repeats = map(int, numbers)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    width = (_MARGIN + 2) / dim
    # A relation of RotatE is one angle for each dimension; a relation of ComplEx is one complex number.
    columns = dim if kind == "rotate" else 2 * dim
    entity, relation = (
        torch.empty(rows, size, device=device).uniform_(-width, width).requires_grad_()
        for rows, size in ((entities, 2 * dim), (relations, columns))
    )
    optimiser = torch.optim.Adam([entity, relation], lr=1e-3)

    def score(head: torch.Tensor, kinds: torch.Tensor, tail: torch.Tensor) -> torch.Tensor:
        (re, im), (tail_re, tail_im) = entity[head].chunk(2, -1), entity[tail].chunk(2, -1)
        if kind == "rotate":
            angle = relation[kinds] * (math.pi / width)
            rel_re, rel_im = torch.cos(angle), torch.sin(angle)
        else:
            rel_re, rel_im = relation[kinds].chunk(2, -1)
        asked_re, asked_im = re * rel_re - im * rel_im, re * rel_im + im * rel_re
        if kind == "rotate":
            distance = torch.stack([asked_re - tail_re, asked_im - tail_im]).norm(dim=0)
            return _MARGIN - distance.sum(-1)
        return (asked_re * tail_re + asked_im * tail_im).sum(-1)

    def step() -> None:
        head, tail = torch.randint(entities, (2, batch, 1), device=device)
        kinds = torch.randint(relations, (batch, 1), device=device)
        positive = score(head, kinds, tail).squeeze(1)
        negative = score(head, kinds, torch.randint(entities, (batch, negatives), device=device))
        weight = torch.softmax(negative.detach(), dim=1)
        loss = -(logsigmoid(positive).mean() + (weight * logsigmoid(-negative)).sum(1).mean()) / 2
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        float(loss)  # waits for the device

    step()
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"torch_s": min(seconds), "torch": torch.__version__, "torch_device": device}))


if __name__ == "__main__":
    main()

"""How large blocks are, and that their size changes nothing."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from owkg.evaluation import memory, rank_arrays
from owkg.files import storage
from owkg.kg import known_answers
from owkg.models import Trained, model

CPU, GPU = SimpleNamespace(platform="cpu"), SimpleNamespace(platform="gpu")


@pytest.mark.parametrize(
    ("device", "entities", "free", "expected"),
    [
        (CPU, 14_541, 2**40, 2**24),  # enough for 288 queries
        (CPU, 10**5, 2**40, 4 * 64 * 10**5),
        (CPU, 10**5, 2**27, 2**24),
        (CPU, 3 * 10**5, 2**40, 4 * 256 * 3 * 10**5),
        (CPU, 10**6, 2**40, 4 * 256 * 10**6),
        (CPU, 10**7, 2**40, 2**30),
        (CPU, 10**6, 2**31, 2**28),  # an eighth
        (CPU, 10**6, 2**20, 2**24),
        (CPU, 10**7, None, 2**30),
        (GPU, 14_541, 2**40, 2**28),
    ],
)
def test_blocks_are_bounded_by_what_is_free(monkeypatch, device, entities, free, expected):
    monkeypatch.setattr(memory, "free_bytes", lambda _: free)
    assert memory.block_bytes(device, entities) == expected


def test_what_is_free(monkeypatch, tmp_path):
    said = tmp_path / "meminfo"
    said.write_text("MemTotal:       9 kB\nMemAvailable:   3 kB\n")
    monkeypatch.setattr(storage, "_MEMINFO", said)
    assert memory.free_bytes(CPU) == 3072
    monkeypatch.setattr(storage, "_MEMINFO", tmp_path / "none")
    assert memory.free_bytes(CPU) is None
    said = {"bytes_limit": 100, "bytes_in_use": 30}
    assert memory.free_bytes(SimpleNamespace(platform="gpu", memory_stats=lambda: said)) == 70
    assert memory.free_bytes(SimpleNamespace(platform="gpu", memory_stats=lambda: None)) is None


@pytest.mark.parametrize("name", ["complex", "transe"])
def test_no_rank_depends_on_the_size_of_a_block(name):
    rng = np.random.default_rng(0)
    triples = np.stack([rng.integers(0, n, 400) for n in (3000, 3, 3000)], axis=1).astype(np.int32)
    scorer = model(name, dim=16)
    trained = Trained(scorer, *scorer.init(jax.random.key(0), 3000, 3))
    known = known_answers(triples, "tail", num_entities=3000, num_relations=3)
    every = [
        rank_arrays(trained, triples, "tail", known=known, block_bytes=size)
        for size in (1, 4 * 3000 * 7, 4 * 3000 * 64, 2**30, None)
    ]
    for other in every[1:]:
        for one, column in zip(every[0], other, strict=True):
            np.testing.assert_array_equal(column, one)

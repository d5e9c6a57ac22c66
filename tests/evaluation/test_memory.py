"""How large blocks are, and that their size changes nothing."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from owkg.evaluation import memory, rank_arrays
from owkg.files import storage
from owkg.kg import known_answers
from owkg.models import Trained, model
from owkg.models.table import table_of

CPU, GPU = SimpleNamespace(platform="cpu"), SimpleNamespace(platform="gpu")


@pytest.mark.parametrize(
    ("device", "entities", "free", "expected"),
    [
        (CPU, 14_541, 2**40, 3 * 2**23),  # enough for 432 queries
        (CPU, 10**5, 2**40, 4 * 64 * 10**5),
        (CPU, 10**5, 2**27, 3 * 2**23),
        (CPU, 3 * 10**5, 2**40, 4 * 256 * 3 * 10**5),
        (CPU, 10**6, 2**40, 4 * 256 * 10**6),
        (CPU, 10**7, 2**40, 2**30),
        (CPU, 10**6, 2**31, 2**28),  # an eighth
        (CPU, 10**6, 2**20, 3 * 2**23),
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
    monkeypatch.setattr(storage, "_GROUPS", tmp_path / "none")
    assert memory.free_bytes(CPU) == 3072
    monkeypatch.setattr(storage, "_MEMINFO", tmp_path / "none")
    assert memory.free_bytes(CPU) is None
    said = {"bytes_limit": 100, "bytes_in_use": 30}
    assert memory.free_bytes(SimpleNamespace(platform="gpu", memory_stats=lambda: said)) == 70
    assert memory.free_bytes(SimpleNamespace(platform="gpu", memory_stats=lambda: None)) is None


@pytest.mark.parametrize(
    ("kind", "groups", "folder", "files"),
    [
        ("", "0::/jobs/one", "jobs", ("memory.max", "memory.current", "inactive_file")),
        ("", "0::/", "", ("memory.max", "memory.current", "inactive_file")),
        ("", "0::/seen/from/outside", "", ("memory.max", "memory.current", "inactive_file")),
        (
            "memory",
            "3:cpu:/x\n2:memory:/jobs/one",
            "jobs/one",
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ),
    ],
)
def test_a_container_may_take_less_than_the_machine_has(monkeypatch, tmp_path, kind, groups, folder, files):
    """The limit may be of a group above, and what is taken may be cache."""
    (tmp_path / "meminfo").write_text("MemAvailable:   3000 kB\n")
    (tmp_path / "cgroup").write_text(groups + "\n")
    monkeypatch.setattr(storage, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(storage, "_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(storage, "_GROUPS_ROOT", tmp_path / "groups")
    place = tmp_path / "groups" / kind / folder
    (place / "jobs" / "one").mkdir(parents=True, exist_ok=True)
    for name, content in zip(files[:2], ("1000000\n", "900000\n"), strict=True):
        (place / name).write_text(content)
    (place / "memory.stat").write_text(f"anon 5\n{files[2]} 300000\n")
    assert storage.free_memory() == 400_000
    (place / files[0]).write_text("max\n")
    assert storage.free_memory() == 3_072_000
    (place / files[0]).write_text("7000000\n")
    assert storage.free_memory() == 3_072_000
    (place / files[0]).write_text("10\n")
    assert storage.free_memory() == 0


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


@pytest.mark.parametrize(("numbers", "blocks"), [(200, 4), (400, 2), (100, 7)])
def test_queries_of_a_table_count_as_their_scores_do(numbers, blocks):
    """100 entities: a query takes 200 numbers."""
    one = np.ones(1, np.int64)
    table = table_of(one, one, one, num_entities=100, num_relations=1)
    triples = np.stack([np.arange(7), np.zeros(7, int), np.arange(7)], axis=1).astype(np.int32)
    seen = []
    rank_arrays(
        table,
        triples,
        "tail",
        known=None,
        block_bytes=4 * 2 * numbers,
        on_progress=lambda *at: seen.append(at),
    )
    assert len(seen) == blocks

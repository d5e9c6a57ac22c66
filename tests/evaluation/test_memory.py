"""How large blocks are, and that their size changes nothing."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from owkg.evaluation import memory, rank_arrays, tiles
from owkg.files import storage
from owkg.kg import known_answers
from owkg.models import Trained, model
from owkg.models.table import table_of

CPU, GPU = SimpleNamespace(platform="cpu"), SimpleNamespace(platform="gpu")


@pytest.mark.parametrize(
    ("device", "free", "expected"),
    [
        (CPU, 2**40, 3 * 2**23),
        (CPU, 2**20, 3 * 2**23),
        (GPU, 2**40, 2**28),
        (GPU, None, 2**28),
        (GPU, 2**30, 2**27),  # an eighth
        (GPU, 2**20, 3 * 2**23),
    ],
)
def test_blocks_are_bounded_by_what_is_free(monkeypatch, device, free, expected):
    monkeypatch.setattr(memory, "free_bytes", lambda _: free)
    assert memory.block_bytes(device) == expected


@pytest.mark.parametrize(
    ("numbers", "free", "expected"),
    [
        (14_541, 2**40, 2**26),
        (10**5, 2**40, 4 * 256 * 10**5),
        (10**6, 2**31, 2**28),  # an eighth
        (10**7, 2**40, 2**30),
        (10**7, None, 2**30),
        (10**7, 2**20, 2**26),
    ],
)
def test_blocks_of_all_scores_are_bounded_by_what_is_free(monkeypatch, numbers, free, expected):
    monkeypatch.setattr(memory, "free_bytes", lambda _: free)
    assert memory.whole_bytes(CPU, numbers) == expected


@pytest.mark.parametrize(
    ("size", "row", "width", "entities", "tile", "devices", "expected"),
    [
        (1000 * 300, 10, 5, 990, 50, 1, (300, 1)),
        (1000 * 64, 10, 5, 990, 50, 1, (64, 1)),
        (1000 * 63, 10, 5, 990, 10, 1, (256, 5)),
        (1000 * 63, 10, 5, 990, 40, 1, (190, 4)),
        (1000 * 63, 10, 5, 990, 50, 1, (153, 3)),
        (1000 * 63, 10, 5, 990, 50, 2, (63, 1)),  # a device has 10 tiles, too few for two groups
        (1000 * 40, 10, 5, 990, 61, 1, (80, 3)),
        (1000 * 41, 10, 5, 990, 62, 1, (41, 1)),  # fewer than twice as many queries
        (1, 10, 5, 990, 50, 1, (1, 1)),  # not one row fits
        (3 * 2**21, 64, 64, 10**6, 1954, 1, (256, 43)),
        (3 * 2**21, 64, 64, 10**6, 1954, 4, (100, 16)),
        (
            3 * 2**21,
            2000,
            2000,
            10**6,
            1954,
            1,
            (256, 64),
        ),  # rows of the candidates take more than the scores
        (1000 * 4, 990, 5, 990, 10, 1, (2, 1)),  # rows as wide as all scores
    ],
)
def test_more_queries_among_a_part_of_the_entities(size, row, width, entities, tile, devices, expected):
    queries, groups = memory.block_shape(size, row, width, entities, tile, devices)
    assert (queries, groups) == expected
    tiles = -(-entities // (tile * devices))
    held = -(-tiles // groups)
    assert groups == 1 or (held > 4 and queries * (row + held * tile * devices) <= size)


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


@pytest.mark.parametrize(
    ("name", "entities", "sizes"),
    [
        ("complex", 3000, (1, 4 * 3000 * 7, 4 * 3000 * 64, 2**30, None)),
        ("transe", 3000, (1, 4 * 3000 * 7, 4 * 3000 * 64, 2**30, None)),
        # Two and four groups of tiles, and less memory than one query takes.
        ("complex", 40_000, (2**30, 2**23, 2**20, 1)),
        ("rotate", 40_000, (2**30, 2**23, 2**20, 1)),
    ],
)
def test_no_rank_of_these_models_depends_on_the_size_of_a_block(name, entities, sizes):
    rng = np.random.default_rng(0)
    triples = np.stack([rng.integers(0, n, 400) for n in (entities, 3, entities)], axis=1).astype(np.int32)
    triples[:30, 2] = entities - 1
    triples[30:60, 0:2] = triples[30, 0:2]
    scorer = model(name, dim=16)
    trained = Trained(scorer, *scorer.init(jax.random.key(0), entities, 3))
    known = known_answers(triples, "tail", num_entities=entities, num_relations=3)
    every = [rank_arrays(trained, triples, "tail", known=known, block_bytes=size) for size in sizes]
    for other in every[1:]:
        for one, column in zip(every[0], other, strict=True):
            np.testing.assert_array_equal(column, one)


def test_equal_scores_tie_in_every_group_of_tiles():
    """All entities have one of two rows, so that half of them tie with each answer; some are known."""
    entities, scorer = 40_000, model("distmult", dim=4, reciprocal=False)
    row = np.array([[1.0, 0.25, 0.0, 0.0], [0.5, 3.0, 0.0, 1.0]], np.float32)
    kind = np.arange(entities) % 2
    trained = Trained(scorer, {"entity": jax.numpy.asarray(row[kind]), "relation": jax.numpy.ones((1, 4))})
    triples = np.stack([np.arange(100), np.zeros(100, int), np.arange(100) * 397], axis=1)
    facts = np.concatenate([triples, triples + np.array([0, 0, 1])])
    known = known_answers(facts, "tail", num_entities=entities, num_relations=1)
    found = rank_arrays(trained, triples, "tail", known=known, block_bytes=2**20)
    score = row @ row.T
    better = score[kind[triples[:, 0]], 1 - kind[triples[:, 2]]] > found.score
    # One other answer is known, of the other kind.
    np.testing.assert_array_equal(found.optimistic, 1 + better * (entities // 2 - 1))
    np.testing.assert_array_equal(found.pessimistic, found.optimistic + entities // 2 - 1)
    np.testing.assert_array_equal(found.candidates, entities - 1)


@pytest.mark.parametrize("count", [1, 40])
def test_many_answers_in_one_column_of_the_tiles(monkeypatch, count):
    """Their copies take more tiles than a group has."""
    monkeypatch.setattr(tiles, "_TILE", 16)
    entities, size = 1017 + count, tiles.tile_size(1017 + count)
    answer = np.arange(3, entities, size)[-count:]
    triples = np.stack([np.arange(len(answer)), np.zeros(len(answer), int), answer], axis=1)
    scorer = model("complex", dim=8)
    trained = Trained(scorer, *scorer.init(jax.random.key(0), entities, 1))
    facts = np.concatenate([triples, triples + np.array([0, 0, 1]) * (triples[:, 2:] < entities - 1)])
    known = known_answers(facts, "tail", num_entities=entities, num_relations=1)
    one_by_one = [
        rank_arrays(trained, triples, "tail", known=known, block_bytes=size) for size in (2**24, 4 * 40 * 160)
    ]
    for one, other in zip(*one_by_one, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_score_that_is_not_finite_is_found_in_every_group_of_tiles():
    entities, scorer = 40_000, model("distmult", dim=4, reciprocal=False)
    for bad in (0, entities // 2, entities - 1):
        rows = np.ones((entities, 4), np.float32)
        rows[bad] = np.nan
        trained = Trained(scorer, {"entity": jax.numpy.asarray(rows), "relation": jax.numpy.ones((1, 4))})
        triples = np.stack([1 + np.arange(100), np.zeros(100, int), 2 + np.arange(100)], axis=1)
        with pytest.raises(ValueError, match="finite"):
            rank_arrays(trained, triples, "tail", known=None, block_bytes=2**20)


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

"""Open worlds read from folders: what is asked, what is missing, and what is refused."""

import json
import shutil

import numpy as np
import pytest

from owkg import kg
from owkg.sampling import sample, write_worlds
from simulations.open_world.world import CORRELATED, SPARSE, read_world, read_worlds, with_correlated

TRAIN = ["a r b", "a r c", "b r c", "c s a", "d s a"]
FULL = ["a r d", "a r e", "b r d", "b r a", "c s e", "c s d"]
HALF = ["a r d", "b r a", "c s d"]


def lay(folder, **files):
    folder.mkdir(parents=True)
    for name, facts in files.items():
        (folder / f"{name}.txt").write_text("".join("\t".join(f.split()) + "\n" for f in facts))
    return folder


@pytest.fixture
def folder(tmp_path):
    # A density of .65 leaves .358 of the full test, and of .8 .545.
    return lay(tmp_path / "d0.8", train=TRAIN, test_full=FULL, test_sparse=HALF)


def named(world):
    e, r = world.graph.entities, world.graph.relations
    return [f"{e[h]} {r[p]} {e[t]}" for h, p, t in world.triples]


def test_answers_stand_query_by_query(folder):
    world = read_world(folder)
    assert (world.name, world.density, world.num_queries) == ("d0.8", 0.8, 3)
    assert sorted(named(world)) == sorted(FULL)
    asked = [fact.rsplit(" ", 1)[0] for fact in named(world)]
    assert [asked.index(one) for one in asked] == [0, 0, 2, 2, 4, 4]
    assert world.query.tolist() == [0, 0, 1, 1, 2, 2]
    assert [fact for fact, own in zip(named(world), world.present[SPARSE], strict=True) if own] == HALF
    assert set(world.graph.splits) == {"train"}
    # Filtered by train and the full test, and by nothing else.
    assert kg.is_known(world.known, world.triples).all()
    assert len(world.known.answers) == len(TRAIN) + len(FULL)


def test_a_correlated_set_is_read_where_it_is(folder):
    lay(
        folder.parent / "75", train=TRAIN, test_full=FULL, test_sparse=HALF, test_sparse_correlated=HALF[::-1]
    )
    assert set(read_world(folder.parent / "75").present) == {SPARSE, CORRELATED}
    assert set(read_world(folder).present) == {SPARSE}


def closed():
    rng = np.random.default_rng(0)
    facts = np.unique(rng.integers(0, (12, 2, 12), (400, 3)), axis=0).astype(np.int32)
    names = tuple(map(str, range(12)))
    return kg.KnowledgeGraph(names, ("r", "s"), {"train": facts})


def test_worlds_of_owkg_sample(tmp_path):
    def drawn(density):
        return sample(closed(), density=density, train_rate=0.5, num_queries=6, min_answers=3, seed=1)

    worlds = [drawn(0.9), drawn(0.6)]
    write_worlds(worlds, tmp_path / "worlds")
    found = read_worlds(tmp_path / "worlds")
    assert [world.density for world in found] == [0.9, 0.6]
    assert [world.num_queries for world in found] == [6, 6]
    for world, given in zip(found, worlds, strict=True):
        assert len(world.graph.splits["train"]) == len(given.train)
        # Only the queries that were drawn are asked; all of the full test is known.
        assert len(world.triples) < len(given.test_full)
        assert len(world.known.answers) == len(given.train) + len(given.test_full)
    assert [world.density for world in read_worlds(tmp_path / "worlds", [0.6])] == [0.6]
    with pytest.raises(ValueError, match=r"worlds: holds no world of density 0\.7; it has 0\.6, 0\.9"):
        read_worlds(tmp_path / "worlds", [0.7])


def test_the_published_worlds(owkg_data):
    worlds = read_worlds(owkg_data / "family_tree_published")
    assert [world.density for world in worlds] == [0.95, 0.85, 0.75, 0.65]
    for world in worlds:
        assert world.num_queries == 500
        assert world.graph.num_entities == 6004
        assert set(world.present) == {SPARSE, CORRELATED}
        assert np.bincount(world.query).min() >= 10


def test_valid_facts_are_known_and_in_no_test(tmp_path):
    asked = {"num_queries": 4, "min_answers": 3, "seed": 1}
    drawn = sample(closed(), density=0.8, train_rate=0.4, valid_rate=0.2, **asked)
    write_worlds([drawn], tmp_path / "world")
    world = read_world(tmp_path / "world")
    for facts in (drawn.train, drawn.valid, drawn.test_full):
        assert kg.is_known(world.known, facts).all()
    assert len(drawn.valid) > 10
    assert len(world.graph.splits["train"]) == len(drawn.train)


def test_two_worlds_of_one_density_and_one_asked_for_twice(folder):
    lay(folder.parent / "80", train=TRAIN, test_full=FULL, test_sparse=HALF)
    with pytest.raises(ValueError, match=r"d0\.8: has density 0\.8, and so has 80"):
        read_worlds(folder.parent)
    shutil.rmtree(folder.parent / "80")
    with pytest.raises(ValueError, match=r"`density` must name each density once, got 0\.8, 0\.8"):
        read_worlds(folder.parent, [0.8, 0.8])


@pytest.mark.parametrize(
    "parameters",
    [{"density": None}, {"density": "high"}, {"density": 7}, {"density": 0.8, "train_rate": None}],
)
def test_parameters_that_are_no_numbers_name_the_file(folder, parameters):
    (folder / "metadata.json").write_text(json.dumps({"parameters": parameters}))
    with pytest.raises(
        ValueError, match=r"metadata\.json: (density|train_rate) must be a number in \[0, 1\]"
    ):
        read_world(folder)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"test_full": []}, r"must hold triples in test_full\.txt"),
        ({"test_sparse": []}, r"must hold triples in test_sparse\.txt"),
        ({"train": [*TRAIN, "a r d"]}, "a r d is in train and in test_full"),
        ({"test_sparse": [*HALF, "d r e"]}, "d r e is in test_sparse, but not in test_full"),
        ({"test_sparse": HALF[:2]}, r"no answer to c s \? is in test_sparse"),
        ({"test_sparse": FULL}, r"a density of 0\.8 leaves 0\.545 of the full test .* here it is 1\.000"),
    ],
)
def test_folders_that_are_refused(tmp_path, files, message):
    whole = {"train": TRAIN, "test_full": FULL, "test_sparse": HALF} | files
    folder = lay(tmp_path / "d0.8", **{name: facts for name, facts in whole.items() if facts})
    with pytest.raises(ValueError, match=message) as error:
        read_world(folder)
    assert str(folder) in str(error.value)


def test_a_folder_must_say_its_density(folder):
    other = folder.rename(folder.with_name("world"))
    with pytest.raises(ValueError, match="must state its density"):
        read_world(other)
    assert read_world(other, density=0.8).density == 0.8
    (other / "metadata.json").write_text(json.dumps({"parameters": {"density": 0.8, "train_rate": 0.7}}))
    assert read_world(other).density == 0.8
    (other / "metadata.json").write_text(json.dumps({"parameters": {"density": 0.65, "train_rate": 0.7}}))
    with pytest.raises(ValueError, match=r"a density of 0\.65 leaves 0\.358"):
        read_world(other)
    (other / "metadata.json").write_text("[")
    with pytest.raises(ValueError, match=r"metadata\.json: must be JSON"):
        read_world(other)


def test_queries_of_strangers_are_refused(folder):
    (folder / "queries.tsv").write_text("query\tside\tentity\trelation\nq\ttail\tz\tr\n")
    with pytest.raises(ValueError, match=r"queries\.tsv: the graph has no entity 'z'"):
        read_world(folder)
    (folder / "queries.tsv").write_text("query\tside\n")
    with pytest.raises(ValueError, match=r"queries\.tsv: must be a table of side, entity and relation"):
        read_world(folder)
    (folder / "queries.tsv").write_text("query\tside\tentity\trelation\nq\thead\ta\tr\n")
    with pytest.raises(ValueError, match="must have a query for tails"):
        read_world(folder)


def test_no_world_at_all(tmp_path):
    with pytest.raises(ValueError, match="must be a folder"):
        read_worlds(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="holds no open world"):
        read_worlds(tmp_path)
    shutil.rmtree(tmp_path)


def test_the_worst_answers_of_a_model_are_missing(folder):
    world = read_world(folder)
    query = np.repeat(np.arange(3), 6)
    triples = np.stack([query, 0 * query, np.arange(18)], axis=1).astype(np.int32)
    # A third is missing in the sparse test.
    present = np.arange(18) % 3 > 0
    world = world._replace(triples=triples, query=query, present={SPARSE: present})
    score = np.random.default_rng(0).permutation(18).astype(float)
    kept = []
    for seed in range(200):
        present = with_correlated(world, score, seed).present[CORRELATED]
        for query in range(world.num_queries):
            own = world.query == query
            assert present[own].any()
            # What is kept scores above all that is missing.
            assert score[own & present].min() >= score[own & ~present].max(initial=-1)
        kept.append(present.mean())
    # Of six answers min(Binomial(6, 1/3), 5) are missing: two in the mean, but for the one that always stays.
    assert abs(np.mean(kept) - (1 - (2 - 3.0**-6) / 6)) < 4 * np.std(kept) / len(kept) ** 0.5
    level = with_correlated(world, np.zeros(18), 0).present[CORRELATED].reshape(3, 6)
    assert (np.diff(level.astype(int), axis=1) <= 0).all()
    given = world._replace(present=world.present | {CORRELATED: np.ones(len(score), bool)})
    assert with_correlated(given, score) is given
    for wrong in (np.zeros(3), np.full(18, np.nan)):
        with pytest.raises(ValueError, match="`score` must be"):
            with_correlated(world, wrong)


@pytest.mark.parametrize("name", ["train.txt", "test_full.txt", "entities.dict", "queries.tsv"])
def test_a_world_that_is_not_as_it_was_written_is_refused(tmp_path, name):
    facts = np.array([[h, r, t] for h in range(9) for r in range(2) for t in range(9) if h != t], np.int32)
    graph = kg.KnowledgeGraph(tuple("abcdefghi"), ("r", "s"), {"facts": facts})
    drawn = sample(graph, density=0.75, train_rate=0.5, min_answers=2, num_queries=9, seed=0)
    folder = tmp_path / "world"
    write_worlds([drawn], folder)
    read_world(folder)
    (folder / "README.md").write_text("my own words")
    read_world(folder)
    lines = (folder / name).read_text().splitlines(keepends=True)
    (folder / name).write_text("".join(lines[:-1]))
    with pytest.raises(ValueError, match=f"{name}: was changed after it was written: its checksum"):
        read_world(folder)

"""Entity alignment: files, messages, training, ranks and assignment, each against a plain computation."""

import gzip
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse

import owkg
from owkg import align
from owkg.align import Alignment, Config
from owkg.align.gcn import adjacency, convolved
from owkg.align.sparse import sparse_matrix, sparse_product
from owkg.kg import KnowledgeGraph
from owkg.models.similarity import minus_l1
from owkg.ranks.table import validated
from simulations.berrendorf2020.alignment import two_views

FILES = {
    "ent_ids_1": "0\tzh:a\n4\tzh:b\n2\tzh:c\n",
    "ent_ids_2": "10\ten:a\n11\ten:b\n12\ten:c\n",
    "triples_1": "0 7 4\n4\t8\t2\n",
    "triples_2": "10\t7\t11\n",
    "ref_ent_ids": "0\t10\n4\t11\n2\t12\n",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def made(pairs, left=6, right=7, train=()):
    """An alignment of unlabelled entities; triples stand where they must."""
    rng = np.random.default_rng(0)
    graphs = [
        KnowledgeGraph(
            tuple(f"{side}{i}" for i in range(n)),
            ("r", "s"),
            {"train": np.stack([rng.integers(0, m, 9) for m in (n, 2, n)], axis=1).astype(np.int32)},
        )
        for side, n in (("a", left), ("b", right))
    ]
    shaped = [np.asarray(p, np.int32).reshape(-1, 2) for p in (train, pairs)]
    return Alignment(graphs[0], graphs[1], shaped[0], shaped[1])


# --- files


def test_files_in_the_layout_of_dbp15k(folder):
    data = align.read_alignment(folder, train_share=1 / 3, seed=3)
    assert data.left.entities == ("zh:a", "zh:b", "zh:c")
    np.testing.assert_array_equal(data.left.splits["train"], [[0, 0, 1], [1, 1, 2]])
    both = np.concatenate([data.train, data.test])
    assert (len(data.train), sorted(both.tolist())) == (1, [[0, 0], [1, 1], [2, 2]])
    assert data.one_to_one


def test_packed_files_and_given_training_pairs(folder):
    (folder / "ref_ent_ids").unlink()
    (folder / "ref_ent_ids.gz").write_bytes(gzip.compress(b"4 11\n"))
    (folder / "sup_ent_ids").write_text("0 10\n2 12\n")
    data = align.read_alignment(folder, seed=5)
    assert (data.train.tolist(), data.test.tolist()) == ([[0, 0], [2, 2]], [[1, 1]])


OPENEA = {
    "rel_triples_1": "zh/a\tr\tzh/b\nzh/b\ts\tzh/c\n",
    "rel_triples_2": "en/c\tr\ten/b\nen/b\tr\ten/a\n",
    "attr_triples_1": "zh/a\tis\t1\n",
    "ent_links": "zh/a\ten/a\nzh/b\ten/b\nzh/c\ten/c\n",
    "721_5fold/1/train_links": "zh/a\ten/a\n",
    "721_5fold/1/valid_links": "zh/b\ten/b\n",
    "721_5fold/1/test_links": "zh/c\ten/c\n",
    "721_5fold/2/train_links": "zh/c\ten/c\n",
    "721_5fold/2/valid_links": "zh/a\ten/a\n",
    "721_5fold/2/test_links": "zh/b\ten/b\n",
}


def openea(tmp_path, **changed):
    for name, text in (OPENEA | changed).items():
        if text is None:
            continue
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(("fold", "pairs"), [(None, (0, 2)), (1, (0, 2)), (2, (2, 1))])
def test_files_in_the_layout_of_openea(tmp_path, fold, pairs):
    folder = openea(tmp_path)
    with pytest.warns(UserWarning, match=rf"fold {fold or 1} of 2 is used; its 1 validation pairs"):
        data = align.read_alignment(folder, fold=fold)
    assert data.left.entities == ("zh/a", "zh/b", "zh/c")
    assert data.right.entities == ("en/a", "en/b", "en/c")
    np.testing.assert_array_equal(data.left.splits["train"], [[0, 0, 1], [1, 1, 2]])
    np.testing.assert_array_equal(data.right.splits["train"], [[2, 0, 1], [1, 0, 0]])
    assert (data.train.tolist(), data.test.tolist()) == tuple([[i, i]] for i in pairs)


@pytest.mark.filterwarnings("ignore:.*fold 1 of 2")
def test_a_share_of_pairs_that_are_in_files_is_refused(tmp_path, folder):
    (folder / "sup_ent_ids").write_text("0 10\n2 12\n")
    with pytest.raises(ValueError, match=r"`train_share` has no effect on .*, whose .* are in .*sup_ent_ids"):
        align.read_alignment(folder, train_share=0.3)
    other = openea(tmp_path / "openea")
    with pytest.raises(ValueError, match=r"`train_share` has no effect with `fold`"):
        align.read_alignment(other, train_share=0.3, fold=1)
    with pytest.raises(
        ValueError, match=r"`train_share` has no effect on .*, whose .* are in .*1/train_links"
    ):
        align.read_alignment(other, train_share=0.3)


def test_openea_without_folds_is_split_at_random(tmp_path):
    folder = openea(tmp_path, **{name: None for name in OPENEA if "fold" in name})
    data = align.read_alignment(folder, train_share=1 / 3)
    assert (len(data.train), len(data.test)) == (1, 2)
    with pytest.raises(ValueError, match=r"`fold` must be left out for .*, which has no folds, got 1"):
        align.read_alignment(folder, fold=1)


@pytest.mark.parametrize(
    ("changed", "fold", "words"),
    [
        ({}, 3, "`fold` must be one of 1, 2, got 3"),
        ({"rel_triples_2": "en/a\tr\n"}, 1, "rel_triples_2, line 1: must be head, relation and tail"),
        ({"ent_links": "zh/a en/a\n"}, 1, "ent_links, line 1: must be a pair of labels"),
        ({"721_5fold/1/test_links": "zh/x\ten/c\n"}, 1, "line 1: the left entity 'zh/x' is not in"),
        (
            {"721_5fold/1/test_links": "zh/a\ten/a\n"},
            1,
            "test_links, line 1: the pair is already in train_links",
        ),
        ({"631_5fold/1/test_links": "zh/a\ten/a\n"}, 1, "one folder of folds, got 631_5fold, 721_5fold"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*fold 1 of 2")
def test_bad_folders_of_openea(tmp_path, changed, fold, words):
    with pytest.raises(ValueError, match=words):
        align.read_alignment(openea(tmp_path, **changed), fold=fold)


def test_a_missing_file_of_openea_and_a_fold_of_dbp15k(tmp_path, folder):
    with pytest.raises(ValueError, match=r"`fold` has no effect on .*, which is not in the layout of OpenEA"):
        align.read_alignment(folder, fold=1)
    other = openea(tmp_path / "openea", ent_links=None)
    with pytest.raises(FileNotFoundError, match=r"must hold a file ent_links or ent_links\.gz"):
        align.read_alignment(other)


def test_entities_of_pairs_without_a_triple_are_noted(tmp_path):
    links = OPENEA["ent_links"] + "zh/z\ten/z\n"
    folder = openea(tmp_path, ent_links=links, **{name: None for name in OPENEA if "fold" in name})
    with pytest.warns(UserWarning, match="1 entities are in no triple of rel_triples_"):
        assert align.read_alignment(folder).left.num_entities == 4


def test_shares_of_one_seed_are_nested_and_splits_differ_by_seed():
    data = made([(i, i) for i in range(6)])
    few, many, other = (
        align.split_pairs(data, share, seed) for share, seed in ((0.2, 1), (0.5, 1), (0.5, 2))
    )
    assert many.train[: len(few.train)].tolist() == few.train.tolist()
    assert many.train.tolist() != other.train.tolist()
    again = align.split_pairs(many, 0.5, 1)
    assert again.train.tolist() == many.train.tolist()
    assert len(align.split_pairs(data, 0.999, 1).test) == 1


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "ref_ent_ids",
            "0\t10\n4\t10\n",
            r"ref_ent_ids, line 2: the right entity 'en:a' is already in a pair in",
        ),
        ("ref_ent_ids", "0\t10\n0\t10\n", r"ref_ent_ids, line 2: the pair is already in ref_ent_ids, line 1"),
        ("ref_ent_ids", "0\t10\n4\t99\n", r"ref_ent_ids, line 2: the right 99 is not an entity of its graph"),
        ("ref_ent_ids", "10\t0\n", r"ref_ent_ids, line 1: the left 10 is not an entity"),
        ("ref_ent_ids", "", r"ref_ent_ids, line 1: must hold something"),
        ("triples_1", "0 7 4\n0 7\n", r"triples_1, line 2: must be the ids of head, relation and tail"),
        ("triples_1", "0 7 5\n", r"triples_1, line 1: the tail 5 is not an entity"),
        ("ent_ids_2", "10\ten:a\n10\ten:b\n", r"ent_ids_2, line 2: the id '10' is already on line 1"),
        ("sup_ent_ids", "0\t10\n", r"ref_ent_ids, line 1: the pair is already in sup_ent_ids, line 1"),
    ],
)
def test_bad_files_are_named_with_their_line(folder, name, text, message):
    (folder / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        align.read_alignment(folder)


def test_entities_in_several_pairs_are_read_when_asked_for(folder):
    (folder / "ref_ent_ids").write_text("0\t10\n4\t10\n")
    data = align.read_alignment(folder, train_share=0, many_to_many=True)
    assert (len(data.test), data.one_to_one) == (2, False)


@pytest.mark.parametrize("share", [-0.1, 1, 1.5, float("nan")])
def test_a_share_leaves_pairs_to_test(folder, share):
    with pytest.raises(ValueError, match="`train_share`"):
        align.read_alignment(folder, train_share=share)


def test_a_missing_file_is_named(folder):
    (folder / "triples_2").unlink()
    with pytest.raises(FileNotFoundError, match="triples_2"):
        align.read_alignment(folder)


# --- messages and training


def test_a_product_and_its_derivative_are_those_of_the_matrix():
    rng = np.random.default_rng(0)
    dense = jnp.asarray(rng.standard_normal((90, 5)), jnp.float32)
    matrix = sparse.random_array((90, 90), density=0.1, rng=rng).tolil()
    matrix[3] = rng.random(90)  # longer than any width
    matrix[7] = 0
    matrix = matrix.tocsr()
    shaped = sparse_matrix(matrix)
    np.testing.assert_allclose(sparse_product(shaped, dense), matrix @ dense, atol=1e-5)
    slope = rng.standard_normal((90, 5)).astype(np.float32)
    _, back = jax.vjp(lambda x: sparse_product(shaped, x), dense)
    np.testing.assert_allclose(back(jnp.asarray(slope))[0], matrix.T @ slope, atol=1e-5)


def test_weights_of_messages_by_a_loop_over_triples():
    data = made([(0, 0)])
    found = adjacency(data).toarray()
    total = data.left.num_entities + data.right.num_entities
    plain = np.eye(total)
    for graph, first in ((data.left, 0), (data.right, data.left.num_entities)):
        facts = graph.splits["train"].tolist()
        for h, r, t in facts:
            own = [fact for fact in facts if fact[1] == r]
            if h != t:
                plain[first + h, first + t] += max(len({fact[2] for fact in own}) / len(own), 0.3)
                plain[first + t, first + h] += max(len({fact[0] for fact in own}) / len(own), 0.3)
    degree = plain.sum(axis=0)
    np.testing.assert_allclose(found, plain / np.sqrt(np.outer(degree, degree)), rtol=1e-12)
    incoming = adjacency(data, "incoming").toarray()
    np.testing.assert_allclose(incoming, plain / plain.sum(axis=1, keepdims=True), rtol=1e-12)


def test_without_training_pairs_random_embeddings_are_convolved():
    data = made([(i, i) for i in range(6)])
    config = Config(dim=5, steps=20)
    raw = np.concatenate(align.initial_embeddings(data, config))
    np.testing.assert_allclose(np.linalg.norm(raw, axis=1), 1, rtol=1e-6)
    weights = adjacency(data).toarray()
    plain = weights @ np.maximum(weights @ raw, 0)
    np.testing.assert_allclose(np.concatenate(align.train_gcn(data, config)), plain, atol=1e-6)
    np.testing.assert_allclose(convolved(sparse_matrix(adjacency(data)), 3 * raw), plain, atol=1e-6)


def test_two_views_of_one_world_are_aligned():
    views = two_views(0)
    data = align.split_pairs(views, 0.3, 0)
    told = []
    config = Config(dim=32, steps=25)
    found = align.train_gcn(data, config, on_progress=lambda done, total: told.append((done, total)))
    values = owkg.evaluate(align.rank_embeddings(data, *found), ["hits@1", "amri"], ci=None)["value"]
    assert values[0] > 0.4
    assert values[1] > 0.95
    assert told == [(10, 25), (20, 25), (25, 25)]
    np.testing.assert_array_equal(found[0], align.train_gcn(data, config)[0])
    assert (found[0] != align.train_gcn(data, Config(dim=32, steps=25, seed=1))[0]).any()


def test_raw_embeddings_are_chance():
    data = align.split_pairs(two_views(0), 0, 0)
    values = [
        owkg.evaluate(
            align.rank_embeddings(data, *align.initial_embeddings(data, Config(dim=16, seed=seed))),
            ["amri"],
            ci=None,
        )["value"].item()
        for seed in range(8)
    ]
    assert abs(np.mean(values)) < 4 * np.std(values, ddof=1) / np.sqrt(len(values))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 0}, "`dim`"),
        ({"steps": -1}, "`steps`"),
        ({"learning_rate": 0}, "`learning_rate`"),
        ({"margin": float("nan")}, "`margin`"),
        ({"num_negatives": 0}, "`num_negatives`"),
        ({"seed": -1}, "`seed`"),
        ({"seed": 2**32}, "`seed` must be below"),
        ({"normalisation": "row"}, "`normalisation` must be one of symmetric, incoming, got 'row'"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Config(**options)


# --- ranks


def plain_ranks(scores, pairs):
    """(optimistic, pessimistic, candidates) of the tail of each pair, by a loop."""
    found = []
    for i, j in pairs:
        others = {b for a, b in pairs if a == i and b != j}
        candidates = {b for _, b in pairs} - others
        above = sum(scores[i, b] > scores[i, j] for b in candidates)
        level = sum(scores[i, b] >= scores[i, j] for b in candidates)
        found.append((1 + above, level, len(candidates)))
    return found


ONE_TO_ONE = [(0, 3), (2, 0), (5, 6), (1, 1)]
MANY = [(0, 3), (0, 4), (2, 0), (5, 3), (1, 1), (2, 6)]


@pytest.mark.parametrize("pairs", [ONE_TO_ONE, MANY])
@pytest.mark.parametrize("similarity", ["l1", "l2", "dot", "cosine", None])
def test_ranks_by_a_loop_over_candidates(pairs, similarity):
    data = made(pairs)
    rng = np.random.default_rng(1)
    # Small whole numbers: sums are exact, and there are ties.
    left, right = (rng.integers(-2, 3, (n, 3)).astype(np.float32) for n in (6, 7))
    left[:, 0], right[:, 0] = 4, 4  # none is zero
    apart = left[:, None] - right
    scores = {
        "l1": -np.abs(apart).sum(-1),
        "l2": -np.sqrt((apart**2).sum(-1)),
        "dot": left @ right.T,
        "cosine": None,
        None: rng.integers(0, 3, (6, 7)).astype(np.float64),
    }[similarity]
    if similarity == "cosine":
        units = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (left, right)]
        scores = np.asarray(units[0] @ units[1].T)
        data = made(ONE_TO_ONE)
        pairs = ONE_TO_ONE
    if similarity is None:
        table = align.rank_matrix(data, scores)
    else:
        table = align.rank_embeddings(data, left, right, similarity=similarity, model="m")
        assert set(table.frame["model"]) == {"m"}
    validated(table.frame)
    columns = table.frame.select("optimistic", "pessimistic", "candidates").rows()
    tail, head = columns[: len(pairs)], columns[len(pairs) :]
    if similarity == "cosine":  # rounded: ties may part
        assert [row[2] for row in columns] == [4] * 8
        return
    assert tail == plain_ranks(scores, pairs)
    assert head == plain_ranks(scores.T, [(b, a) for a, b in pairs])
    assert table.frame["head"].to_list() == [f"a{i}" for i, _ in pairs] * 2
    assert set(table.frame["relation"]) == {"sameAs"}


@pytest.mark.parametrize("count", [1, 511, 513, 1300])
def test_tiles_leave_no_pair_out(count):
    rng = np.random.default_rng(count)
    data = made([(i, i) for i in range(count)], left=count, right=count)
    left, right = (rng.standard_normal((count, 20)).astype(np.float32) for _ in "ab")
    table = align.rank_embeddings(data, left, right).frame
    similarity = align.similarity_of_pairs(data, (left, right))
    np.testing.assert_allclose(
        similarity, minus_l1(0.0).all(jnp.asarray(left), jnp.asarray(right)), rtol=1e-6
    )
    by_matrix = align.rank_matrix(data, similarity).frame
    assert table.equals(by_matrix)
    own = np.diagonal(similarity)
    for side, matrix in (("tail", similarity), ("head", similarity.T)):
        found = table.filter(side=side)
        assert found["optimistic"].to_list() == (1 + (matrix > own[:, None]).sum(axis=1)).tolist()
        assert found["pessimistic"].to_list() == (matrix >= own[:, None]).sum(axis=1).tolist()


def test_popularity_counts_the_triples_of_the_answer():
    data = made(ONE_TO_ONE)
    table = align.rank_embeddings(data, np.ones((6, 2)), np.ones((7, 2))).frame
    facts = data.right.splits["train"]
    expected = [
        int(((facts[:, 0] == j) | (facts[:, 2] == j)).sum() + ((facts[:, 0] == j) & (facts[:, 2] == j)).sum())
        for _, j in ONE_TO_ONE
    ]
    assert table["popularity"].to_list()[:4] == expected


@pytest.mark.parametrize(
    ("left", "right", "similarity", "message"),
    [
        (np.ones((5, 2)), np.ones((7, 2)), "l1", r"`left` must be floats of shape \[6, d\]"),
        (np.ones((6, 2)), np.ones((7, 3)), "l1", "`right` must be as wide as `left`, 2, got 3"),
        (
            np.ones((6, 2)),
            np.full((7, 2), np.nan),
            "l1",
            "`right` must be finite, got NaN or infinity for entity 0",
        ),
        (np.full((6, 2), np.inf), np.ones((7, 2)), "l1", "`left` must be finite"),
        (np.ones((6, 2), int), np.ones((7, 2)), "l1", "`left` must be floats"),
        (np.ones((6, 2)), np.ones((7, 2)), "l3", "`similarity` must be one of l1, l2, dot, cosine, got 'l3'"),
    ],
)
def test_bad_embeddings_are_named(left, right, similarity, message):
    with pytest.raises(ValueError, match=message):
        align.rank_embeddings(made(ONE_TO_ONE), left, right, similarity=similarity)


def test_bad_similarities_are_named():
    data, matrix = made(ONE_TO_ONE), np.ones((6, 7))
    with pytest.raises(ValueError, match=r"`matrix` must be floats of shape \(6, 7\) .* or \(4, 4\)"):
        align.rank_matrix(data, matrix.T)
    matrix[2, 5] = np.nan
    with pytest.raises(ValueError, match="`matrix` must not be NaN, got NaN at row 2, column 5"):
        align.rank_matrix(data, matrix)
    with pytest.raises(ValueError, match=r"`matrix` must be of all entities, \(6, 7\)"):
        align.rank_matrix(made(MANY), np.ones((6, 6)))
    with pytest.raises(ValueError, match="`alignment` must have test pairs"):
        align.rank_matrix(made([]), np.ones((6, 7)))


# --- assignment


def test_the_assignment_is_the_best_of_all():
    rng = np.random.default_rng(2)
    matrix = rng.standard_normal((6, 6))
    orders = list(itertools.permutations(range(6)))
    best = max(orders, key=lambda order: matrix[range(6), order].sum())
    assert align.assigned(matrix).tolist() == [row == column for row, column in enumerate(best)]


@pytest.mark.parametrize(
    "matrix", [np.ones((2, 3)), np.full((2, 2), np.nan), np.ones((2, 2), int), np.ones((0, 0))]
)
def test_what_cannot_be_assigned_is_refused(matrix):
    with pytest.raises(ValueError, match="`similarity` must be"):
        align.assigned(matrix)


# --- embeddings of others


def test_embeddings_come_back_also_in_another_order(tmp_path):
    data = made(ONE_TO_ONE)
    left, right = np.random.default_rng(0).standard_normal((2, 7, 3))
    left = left[:6]
    align.write_entity_embeddings(tmp_path / "e.npz", data, left, right)
    for found, given in zip(
        align.read_entity_embeddings(tmp_path / "e.npz", data), (left, right), strict=True
    ):
        np.testing.assert_array_equal(found, given)
    order = np.random.default_rng(1).permutation(7)
    names = np.array(data.right.entities)[order]
    np.savez(tmp_path / "moved.npz", left=left, right=right[order], right_labels=names)
    np.testing.assert_array_equal(align.read_entity_embeddings(tmp_path / "moved.npz", data)[1], right)
    matrix = left @ right.T
    np.savez(tmp_path / "matrix.npz", similarity=matrix[:, order], right_labels=names)
    np.testing.assert_array_equal(align.read_similarity(tmp_path / "matrix.npz", data), matrix)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"left": np.ones((6, 2))}, "holds no array right; arrays found: left"),
        ({"left": np.ones((6, 2)), "right": np.array(["a"])}, "right must be an array of floats"),
        (
            {"left": np.ones((1, 2)), "right": np.ones((7, 2)), "left_labels": np.array(["a0"])},
            "left_labels lack 5 of 6 entities, such as 'a1'",
        ),
        (
            {"left": np.ones((2, 2)), "right": np.ones((7, 2)), "left_labels": np.array(["a0", "a0"])},
            "left_labels must be unique",
        ),
        (
            {"left": np.ones((2, 2)), "right": np.ones((7, 2)), "left_labels": np.array(["a0"])},
            "left_labels must be 2 texts",
        ),
    ],
)
def test_bad_files_of_embeddings_are_named(tmp_path, arrays, message):
    np.savez(tmp_path / "e.npz", **arrays)
    with pytest.raises(ValueError, match=f"e.npz: {message}"):
        align.read_entity_embeddings(tmp_path / "e.npz", made(ONE_TO_ONE))


def test_no_pickle_is_loaded(tmp_path):
    np.savez(tmp_path / "e.npz", left=np.array([object()]), right=np.ones((7, 2)))
    with pytest.raises(ValueError, match=r"'left' must be a plain array.*which owkg never loads"):
        align.read_entity_embeddings(tmp_path / "e.npz", made(ONE_TO_ONE))


@pytest.mark.parametrize("similarity", ["l1", "l2", "dot", "cosine"])
@pytest.mark.parametrize("factor", [1e-300, 1e-30, 1e30, 1e300])
def test_the_unit_of_embeddings_does_not_change_ranks(similarity, factor):
    rng = np.random.default_rng(4)
    data = made([[i, i] for i in range(6)])
    left, right = rng.normal(size=(6, 5)), rng.normal(size=(7, 5))
    expected = align.rank_embeddings(data, left, right, similarity=similarity).frame
    found = align.rank_embeddings(data, left * factor, right * factor, similarity=similarity).frame
    assert found.equals(expected)
    if similarity in ("l1", "l2"):  # distances know no origin
        far = align.rank_embeddings(data, left + 1e9, right + 1e9, similarity=similarity).frame
        assert far.equals(expected)


def test_proportional_embeddings_are_tied_by_cosine():
    data = made([[i, i] for i in range(6)])
    row = np.random.default_rng(1).normal(size=64).astype(np.float32)
    left, right = np.tile(row, (6, 1)), np.arange(1, 8, dtype=np.float32)[:, None] * row
    found = align.rank_embeddings(data, left, right, similarity="cosine").frame
    assert found["optimistic"].to_list() == [1] * 12
    assert found["pessimistic"].to_list() == [6] * 12

"""Breakdown numbers, held against all labellings of small worlds."""

from itertools import combinations

import numpy as np
import pytest
from scipy import optimize

from owkg.auditing import Pair, breakdown
from owkg.auditing.breakdown import Tail, _certified, breakdown_over_seeds, demonstrations, lower_bounds
from owkg.auditing.lists import Prepared
from owkg.auditing.sources import systems_of

RANKS = np.maximum(np.arange(30.0), 1)
WEIGHTS = {
    "mrr": 1 / RANKS,
    "hits@1": (RANKS <= 1) * 1.0,
    "hits@3": (RANKS <= 3) * 1.0,
    "p-mrr@1/2": RANKS**-0.5,
}


def world(rng, *, depth=None):
    """(pair, ranks of the candidates, which the pair knows down to `depth` alone)."""
    queries = int(rng.integers(1, 4))
    most = int(rng.integers(2, 5)) if queries > 1 else int(rng.integers(3, 9))
    known, place = np.zeros((2, queries, 3), int), np.zeros((2, queries, most), int)
    for q in range(queries):
        answers, candidates = int(rng.integers(1, 4)), int(rng.integers(0, most + 1))
        for x in (0, 1):
            score, right = rng.normal(size=candidates), rng.normal(size=answers) + 1
            known[x, q, :answers] = [1 + (score > s).sum() for s in right]
            place[x, q, :candidates] = [1 + (score > s).sum() for s in score]
    largest = (place[0] > 0).sum(1)
    if depth is None:
        return Pair(known, place, place, np.zeros((2, queries), int), largest), place
    listed = (place > 0) & (place <= depth)
    low = np.where(listed, place, np.where(place > 0, depth + 1, 0))
    high = np.where(listed, place, np.where(place > 0, largest[:, None], 0))
    seen = listed.any(0)  # what neither lists is no candidate of the pair by name
    beyond = np.where((place > depth).any(2), depth + 1, 0)
    return Pair(known, np.where(seen, low, 0), np.where(seen, high, 0), beyond, largest), place


def sums(known, place, facts, weights):
    """The sum of h by A less h by B of each query, and its number of answers, by the definition."""
    total, count = np.zeros(known.shape[1]), np.zeros(known.shape[1])
    for x, sign in ((0, 1), (1, -1)):
        for q in range(known.shape[1]):
            of_facts = place[x, q][facts[q]]
            ranks = [*known[x, q][known[x, q] > 0], *of_facts]
            total[q] += sign * sum(weights[r - (of_facts < r).sum()] for r in ranks)
            count[q] = len(ranks)
    return total, count


def turned(known, place, facts, weights, *, macro):
    total, count = sums(known, place, facts, weights)
    return (total / count if macro else total).sum() <= 1e-9


def fewest(there, is_turned):
    """How many facts the smallest labelling has that turns the order, by trying all; None if none does."""
    where = np.argwhere(there)
    for m in range(len(where) + 1):
        for chosen in combinations(where, m):
            facts = np.zeros(there.shape, bool)
            for q, c in chosen:
                facts[q, c] = True
            if is_turned(facts):
                return m
    return None


def smallest(known, place, weights, *, macro):
    return fewest(place[0] > 0, lambda facts: turned(known, place, facts, weights, macro=macro))


@pytest.mark.parametrize("macro", [False, True])
@pytest.mark.parametrize("depth", [None, 2])
def test_certified_and_demonstrated_enclose_the_truth(depth, macro):
    """1,000 worlds over the four cases; with whole lists the three are equal in 90 % at least."""
    rng, equal, compared = np.random.default_rng(7), 0, 0
    while compared < 250:
        name = list(WEIGHTS)[compared % 4]
        pair, place = world(rng, depth=depth)
        no_facts = np.zeros(place.shape[1:], bool)
        if turned(pair.known, place, no_facts, WEIGHTS[name], macro=macro):
            continue
        compared += 1
        found = breakdown(pair, WEIGHTS[name], macro=macro)
        truth = smallest(pair.known, place, WEIGHTS[name], macro=macro)
        if found.certified == -1:
            assert truth is None
        elif truth is not None:
            assert found.certified <= truth
        if found.demonstrated >= 0:
            assert truth is not None
            assert truth <= found.demonstrated == found.facts.sum()
            assert turned(pair.known, place, found.facts, WEIGHTS[name], macro=macro)
        equal += (found.certified, found.demonstrated) == ((-1, -1) if truth is None else (truth, truth))
    assert equal >= (0.9 if depth is None else 0.8) * compared


def without_lists(pair):
    """The pair of an audit without lists."""
    none = np.zeros((2, pair.known.shape[1], 0), int)
    return Pair(pair.known, none, none, np.ones((2, pair.known.shape[1]), int), pair.largest)


@pytest.mark.parametrize("macro", [False, True])
def test_certified_of_means_over_seeds(macro):
    """Three seeds of both systems: the same facts are missing under each; against all labellings."""
    rng, compared, above_least = np.random.default_rng(9), 0, 0
    while compared < 30:
        weights = WEIGHTS[list(WEIGHTS)[compared % 4]]
        first, place = world(rng)
        each = [(first, place)]
        while len(each) < 3:
            # Another seed ranks the same answers and candidates anew.
            known, other = first.known.copy(), place.copy()
            for x, q in np.ndindex(known.shape[:2]):
                score = rng.normal(size=int(first.largest[q]))
                right = rng.normal(size=int((known[x, q] > 0).sum())) + 1
                known[x, q, : len(right)] = [1 + (score > s).sum() for s in right]
                other[x, q, : len(score)] = [1 + (score > s).sum() for s in score]
            each.append((first._replace(known=known, low=other, high=other), other))

        def is_turned(facts, each=each, weights=weights):
            parts = [sums(pair.known, own, facts, weights) for pair, own in each]
            total = np.mean([of for of, _ in parts], 0)
            return (total / parts[0][1] if macro else total).sum() <= 1e-9

        if is_turned(np.zeros(place.shape[1:], bool)):
            continue
        compared += 1
        pairs = [without_lists(pair) for pair, _ in each]
        values = [np.where(pair.known[0] > 0, weights[pair.known[0]], 0.0) for pair in pairs]
        found = breakdown_over_seeds(list(zip(pairs, values, strict=True)), weights, macro=macro)
        truth = fewest(place[0] > 0, is_turned)
        assert found.demonstrated == -1
        if found.certified == -1:
            assert truth is None
        elif truth is not None:
            assert found.certified <= truth
        least = min(breakdown(pair, weights, macro=macro).certified for pair in pairs)
        above_least += found.certified > least
    assert above_least > compared / 4


@pytest.mark.parametrize("name", WEIGHTS)
def test_bounds_and_demonstrations_of_each_query(name):
    """For every k: bound <= the least over all labellings of k facts <= what the greedy choice attains."""
    rng, exact = np.random.default_rng(8), []
    for _ in range(60):
        pair, place = world(rng)
        bounds, _ = lower_bounds(pair, WEIGHTS[name])
        attained, order = demonstrations(pair, WEIGHTS[name])
        for q in range(len(bounds)):
            candidates = np.flatnonzero(place[0, q])
            for k in range(len(candidates) + 1):
                least = np.inf
                for chosen in combinations(candidates, k):
                    facts = np.zeros(place.shape[1:], bool)
                    facts[q, list(chosen)] = True
                    least = min(least, sums(pair.known, place, facts, WEIGHTS[name])[0][q])
                assert bounds[q, k] <= least + 1e-9
                assert attained[q, k] >= least - 1e-9
                facts = np.zeros(place.shape[1:], bool)
                facts[q, order[q, :k]] = True
                assert attained[q, k] == pytest.approx(sums(pair.known, place, facts, WEIGHTS[name])[0][q])
                if k == 1:
                    exact.append(bounds[q, 1] == pytest.approx(least))
    assert all(exact)


def whole_runs(rng, folder, form):
    """Two runs that list every document to every query and their qrels, as files; ranks of what they hold."""
    queries, documents = int(rng.integers(2, 4)), 6
    names = [form.format(q) for q in range(queries)]
    score = rng.normal(size=(2, queries, documents))
    answers = np.array([rng.permutation(documents) < rng.integers(1, 4) for _ in names])
    score += answers * rng.normal(0.5, 1, (2, 1, 1))
    known, place = (np.zeros((2, queries, documents), int) for _ in range(2))
    for x, q in np.ndindex(2, queries):
        own, right = score[x, q], answers[q]
        rank = 1 + (own[~right] > own[:, None]).sum(1)
        known[x, q, right], place[x, q, ~right] = rank[right], rank[~right]
    files = [folder / "a.run", folder / "b.run"]
    for x, path in enumerate(files):
        path.write_text(
            "".join(
                f"{names[q]} Q0 d{d} 0 {float(score[x, q, d])!r} {path.stem}\n"
                for q, d in np.ndindex(*score.shape[1:])
            )
        )
    qrels = folder / "test.qrels"
    qrels.write_text("".join(f"{names[q]} 0 d{d} 1\n" for q, d in np.argwhere(answers)))
    return files, qrels, known, place


@pytest.mark.parametrize(("form", "macro"), [("d{}|r|?", False), ("q{}", True)])
def test_whole_runs_without_a_graph_are_their_own_lists(tmp_path, form, macro):
    """50 worlds of each, held against all labellings; the numbers are those of the world itself."""
    rng, compared, equal = np.random.default_rng(3), 0, 0
    while compared < 50:
        name = list(WEIGHTS)[compared % 4]
        files, qrels, known, place = whole_runs(rng, tmp_path, form)
        if turned(known, place, np.zeros(place.shape[1:], bool), WEIGHTS[name], macro=macro):
            continue
        compared += 1
        tables, rule, runs = systems_of(files, qrels, None, None)
        found = breakdown(
            Prepared(tables, None, runs, rule, all_ranked=True).pair("a", "b"), WEIGHTS[name], macro=macro
        )
        truth = smallest(known, place, WEIGHTS[name], macro=macro)
        ranks = [packed(of) for of in (known, place, place)]
        pair = Pair(*ranks, np.zeros(place.shape[:2], int), (place[0] > 0).sum(1))
        assert found[:2] == breakdown(pair, WEIGHTS[name], macro=macro)[:2]
        if truth is None:
            assert found.demonstrated == -1
        else:
            assert 0 <= found.certified <= truth
            assert found.demonstrated == -1 or found.demonstrated >= truth
        equal += found[:2] == ((-1, -1) if truth is None else (truth, truth))
    assert equal >= 0.75 * compared


def packed(ranks):
    """Ranks of each query before the zeros."""
    return np.take_along_axis(
        ranks, np.broadcast_to(np.argsort(ranks[:1] == 0, kind="stable"), ranks.shape), -1
    )


FUNCTIONS = {
    "mrr": lambda r: 1 / r,
    "hits@1": lambda r: np.asarray(r <= 1, float),
    "hits@3": lambda r: np.asarray(r <= 3, float),
    "p-mrr@1/2": lambda r: r**-0.5,
}


def of_ties(name, low, high, rule):
    """h of an answer between its optimistic and its pessimistic rank."""
    if rule == "exact":
        return FUNCTIONS[name](np.arange(low, high + 1.0)).mean()
    return FUNCTIONS[name]({"optimistic": low, "pessimistic": high, "realistic": (low + high) / 2}[rule])


def tied_world(rng):
    """(pair, scores of answers and of candidates): few scores, so that many are equal."""
    queries, most = int(rng.integers(1, 3)), 5
    right, score = np.full((2, queries, 2), -1), np.full((2, queries, most), -1)
    for q in range(queries):
        answers, candidates = int(rng.integers(1, 3)), int(rng.integers(1, most + 1))
        for x in (0, 1):
            score[x, q, :candidates] = rng.integers(0, 3, candidates)
            right[x, q, :answers] = np.minimum(rng.integers(0, 4, answers) + (1 - x), 3)
    there = score >= 0
    above = there[:, :, None] & (score[:, :, None] > right[..., None])
    equal = there[:, :, None] & (score[:, :, None] == right[..., None])
    known = np.where(right >= 0, 1 + above.sum(3), 0)
    latest = np.where(right >= 0, known + equal.sum(3), 0)
    low = np.where(there, 1 + (there[:, :, None] & (score[:, :, None] > score[..., None])).sum(3), 0)
    high = np.where(there, (there[:, :, None] & (score[:, :, None] >= score[..., None])).sum(3), 0)
    none = np.zeros((2, queries), int)
    return Pair(known, low, high, none, there[0].sum(1), latest), right, score


def tied_values(right, score, facts, name, rule):
    """Of each system and query, h of the answers and of the facts, by the definition."""
    found = [[[] for _ in right[0]] for _ in right]
    for x, own in enumerate(found):
        for q, values in enumerate(own):
            left = score[x, q][(score[x, q] >= 0) & ~facts[q]]
            for s in (*right[x, q][right[x, q] >= 0], *score[x, q][facts[q]]):
                low = 1 + (left > s).sum()
                values.append(float(of_ties(name, low, low + (left == s).sum(), rule)))
    return found


@pytest.mark.parametrize("macro", [False, True])
@pytest.mark.parametrize("rule", ["optimistic", "realistic", "pessimistic", "exact"])
def test_ties_under_every_rule(rule, macro):
    """No labelling with fewer facts than certified turns the order, and the demonstrated one does."""
    rng, compared, certified, shown = np.random.default_rng(11), 0, 0, 0
    for name in list(FUNCTIONS) * 40:
        pair, right, score = tied_world(rng)
        queries = len(pair.largest)

        def gap(facts, name=name, right=right, score=score):
            first, second = tied_values(right, score, facts, name, rule)
            return sum(
                (sum(a) - sum(b)) / (len(a) if macro else 1) for a, b in zip(first, second, strict=True)
            )

        facts = np.zeros(score.shape[1:], bool)
        if gap(facts) <= 1e-9:
            continue
        compared += 1
        own = tied_values(right, score, facts, name, rule)[0]
        values = np.zeros(pair.known.shape[1:])
        for q in range(queries):
            values[q, : len(own[q])] = own[q]
        found = breakdown(pair, WEIGHTS[name], macro=macro, values=values)
        assert found.certified >= breakdown(pair, WEIGHTS[name], macro=macro).certified or found.certified < 0
        truth = fewest(score[0] >= 0, lambda facts, gap=gap: gap(facts) <= 1e-9)
        if found.certified == -1:
            assert truth is None
        elif truth is not None:
            assert found.certified <= truth
        if found.demonstrated >= 0:
            assert truth is not None
            assert truth <= found.demonstrated == found.facts.sum()
            assert gap(found.facts) <= 1e-9
        certified += found.certified != 0
        shown += found.demonstrated > 0
    assert compared > 50
    assert certified > 0.4 * compared
    assert shown > 0.1 * compared


def test_many_facts_of_many_queries():
    """Certificate and demonstration by duality, where dynamic programming is too slow: near each other."""
    rng = np.random.default_rng(9)
    queries, candidates = 3000, 12
    known = np.minimum(rng.geometric(0.4, (2, queries, 2)), 13)
    known[1] = np.minimum(known[1] + (rng.random((queries, 2)) < 0.1), 13)
    place = np.argsort(rng.random((2, queries, candidates)), axis=2) + 1
    pair = Pair(known, place, place, np.zeros((2, queries), int), np.full(queries, candidates))
    found = breakdown(pair, WEIGHTS["mrr"])
    assert 20 < found.certified <= found.demonstrated <= 1.1 * found.certified
    assert turned(known, place, found.facts, WEIGHTS["mrr"], macro=False)


def test_what_is_turned_already_needs_no_fact():
    known = np.array([[[3]], [[1]]])
    pair = Pair(known, known[:, :, :0], known[:, :, :0], np.zeros((2, 1), int), np.array([4]))
    found = breakdown(pair, WEIGHTS["mrr"])
    assert (found.certified, found.demonstrated) == (0, 0)


def test_no_fact_turns_the_order_of_equal_lists():
    """One candidate, between whose ranks both systems agree."""
    known, place = np.array([[[1]], [[2]]]), np.array([[[2]], [[3]]])
    pair = Pair(known, place, place, np.zeros((2, 1), int), np.array([3]))
    assert breakdown(pair, WEIGHTS["hits@1"])[:2] == (-1, -1)


@pytest.mark.parametrize("weights", [RANKS, np.full(30, np.nan), np.ones(3)])
def test_malformed_weights(weights):
    pair, _ = world(np.random.default_rng(1))
    with pytest.raises(ValueError, match="`weights` must fall or stay from rank 1"):
        breakdown(pair, weights)


def test_malformed_pairs():
    pair, _ = world(np.random.default_rng(1))
    known = pair.known.copy()
    known[1, 0, 0] = 0
    with pytest.raises(ValueError, match="`pair` must have low at most high, and the same answers"):
        breakdown(pair._replace(known=known), WEIGHTS["mrr"])
    with pytest.raises(ValueError, match="`pair` must have pessimistic ranks that are not below"):
        breakdown(pair._replace(pessimistic=pair.known - 1), WEIGHTS["mrr"])


@pytest.mark.parametrize("seed", range(8))
def test_certificate_of_many_queries_is_the_linear_programme(seed):
    """The price at which few facts of many queries turn a sum: by another solver, facts taken in parts."""
    rng = np.random.default_rng(seed)
    rows, most = 60, 24
    falls = rng.gamma(0.3, 1.0, (rows, most)) * (rng.random((rows, 1)) < 0.7)
    bounds = np.pad(-np.cumsum(falls, axis=1), ((0, 0), (1, 0)))
    tail = Tail(bounds[:, -1], -rng.gamma(0.3, 0.1, rows), rng.integers(0, 50, rows))
    # Half of what all facts together can do turns the sum.
    ahead = -(tail.sum + tail.each * tail.further).mean() / 2
    bounds, tail = bounds + ahead, tail._replace(sum=tail.sum + ahead)
    left = np.column_stack([bounds, tail.sum + tail.each * tail.further])
    facts = np.column_stack([np.tile(np.arange(most + 1), (rows, 1)), most + tail.further])
    one_of_each = np.kron(np.eye(rows), np.ones(most + 2))
    solved = optimize.linprog(facts.ravel(), left.ravel()[None], [1e-9], one_of_each, np.ones(rows))
    assert solved.fun > most
    assert _certified(bounds, tail) == int(np.ceil(solved.fun - 1e-6))

"""Rank tables and lists as pairs; demonstrated facts turn the order when the systems are ranked again."""

import itertools

import numpy as np
import polars as pl
import pytest

import owkg
from owkg.auditing import breakdown, pair_of
from owkg.auditing.lists import Prepared
from owkg.judge import qrels_from_graph, run_from_lists
from owkg.kg import KnowledgeGraph
from owkg.rank_weights import MRR

ENTITIES, RELATIONS = tuple(f"e{i:02d}" for i in range(30)), ("r", "s")
WEIGHTS = 1 / np.maximum(np.arange(40.0), 1)


@pytest.fixture
def world():
    """(graph, two score matrices of its test queries for tails, the first system ahead by little)."""
    rng = np.random.default_rng(12)
    heads = np.arange(25)
    test = np.concatenate([np.stack([heads, heads % 2, rng.integers(0, 30, 25)], 1) for _ in range(2)])
    test = np.unique(test, axis=0).astype(np.int32)
    train = np.stack([heads, heads % 2, rng.integers(0, 30, 25)], 1).astype(np.int32)
    graph = KnowledgeGraph(ENTITIES, RELATIONS, {"train": train, "test": test})
    of_query = rng.normal(size=(30, 30))
    scores = []
    for strength in (1.5, 1.0):
        own = of_query + 0.6 * rng.normal(size=(30, 30))
        for head, _, tail in test:
            own[head, tail] += strength
        scores.append(own)
    return graph, scores


def ranked(graph, own, split="test"):
    return owkg.rank(own[graph.splits[split][:, 0]], graph, split=split)


def run(graph, own, depth):
    """The best of each list, as a run."""
    asked = np.unique(graph.splits["test"][:, :2], axis=0)
    best = np.argsort(-own[asked[:, 0]], axis=1)[:, :depth]
    score = np.take_along_axis(own[asked[:, 0]], best, 1)
    return run_from_lists("m", "tail", *asked.T, best, score, entities=ENTITIES, relations=RELATIONS)


def mrr(graph, own):
    return owkg.evaluate(ranked(graph, own), "mrr", ci=None)["value"].item()


@pytest.mark.parametrize("depth", [30, 8])
def test_demonstrated_facts_turn_the_order(world, depth):
    graph, scores = world
    assert mrr(graph, scores[0]) > mrr(graph, scores[1])
    tables = [ranked(graph, own) for own in scores]
    pair, queries, candidates = pair_of(*tables, graph, tuple(run(graph, own, depth) for own in scores))
    found = breakdown(pair, WEIGHTS)
    assert 0 < found.certified <= found.demonstrated
    chosen = pl.DataFrame(np.argwhere(found.facts), ["query", "candidate"], orient="row")
    facts = candidates.join(chosen.cast(candidates.schema["query"]), on=["query", "candidate"])
    facts = facts.join(queries.with_row_index("at"), left_on="query", right_on="at")
    assert len(facts) == found.demonstrated
    rows = [
        (ENTITIES.index(e), RELATIONS.index(r), ENTITIES.index(a))
        for e, r, a in facts.select("entity", "relation", "answer").rows()
    ]
    more = graph.splits | {"test": np.concatenate([graph.splits["test"], np.array(rows, np.int32)])}
    after = KnowledgeGraph(ENTITIES, RELATIONS, more)
    assert mrr(after, scores[0]) <= mrr(after, scores[1]) + 1e-12


def test_places_are_those_among_unlabelled_candidates(world):
    graph, scores = world
    tables = [ranked(graph, own) for own in scores]
    pair, queries, candidates = pair_of(*tables, graph, tuple(run(graph, own, 30) for own in scores))
    assert (pair.beyond == 0).all()
    facts = {tuple(t) for t in np.concatenate(list(graph.splits.values())).tolist()}
    for at, (entity, relation) in enumerate(queries.select("entity", "relation").rows()):
        head, of = ENTITIES.index(entity), RELATIONS.index(relation)
        free = [e for e in range(30) if (head, of, e) not in facts]
        assert pair.largest[at] == len(free)
        for x in (0, 1):
            order = sorted(free, key=lambda e: -scores[x][head, e])
            mine = candidates.filter(pl.col("query") == at).sort("candidate")["answer"]
            expected = [1 + order.index(ENTITIES.index(a)) for a in mine]
            assert pair.low[x, at, : len(mine)].tolist() == expected
            assert pair.high[x, at, : len(mine)].tolist() == expected


def test_without_lists_there_is_a_certificate(world):
    graph, scores = world
    tables = [ranked(graph, own) for own in scores]
    whole = breakdown(pair_of(*tables, graph, tuple(run(graph, own, 30) for own in scores))[0], WEIGHTS)
    alone = breakdown(pair_of(*tables, graph)[0], WEIGHTS)
    assert 0 < alone.certified <= whole.certified
    assert alone.demonstrated == -1


def test_lists_that_do_not_agree_with_the_ranks(world):
    """Reversed ones, those of another system, and those from which the known answers were taken."""
    graph, scores = world
    tables = [ranked(graph, own) for own in scores]
    runs = [run(graph, own, 20) for own in scores]
    pair_of(*tables, graph, tuple(runs))
    known = graph_answers(graph)
    for wrong in (
        (runs[1], runs[0]),
        tuple(one.with_columns(score=-pl.col("score")) for one in runs),
        tuple(one.join(known, on=["query", "answer"], how="anti") for one in runs),
    ):
        with pytest.raises(ValueError, match="`lists` must list the known answers where the ranks have them"):
            pair_of(*tables, graph, wrong)
    # Fewer queries and shorter lists say less, and nothing wrong.
    some = runs[0]["query"].unique().sort()[:7]
    pair_of(*tables, graph, tuple(one.filter(pl.col("query").is_in(some.implode())) for one in runs))
    pair_of(*tables, graph, tuple(run(graph, own, 1) for own in scores))


def graph_answers(graph):
    return qrels_from_graph(graph, "test").select("query", "answer")


@pytest.mark.parametrize("ties", ["optimistic", "realistic", "pessimistic", "exact"])
@pytest.mark.parametrize("depth", [30, 6])
def test_tied_lists_demonstrate_what_ranking_again_shows(world, depth, ties):
    """Scores of few values: what is demonstrated turns the order, and no fewer facts than certified do."""
    graph, scores = world
    coarse = [np.round(own) for own in scores]
    tables = [ranked(graph, own) for own in coarse]
    runs = tuple(run(graph, own, depth) for own in coarse)
    values = [owkg.evaluate(table, "mrr", ties=ties, ci=None)["value"].item() for table in tables]
    order = (0, 1) if values[0] > values[1] else (1, 0)
    named = {str(i): tables[i] for i in order}
    ready = Prepared(named, graph, {str(i): runs[i] for i in order}, ties)
    first, second = named
    pair = ready.pair(first, second)
    found = breakdown(pair, WEIGHTS, values=ready.values(first, MRR))
    queries, candidates = ready.queries.with_row_index("at"), ready.candidates(first, second)
    if found.demonstrated < 0:
        assert depth < 30 or ties in ("realistic", "exact")
        return
    assert 0 <= found.certified <= found.demonstrated
    chosen = pl.DataFrame(np.argwhere(found.facts), ["query", "candidate"], orient="row")
    facts = candidates.join(chosen.cast(candidates.schema["query"]), on=["query", "candidate"])
    facts = facts.join(queries, left_on="query", right_on="at")
    rows = [
        (ENTITIES.index(e), RELATIONS.index(r), ENTITIES.index(a))
        for e, r, a in facts.select("entity", "relation", "answer").rows()
    ]
    test = np.concatenate([graph.splits["test"], np.array(rows, np.int32).reshape(-1, 3)])
    after = KnowledgeGraph(ENTITIES, RELATIONS, graph.splits | {"test": test})
    again = [
        owkg.evaluate(ranked(after, coarse[i]), "mrr", ties=ties, ci=None)["value"].item() for i in order
    ]
    assert again[0] <= again[1] + 1e-12


def drawn_labels(graph, rng):
    """(qrels of a fifth of the candidates, half of them relevant; the graph with these in its test)."""
    facts = {tuple(t) for t in np.concatenate(list(graph.splits.values())).tolist()}
    rows, more = [], []
    for head, of in np.unique(graph.splits["test"][:, :2], axis=0).tolist():
        for answer in range(len(ENTITIES)):
            if (head, of, answer) not in facts and rng.random() < 0.2:
                text, relevance = f"{ENTITIES[head]}|{RELATIONS[of]}|?", int(rng.random() < 0.5)
                rows.append((text, "tail", ENTITIES[head], RELATIONS[of], ENTITIES[answer], relevance))
                more += [(head, of, answer)] * relevance
    names = ["query", "side", "entity", "relation", "answer", "relevance"]
    test = np.concatenate([graph.splits["test"], np.array(more, np.int32).reshape(-1, 3)])
    return pl.DataFrame(rows, names, orient="row"), KnowledgeGraph(
        ENTITIES, RELATIONS, graph.splits | {"test": test}
    )


@pytest.mark.parametrize("ties", ["optimistic", "realistic", "pessimistic", "exact"])
@pytest.mark.parametrize("depth", [30, 8, 2])
@pytest.mark.parametrize("steps", [1000, 2])
def test_labels_of_candidates_are_as_ranking_again_with_them(world, depth, ties, steps):
    """Ranks and places enclose those of the graph with the found answers; with whole lists they are those."""
    graph, scores = world
    scores = [np.round(own * steps) / steps for own in scores]
    qrels, after = drawn_labels(graph, np.random.default_rng(depth + steps))
    runs = {str(i): run(graph, own, depth) for i, own in enumerate(scores)}
    whole = {str(i): run(graph, own, 30) for i, own in enumerate(scores)}
    ready = Prepared({str(i): ranked(graph, own) for i, own in enumerate(scores)}, graph, runs, ties)
    labelled = ready.labelled(qrels)
    truth = Prepared({str(i): ranked(after, own) for i, own in enumerate(scores)}, after, whole, ties)
    assert labelled.num_found == (qrels["relevance"] == 1).sum()
    assert labelled.num_answers == truth.num_answers
    mine, right = labelled.pair("0", "1"), truth.pair("0", "1")
    assert (mine.largest == right.largest).all()
    # Known answers in their order, then found ones in theirs; the truth has all in one order.
    queries = truth.queries.select("query").with_row_index("row")
    first = ready._tasks.select("row", "answer")
    later = qrels.filter(relevance=1).join(queries, on="query").select("row", "answer").sort("row", "answer")
    order = pl.concat([first, later.cast({"row": first["row"].dtype})]).sort("row", maintain_order=True)
    order = order.with_columns(mine=pl.int_range(pl.len()).over("row"))
    place = truth._tasks.select("row", "answer").with_columns(right=pl.int_range(pl.len()).over("row"))
    rows, at, to = (
        order.join(place, on=["row", "answer"], how="left").select("row", "mine", "right").to_numpy().T
    )
    assert len(rows) == (right.known[0] > 0).sum()
    assert (mine.known[:, rows, at] <= right.known[:, rows, to]).all()
    assert (mine.latest[:, rows, at] >= right.latest[:, rows, to]).all()
    weights = [MRR, owkg.rank_weights.rank_weight("hits@3")]
    for weight in weights:
        assert (labelled.values("0", weight)[rows, at] <= truth.values("0", weight)[rows, to] + 1e-12).all()
    # Candidates: none that is judged; places within the bounds.
    listed, every = labelled.candidates("0", "1"), truth.candidates("0", "1")
    judged = qrels.join(queries, on="query").select(pl.col("row").alias("query"), "answer")
    assert not len(listed.join(judged.cast({"query": listed["query"].dtype}), on=["query", "answer"]))
    both = listed.join(every, on=["query", "answer"], how="left").sort("query", "candidate")
    assert both["candidate_right"].is_not_null().all()
    rows, here, there = both.select("query", "candidate", "candidate_right").to_numpy().T
    assert (mine.low[:, rows, here] <= right.low[:, rows, there]).all()
    assert (mine.high[:, rows, here] >= right.high[:, rows, there]).all()
    if depth == 30:
        assert len(every) - len(listed) == labelled.num_rejected == (qrels["relevance"] == 0).sum()
        assert (np.sort(mine.known, 2) == np.sort(right.known, 2)).all()
        assert (np.sort(mine.latest, 2) == np.sort(right.latest, 2)).all()
        assert (mine.low[:, rows, here] == right.low[:, rows, there]).all()
        assert (mine.high[:, rows, here] == right.high[:, rows, there]).all()
        found = ready.labelled(qrels.filter(relevance=1)).pair("0", "1")
        for one, other in zip(breakdown(found, WEIGHTS)[:2], breakdown(right, WEIGHTS)[:2], strict=True):
            assert one == other
    # What candidates that neither lists can have at best.
    free = (mine.beyond > 0).all(0)
    for row in np.flatnonzero(free):
        named = set(both.filter(query=row)["candidate_right"])
        others = [c for c in range(right.low.shape[2]) if right.low[0, row, c] and c not in named]
        unjudged = every.filter(query=row).filter(pl.col("candidate").is_in(others))
        unjudged = unjudged.join(
            judged.cast({"query": every["query"].dtype}), on=["query", "answer"], how="anti"
        )
        for c in unjudged["candidate"]:
            assert (mine.beyond[:, row] <= right.low[:, row, c]).all()


@pytest.mark.parametrize("depth", [30, 8])
def test_demonstrated_facts_turn_the_order_of_judged_answers_too(world, depth):
    graph, scores = world
    qrels, after = drawn_labels(graph, np.random.default_rng(3))
    order = (0, 1) if mrr(after, scores[0]) > mrr(after, scores[1]) else (1, 0)
    ready = Prepared(
        {str(i): ranked(graph, scores[i]) for i in order},
        graph,
        {str(i): run(graph, scores[i], depth) for i in order},
    ).labelled(qrels)
    first, second = ready.systems
    found = breakdown(ready.pair(first, second), WEIGHTS, values=ready.values(first, MRR))
    assert depth < 30 or 0 < found.certified <= found.demonstrated
    chosen = pl.DataFrame(np.argwhere(found.facts), ["query", "candidate"], orient="row")
    candidates = ready.candidates(first, second)
    facts = candidates.join(chosen.cast(candidates.schema["query"]), on=["query", "candidate"])
    facts = facts.join(ready.queries.with_row_index("at"), left_on="query", right_on="at")
    assert not len(facts.join(qrels, left_on=["query_right", "answer"], right_on=["query", "answer"]))
    rows = [
        (ENTITIES.index(e), RELATIONS.index(r), ENTITIES.index(a))
        for e, r, a in facts.select("entity", "relation", "answer").rows()
    ]
    test = np.concatenate([after.splits["test"], np.array(rows, np.int32).reshape(-1, 3)])
    again = KnowledgeGraph(ENTITIES, RELATIONS, after.splits | {"test": test})
    assert not rows or mrr(again, scores[order[0]]) <= mrr(again, scores[order[1]]) + 1e-12


def test_labels_need_lists(world):
    graph, scores = world
    ready = Prepared({str(i): ranked(graph, own) for i, own in enumerate(scores)}, graph)
    with pytest.raises(ValueError, match="`lists` must be given with labels"):
        ready.labelled(drawn_labels(graph, np.random.default_rng(1))[0])


def test_bad_input(world):
    graph, scores = world
    first, second = (ranked(graph, own).frame for own in scores)
    with pytest.raises(ValueError, match="`second` must rank the answers that 'first' ranks"):
        pair_of(first, second[:-1], graph)
    with pytest.raises(ValueError, match="`second` must have the candidates of 'first'"):
        pair_of(first, second.with_columns(pl.col("candidates") + 1), graph)
    with pytest.raises(ValueError, match="`first` must be filtered"):
        pair_of(first.with_columns(filtered=False), second, graph)
    with pytest.raises(ValueError, match="`first` must be of one model and one seed"):
        pair_of(pl.concat([first.with_columns(seed=i) for i in (0, 1)]), second, graph)
    with pytest.raises(ValueError, match="`first` must be of one model, got 2"):
        pair_of(pl.concat([first.with_columns(model=pl.lit(name)) for name in "ab"]), second, graph)
    for more, others in ((1, ""), (3, ", and 2 others")):
        words = f"`first` must have each task once: the answer .* twice{others}"
        with pytest.raises(ValueError, match=words):
            pair_of(pl.concat([first, first[:more]]), second, graph)
    other = run(graph, scores[0], 5).with_columns(
        query=pl.lit("x|y|?"), entity=pl.lit("x"), relation=pl.lit("y")
    )
    with pytest.raises(
        ValueError, match="`lists` must list candidates for the ranked queries, but the list of 'second'"
    ):
        pair_of(first, second, graph, (run(graph, scores[0], 5), other))


@pytest.mark.parametrize("ties", ["optimistic", "realistic", "pessimistic", "exact"])
def test_the_last_of_a_list_may_be_tied_with_what_is_left_out(ties):
    """Lists of two, cut within a tie of which they hold one."""
    facts = {"train": [[0, 1, 0]], "test": [[0, 0, 3], [1, 0, 3]]}
    labels = ("e0", "e1", "e2", "e3")
    splits = {name: np.array(rows, np.int32) for name, rows in facts.items()}
    graph = KnowledgeGraph(labels, ("r", "z"), splits)
    scores = {"A": np.array([0, 0, 0, 1.0]), "B": np.array([1, 1, 0, 0.0])}
    tables, lists = {}, {}
    for name, own in scores.items():
        above, tied = (own > own[3]).sum(), (own[:3] == own[3]).sum()
        ranks = {"optimistic": 1 + above, "pessimistic": 1 + above + tied, "candidates": 4, "filtered": True}
        same = {"relation": "r", "tail": "e3", "side": "tail"} | {k: [v] * 2 for k, v in ranks.items()}
        tables[name] = pl.DataFrame({"head": ["e0", "e1"]} | same)
        best = np.argsort(-own, kind="stable")[:2]
        rows = [(name, f"e{q}|r|?", "tail", f"e{q}", "r", labels[c], own[c]) for q in (0, 1) for c in best]
        columns = ["model", "query", "side", "entity", "relation", "answer", "score"]
        lists[name] = pl.DataFrame(rows, columns, orient="row")
    found = owkg.audit(tables, "p-mrr@1/2", graph=graph, lists=lists, ties=ties)
    judged = {f"e{q}|r|?": {"e3"} for q in (0, 1)}
    for query, answer in found.facts.select("query", "answer").rows():
        judged[query].add(answer)
    weight = {"optimistic": 0.0, "pessimistic": 1.0}.get(ties, 0.5)
    means = []
    for own in scores.values():
        total = 0.0
        for answers in judged.values():
            others = [own[i] for i, label in enumerate(labels) if label not in answers]
            for one in (own[labels.index(label)] for label in answers):
                tied = sum(x == one for x in others)
                before = 1 + sum(x > one for x in others)
                ranks = np.arange(before, before + tied + 1) if ties == "exact" else before + weight * tied
                total += float(np.mean(np.power(ranks, -0.5, dtype=float)))
        means.append(total)
    assert not len(found.facts) or means[0] <= means[1] + 1e-12


def small_world(rng, ties, depth):
    """(two systems' scores, test answers, found and refuted candidates, `Prepared`) of three queries."""
    size, queries = 7, 3
    scores = rng.integers(0, rng.choice([4, 30]), (2, queries, size)).astype(float)
    test = [rng.choice(size, rng.integers(1, 3), replace=False).tolist() for _ in range(queries)]
    kind = [[rng.choice(3, p=[0.6, 0.2, 0.2]) for _ in range(size)] for _ in range(queries)]
    found, refuted = (
        [[a for a in range(size) if kind[q][a] == k and a not in test[q]] for q in range(queries)]
        for k in (1, 2)
    )
    labels = tuple(f"e{i}" for i in range(size))
    triples = np.array([(q, 0, a) for q in range(queries) for a in test[q]], np.int32)
    graph = KnowledgeGraph(labels, ("r",), {"train": np.empty((0, 3), np.int32), "test": triples})
    asked = np.array([(q, 0) for q in range(queries)])
    tables, lists = {}, {}
    for name, own in zip("AB", scores, strict=True):
        tables[name] = owkg.rank(own[triples[:, 0]], graph)
        best = np.argsort(-own, axis=1, kind="stable")[:, :depth]
        score = np.take_along_axis(own, best, 1)
        lists[name] = run_from_lists(name, "tail", *asked.T, best, score, entities=labels, relations=("r",))
    rows = [
        (f"e{q}|r|?", "tail", f"e{q}", "r", f"e{a}", relevance)
        for relevance, several in ((1, found), (0, refuted))
        for q in range(queries)
        for a in several[q]
    ]
    names = dict.fromkeys(("query", "side", "entity", "relation", "answer"), pl.String)
    qrels = pl.DataFrame(rows, names | {"relevance": pl.Int64}, orient="row")
    return scores, test, found, refuted, Prepared(tables, graph, lists, ties).labelled(qrels)


def gap(scores, answers, ties):
    """The sum of reciprocal ranks by the first system less that by the second, by the tie rule."""
    total = 0.0
    for sign, own in zip((1, -1), scores, strict=True):
        for q, true in enumerate(answers):
            others = [own[q, e] for e in range(own.shape[1]) if e not in true]
            for a in true:
                low = 1 + sum(x > own[q, a] for x in others)
                high = low + sum(x == own[q, a] for x in others)
                of = {"optimistic": 1 / low, "pessimistic": 1 / high, "realistic": 2 / (low + high)}
                total += sign * (of[ties] if ties in of else np.mean(1 / np.arange(low, high + 1)))
    return total


@pytest.mark.parametrize("ties", ["optimistic", "realistic", "pessimistic", "exact"])
def test_numbers_of_further_facts_enclose_the_smallest_one(ties):
    """By brute force over all labellings of random worlds, with ties, short lists and judged candidates."""
    equal = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        scores, test, found, refuted, ready = small_world(rng, ties, int(rng.integers(1, 8)))
        start = [a + b for a, b in zip(test, found, strict=True)]
        order = "AB" if gap(scores, start, ties) >= 0 else "BA"
        scores = scores if order == "AB" else scores[::-1]
        number = breakdown(ready.pair(*order), WEIGHTS, values=ready.values(order[0], MRR))
        free = [
            (q, e) for q in range(len(test)) for e in range(7) if e not in start[q] and e not in refuted[q]
        ]
        turned = (
            len(some)
            for size in range(len(free) + 1)
            for some in itertools.combinations(free, size)
            if gap(scores, [start[q] + [e for p, e in some if p == q] for q in range(3)], ties) <= 1e-9
        )
        least = next(turned, None)
        assert least is None or 0 <= number.certified <= least
        assert number.demonstrated < 0 or (least is not None and least <= number.demonstrated)
        equal += number.certified == (-1 if least is None else least)
    assert equal > 10

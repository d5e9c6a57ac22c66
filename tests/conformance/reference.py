"""The expected values of every vector, by brute force in plain Python: no code of owkg computes here.

`python tests/conformance/reference.py` writes them into owkg/conformance/vectors.json, for each vector those
that its `expected` names. Do so after adding a vector, and look at the difference.
"""

import json
import math
import struct
from itertools import pairwise, permutations
from pathlib import Path

FILE = Path(__file__).parents[2] / "owkg" / "conformance" / "vectors.json"


def expected(vector):
    """The value of each metric that the vector expects."""
    found = {"ranks": ranks, "metrics": metrics, "ir": measures}[vector["kind"]](vector)
    return {name: found[name] for name in vector["expected"]}


def ranks(vector):
    given, found = vector["input"], {}
    for i, query in enumerate(given["queries"]):
        end = f"[{i}]" if len(given["queries"]) > 1 else ""
        scores = [as_typed(value, given["dtype"]) for value in query["scores"]]
        filtered = {e for name in vector["protocol"]["filter"] for e in query["known"].get(name, [])}
        others = [
            score
            for entity, score in enumerate(scores)
            if entity != query["answer"]
            and entity not in filtered
            and entity in query.get("candidates", range(len(scores)))
        ]
        own = scores[query["answer"]]
        better = sum(score > own for score in others)
        equal = sum(score == own for score in others)
        one = {"optimistic": better + 1, "pessimistic": better + equal + 1, "candidates": len(others) + 1}
        one["realistic"] = (one["optimistic"] + one["pessimistic"]) / 2
        if any(math.isnan(score) for score in scores):
            one = dict.fromkeys(one)
        found |= {f"{name}{end}": value for name, value in one.items()}
    return found


def as_typed(value, dtype):
    value = int(value) if dtype == "int64" else float(value)
    return struct.unpack("f", struct.pack("f", value))[0] if dtype == "float32" else value


def metrics(vector):
    given = vector["input"]
    low, high = given["optimistic"], given.get("pessimistic", given["optimistic"])
    number = len(low)
    candidates, query = given["candidates"], given.get("query", list(range(number)))
    sides = given.get("side", ["tail"] * number)
    used = [i for i in range(number) if vector["protocol"]["side"] in ("both", sides[i])]

    def mean(values):
        return math.fsum(values) / len(values)

    def of(i):  # the ranks that task i may have, all as likely
        rule = vector["protocol"]["ties"]
        middle = (low[i] + high[i]) / 2
        rules = {"optimistic": [low[i]], "pessimistic": [high[i]], "realistic": [middle]}
        return rules.get(rule) or list(range(low[i], high[i] + 1))

    def average(value):
        return mean([mean([value(rank) for rank in of(i)]) for i in used])

    def macro(value):
        first = {}
        for i in used:
            first[query[i]] = min(first.get(query[i], math.inf), of(i)[0])
        return mean([value(rank) for rank in first.values()])

    mr, chance = average(float), mean([(candidates[i] + 1) / 2 for i in used])
    found = {"mrr": average(lambda rank: 1 / rank), "mr": mr, "macro-mrr": macro(lambda rank: 1 / rank)}
    found |= {f"hits@{k}": average(lambda rank, k=k: float(rank <= k)) for k in (1, 3, 10)}
    return found | {"amr": mr / chance, "amri": 1 - (mr - 1) / (chance - 1) if chance > 1 else None}


def measures(vector):
    run, qrels = vector["input"]["run"], vector["input"]["qrels"]
    found = [measures_of(run.get(query, {}), judged) for query, judged in qrels.items()]
    return {name: math.fsum(one[name] for one in found) / len(found) for name in found[0]}


def measures_of(scored, judged):
    """All measures of one query, as trec_eval defines them; 0 where nothing is relevant."""
    ranking = sorted(scored, key=lambda answer: (scored[answer], answer), reverse=True)
    relevances = [judged.get(answer) for answer in ranking]
    hit = [bool(relevance and relevance > 0) for relevance in relevances]
    relevant = sum(relevance > 0 for relevance in judged.values())
    nonrelevant = len(judged) - relevant

    def ndcg(k):
        def gain(values):
            return sum((value or 0) / math.log2(rank + 2) for rank, value in enumerate(values[:k]))

        return gain(relevances) / gain(sorted(judged.values(), reverse=True)) if relevant else 0.0

    bpref = 0.0
    for place, is_hit in enumerate(hit):
        before = sum(relevance == 0 for relevance in relevances[:place])
        if is_hit:
            bpref += 1 - (min(before, relevant) / min(relevant, nonrelevant) if before else 0)
    precision = {k: sum(hit[:k]) / k for k in (1, 5, 10)}
    found = {"AP": sum(sum(hit[: r + 1]) / (r + 1) for r in range(len(hit)) if hit[r]), "Bpref": bpref}
    found["Rprec"] = sum(hit[:relevant])
    found |= {f"R@{k}": sum(hit[:k]) for k in (5, 10)}
    found = {name: value / relevant if relevant else 0.0 for name, value in found.items()}
    found |= {f"P@{k}": precision[k] for k in (5, 10)} | {"Success@1": float(any(hit[:1]))}
    found["RR"] = next((1 / (r + 1) for r in range(len(hit)) if hit[r]), 0.0)
    return found | {f"nDCG@{k}": ndcg(k) for k in (3, 10, 20)} | {"nDCG": ndcg(None)}


def orders(scores, answer):
    """Ranks of the answer under every order of the candidates that sorts their scores: a second way."""
    indices = range(len(scores))
    sorted_ones = [
        order for order in permutations(indices) if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]
    return [order.index(answer) + 1 for order in sorted_ones]


def main():
    content = json.loads(FILE.read_text(encoding="utf-8"))
    for vector in content["vectors"]:
        vector["expected"] = expected(vector)
    lines = ",\n".join(
        "    " + json.dumps(vector, ensure_ascii=False, allow_nan=False) for vector in content["vectors"]
    )
    head = f'{{\n  "version": {content["version"]},\n  "vectors": [\n'
    FILE.write_text(f"{head}{lines}\n  ]\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Adapters of other libraries, which are imported when an adapter is made.

Each adapter runs the library's own code on the scores, ranks or lists of a vector. This module imports only
the standard library, so that the runner can load it by path.
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol, runtime_checkable

Numbers = Mapping[str, float | None]
"""Numbers by the names in a vector."""

# Scores that produce given ranks are made for at most this many candidates.
_MOST = 10_000
# Names of the metrics in other libraries.
_PYKEEN = {
    "mrr": "inverse_harmonic_mean_rank",
    "mr": "arithmetic_mean_rank",
    "amr": "adjusted_arithmetic_mean_rank",
    "amri": "adjusted_arithmetic_mean_rank_index",
    **{f"hits@{k}": f"hits_at_{k}" for k in (1, 3, 10)},
}
_PYTREC = {"AP": "map", "nDCG": "ndcg", "RR": "recip_rank", "Bpref": "bpref", "Rprec": "Rprec"}
_PYTREC_CUT = {"nDCG": "ndcg_cut", "P": "P", "R": "recall", "Success": "success"}
_RANX = {"AP": "map", "nDCG": "ndcg", "RR": "mrr", "Bpref": "bpref", "Rprec": "r-precision"}
_RANX_CUT = {"nDCG": "ndcg", "P": "precision", "R": "recall", "Success": "hit_rate"}


@runtime_checkable
class _Vector(Protocol):
    """Fields that adapters read of the runner's vectors."""

    @property
    def kind(self) -> str: ...
    @property
    def input(self) -> Mapping[str, Any]: ...
    @property
    def protocol(self) -> Mapping[str, Any]: ...
    @property
    def expected(self) -> Mapping[str, float | None]: ...


def _imported(module: str, package: str) -> Any:
    """Imported module; if it is missing, an error names the package."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} cannot be imported ({error}): install it with pip install {package}."
        ) from error


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _tasks(vector: _Vector) -> list[dict[str, Any]]:
    """Ranking tasks of a vector of metrics, as dictionaries."""
    given = vector.input
    low = given["optimistic"]
    sides = given.get("side", ["tail"] * len(low))
    every = zip(low, given.get("pessimistic", low), given["candidates"], sides, strict=True)
    tasks = [{"low": a, "high": b, "candidates": n, "side": side} for a, b, n, side in every]
    return [one for one in tasks if vector.protocol["side"] in ("both", one["side"])]


def _scores(task: dict[str, Any]) -> list[float]:
    """Scores, the answer's first, for as many candidates as the task has, that produce the task's ranks."""
    better, equal = task["low"] - 1, task["high"] - task["low"]
    return [0.5, *[1.0] * better, *[0.5] * equal, *[0.0] * (task["candidates"] - task["high"])]


def _left(vector: _Vector, query: dict[str, Any]) -> list[int]:
    """Known answers that the protocol filters, without the answer itself."""
    found = {i for name in vector.protocol["filter"] for i in query["known"].get(name, [])}
    return sorted(found - {query["answer"]})


def _named(vector: _Vector, found: list[dict[str, Any]]) -> dict[str, float]:
    """Ranks of each query under the names of the vector."""
    if len(found) == 1:
        return {name: float(value) for name, value in found[0].items()}
    return {f"{name}[{i}]": float(value) for i, one in enumerate(found) for name, value in one.items()}


class _Torch:
    """Base of adapters for PyTorch libraries: scores as tensors, and the protocols that they support."""

    package = module = ""
    ties: tuple[str, ...] = ()
    filters = restricts = False

    def __init__(self) -> None:
        self.torch = _imported("torch", "torch")
        self.library = _imported(self.module, self.package)
        self.version = _version(self.package)

    def supports(self, vector: _Vector) -> bool:
        if vector.kind == "metrics":
            untied = all(one["low"] == one["high"] for one in _tasks(vector))
            return (untied or vector.protocol["ties"] in self.ties) and max(
                vector.input["candidates"]
            ) <= _MOST
        queries = vector.input.get("queries", [])
        filtered = any(_left(vector, one) for one in queries)
        restricted = any("candidates" in one for one in queries)
        return (
            vector.kind == "ranks" and (self.filters or not filtered) and (self.restricts or not restricted)
        )

    def tensor(self, vector: _Vector, query: dict[str, Any]) -> Any:
        """Scores of a query in the vector's data type."""
        kind = vector.input["dtype"]
        cast = int if kind == "int64" else float
        values = [cast(value) for value in query["scores"]]
        return self.torch.tensor(values, dtype=getattr(self.torch, kind))


class PyKeen(_Torch):
    """PyKEEN: `RankBasedEvaluator.evaluate` with a model that returns the vector's scores."""

    name, package, module = "PyKEEN", "pykeen", "pykeen.evaluation"
    ties = ("optimistic", "realistic", "pessimistic")
    filters = restricts = True

    def run(self, vector: _Vector) -> Numbers:
        """Ranks by `evaluate`, metrics by `process_scores_` and `finalize`."""
        return self._metrics(vector) if vector.kind == "metrics" else self._ranks(vector)

    def _ranks(self, vector: _Vector) -> Numbers:
        torch, queries = self.torch, vector.input["queries"]
        scores = torch.stack([self.tensor(vector, one) for one in queries])
        # The evaluator marks filtered scores by NaN, so whole numbers are passed as floats.
        scores = scores if scores.is_floating_point() else scores.double()

        class Model(torch.nn.Module):
            num_entities, num_relations, device = scores.shape[1], len(queries), torch.device("cpu")

            def predict(self, hrt_batch: Any, **_: Any) -> Any:
                return scores[hrt_batch[:, 1]].clone()

        known = any(one["known"] for one in queries)
        triples = torch.tensor([[one["answer"], i, one["answer"]] for i, one in enumerate(queries)])
        more = [[one["answer"], i, e] for i, one in enumerate(queries) for e in _left(vector, one)]
        # Raw only if it makes a difference, because the evaluator filters by default.
        evaluator = self.library.RankBasedEvaluator(
            filtered=bool(vector.protocol["filter"]) or not known, clear_on_finalize=False
        )
        options = {"additional_filter_triples": torch.tensor(more)} if more else {}
        if "candidates" in queries[0]:
            options["restrict_entities_to"] = torch.tensor(queries[0]["candidates"])
            options["pre_filtered_triples"] = True
            options["do_time_consuming_checks"] = False
        evaluator.evaluate(
            model=Model(), mapped_triples=triples, targets=("tail",), batch_size=len(queries),
            use_tqdm=False, **options,
        )  # fmt: skip
        found = {rule: evaluator.ranks["tail", rule][0].tolist() for rule in self.ties}
        found["candidates"] = evaluator.num_candidates["tail"][0].tolist()
        return _named(vector, [{name: of[i] for name, of in found.items()} for i in range(len(queries))])

    def _metrics(self, vector: _Vector) -> Numbers:
        torch, tasks = self.torch, _tasks(vector)
        evaluator, size = self.library.RankBasedEvaluator(), vector.protocol.get("batch", len(tasks))
        for side in dict.fromkeys(one["side"] for one in tasks):
            own = [one for one in tasks if one["side"] == side]
            for begin in range(0, len(own), size):
                rows = [_scores(one) for one in own[begin : begin + size]]
                wide = max(map(len, rows))
                scores = torch.tensor([row + [float("nan")] * (wide - len(row)) for row in rows])
                batch = torch.zeros(len(rows), 3, dtype=torch.long)
                evaluator.process_scores_(batch, side, scores, true_scores=scores[:, :1])
        found = evaluator.finalize()
        beginning = f"{vector.protocol['side']}.{vector.protocol['ties']}"
        return {
            name: found.get_metric(f"{beginning}.{_PYKEEN[name]}")
            for name in vector.expected
            if name in _PYKEEN and (name not in ("amr", "amri") or vector.protocol["ties"] == "realistic")
        }


class TorchKge(_Torch):
    """TorchKGE: `filter_scores` and `get_rank`, and the metrics of `LinkPredictionEvaluator`."""

    name, package, module = "TorchKGE", "torchkge", "torchkge"
    ties = ("pessimistic",)
    filters = True

    def run(self, vector: _Vector) -> Numbers:
        """Pessimistic rank, the only one that TorchKGE has, and metrics of it."""
        utils, torch = _imported("torchkge.utils", self.package), self.torch
        if vector.kind == "metrics":
            return self._metrics(vector, utils)
        queries = vector.input["queries"]
        scores = torch.stack([self.tensor(vector, one) for one in queries])
        answer = torch.tensor([one["answer"] for one in queries])
        key = torch.arange(len(queries))
        known = {(i, i): {*_left(vector, one), one["answer"]} for i, one in enumerate(queries)}
        if any(len(own) > 1 for own in known.values()):
            scores = utils.filter_scores(scores, known, key, key, answer)
        ranks = utils.get_rank(scores, answer).tolist()
        return _named(vector, [{"pessimistic": rank} for rank in ranks])

    def _metrics(self, vector: _Vector, utils: Any) -> Numbers:
        torch, tasks = self.torch, _tasks(vector)
        evaluation = _imported("torchkge.evaluation", self.package)
        evaluator = object.__new__(evaluation.LinkPredictionEvaluator)
        ranks: dict[str, list[int]] = {"head": [], "tail": []}
        for task in tasks:
            found = utils.get_rank(torch.tensor([_scores(task)]), torch.tensor([0]))
            ranks[task["side"]].append(int(found))
        heads = torch.tensor(ranks["head"] or ranks["tail"])
        tails = torch.tensor(ranks["tail"] or ranks["head"])
        evaluator.rank_true_heads = evaluator.filt_rank_true_heads = heads
        evaluator.rank_true_tails = evaluator.filt_rank_true_tails = tails
        evaluator.evaluated = True
        found = {"mrr": evaluator.mrr()[1], "mr": evaluator.mean_rank()[1]}
        return found | {f"hits@{k}": evaluator.hit_at_k(k)[1] for k in (1, 3, 10)}


class LibKge(_Torch):
    """LibKGE's formula, reimplemented from its description because LibKGE is not on PyPI.

    Known answers get the score -infinity, and so does NaN. Scores within a relative tolerance of 1e-5 tie.
    The rank is 1 + the number of better scores + half the number of tied scores (including the answer's),
    rounded down.
    """

    name, package, module = "LibKGE's formula", "torch", "torch"
    ties = ("optimistic", "realistic", "pessimistic")
    filters = True

    def __init__(self) -> None:
        super().__init__()
        self.version = "04d0fba"  # commit of the description

    def run(self, vector: _Vector) -> Numbers:
        """Best rank, rounded mean and worst rank, and the metrics of a histogram of ranks."""
        torch = self.torch
        if vector.kind == "ranks":
            queries = vector.input["queries"]
            scored = [(self.tensor(vector, one), one["answer"], _left(vector, one)) for one in queries]
            return _named(vector, [self._rank(*one) for one in scored])
        tasks = _tasks(vector)
        rule = vector.protocol["ties"]
        ranks = torch.tensor([int(self._rank(torch.tensor(_scores(one)), 0, [])[rule]) for one in tasks])
        counted = torch.bincount(ranks - 1, minlength=max(one["candidates"] for one in tasks)).float()
        every, number = torch.arange(1, len(counted) + 1).float(), len(tasks)
        hits = torch.cumsum(torch.nn.functional.pad(counted, (0, 10))[:10], 0, dtype=torch.float64) / number
        found = {
            "mr": float((counted * every).sum() / number),
            "mrr": float((counted / every).sum() / number),
        }
        return found | {f"hits@{k}": float(hits[k - 1]) for k in (1, 3, 10)}

    def _rank(self, scores: Any, answer: int, left: list[int]) -> dict[str, float]:
        torch = self.torch
        scores = scores if scores.is_floating_point() else scores.double()
        scores = torch.where(scores.isnan(), -torch.inf, scores)
        scores[left] = -torch.inf
        close = torch.isclose(scores, scores[answer], rtol=1e-5, atol=1e-8)
        better, tied = int(((scores > scores[answer]) & ~close).sum()), int(close.sum())
        return {"optimistic": 1 + better, "realistic": 1 + better + tied // 2, "pessimistic": better + tied}


class Ogb(_Torch):
    """OGB: `Evaluator("ogbl-wikikg2")` on tensors; the caller chooses the candidates."""

    name, package, module = "OGB, tensors", "ogb", "ogb.linkproppred"
    ties = ("realistic",)
    numpy = False

    def run(self, vector: _Vector) -> Numbers:
        """Realistic rank, the reciprocal of a query's element in `mrr_list`; metrics are means of lists."""
        if vector.kind == "ranks":
            scores = self.torch.stack([self.tensor(vector, one) for one in vector.input["queries"]])
            answers = [one["answer"] for one in vector.input["queries"]]
            lists = self._lists([(row, answer) for row, answer in zip(scores, answers, strict=True)])
            return _named(vector, [{"realistic": 1 / value} for value in lists["mrr_list"].tolist()])
        found: dict[str, list[float]] = {}
        for task in _tasks(vector):
            lists = self._lists([(self.torch.tensor(_scores(task)), 0)])
            for name, values in lists.items():
                found.setdefault(name.removesuffix("_list"), []).extend(values.tolist())
        return {name: sum(values) / len(values) for name, values in found.items()}

    def _lists(self, rows: list[tuple[Any, int]]) -> dict[str, Any]:
        torch = self.torch
        own = torch.stack([row[answer] for row, answer in rows])
        others = torch.stack([torch.cat([row[:answer], row[answer + 1 :]]) for row, answer in rows])
        if self.numpy:
            own, others = own.numpy(), others.numpy()
        return self.library.Evaluator("ogbl-wikikg2").eval({"y_pred_pos": own, "y_pred_neg": others})


class OgbNumpy(Ogb):
    """OGB: the same evaluator on NumPy arrays."""

    name, numpy = "OGB, arrays", True


class PyG(_Torch):
    """PyTorch Geometric: `KGEModel.test` with a model that returns the vector's scores; raw, no tie rule."""

    name, package, module = "PyG", "torch_geometric", "torch_geometric.nn.kge.base"
    ties = ("realistic",)

    def run(self, vector: _Vector) -> Numbers:
        """Its only rank, from MRR, as the realistic rank, and metrics of tasks that are ranked one by one."""
        if vector.kind == "ranks":
            queries = vector.input["queries"]
            tested = [self._tested(self.tensor(vector, one), one["answer"]) for one in queries]
            return _named(vector, [{"realistic": round(1 / mrr)} for _, mrr, _ in tested])
        tests = {
            k: [self._tested(self.torch.tensor(_scores(one)), 0, k) for one in _tasks(vector)]
            for k in (1, 3, 10)
        }
        means = {
            k: [sum(column) / len(column) for column in zip(*of, strict=True)] for k, of in tests.items()
        }
        return {"mr": means[1][0], "mrr": means[1][1]} | {f"hits@{k}": means[k][2] for k in means}

    def _tested(self, scores: Any, answer: int, k: int = 10) -> tuple[float, float, float]:
        class Model(self.library.KGEModel):
            def forward(self, head_index: Any, rel_type: Any, tail_index: Any) -> Any:
                return scores[tail_index]

        zero, own = self.torch.tensor([0]), self.torch.tensor([answer])
        return Model(len(scores), 1, 1).test(zero, zero, own, batch_size=len(scores), k=k, log=False)


class _Lists:
    """Base of adapters for evaluators of ranked lists."""

    package = module = ""

    def __init__(self) -> None:
        self.library = _imported(self.module, self.package)
        self.version = _version(self.package)

    def supports(self, vector: _Vector) -> bool:
        return vector.kind == "ir"

    def run(self, vector: _Vector) -> Numbers:
        """Mean of each measure over the queries, as the library computes it."""
        call, found = self._evaluator(vector), {}
        for _ in range(vector.protocol["evaluations"]):
            found = call({query: dict(scored) for query, scored in vector.input["run"].items()})
        return found

    def _evaluator(self, vector: _Vector) -> Any:
        raise NotImplementedError


def _renamed(name: str, plain: dict[str, str], cut: dict[str, str], join: str) -> str:
    base, _, k = name.partition("@")
    return f"{cut[base]}{join}{k}" if k else plain[base]


class PytrecEval(_Lists):
    """pytrec_eval: `RelevanceEvaluator`, averaged over the queries that it returns."""

    name, package, module = "pytrec_eval", "pytrec_eval-terrier", "pytrec_eval"

    def _evaluator(self, vector: _Vector) -> Any:
        names = {name: _renamed(name, _PYTREC, _PYTREC_CUT, "_") for name in vector.expected}
        asked = {_renamed(name, _PYTREC, _PYTREC_CUT, ".") for name in vector.expected}
        evaluator = self.library.RelevanceEvaluator(vector.input["qrels"], asked)

        def call(run: Mapping[str, dict[str, float]]) -> Numbers:
            found = list(evaluator.evaluate(run).values())
            return {name: sum(one[key] for one in found) / len(found) for name, key in names.items()}

        return call


class IrMeasures(_Lists):
    """ir_measures: `evaluator(...).calc_aggregate`."""

    name = package = module = "ir_measures"

    def _evaluator(self, vector: _Vector) -> Any:
        parsed = {name: self.library.parse_measure(name) for name in vector.expected}
        evaluator = self.library.evaluator(list(parsed.values()), vector.input["qrels"])

        def call(run: Mapping[str, dict[str, float]]) -> Numbers:
            found = evaluator.calc_aggregate(run)
            return {name: found[measure] for name, measure in parsed.items()}

        return call


class Ranx(_Lists):
    """ranx: `evaluate` with `make_comparable`, so that queries without a list count."""

    name = package = module = "ranx"

    def _evaluator(self, vector: _Vector) -> Any:
        names = {name: _renamed(name, _RANX, _RANX_CUT, "@") for name in vector.expected}

        def call(run: Mapping[str, dict[str, float]]) -> Numbers:
            both = self.library.Qrels(vector.input["qrels"]), self.library.Run(run)
            found = {
                name: self.library.evaluate(*both, key, make_comparable=True) for name, key in names.items()
            }
            return {name: float(value) for name, value in found.items()}

        return call


class SentenceTransformers(_Lists):
    """sentence-transformers: `InformationRetrievalEvaluator.compute_metrics`, for binary relevance."""

    name, package = "sentence-transformers", "sentence-transformers"
    module = "sentence_transformers.sentence_transformer.evaluation"

    def supports(self, vector: _Vector) -> bool:
        """Whether all relevances are 0 or 1."""
        binary = all(of in (0, 1) for one in vector.input.get("qrels", {}).values() for of in one.values())
        return vector.kind == "ir" and binary

    def _evaluator(self, vector: _Vector) -> Any:
        qrels = vector.input["qrels"]
        relevant = {query: {a for a, of in one.items() if of} for query, one in qrels.items()}
        deep, cuts = 1000, (1, 3, 5, 10, 20)
        evaluator = self.library.InformationRetrievalEvaluator(
            dict.fromkeys(qrels, ""), {}, relevant, mrr_at_k=[deep], map_at_k=[deep],
            ndcg_at_k=[*cuts, deep], accuracy_at_k=cuts, precision_recall_at_k=cuts,
        )  # fmt: skip
        families = {"nDCG": "ndcg@k", "P": "precision@k", "R": "recall@k", "Success": "accuracy@k"}
        families |= {"AP": "map@k", "RR": "mrr@k"}

        def call(run: Mapping[str, dict[str, float]]) -> Numbers:
            lists = [
                [{"corpus_id": a, "score": score} for a, score in run.get(query, {}).items()]
                for query in evaluator.queries_ids
            ]
            found = evaluator.compute_metrics(lists)
            split = {name: name.partition("@") for name in vector.expected}
            return {
                name: float(found[families[base]][int(k or deep)])
                for name, (base, _, k) in split.items()
                if base in families
            }

        return call


PEERS = {
    "pykeen": PyKeen,
    "libkge": LibKge,
    "torchkge": TorchKge,
    "ogb": Ogb,
    "ogb-numpy": OgbNumpy,
    "pyg": PyG,
    "ranx": Ranx,
    "ir-measures": IrMeasures,
    "pytrec-eval": PytrecEval,
    "sentence-transformers": SentenceTransformers,
}
"""Adapters of other libraries by name."""

"""Conclusions that results on FB15k-237 allow, although its test set lacks more than half of its answers."""

from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl
import typer
from scipy import special

from owkg import audit, evaluate, read_graph, theory
from owkg.auditing import Answers, Audit, missing_share
from owkg.auditing.calibration import difference_error, order_probability
from owkg.auditing.implied import missing_answers
from owkg.auditing.numbers import fitted_unevenness
from owkg.auditing.order import Observed, full_metrics
from owkg.evaluation import ranks
from owkg.files.storage import writable_folder
from owkg.judge import qrels_from_graph, read_runs, write_judgements
from owkg.kg import KnowledgeGraph
from owkg.pools.design import Design
from owkg.pools.lists import write_lists
from owkg.pools.missing import known_and_found
from owkg.rank_weights import rank_weight
from owkg.report import write_report
from owkg.terminal.progress import progress
from owkg.terminal.tables import line, printed
from owkg.train import Run, Training, train, training
from simulations.script import Out, Quick, command_line, run_package, save_table
from simulations.zhou2022.published import SC, O, S, Study, read_study

Data = Annotated[
    Path, typer.Option(envvar="OWKG_DATA", help="Folder with fb15k237, kgc_sparsity, wn18rr, codex-s.")
]

# Differences between the correlations of two systems for which probabilities are computed.
_DIFFERENCES = (0.0, 0.05, 0.1)
_SPARSITIES = (0.1, 0.3, 0.5, 0.7)
_AUDITED = ("mrr", "hits@1", "hits@10")
_METRICS = ("mrr", "hits@1", "hits@3", "hits@10", "p-mrr@1/2")


def known_answers(graph: KnowledgeGraph) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of known test answers of a query, and how many queries have each number; both sides."""
    sizes = qrels_from_graph(graph, "test").group_by("query").len()["len"].to_numpy()
    return np.unique(sizes.astype(np.int64), return_counts=True)


def published_order(study: Study, graph: KnowledgeGraph, sparsity: tuple[float, float]) -> pl.DataFrame:
    """Probability that each pair of published systems has its true order by micro MRR on FB-Test-O.

    Args:
        study: published results.
        graph: FB15k-237.
        sparsity: (low, high), shares of the answers that are missing.

    Returns:
        A row for each pair, with the system that is ahead on FB-Test-O first: difference, published p-value,
        the probability with equal correlations and over differences between correlations, and the difference
        on FB-Test-S-C.
    """
    metric = "micro_mrr"
    rows = study.evaluation.filter(test_set=O).sort(metric, descending=True)
    systems, values = rows["system"].to_list(), rows[metric].to_numpy()
    complete = dict(study.evaluation.filter(test_set=SC).select("system", metric).iter_rows())
    tests = study.p_values.filter(test_set=O).select("first", "second", metric).rows()
    p_of = {frozenset(pair): p for *pair, p in tests}
    first, second = np.triu_indices(len(systems), 1)
    p = np.array([p_of[frozenset((systems[i], systems[j]))] for i, j in zip(first, second, strict=True)])
    difference = values[first] - values[second]
    error = np.abs(difference) / np.maximum(-special.ndtri(np.clip(p, 1e-300, 1) / 2), 1e-9)
    counts, queries = known_answers(graph)
    answers = Answers(counts, counts * queries / (counts * queries).sum(), graph.num_entities, queries)
    seen = Observed(values, np.diag(np.full(len(values), 1e-8)), answers)
    betas = np.unique(np.linspace(*sparsity, 5))
    rhos = np.array(sorted({sign * d / 2 for d in _DIFFERENCES for sign in (-1, 1)}))
    full = full_metrics("mrr", rank_weight("mrr"), seen, betas, rhos)
    found = {}
    for d in _DIFFERENCES:
        ends = []
        for sign in (-1, 1):
            one, other = (int(np.argmin(np.abs(rhos - s * d / 2))) for s in (sign, -sign))
            a, b = full.full[first][:, :, one], full.full[second][:, :, other]
            slope = (full.slope[first][:, :, one] + full.slope[second][:, :, other]) / 2
            model = difference_error("mrr", missing_answers(answers, betas), a, b)
            ends.append(order_probability("mrr", a - b, slope * error[:, None], model))
        both = np.stack(ends)
        found |= {f"low_{d:g}": both.min((0, 2)), f"high_{d:g}": both.max((0, 2))}
    names = {"first": [systems[i] for i in first], "second": [systems[i] for i in second]}
    judged = [complete[a] - complete[b] for a, b in zip(names["first"], names["second"], strict=True)]
    return pl.DataFrame(
        names | {"difference": difference, "p_value": p, **found, "difference_complete": judged}
    )


def published(data: Data, out: Out = Path("out")) -> None:
    """Orders 13 published systems: the probability of each pair's order, and the order by complete labels."""
    writable_folder(out)
    study, graph = read_study(data), read_graph(data / "fb15k237")
    sample = judged_sample(data)
    # Assumes that judging found every missing answer, because the truth here is FB-Test-S-C.
    share = missing_share(sample.judged, graph, sample=sample.drawn, design="complete").row(0, named=True)
    sparsity = (share["ci_low"], share["ci_high"])
    found = published_order(study, graph, sparsity)
    save_table(found, out / "fb15k237_published_order.csv")
    turned = pl.col("difference_complete") < 0
    rows = []
    for d in _DIFFERENCES:
        sure = pl.col(f"low_{d:g}") >= 0.95
        said = found.filter(sure)
        rows.append([f"{d:g}", str(len(said)), str(len(said.filter(turned))), str(len(found) - len(said))])
    line(
        f"sparsity {sparsity[0]:.3f} to {sparsity[1]:.3f} (by what judging found), {len(found)} pairs, of "
        f"which judging reverses {len(found.filter(turned))}",
        "dim",
    )
    heads = ["correlations apart by", "order sure", "of these reversed by judging", "not sure"]
    printed("published order of 13 systems by MRR on FB-Test-O", heads, rows)
    cells = [
        [f"{row['first']} > {row['second']}", f"{row['difference']:+.4f}", f"{row['p_value']:.2g}"]
        + [f"{1 - row[f'high_{d:g}']:.3f} to {1 - row[f'low_{d:g}']:.3f}" for d in _DIFFERENCES]
        + [f"{row['difference_complete']:+.4f}"]
        for row in found.filter(pl.col("first") != pl.col("first").shift(1).fill_null("")).iter_rows(
            named=True
        )
    ]
    heads = ["pair", "difference", "p"] + [f"P(wrong), {d:g} apart" for d in _DIFFERENCES] + ["complete"]
    printed("neighbours", heads, cells)


def detectable_difference(graph: KnowledgeGraph, sparsity: float, strength: float = 0.4) -> pl.DataFrame:
    """Smallest differences that the test queries order correctly, with at most 5 % inconsistency.

    Args:
        graph: graph whose test answers are counted.
        sparsity: beta; a query with s known answers is taken to have s / (1 - beta) answers.
        strength: strength of the weaker model.

    Returns:
        A row for each metric: the detectable difference of strength and the detectable difference of the
        metric, if both models are measured on one test set. Null where even a model of strength 1 cannot be
        told apart.
    """
    counts, queries = known_answers(graph)
    total = np.maximum(np.round(counts / (1 - sparsity)), 1).astype(np.int64)
    edges = np.unique(np.geomspace(1, total.max() + 1, 24).astype(np.int64))
    place = np.digitize(total, edges)
    bins = np.unique(place)
    weight = np.array([queries[place == b].sum() for b in bins], float)
    size = np.array([np.average(total[place == b], weights=queries[place == b]).round() for b in bins], int)
    gaps = np.geomspace(1e-3, 1 - strength, 16)
    world = {"sparsity": sparsity, "num_answers": size, "num_entities": graph.num_entities}
    world["answer_weights"] = weight
    rows = []
    for metric in _METRICS:
        needed = theory.required_queries(
            metric,
            strength=strength,
            other_strength=(strength + gaps)[:, None],
            inconsistency=0.05,
            paired=True,
            **world,
        )
        # Required queries fall with the gap; on logarithmic axes the curve between two gaps is nearly
        # straight.
        enough = needed <= queries.sum()
        gap = None
        if enough.any():
            logs = np.log(needed[::-1]), np.log(gaps[::-1])
            gap = float(np.exp(np.interp(np.log(queries.sum()), *logs)))
        change = None
        if gap is not None:
            means = [
                theory.moments(metric, strength=s, **world).expectation for s in (strength, strength + gap)
            ]
            change = float(means[1] - means[0])
        rows.append(
            {"metric": metric, "sparsity": sparsity, "strength_difference": gap, "difference": change}
        )
    return pl.DataFrame(rows, schema_overrides={"strength_difference": pl.Float64, "difference": pl.Float64})


def detectable(data: Data, out: Out = Path("out"), quick: Quick = False) -> None:
    """Smallest differences that FB15k-237, WN18RR and CoDEx-S can show, by metric and sparsity.

    Means are over queries. Models follow exactly the model of Yang et al. (2022), with strengths from 0.4,
    and facts are missing independently. The model error that an audit adds is left out.
    """
    writable_folder(out)
    parts = []
    settings = list(product(("fb15k237", "wn18rr", "codex-s"), _SPARSITIES[:: 2 if quick else 1]))
    with progress("Detectable differences", "settings") as update:
        for name, sparsity in settings:
            found = detectable_difference(read_graph(data / name), sparsity)
            parts.append(found.select(pl.lit(name).alias("graph"), pl.all()))
            update(len(parts), len(settings))
    table = pl.concat(parts)
    save_table(table, out / "detectable_differences.csv")
    for column in ("strength_difference", "difference"):
        wide = table.pivot("metric", index=["graph", "sparsity"], values=column, maintain_order=True)
        cells = [
            [f"{name}, beta {beta:g}", *("-" if x is None else f"{x:.4f}" for x in values)]
            for name, beta, *values in wide.iter_rows()
        ]
        title = f"smallest {column.replace('_', ' ')} ordered rightly 19 times of 20, by Yang et al.'s model"
        printed(title, ["", *_METRICS], cells)


class Sample(NamedTuple):
    """FB-Test-S and its judgements FB-Test-S-C (Zhou et al. 2022), as a sample of the test set of FB15k-237.

    Attributes:
        graph: FB15k-237 with FB-Test-S as its test split, and the remaining test facts as the split rest.
        drawn: answers in FB-Test-S to its queries, for both sides.
        judged: all answers to these queries that judging calls true.
    """

    graph: KnowledgeGraph
    drawn: pl.DataFrame
    judged: pl.DataFrame


def judged_sample(data: Path) -> Sample:
    """FB-Test-S with the answers found by judging; `data` is the folder of the data sets."""
    graph, study = read_graph(data / "fb15k237"), read_study(data)
    entities, relations = graph.entities, graph.relations

    def of(name: str) -> np.ndarray:
        ids = [
            study.triples[name][column].replace_strict({x: i for i, x in enumerate(labels)}).to_numpy()
            for column, labels in (("head", entities), ("relation", relations), ("tail", entities))
        ]
        return np.stack(ids, 1).astype(np.int32)

    test = of(S)
    drawn = set(map(tuple, test.tolist()))
    rest = np.array([fact not in drawn for fact in map(tuple, graph.splits["test"].tolist())])
    splits = {name: graph.splits[name] for name in ("train", "valid")}
    splits |= {"rest": graph.splits["test"][rest], "test": test}
    sampled = KnowledgeGraph(entities, relations, splits)
    tasks = qrels_from_graph(sampled, "test")
    judged = qrels_from_graph(KnowledgeGraph(entities, relations, {"test": of(SC)}), "test")
    return Sample(sampled, tasks, judged.join(tasks, on="query", how="semi"))


def judgements(data: Data, out: Out = Path("out")) -> None:
    """Writes FB-Test-S and FB-Test-S-C as qrels for owkg missing and owkg audit; describes FB-Test-S."""
    writable_folder(out)
    sample = judged_sample(data)
    # FB-Test-S as a separate test set of which only the training facts are known.
    splits = {name: sample.graph.splits[name] for name in ("train", "test")}
    alone, rows = sample.graph._replace(splits=splits), []
    for unit, by in (("answer", ()), ("triple", ()), ("triple", "category")):
        told = missing_share(sample.judged, alone, unit=unit, by=by)
        for row in told.iter_rows(named=True):
            share = f"{row['sparsity_at_least']:.3f}"
            counts = [f"{row[name]:,}" for name in ("known", "found")]
            rows.append([unit, row.get("category", "all"), *counts, share])
    printed(
        "FB-Test-S as a test of its own", ["unit", "category", "known", "found", "at least missing"], rows
    )
    kept, found, _ = known_and_found(
        sample.judged,
        read_graph(data / "fb15k237"),
        split="test",
        level=1,
        sample=sample.drawn,
        design=Design.COMPLETE,
    )
    counts = kept.group_by("query").agg(known=pl.len()).join(
        found.group_by("query").agg(missing=pl.len()), on="query", how="left"
    ).fill_null(0)  # fmt: skip
    missing, known = (counts[name].to_numpy().astype(np.int64) for name in ("missing", "known"))
    each = fitted_unevenness(missing, missing + known)
    for label, values in (
        ("over queries", [one.deviation for one in each]),
        ("with the number of answers", [one.size for one in each]),
    ):
        line(
            f"deviation of the logits of missing rates {label}, if no more is missing than was found: "
            f"{values[0]:.2f} [{min(values):.2f}, {max(values):.2f}]"
        )
    for name, qrels in (("fb15k237_sample", sample.drawn), ("fb15k237_judged", sample.judged)):
        write_judgements(qrels, out / f"{name}.qrels")
        line(f"wrote {out / name}.qrels: {len(qrels):,} answers", "dim")


def _settings(quick: bool) -> dict[str, Training]:
    """Settings of small models, which train for minutes each on two cores."""
    whole = {"training_loop": "1vsall", "loss": "cross_entropy", "batch_size": 500, "reciprocal": True}
    whole |= {"optimiser": "adagrad", "learning_rate": 0.1, "n3": 0.05, "valid_every": 2, "dim": 64}
    sampled = {"training_loop": "negatives", "loss": "self_adversarial", "batch_size": 1024, "dim": 64}
    sampled |= {"num_negatives": 64, "subsampling": True, "filtered_negatives": True, "margin": 9.0}
    sampled |= {"optimiser": "adam", "learning_rate": 5e-3, "schedule": "linear", "valid_every": 20}
    if quick:
        short: dict[str, Any] = {"dim": 8, "epochs": 1, "steps": 60, "valid_every": 0}
        return {
            "ComplEx": training("complex", **whole | short),
            "DistMult": training("distmult", **whole | short),
        }
    return {
        "ComplEx": training("complex", **whole, epochs=6, init_law="normal", init_scale=1e-3),
        "DistMult": training("distmult", **whole, epochs=6),
        "RotatE": training("rotate", **sampled, epochs=20),
        "TransE": training("transe", **sampled, epochs=20),
    }


class Measured(NamedTuple):
    """Ranks and lists of one model for the queries of FB-Test-S.

    Attributes:
        sparse: ranks of the answers of FB-Test-S, filtered by all facts of FB15k-237.
        complete: ranks of these answers and of the answers found by judging, also filtered by each other.
        lists: best answers of the model to each query.
    """

    sparse: pl.DataFrame
    complete: pl.DataFrame
    lists: pl.DataFrame


def measured(run: Run, sample: Sample, name: str, folder: Path) -> Measured:
    """Ranks of a trained model on the sample, without and with the answers found by judging.

    Args:
        run: trained model.
        sample: sample from `judged_sample`.
        name: name of the model.
        folder: folder for the lists of the model.
    """
    graph, pair = sample.graph, ["query", "answer"]
    found = sample.judged.join(sample.drawn, on=pair, how="anti")
    of = (
        {name: i for i, name in enumerate(graph.entities)},
        {name: i for i, name in enumerate(graph.relations)},
    )
    ends = pl.when(pl.col("side") == "tail")
    triples = found.select(
        ends.then("entity").otherwise("answer").replace_strict(of[0]).alias("head"),
        pl.col("relation").replace_strict(of[1]),
        ends.then("answer").otherwise("entity").replace_strict(of[0]).alias("tail"),
    )
    new = triples.unique(maintain_order=True).to_numpy().astype(np.int32)
    whole = np.concatenate([graph.splits["test"], new])
    full = KnowledgeGraph(graph.entities, graph.relations, graph.splits | {"test": whole})
    known = ("train", "valid", "rest", "test")
    queries = sample.drawn.select("side", "entity", "relation").unique(maintain_order=True)
    path = folder / f"{name}.run.gz"
    write_lists(path, run.trained, graph, split="test", sides=("head", "tail"), depth=100, name=name)
    return Measured(
        ranks(run.trained, graph, filter_splits=known),
        ranks(run.trained, full, filter_splits=known, queries=queries),
        read_runs([path]),
    )


def models(data: Data, out: Out = Path("out"), quick: Quick = False) -> None:
    """Trains four models, audits them on FB-Test-S, and compares with their ranks among all judged answers.

    Training takes an hour on two shared cores. An interrupted run resumes where it stopped.
    """
    writable_folder(out)
    sample, whole = judged_sample(data), read_graph(data / "fb15k237")
    folder = out / ("fb15k237_models_quick" if quick else "fb15k237_models")
    folder.mkdir(exist_ok=True)
    told: dict[str, Measured] = {}
    with progress("training", "steps") as update:
        for name, how in _settings(quick).items():
            place = folder / name
            run = train(
                whole,
                how,
                place,
                resume=place.exists(),
                on_progress=lambda done, total, note, name=name: update(done, total, f"{name}: {note}"),
            )
            told[name] = measured(run, sample, name, folder)
    # Assumes that judging found every missing answer, because the truth here is FB-Test-S-C.
    options: Any = {"graph": sample.graph, "judged": sample.judged, "design": "complete", "unevenness": 0}
    tables = {name: one.sparse for name, one in told.items()}
    lists = {name: one.lists for name, one in told.items()}
    found = audit(tables, _AUDITED, lists=lists, **options)
    alone = audit(tables, _AUDITED, **options)
    rows = against(found, alone, {name: one.complete for name, one in told.items()})
    save_table(rows, out / "fb15k237_models.csv")
    write_report(found, out / "fb15k237_models.html")
    heads = ["model, metric", "FB-Test-S", "implied", "interval", "implied if independent", "FB-Test-S-C"]
    cells = [
        [
            f"{row['model']}, {row['metric']}",
            *(f"{row[key]:.4f}" for key in ("sparse", "implied")),
            f"{row['low']:.3f} to {row['high']:.3f}",
            *(f"{row[key]:.4f}" for key in ("independent", "complete")),
        ]
        for row in rows.iter_rows(named=True)
    ]
    printed("the full test, implied and judged", heads, cells)
    judged = found.judged.filter(pl.col("side").is_null())
    low, high = found.assumptions["sparsity"]
    line(f"sparsity {low:.3f} to {high:.3f} (by what judging found)", "dim")
    for row in judged.iter_rows(named=True):
        ends = row["correlation_low"], row["correlation_high"]
        line(f"{row['model']}: correlation {row['correlation']:+.3f} [{ends[0]:+.3f}, {ends[1]:+.3f}]", "dim")
    complete = {(row["model"], row["metric"]): row["complete"] for row in rows.iter_rows(named=True)}
    cells = []
    for row in found.pairs.iter_rows(named=True):
        first, second = (complete[row[which], row["metric"]] for which in ("first", "second"))
        pair = f"{row['first']} > {row['second']}, {row['metric']}"
        sure = f"{row['probability_low']:.3f} to {row['probability_high']:.3f}"
        cells.append(
            [pair, f"{row['difference']:+.4f}", f"{row['p_value']:.2g}", sure, f"{first - second:+.4f}"]
        )
    printed("orders", ["pair", "difference", "p", "P(better)", "judged difference"], cells)
    line(f"wrote {out / 'fb15k237_models.html'}", "dim")


def against(found: Audit, alone: Audit, complete: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Implied full-test metrics next to the metrics of complete ranks.

    Args:
        found: audit with correlations from judgements.
        alone: audit without judgements.
        complete: ranks of all judged answers, by model.

    Returns:
        A row for each model and metric: sparse, implied, low, high, independent, complete.
    """
    values = pl.concat(
        evaluate(table, list(_AUDITED), side="both", ci=None).select(
            pl.lit(name).alias("model"), "metric", complete="value"
        )
        for name, table in complete.items()
    )
    keys = ["model", "metric"]
    told = found.models.select(*keys, sparse="value", implied="full", low="full_low", high="full_high")
    other = alone.models.select(*keys, independent="full")
    return told.join(other, on=keys, maintain_order="left").join(values, on=keys, maintain_order="left")


main = command_line(
    "simulations.fb15k237_audit",
    {"published": published, "judgements": judgements, "models": models, "detectable": detectable},
    {
        "published": "published --data data",
        "judgements": "judgements --data data --out out",
        "models": "models --data data --out out",
        "detectable": "detectable --data data --quick",
    },
)

if __name__ == "__main__":
    run_package(main)

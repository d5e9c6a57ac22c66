"""`owkg rules`: rules of a graph, or answers of another system, as a run; and explanations of answers."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.commands import CommandGroup, Given, group
from owkg.cli.embeddings.scorers import ScorerOptions, reader, scorer_of
from owkg.cli.inputs import check_readable, collected, graph_in, noted_line
from owkg.cli.options import Format, GraphOptions, OutputFormat, Overwrite, Seed, split_list
from owkg.cli.output import Table, cell, show
from owkg.terminal.progress import progress


@dataclass(frozen=True, kw_only=True)
class Mining:
    """Settings of mining.

    Attributes:
        system (rules|rnnlogic|plogicnet): How queries are answered: by mined rules (rules), by rules that
            RNNLogic proposes and weighs, or by TransE combined with rules (pLogicNet).
        length (N): Largest number of atoms in the body of a rule r(X,Y).
        min_support (N): Number of facts that a rule must predict correctly.
        min_confidence (SHARE): Share of the body's pairs that must be facts, after five pairs are added to
            the body.
        top (N): Number of answers kept for a query in addition to facts of train, and answers tied with the
            last.
        seed (N): Seed of random choices. Equal seeds give equal rules.

    Rarely needed:
        no_constants: Mine no rules that contain entities, such as r(X,c) <- b(X,d).
        min_groundings (N): Smallest number of entities X for which the body of a rule r(X,c) must hold.
            AnyBURL takes 5.
        max_bodies (N): Largest number of rule bodies of each length. If there are more, those that most
            random walks along facts follow are kept.
        aggregate (maximum|noisy-or|non-redundant-noisy-or): How the score of an answer follows from its
            rules.
        splits (SPLIT,...): Splits whose queries are answered, with commas, or all for the queries of every
            entity and relation. Default: valid,test.
        rounds (N): Rounds of expectation and maximisation, with rnnlogic and plogicnet. Default: 3 for
            rnnlogic, 2 for plogicnet.
        per_relation (N): Number of rules that RNNLogic keeps for each relation.
        precision (SHARE): Share of the body's pairs that must be facts, with --system plogicnet.
        threshold (P): Smallest probability by its rules of a triple that pLogicNet adds to the training.
        balance (NUMBER): Weight of that probability compared with the score of TransE in the answers of
            pLogicNet.
    """

    length: int = 2
    no_constants: bool = False
    min_support: int = 2
    min_confidence: float = 1e-4
    min_groundings: Annotated[int, typer.Option(min=1)] = 1
    max_bodies: int = 20_000
    system: str = "rules"
    aggregate: str = "maximum"
    top: Annotated[int, typer.Option(min=1)] = 100
    splits: str | None = None
    rounds: Annotated[int | None, typer.Option(min=1)] = None
    per_relation: Annotated[int, typer.Option(min=1)] = 100
    precision: float = 0.6
    threshold: float = 0.7
    balance: float = 1.0
    seed: Seed = 0


def mine(
    kg: Path,
    *,
    given: Given,
    out: Path,
    predictions: Path | None = None,
    options: Mining,
    how: GraphOptions,
    overwrite: Overwrite = False,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Mine or learn rules on the split train, and write their answers as a run for owkg rank.

    You may leave out the word mine. owkg mines all rules that the options allow, so that the same command
    gives the same run. RUN also holds rules.parquet, which lists each rule in words.

    Args:
        kg (DIR): Folder of the graph, in any layout that owkg kg info reads.
        out (RUN): Folder of the run, which is created.
        predictions (FILE): Answers of another system, from a file of AnyBURL or PyClause or another run, to
            use instead of mined rules.

    Examples:
        owkg rules mine data/umls --out rules
        owkg rules mine data/wn18rr --length 3 --out rules
        owkg rules mine data/umls --system rnnlogic --out rules
        owkg rules mine data/wn18rr --predictions anyburl.txt --out rules
    """
    from owkg.rules import SYSTEMS, predictions_run, rules_run

    settings = asdict(options)
    if predictions is not None:
        given.refuse(list(settings), "has no effect with --predictions")
    system, splits, top = (settings.pop(name) for name in ("system", "splits", "top"))
    if system in SYSTEMS:
        others = {name for one in SYSTEMS.values() for name in one.settings} - {*SYSTEMS[system].settings}
        given.refuse([name for name in settings if name in others], f"has no effect with --system {system}")
        settings = {name: value for name, value in settings.items() if name not in others}
    check_readable([predictions])
    with collected() as notes:
        graph, reading = graph_in(kg, how.reading()), how.reading()
        place = {"graph_folder": kg, "reading": reading, "overwrite": overwrite}
        if predictions is not None:
            made = predictions_run(graph, out, predictions, **place)
        else:
            with progress("Rules", "done") as update:
                made = rules_run(
                    graph,
                    out,
                    settings={name: value for name, value in settings.items() if value is not None},
                    system=system,
                    top=top,
                    splits=None if splits is None else split_list(splits),
                    on_estimate=noted_line,
                    progress=lambda title: lambda done, of: update(done, of, title),
                    **place,
                )
    sizes = {"rules": made.rules} if predictions is None else {}
    sizes |= {"queries": made.queries, "predictions": made.predictions}
    rows = [[name, f"{value:,}"] for name, value in sizes.items()]
    rows += [[f"valid {name}", cell(value)] for name, value in made.valid.items()]
    written = f"wrote {out}; to rank with it: owkg rank RUN --split test --out ranks.parquet"
    tables = [Table("Rules" if predictions is None else "Predictions", ["", "value"], rows)]
    show(form, {"run": out, **sizes, "valid": made.valid}, tables, [written], notes=notes)


def explain(
    run: Path,
    *,
    query: str,
    kg: Path | None = None,
    answers: Annotated[int, typer.Option(min=1)] = 10,
    rules: Annotated[int, typer.Option(min=1)] = 5,
    how: GraphOptions,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Show the best answers to a query, and the rules that give each of them its rank.

    Facts of train are answers too, and are marked.

    Args:
        run (RUN): Folder that owkg rules wrote.
        query (QUERY): Query as head|relation|? or ?|relation|tail, with the labels of the graph.
        kg (DIR): Folder of the graph. Default: the graph of the rules.
        answers (N): Number of answers to show.
        rules (N): Number of rules to show for each answer.

    Examples:
        owkg rules explain rules --query 'acquired_abnormality|location_of|?'
    """
    from owkg import rules as engine

    source = ScorerOptions(kg=kg).source(run)
    engine.read_rules(run)
    scorer, notes = scorer_of(source, "error", reader(how))
    found = engine.explain(run, query, scorer.graph, answers=answers, most=rules)
    rows = found.to_dicts()
    lines = []
    for i, row in enumerate(rows):
        if i == 0 or row["answer"] != rows[i - 1]["answer"]:
            known = ", a fact of train" if row["known"] else ""
            count = f"{row['rules']:,} rule{'' if row['rules'] == 1 else 's'}"
            lines.append(f"{row['place']}. {row['answer']}{known}: {count}")
        value = f"adds {cell(row['adds'])}" if "adds" in row else cell(row["confidence"])
        shares = f"{row['support']:,}/{row['bodies']:,} {value}"
        lines.append(f"     {row['rule']}  {shares}")
    notes += [] if rows else ["no rule gives an answer"]
    payload = {"run": run, "query": query, "answers": found}
    show(form, payload, [], lines, notes=notes)


class _MineFirst(CommandGroup):
    """`owkg rules DIR` is `owkg rules mine DIR`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = not args or args[0] in (*self.commands, *ctx.help_option_names)
        return super().parse_args(ctx, args if known else ["mine", *args])


rules_app = group(
    "rules",
    "Mine or learn rules of a graph and answer queries by them (owkg rules DIR --out RUN), and explain the "
    "answers.",
    mine,
    explain,
    cls=_MineFirst,
)

"""Options that several commands share, with one definition and one wording."""

import csv
import math
import re
import tomllib
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from owkg.cli.commands import OUTPUT, TABLES
from owkg.errors import naming

if TYPE_CHECKING:
    from owkg.kg.read import Reading
    from owkg.openworld import MissingModel
    from owkg.rank_weights import RankWeight
    from owkg.ranks.reading import TableReading


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


OutputFormat = Annotated[
    Format, typer.Option("--format", rich_help_panel=OUTPUT, help="Print a table to read, or JSON.")
]
Seed = Annotated[
    int, typer.Option(help="Seed of random numbers. Equal seeds give equal results.", min=0, max=2**32 - 1)
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        rich_help_panel=OUTPUT,
        help="Replace what is already written there, if this command wrote it. Default: stop with an error.",
    ),
]
Level = Annotated[
    int, typer.Option(min=1, metavar="N", help="Lowest relevance label that counts as relevant.")
]
Filter = Annotated[
    str | None,
    typer.Option(
        "--filter",
        metavar="SPLIT,...",
        help="Splits whose known answers are removed from the candidates (filtered ranks), or none for raw "
        "ranks. Default: train, valid and test, if the graph has them, and the split of --split.",
    ),
]
Split = Annotated[str, typer.Option(metavar="SPLIT", help="Split whose triples are ranked.")]
TestName = Literal["randomisation", "t", "wilcoxon"]

DESIGN_HELP = (
    "How the judged candidates were chosen: complete (a random sample of queries, all candidates judged), "
    "sampled-pool, sampled-budget (pooled on a random sample of queries), pool, budget, sheet or unknown. "
    "Default: as owkg pool or owkg audit recorded it; otherwise sheet for a sheet, unknown for other files. "
    "Only complete gives more than a lower bound."
)
JudgedSample = Annotated[
    Path | None,
    typer.Option(
        "--judged-sample",
        metavar="QRELS",
        help="Test answers that were drawn at random so that their queries are judged. Queries with more "
        "answers are drawn more often and therefore get a lower weight. Default: all judged queries have "
        "the same weight.",
    ),
]
AnswerHistogram = Annotated[
    str,
    typer.Option(
        metavar="N|N:QUERIES,...",
        help="Number of true answers of a query on the complete test set, at least 1; or a histogram over "
        "queries as ANSWERS:QUERIES,..., such as 12:300,43:200.",
    ),
]
OtherCorrelation = Annotated[
    float | None,
    typer.Option(
        metavar="RHO",
        help="Correlation of the second model between missing from the test set and classified positive. "
        "Default: the value of --correlation.",
    ),
]
Predictions = Annotated[
    Literal["classification", "score"],
    typer.Option(
        help="How the model orders the candidates: by a yes-or-no classification with random order within "
        "each class, or by a real-valued score."
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="NAME=COLUMN",
        rich_help_panel=TABLES,
        help="Name of a column in the file, as head=subject. Several with commas, or repeat the option.",
    ),
]
Systems = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="Rank tables (.parquet, .csv, .tsv; a column model tells systems apart) or TREC runs. A folder "
        "of Parquet files, or a pattern in quotation marks, is one rank table, which need not fit in memory.",
    ),
]
GraphOfSystems = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder of the graph. TREC runs need it for candidates and known answers; rank tables need it "
        "only for relation categories and splits.",
    ),
]
MetricsOfSystems = Annotated[
    list[str] | None,
    typer.Option(
        metavar="METRIC,...",
        help="Metrics that owkg metrics --list shows. Several with commas, or repeat the option. For TREC "
        "runs with --qrels also measures of lists, whatever the topics are called: AP, nDCG@10, P@10, "
        "Recall@100, RR, Rprec, Bpref, infAP, RBP(p=0.8), Judged@10. Default: the usual metrics.",
    ),
]
Ties = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="How tied answers are ranked: optimistic, realistic, pessimistic or exact. Default: realistic, "
        "but exact if --qrels leave open which of several tied answers comes first. Required if lists leave "
        "out answers.",
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="NAME,...",
        help="Names of the systems, one for each file. Several with commas (put a name that contains a comma "
        "in quotation marks), or repeat the option. Default: the name in the file (tag, column model), or "
        "the name of the file if there is none or it is not unique.",
    ),
]
Intersect = Annotated[
    bool,
    typer.Option(
        "--intersect",
        help="Leave out queries and answers that some system lacks, and print how many. Default: stop with "
        "an error.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Information that rank tables do not contain.

    Rank tables from other programs:
        untied: Treat ranks (columns rank, or head_rank and tail_rank) as ranks without ties.
        realistic: Treat ranks as means of optimistic and pessimistic ranks, such as 2.5. Only realistic
            metrics have a value then.
        candidates (N): Number of candidates of each row, if the table has no column candidates. Default:
            counted in --kg.
        ids: Treat head, relation and tail as integer ids of --kg, whatever its labels are.
    """

    columns: Columns = None
    untied: Annotated[bool, typer.Option("--no-ties")] = False
    realistic: bool = False
    candidates: Annotated[int | None, typer.Option(min=1)] = None
    ids: bool = False

    def said(self) -> dict[str, Any]:
        """Keyword arguments for functions of the library."""
        return {
            "columns": columns_given(self.columns),
            "untied": self.untied,
            "realistic": self.realistic,
            "candidates": self.candidates,
            "ids": self.ids,
        }

    def reading(self) -> "TableReading":
        """Same settings as a `TableReading`."""
        from owkg.ranks.reading import TableReading

        return TableReading(
            columns_given(self.columns) or {}, self.untied, self.realistic, self.candidates, self.ids
        )


def columns_given(texts: Sequence[str] | None) -> dict[str, str] | None:
    """Columns that `--columns` names, by their names in owkg; None if it is not given."""
    if not texts:
        return None
    found: dict[str, str] = {}
    for part in (part for text in texts for part in re.split(r",(?=\s*\w+\s*=)", text)):
        name, equals, column = (piece.strip() for piece in part.partition("="))
        if not (name and equals and column):
            raise ValueError(f"`columns` must be NAME=COLUMN, such as head=subject, got {part!r}.")
        if name in found:
            raise ValueError(f"`columns` must name each column once, got {name} again.")
        found[name] = column
    return found


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """How the folder of a graph is read.

    The graph:
        layout (LAYOUT): Layout of the graph's folder: labelled, integer, openke, kb2e, rotate, libkge, pykeen
            or ntriples. For labelled files also the order of columns, such as head,tail,relation or
            head,relation,tail,time (time is ignored), or the names of columns in a header line, such as
            head=subject,relation=predicate,tail=object. Default: recognised from the files.
        duplicates (warn|keep|drop|error): Treatment of triples that a split contains more than once: keep
            them and print a note (warn), keep them, drop all but the first, or stop. Default: warn, or keep
            if the result does not depend on them.
    """

    layout: str | None = None
    duplicates: str | None = None

    def reading(self, usual: "Reading | None" = None) -> "Reading":
        """Checked settings that are given; otherwise those of `usual`, or the defaults of `read_graph`."""
        from owkg.kg.read import Reading

        usual = usual or Reading()
        return Reading(self.layout or usual.layout, self.duplicates or usual.duplicates).checked()

    def require(self, kg: Path | None) -> None:
        """Raises ValueError if an option is given without a graph or has an invalid value."""
        for name, value in (("layout", self.layout), ("duplicates", self.duplicates)):
            if kg is None and value is not None:
                raise ValueError(f"`{name}` has no effect without --kg, got {value!r}.")
        if self.layout is not None or self.duplicates is not None:
            self.reading()


@dataclass(frozen=True, kw_only=True)
class SettingOptions:
    """Model of known strength on a test set with missing facts.

    Attributes:
        strength (P): Strength of the model: probability that it classifies a true answer as positive, in [0,
            1].
        sparsity (P): Probability that a true answer is missing from the test set, in (0, 1).
        num_entities (N): Number of candidates before filtering, more than --num-answers.
        metric (METRIC,...): Metrics such as mrr, hits@K, log-mrr, p-mrr@P, mr, or a usual alias. Several with
            commas, or repeat the option.
        correlation (RHO): Correlation between missing from the test set and classified positive. 0:
            independent.

    How facts go missing:
        missing: Model of missing facts: each fact independently, by the entities that facts share (node), or
            by the popularity of entities.
        node_spread (NUMBER): Spread of the entities' probabilities of being missing, with --missing node.
        popularity_exponent (NUMBER): How fast the odds of being missing rise with the popularity rank, with
            --missing popularity.
    """

    strength: float
    sparsity: float
    num_entities: int
    metric: list[str] = field(default_factory=lambda: ["mrr"])
    correlation: float = 0.0
    missing: Literal["independent", "node", "popularity"] = "independent"
    node_spread: float = 0.2
    popularity_exponent: float = 1.0

    def numbers(self, num_answers: int | list[int]) -> dict[str, Any]:
        """Keyword arguments that all functions of the theory share."""
        return {
            "strength": self.strength,
            "sparsity": self.sparsity,
            "num_answers": num_answers,
            "num_entities": self.num_entities,
            "correlation": self.correlation,
        }

    def metrics(self) -> "list[RankWeight]":
        """Metrics that `--metric` names."""
        from owkg.rank_weights.registry import checked_metric

        return [checked_metric(part.strip()) for name in self.metric for part in name.split(",")]

    def model(self) -> "MissingModel":
        """Missing-fact model; ValueError if a parameter of another model is given."""
        from owkg.openworld import Independent, NodeBased, PopularityBased

        own = {"node": ("node_spread", 0.2), "popularity": ("popularity_exponent", 1.0)}
        for one, (option, default) in own.items():
            value = getattr(self, option)
            if self.missing != one and value != default:
                raise ValueError(f"`{option}` has no effect without --missing {one}, got {value:g}.")
        if self.missing == "node":
            return NodeBased(self.node_spread)
        return Independent() if self.missing == "independent" else PopularityBased(self.popularity_exponent)

    def shown_missing(self) -> dict[str, str | float]:
        """Name of the missing-fact model for the output, and its parameter if it has one."""
        parameter = {"node": "node_spread", "popularity": "popularity_exponent"}.get(self.missing)
        return {"missing": self.missing} | ({parameter: getattr(self, parameter)} if parameter else {})


def histogram(text: str) -> tuple[list[int] | int, list[float] | None]:
    """(num_answers, weights) of `--num-answers`: a number and None, or two lists."""
    try:
        if ":" not in text:
            return int(text), None
        pairs = [part.split(":") for part in text.split(",")]
        answers, queries = zip(*((int(a), float(q)) for a, q in pairs), strict=True)
    except ValueError:
        raise ValueError(
            f"`num_answers` must be a whole number or ANSWERS:QUERIES,..., got {text!r}."
        ) from None
    if len(set(answers)) < len(answers):
        raise ValueError(f"`num_answers` must name each number of answers once, got {text!r}.")
    if not all(0 <= q < math.inf for q in queries) or max(queries) == 0:
        raise ValueError(f"`num_answers` must count queries from 0 up, and more than 0 in all, got {text!r}.")
    return list(answers), list(queries)


def split_list(text: str) -> list[str]:
    """Names in a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def names_given(option: str, given: Sequence[str] | None, usual: Sequence[str]) -> list[str]:
    """Names in a repeatable option whose values are lists with commas; `usual` if it is not given."""
    if given is None:
        return list(usual)
    names = [name for text in given for name in split_list(text)]
    if not names:
        raise ValueError(f"`{option}` must contain at least one name, got {given[0]!r}.")
    return names


def named_files(files: Sequence[Path], names: Sequence[str] | None) -> list[Path] | dict[str, Path]:
    """Files, by the names that `--name` gives if it is given."""
    return list(files) if names is None else dict(zip(file_names_given(files, names), files, strict=True))


def file_names_given(files: Sequence[Path], names: Sequence[str]) -> list[str]:
    """Names that `--name` gives; ValueError unless each file gets a name of its own."""
    given = [name.strip() for text in names for name in _unquoted(text)]
    if not all(given) or len(given) != len(files):
        shown = ", ".join(given)
        hint = "; put a name that contains a comma in quotation marks" if len(given) > len(files) else ""
        raise ValueError(
            f"`name` must be {len(files)} names, one for each file, got {len(given)}: {shown!r}{hint}."
        )
    if again := [name for i, name in enumerate(given) if name in given[:i]]:
        raise ValueError(f"`name` must give each file a name of its own, got {again[0]!r} twice.")
    return given


def _unquoted(text: str) -> list[str]:
    """Names in a list with commas, which may be quoted like fields of CSV."""
    try:
        return next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise ValueError(f"`name` must be names separated by commas, got {text!r} ({error}).") from None


def splits_given(text: str | None) -> list[str] | None:
    """Splits that `--filter` names; empty for "none", and None (the default splits) if it is not given."""
    if text is None:
        return None
    names = split_list(text)
    if not names:
        raise ValueError(f"`filter` must name splits, or be none, got {text!r}.")
    return [] if names == ["none"] else names


def sides_given(text: str) -> list[str]:
    """Sides that `--sides` names, each once."""
    sides = split_list(text)
    if not sides or len(set(sides)) < len(sides) or not {*sides} <= {"head", "tail"}:
        raise ValueError(f"`sides` must be head, tail, or head,tail for both, got {text!r}.")
    return sides


def named_values(pairs: Iterable[str], *, taken: Collection[str]) -> dict[str, Any]:
    """Values of `--option NAME=VALUE` by name, parsed as TOML if possible, otherwise text.

    Raises:
        ValueError: if a pair is malformed, or its name is given twice or is in `taken`.
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals and value):
            raise ValueError(f"`option` must be NAME=VALUE, got {pair!r}.")
        if name in values or name in taken:
            raise ValueError(f"`option` must not set anything twice, got {name} again.")
        try:
            values[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            values[name] = value
    return values


def naming_options(flags: Collection[str]) -> AbstractContextManager[None]:
    """Context in which errors name arguments as `--option NAME`, except `flags`, which have own options."""
    return naming(lambda argument: f"`{argument}`" if argument in flags else f"--option {argument}")

"""The `owkg` command: exit code 0 for success, 2 for bad input, 128 + n if signal n ended it."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from owkg.cli.commands import group
from owkg.cli.comparisons.accept import accept
from owkg.cli.comparisons.audit import audit
from owkg.cli.comparisons.compare import compare
from owkg.cli.comparisons.estimate import estimate
from owkg.cli.comparisons.missing import missing
from owkg.cli.comparisons.pool import pool
from owkg.cli.comparisons.stability import stability
from owkg.cli.embeddings.align import align
from owkg.cli.embeddings.classify import classify
from owkg.cli.embeddings.models import models
from owkg.cli.embeddings.rank import rank
from owkg.cli.embeddings.rules import rules_app
from owkg.cli.embeddings.train import train
from owkg.cli.errors import called, heard, unheard
from owkg.cli.graphs.chance import chance
from owkg.cli.graphs.example import example
from owkg.cli.graphs.family_tree import family_tree_app
from owkg.cli.graphs.kg import kg_app
from owkg.cli.graphs.sample import sample
from owkg.cli.open_world.power import power
from owkg.cli.open_world.simulate import simulate
from owkg.cli.open_world.theory import theory
from owkg.cli.ranks.conformance import conformance
from owkg.cli.ranks.ir import ir
from owkg.cli.ranks.metrics import metrics
from owkg.cli.ranks.ranks import ranks_app
from owkg.terminal.compiled import keep_compiled

# Commands by panel of the help text; the commands that most people need come first.
PANELS = {
    "Measure": (metrics, chance, ir, classify),
    "Compare": (compare, audit, power, stability),
    "Get ranks": (rank, ranks_app, align),
    "Judge": (pool, missing, estimate, accept),
    "Missing facts": (theory, simulate),
    "Data and models": (kg_app, example, sample, family_tree_app, train, models, rules_app),
    "Check": (conformance,),
}

app = group(
    "owkg",
    "How far can a link-prediction result on an incomplete knowledge graph be trusted?",
    panels=PANELS,
    former={"evaluate": rank},
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=True,
)


def _version(value: bool | None) -> None:
    if value:
        from owkg import __version__

        print(f"owkg {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool | None,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit."),
    ] = None,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return called("owkg", app, arguments)


def run() -> None:
    """Runs the command line as a process of its own, handles its signals, and exits."""
    heard()
    keep_compiled()
    code = main()
    unheard()
    sys.exit(code)

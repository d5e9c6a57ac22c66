"""The frame of a simulation script: options, errors in one line, exit codes."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from owkg.cli.errors import guarded

Out = Annotated[Path, typer.Option(help="Folder for the results.")]
Seed = Annotated[int, typer.Option(help="Equal seeds give equal results.", min=0, max=2**32 - 1)]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer trials, for a first look.")]


def run_script(main: Callable[..., int | None]) -> None:
    """Runs `main` as a command whose options are its arguments, and exits, with what it returns as code."""
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command()(main)
    name = Path(sys.argv[0]).name
    sys.exit(guarded(name, lambda: app(prog_name=name, standalone_mode=False)))

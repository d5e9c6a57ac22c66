"""The frame of a script: options, errors in one line, exit codes, tables as files, the published data."""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.errors import called, heard
from owkg.cli.options import Seed
from owkg.cli.output import save_table
from owkg.plots import figure
from owkg.terminal.tables import one_line

__all__ = [
    "Out",
    "Quick",
    "Seed",
    "command_line",
    "data_file",
    "data_folder",
    "run_package",
    "run_script",
    "save_figure",
    "save_table",
]

Out = Annotated[Path, typer.Option(help="Folder for the results.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer trials, for a first look.")]


def command_line(
    package: str, commands: dict[str, Callable[..., None]], examples: dict[str, str]
) -> Callable[..., int]:
    """The function behind `python -m package`: of arguments, those of the process when absent; its exit code.

    Args:
        package: whose docstring is the help.
        commands: by name.
        examples: by the name of the command, without `python -m package`; one a line.
    """
    name = f"python -m {package}"
    app = typer.Typer(
        name=name,
        help=import_module(package).__doc__,
        add_completion=False,
        rich_markup_mode="rich",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(lambda: None)  # a single command keeps its name
    for command, function in commands.items():
        lines = (f"{name} {line}" for line in examples[command].splitlines())
        app.command(command, epilog="Examples:\n\n" + "\n\n".join(lines))(function)

    def main(arguments: Sequence[str] | None = None) -> int:
        return called(name, app, arguments)

    return main


def run_package(main: Callable[..., int]) -> None:
    """Runs what `command_line` made in a process of its own, whose signals it hears."""
    heard()
    sys.exit(main())


def run_script(main: Callable[..., int | None]) -> None:
    """Runs `main` as a command whose options are its arguments, and exits, with what it returns as code."""
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command()(main)
    sys.exit(called(Path(sys.argv[0]).name, app))


def save_figure(fig: Any, stem: Path) -> list[Path]:
    """The files of a figure, as of `owkg.plots.save_figure`, each printed."""
    paths = figure.save_figure(fig, stem)
    for path in paths:
        print(f"wrote {one_line(path)}")
    return paths


def data_file(*parts: str) -> Path | None:
    """The file of that name under the folder that OWKG_DATA names; None when OWKG_DATA is not set.

    Raises:
        ValueError: if OWKG_DATA is set and the file is not there.
    """
    path = _data(*parts)
    if path and not path.is_file():
        raise ValueError(f"OWKG_DATA is set to {os.environ['OWKG_DATA']}, but there is no file {path}.")
    return path


def data_folder(*parts: str) -> Path | None:
    """As `data_file`, for a folder."""
    path = _data(*parts)
    if path and not path.is_dir():
        raise ValueError(f"OWKG_DATA is set to {os.environ['OWKG_DATA']}, but there is no folder {path}.")
    return path


def _data(*parts: str) -> Path | None:
    folder = os.environ.get("OWKG_DATA")
    return Path(folder, *parts) if folder else None

"""Common parts of scripts: options, one-line errors, exit codes, tables as files, the published data."""

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
Quick = Annotated[bool, typer.Option("--quick", help="Run fewer trials: a first look.")]


def command_line(
    package: str, commands: dict[str, Callable[..., None]], examples: dict[str, str]
) -> Callable[..., int]:
    """Entry point of `python -m package`: takes arguments (default: of the process), returns the exit code.

    Args:
        package: name of the package, whose docstring is the help.
        commands: functions by the name of the command.
        examples: by the name of the command, one example a line, without `python -m package`.
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
    app.callback()(lambda: None)  # so that a single command keeps its name
    for command, function in commands.items():
        lines = (f"{name} {line}" for line in examples[command].splitlines())
        app.command(command, epilog="Examples:\n\n" + "\n\n".join(lines))(function)

    def main(arguments: Sequence[str] | None = None) -> int:
        return called(name, app, arguments)

    return main


def run_package(main: Callable[..., int]) -> None:
    """Runs a function made by `command_line`, handles the signals of the process, and exits."""
    heard()
    sys.exit(main())


def run_script(main: Callable[..., int | None]) -> None:
    """Runs `main` as a command whose options are its arguments, and exits with the code that it returns."""
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command()(main)
    sys.exit(called(Path(sys.argv[0]).name, app))


def save_figure(fig: Any, stem: Path) -> list[Path]:
    """Saves a figure with `owkg.plots.save_figure` and prints the path of each file."""
    paths = figure.save_figure(fig, stem)
    for path in paths:
        print(f"wrote {one_line(path)}")
    return paths


def data_file(*parts: str) -> Path | None:
    """Path of a file under the folder that OWKG_DATA names; None if OWKG_DATA is not set.

    Raises:
        ValueError: if OWKG_DATA is set and the file is not there.
    """
    path = _data(*parts)
    if path and not path.is_file():
        raise ValueError(f"OWKG_DATA is set to {os.environ['OWKG_DATA']}, but there is no file {path}.")
    return path


def data_folder(*parts: str) -> Path | None:
    """Path of a folder under OWKG_DATA, with the rules of `data_file`."""
    path = _data(*parts)
    if path and not path.is_dir():
        raise ValueError(f"OWKG_DATA is set to {os.environ['OWKG_DATA']}, but there is no folder {path}.")
    return path


def _data(*parts: str) -> Path | None:
    folder = os.environ.get("OWKG_DATA")
    return Path(folder, *parts) if folder else None

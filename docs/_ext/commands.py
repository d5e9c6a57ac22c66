"""Pages of the command line: each command as its `--help` has it."""

import re
from collections.abc import Iterator
from typing import Any

import typer
from sphinx.util.rst import escape

from _ext.places import COMMANDS, DOCS
from owkg.cli.main import app

_OTHERS = "Options"


def commands() -> dict[str, Any]:
    """By name, such as "owkg kg info", what Typer made of each command and group below `owkg`."""
    return dict(_below("owkg", typer.main.get_command(app)))


def _below(name: str, group: Any) -> Iterator[tuple[str, Any]]:
    for word, one in getattr(group, "commands", {}).items():
        if not one.hidden:
            yield f"{name} {word}", one
            yield from _below(f"{name} {word}", one)


def _panel(one: Any, without: str) -> str:
    """The panel of a help in which something stands."""
    panel = getattr(one, "rich_help_panel", None)
    return panel if isinstance(panel, str) else without


def _prose(text: str | None) -> list[str]:
    """Paragraphs of a help as reStructuredText, each in a line."""
    paragraphs = re.split(r"\n\s*\n", text or "")
    return [line for part in paragraphs if part.strip() for line in (escape(" ".join(part.split())), "")]


def _options(name: str, command: Any) -> Iterator[str]:
    """The lines of the arguments and options of a command, by panel."""
    context = type(command).context_class(command, info_name=name)
    panels: dict[str, list[Any]] = {}
    for one in command.params:
        if not getattr(one, "hidden", False) and one.get_help_record(context):
            is_argument = one.param_type_name == "argument"
            panels.setdefault(_panel(one, "Arguments" if is_argument else _OTHERS), []).append(one)
    for panel, those in panels.items():
        yield from (f".. rubric:: {escape(panel)}", "")
        for one in those:
            called, about = one.get_help_record(context)
            if one.param_type_name == "argument":
                called = called.split(" <")[0]
                yield from (f"``{called}``", *(f"   {line}" for line in _prose(about)), "")
                continue
            yield from (f".. option:: {called}", "", *(f"   {line}" for line in _prose(about)), "")


def _section(name: str, command: Any, level: int) -> list[str]:
    """The lines of a command."""
    context = type(command).context_class(command, info_name=name)
    lines = [f"{'#' * level} {name}", "", "```{eval-rst}", *_prose(command.help)]
    if getattr(command, "commands", None):
        return [*lines, "```", ""]
    usage = command.get_usage(context).removeprefix("Usage: ")
    lines += [".. code-block:: text", "", f"   {' '.join(usage.split())}", "", f".. program:: {name}", ""]
    lines += _options(name, command)
    examples = [part for part in re.split(r"\n\s*\n", command.epilog or "") if part.startswith("owkg")]
    if examples:
        lines += [".. rubric:: Examples", "", ".. code-block:: console", ""]
        lines += [f"   $ {' '.join(example.split())}" for example in examples]
    return [*lines, "", "```", ""]


def write() -> None:
    """Writes a page for each command or group, and one that lists them by panel."""
    folder, found = DOCS / COMMANDS, commands()
    panels: dict[str, list[str]] = {}
    for name, command in found.items():
        if name.count(" ") > 1:
            continue
        lines = _section(name, command, 1)
        for other, one in found.items():
            if other.startswith(f"{name} "):
                lines += _section(other, one, 2)
        word = name.split()[1]
        panels.setdefault(_panel(command, "Commands"), []).append(word)
        (folder / f"{word}.md").write_text("\n".join(lines), encoding="utf-8")
    lines = ["# Command line", "", "The help of each command, as `owkg COMMAND --help` prints it.", ""]
    for panel, words in panels.items():
        lines += [f"## {panel}", "", "```{toctree}", ":maxdepth: 1", *words, "```", ""]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")

"""Commands made from functions: the signature gives the options, the docstring gives their help texts."""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.models import ParameterInfo

from owkg import plugins

_TITLE = re.compile(r"([A-Z][\w -]*):")
_ENTRY = re.compile(r"(\w+)(?: \((.+?)\))?: (.*)")


# Smallest width of a help text in columns; a narrower terminal wraps its lines.
_NARROWEST = 80


class Given(frozenset[str]):
    """Names of the parameters that were given on the command line."""

    def refuse(self, names: Iterable[str], why: str) -> None:
        """Raises ValueError for the first of `names` that was given; the message is "`name` why."."""
        for name in names:
            if name in self:
                raise ValueError(f"`{name.strip('_')}` {why}.")


Commands = Sequence[Callable[..., None] | typer.Typer]

# Titles of panels that several commands share; the panels in LAST come last, in this order.
OUTPUT, STATISTICS = "Output", "Tests and intervals"
GRAPH, TABLES, RARE = "The graph", "Rank tables from other programs", "Rarely needed"
LAST = (STATISTICS, OUTPUT, GRAPH, TABLES, RARE)
# Placeholder of a value if the docstring gives none.
_METAVARS = {int: "N", float: "NUMBER", str: "TEXT", Path: "FILE", list[str]: "TEXT", list[Path]: "FILE"}


def group(
    name: str,
    about: str,
    *commands: Callable[..., None] | typer.Typer,
    panels: Mapping[str, Commands] | None = None,
    former: Mapping[str, Callable[..., None]] | None = None,
    **settings: Any,
) -> typer.Typer:
    """App whose commands are functions, and which may contain other apps.

    Parameters before the `*` of a signature become arguments, and parameters after it become options.
    `filter_` becomes --filter unless the annotation names another flag. A bool that is False by default gets
    no --no-flag. A parameter whose type is a dataclass becomes one option for each field. A parameter of type
    `Given` is not an option; it receives the names of the parameters that were given. Types such as
    `Annotated[int, typer.Option(min=1)]` add settings of Typer. If they contain a help text, as the shared
    options of `owkg.cli.options` do, the docstring does not describe the parameter. The docstring is the help
    text of the command, followed by sections:

        Args:
            kg (DIR): Help text of --kg, whose value is shown as DIR. Default: what happens without it.
        A title:
            seeds: An option in a panel of its own.
        Examples:
            owkg train data/nations --out run

    In a dataclass the first section is `Attributes`. Panels appear in the order of their first option; the
    panels in `LAST` come last.

    Args:
        name: name of the app.
        about: help text of the app.
        *commands: functions and apps, in the order of the help text.
        panels: further functions and apps, by the title of their panel.
        former: functions by their former names; these commands are hidden and print a note with the current
            name.
        **settings: settings of `typer.Typer`.
    """
    usual: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": "rich", "add_completion": False}
    of_panels = {None: commands} | dict(panels or {})
    order = [_name(one) for of_panel in of_panels.values() for one in of_panel]
    kind = type("Group", (settings.pop("cls", CommandGroup),), {"order": order})
    app = typer.Typer(name=name, help=about, cls=kind, **usual | settings)
    for panel, of_panel in of_panels.items():
        for one in of_panel:
            _add(app, one, panel)
    for old, one in (former or {}).items():
        text, sections = _read(one)
        sections.pop("Examples", None)
        noting = _noting(one, f"`{name} {old}` is now `{name} {one.__name__}`; the old name ends with 0.2.")
        app.command(old, cls=_Command, hidden=True)(_command(noting, text, sections))
    return app


def _name(one: Callable[..., None] | typer.Typer) -> str:
    """Name of a command or of an app."""
    return str(one.info.name) if isinstance(one, typer.Typer) else one.__name__


def _add(app: typer.Typer, one: Callable[..., None] | typer.Typer, panel: str | None) -> None:
    """Adds a command or an app to a panel of the help text."""
    if isinstance(one, typer.Typer):
        app.add_typer(one, rich_help_panel=panel)
        return
    text, sections = _read(one)
    examples = sections.pop("Examples", ())
    epilog = "Examples:\n\n" + "\n\n".join(examples) if examples else None
    app.command(cls=_Command, epilog=epilog, rich_help_panel=panel)(_command(one, text, sections))


def _noting(function: Callable[..., None], note: str) -> Callable[..., None]:
    """Function that prints a note on standard error and then calls `function`."""

    @wraps(function)
    def noting(**values: Any) -> None:
        print(f"owkg: note: {note}", file=sys.stderr)
        function(**values)

    return noting


def _without_types(params: list[Any]) -> list[Any]:
    """Parameters whose type is not shown for flags, which take no value, and for arguments."""
    for one in params:
        if getattr(one, "is_flag", False):
            one.metavar = ""
        elif isinstance(one, TyperArgument):
            one.display_type_rich = lambda ctx: None
    return params


class CommandGroup(TyperGroup):
    """Group whose help text lists the commands in the given order and shows no type for flags."""

    order: Sequence[str] = ()

    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: self.order.index(name) if name in self.order else len(names))

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))


class _Command(TyperCommand):
    """Command whose help text cuts off no word: names of options stay whole, longer words are broken."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
        from typer import rich_utils

        width = max(Console().width, _NARROWEST)
        room = width // 3

        class Whole(Table):
            def add_row(self, *cells: Any, **options: Any) -> None:
                # Typer joins these texts as Columns, which cut words off.
                texts = [one for one in getattr(cells[-1], "renderables", ()) if isinstance(one, Text)]
                cells = (*cells[:-1], Text(" ").join(texts)) if texts else cells
                super().add_row(*cells, **options)
                self.columns[-1].overflow = "fold"
                for column, cell in zip(self.columns[:-1], cells[:-1], strict=False):
                    column.overflow = "fold"
                    if str(cell).startswith("--") and len(str(cell)) <= room:
                        column.no_wrap = True

        rich_utils.MAX_WIDTH = width
        rich_utils.Table = Whole  # pyright: ignore[reportPrivateImportUsage]
        super().format_help(ctx, formatter)


def _command(function: Callable[..., None], text: str, sections: dict[str, list[str]]) -> Callable[..., None]:
    """Function with the signature and docstring that Typer expects."""
    said, parameters, groups, heard = _said(sections), [], {}, ""
    hints = get_type_hints(function, include_extras=True)
    for one in inspect.signature(function).parameters.values():
        kind = hints[one.name]
        if isinstance(kind, type) and is_dataclass(kind):
            groups[one.name] = kind
            parameters += _fields_of(kind)
        elif kind is Given:
            heard = one.name
        else:
            is_option = one.kind is one.KEYWORD_ONLY
            parameters.append(_parameter(one.name, kind, one.default, said, is_option=is_option))

    parameters = _by_panel(parameters)

    @wraps(function)
    def command(context: Any, **values: Any) -> None:
        plugins.load()
        for name, kind in groups.items():
            values[name] = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
        if heard:
            values[heard] = Given(name for name in context.params if _is_given(context, name))
        function(**values)

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    command.__doc__ = text
    command.__annotations__ = {one.name: one.annotation for one in (context, *parameters)}
    command.__signature__ = inspect.Signature([context, *parameters])  # pyright: ignore[reportAttributeAccessIssue]
    return command


def _by_panel(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Parameters in the order of the help text: grouped by panel, with the panels in `LAST` at the end."""
    panels = [get_args(one.annotation)[1].rich_help_panel for one in parameters]
    order = [None, *(panel for panel in panels if panel not in LAST), *LAST]
    places = [order.index(panel) for panel in panels]
    return [one for _, one in sorted(zip(places, parameters, strict=True), key=lambda pair: pair[0])]


def _is_given(context: Any, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _fields_of(kind: type) -> Iterator[inspect.Parameter]:
    said, hints = _said(_read(kind)[1]), get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        yield _parameter(field.name, hints[field.name], default, said, is_option=True)


def _parameter(
    name: str, kind: Any, default: object, said: dict[str, "_Said"], *, is_option: bool
) -> inspect.Parameter:
    """Parameter with its flags, help text and placeholder for Typer."""
    base, *more = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    info = next((one for one in more if isinstance(one, ParameterInfo)), None)
    if info is None or info.help is None:
        if name not in said:
            raise TypeError(f"the docstring of a command must describe the parameter {name!r}.")
        about = said[name]
        metavar = about.metavar or (None if get_origin(base) is Literal else _METAVARS.get(_plain(base)))
        options: dict[str, Any] = {"help": about.help, "metavar": metavar, "rich_help_panel": about.panel}
        if info is not None:
            options |= {"min": info.min, "max": info.max}
        # In an annotation, Typer stores the first flag as `default`.
        named = [getattr(info, "default", None), *(getattr(info, "param_decls", None) or ())]
        flags = [flag for flag in named if isinstance(flag, str) and flag.startswith("--")]
        flags = flags or [f"--{name.strip('_').replace('_', '-')}"]
        if base is bool and default is True:
            flags = [f"{flags[0]}/--no-{flags[0].removeprefix('--')}"]
        if not is_option:  # Typer names an argument by its placeholder.
            options["metavar"] = about.metavar
        kind = Annotated[base, typer.Option(*flags, **options) if is_option else typer.Argument(**options)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _plain(kind: Any) -> Any:
    """Type without None."""
    others = [one for one in get_args(kind) if one is not NoneType]
    return others[0] if len(others) == 1 and get_origin(kind) is UnionType else kind


class _Said(NamedTuple):
    """Description of a parameter in a docstring."""

    help: str
    metavar: str | None
    panel: str | None


def _said(sections: dict[str, list[str]]) -> dict[str, _Said]:
    """Descriptions of parameters in `sections`, by name."""
    said = {}
    for title, entries in sections.items():
        panel = None if title in ("Args", "Attributes") else title
        for entry in entries:
            if (match := _ENTRY.fullmatch(entry)) is None:
                raise TypeError(f"{entry!r} is not of the form name: text.")
            name, metavar, text = match.groups()
            said[name] = _Said(text, metavar, panel)
    return said


def _docstring(documented: Callable[..., None]) -> str:
    """Docstring; taken from the source under `python -OO`, which drops it or leaves a generated one."""
    if sys.flags.optimize < 2:
        return documented.__doc__ or ""
    source = ast.parse(textwrap.dedent(inspect.getsource(documented))).body[0]
    return ast.get_docstring(source) or ""  # pyright: ignore[reportArgumentType]


def _read(documented: Callable[..., None]) -> tuple[str, dict[str, list[str]]]:
    """Text of a docstring, and the entries of its sections by title."""
    text, sections = [], {}
    entries: list[str] | None = None
    lines = inspect.cleandoc(_docstring(documented)).splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        title = _TITLE.fullmatch(line)
        if title and following.startswith("    "):
            entries = sections[title[1]] = []
        elif entries is None:
            text.append(line)
        elif line.startswith("     "):
            entries[-1] += " " + line.strip()
        elif line.strip():
            entries.append(line.strip())
    paragraphs = "\n".join(text).strip().split("\n\n")
    return "\n\n".join(" ".join(one.split()) for one in paragraphs), sections

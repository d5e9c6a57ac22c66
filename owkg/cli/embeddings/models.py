"""`owkg models`: embedding models with their equations and options."""

from owkg.cli.options import Format, OutputFormat
from owkg.cli.output import show
from owkg.terminal.tables import console, new_table


def models(*, form: OutputFormat = Format.TABLE) -> None:
    """List the embedding models with their score functions, sources and default options.

    JSON also lists how each model is trained by default, and its presets.

    Examples:
        owkg models
        owkg models --format json
    """
    from owkg.models import MODELS

    if form is Format.JSON:
        rows = [
            {
                "name": name,
                "equation": kind.equation,
                "source": kind.source,
                "options": kind.options,
                "training": dict(kind.training),
                "presets": {preset: dict(recipe) for preset, recipe in kind.presets.items()},
            }
            for name, kind in MODELS.items()
        ]
        show(form, {"models": rows})
        return
    table = new_table()
    for title in ("model", "score", "source", "options by default"):
        table.add_column(title)
    for name, kind in MODELS.items():
        options = ", ".join(f"{option} {value}" for option, value in kind.options.items())
        table.add_row(name, kind.equation, kind.source, options)
    console().print(table)

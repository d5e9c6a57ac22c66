"""The commands of `owkg reproduce`."""

from pathlib import Path

import typer

from owkg.cli.reproduce import open_world
from owkg.cli.reproduce.pooling import pooling
from owkg.cli.script import Out, Quick, Seed

reproduce_app = typer.Typer(
    name="reproduce",
    help="The figures of Yang et al. (2022) and the study of Zhou et al. (2022), carried further.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@reproduce_app.command(epilog="Examples:\n\nowkg reproduce figure1 --quick --out out")
def figure1(out: Out = Path("out"), seed: Seed = 0, quick: Quick = False) -> None:
    """Figure 1: MRR under missing facts against the true strength, with the published points on top."""
    from owkg.cli.reproduce.figure1 import figure1

    figure1(out, seed, quick)


@reproduce_app.command(epilog="Examples:\n\nowkg reproduce figure2 --quick --out out")
def figure2(out: Out = Path("out"), seed: Seed = 0, quick: Quick = False) -> None:
    """Figure 2: the same when missing facts correlate with the model's predictions."""
    from owkg.cli.reproduce.figure2 import figure2

    figure2(out, seed, quick)


for _name, _command in open_world.COMMANDS.items():
    reproduce_app.command(
        _name,
        epilog=f"Examples:\n\nowkg reproduce {_name} --preset quick --out out\n\n"
        f"owkg reproduce {_name} --preset cpu --worlds benchmarks --density 0.95,0.75 --out out",
    )(_command)

reproduce_app.command(
    epilog="Examples:\n\nowkg reproduce pooling --preset quick --out out\n\n"
    "owkg reproduce pooling --preset cpu --density 0.75 --depth 5 --out out"
)(pooling)

"""`owkg example`: example files for trying the commands."""

from pathlib import Path

from owkg.cli.commands import Given
from owkg.cli.options import Format, OutputFormat, Overwrite, Seed
from owkg.cli.output import show


def example(
    folder: Path,
    *,
    given: Given,
    judge: list[Path] | None = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Write a small example: a graph, ranks and lists of three systems, and the true answers that it lacks.

    The graph describes invented families, and the systems are simulated, so that every missing fact is
    known. OUT/README.txt explains each file and lists the commands to type next.

    Args:
        folder (OUT): Folder to write, new or empty; with --judge, the folder of an example.
        judge (SHEET): Fill in this annotation sheet with the true labels of the example, and write nothing
            else. Repeat the option for several sheets.

    Examples:
        owkg example example
        owkg example example --seed 1 --overwrite
        owkg example example --judge pool/sheet.tsv
    """
    from owkg.errors import naming
    from owkg.example import judge_by_truth, write_example

    if judge:
        given.refuse(["seed", "overwrite"], "has no effect with --judge")
        with naming({"folder": "OUT", "sheet": "judge"}):
            true = {str(sheet): judge_by_truth(folder, sheet) for sheet in judge}
        lines = [
            f"filled in {sheet} by the truth: {count:,} answers are true" for sheet, count in true.items()
        ]
        show(form, {"true": true}, lines=lines)
        return
    with naming({"out": "OUT"}):
        content = write_example(folder, seed=seed, overwrite=overwrite)
    found, every = content["test_answers"], content["true_answers"]
    lines = [
        f"wrote {folder}: a graph of {content['entities']:,} people, and 3 systems that answer "
        f"{content['queries']:,} queries",
        f"the test set contains {found:,} of their {every:,} true answers, so its sparsity is "
        f"{1 - found / every:.3f}",
        "README.txt in the folder explains each file and lists the commands to type next",
    ]
    show(form, {"out": folder, **content}, lines=lines)

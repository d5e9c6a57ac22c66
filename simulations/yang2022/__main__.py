"""The commands of `python -m simulations.yang2022`."""

from simulations.script import command_line, run_package
from simulations.yang2022 import closed_form_table, figure1, figure2, figures3to5, reported

_OF_RUNS = (
    "{name} --preset quick --out out\n{name} --preset cpu --worlds benchmarks --density 0.95,0.75 --out out"
)
_QUICK = {name: f"{name} --quick --out out" for name in ("figure1", "figure2", "closed-forms")}

main = command_line(
    "simulations.yang2022",
    {
        "reported-mrr": reported.main,
        "figure1": figure1.main,
        "figure2": figure2.main,
        "closed-forms": closed_form_table.main,
    }
    | figures3to5.COMMANDS,
    {"reported-mrr": "reported-mrr --out out"}
    | _QUICK
    | {name: _OF_RUNS.format(name=name) for name in figures3to5.COMMANDS},
)

if __name__ == "__main__":
    run_package(main)

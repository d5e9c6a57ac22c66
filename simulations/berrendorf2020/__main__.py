"""The commands of `python -m simulations.berrendorf2020`."""

from simulations.berrendorf2020 import alignment, table1
from simulations.script import command_line, run_package

main = command_line(
    "simulations.berrendorf2020",
    {"alignment": alignment.main, "table1": table1.main},
    {
        "alignment": "alignment --quick --out out\nalignment --data data/dbp15k/zh_en --out out",
        "table1": "table1 --quick --out out\ntable1 --kg data/umls --seeds 3 --out out",
    },
)

if __name__ == "__main__":
    run_package(main)

"""The commands of `python -m simulations.berrendorf2020`."""

from simulations.berrendorf2020 import alignment
from simulations.script import command_line, run_package

main = command_line(
    "simulations.berrendorf2020",
    {"alignment": alignment.main},
    {"alignment": "alignment --quick --out out\nalignment --data data/dbp15k/zh_en --out out"},
)

if __name__ == "__main__":
    run_package(main)

"""The commands of `python -m simulations.hoyt2022`."""

from simulations.hoyt2022 import chance_adjustment, desiderata
from simulations.script import command_line, run_package

main = command_line(
    "simulations.hoyt2022",
    {"chance-adjustment": chance_adjustment.main, "desiderata": desiderata.main},
    {"chance-adjustment": "chance-adjustment --quick --out out", "desiderata": "desiderata"},
)

if __name__ == "__main__":
    run_package(main)

"""The commands of `python -m simulations.probe2026`."""

from simulations.probe2026 import figures, table2
from simulations.script import command_line, run_package

_OWN = "--kg data/wn18rr --ranks one.parquet --ranks two.parquet --out out"

main = command_line(
    "simulations.probe2026",
    {"figures": figures.main, "table2": table2.main},
    {
        "figures": f"figures --quick --out out\nfigures {_OWN}",
        "table2": f"table2 --quick --out out\ntable2 {_OWN}",
    },
)

if __name__ == "__main__":
    run_package(main)

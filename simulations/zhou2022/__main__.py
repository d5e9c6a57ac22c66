"""The commands of `python -m simulations.zhou2022`."""

from simulations.script import command_line, run_package
from simulations.zhou2022 import judged_benchmark, study

main = command_line(
    "simulations.zhou2022",
    {"pooling": study.pooling, "published": judged_benchmark.main},
    {
        "pooling": "pooling --preset quick --out out\n"
        "pooling --preset cpu --density 0.75 --depth 5 --out out",
        "published": "published --data data --out out",
    },
)

if __name__ == "__main__":
    run_package(main)

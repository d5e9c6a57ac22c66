"""Entry point of the `owkg` command, also as `python -m owkg`."""

import sys

from owkg.terminal.process import begun, require_addresses


def main() -> None:
    """Runs the command; an interrupt during its import also prints one line."""
    begun("owkg")
    require_addresses("owkg", sys.argv[1:])
    from owkg.cli.main import run

    run()


if __name__ == "__main__":
    main()

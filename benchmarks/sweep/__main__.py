"""`python -m benchmarks.sweep`: measures in a process that is small, since a child's peak of memory begins with it.

Linux counts the memory of the process that starts another one as that one's, until it has its own program.
"""

import argparse
import json
import sys
from pathlib import Path

from benchmarks.measuring import FailedError
from benchmarks.sweep.measure import SHARES, measure


def main() -> None:
    """Measure, tell on standard output how far it is, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, help="where the figures are written to, as JSON")
    parser.add_argument("sizes", type=int, nargs="*", help="how many instances the fleets have")
    parser.add_argument("--runs", type=int, default=10, help="how many turns count")
    arguments = parser.parse_args()
    try:
        figures = measure(arguments.sizes or SHARES, arguments.runs, lambda text: print(text, flush=True))
    except FailedError as error:
        sys.exit(str(error))
    arguments.output.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

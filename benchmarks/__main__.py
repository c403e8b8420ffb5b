"""`make bench`: the figures the package is held to, measured against bare loops in the same run."""

from __future__ import annotations

import sys
from itertools import chain

from . import command_line, core, embeddings, git, mcp, packages, scale, scripts, validation
from .figure import HEADING, Figure
from .report import write_figures


def main() -> None:
    """Print each figure as it is measured and write all into the documentation; exit with 1 if a limit is missed."""
    print(HEADING, flush=True)
    measured: list[Figure] = []
    work = (core, command_line, scale, embeddings, validation, scripts, git, mcp, packages)
    for figure in chain.from_iterable(module.figures() for module in work):
        print(figure, flush=True)
        measured.append(figure)
    write_figures(measured)
    sys.exit(any(figure.is_over for figure in measured))


if __name__ == '__main__':
    main()

"""`make bench`: the figures the package is held to, measured against bare loops in the same run."""

from __future__ import annotations

import sys
from itertools import chain

from . import core, git, scripts
from .figure import HEADING


def main() -> None:
    """Print each figure as it is measured; exit with 1 if one is over its limit."""
    print(HEADING, flush=True)
    over = False
    for figure in chain(core.figures(), scripts.figures(), git.figures()):
        print(figure, flush=True)
        over |= figure.is_over
    sys.exit(over)


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
"""Find the next version for a list of changes."""

from __future__ import annotations

import argparse
from pathlib import Path

KINDS = ('breaking', 'feature', 'fix')


def main() -> None:
    """Print the next version and the change that decided it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('version', help='the version that was released last, such as 1.4.2')
    parser.add_argument('file', type=Path, help='one change on each line: breaking, feature or fix, then what it is')
    args = parser.parse_args()
    try:
        major, minor, patch = map(int, args.version.removeprefix('v').split('.'))
        changes = [line.strip() for line in args.file.read_text('utf-8').splitlines()]
    except (OSError, ValueError) as error:
        parser.error(str(error))
    ranked = [(KINDS.index(change.split()[0].strip(':')), change) for change in changes if change.startswith(KINDS)]
    if not ranked:
        parser.error(f'{args.file} has no line that begins with one of: {", ".join(KINDS)}')
    rank, decisive = min(ranked)
    rank += major == 0  # before 1.0.0, everything counts one step less
    following = ((major + 1, 0, 0), (major, minor + 1, 0), (major, minor, patch + 1))[min(rank, 2)]
    print(f'{".".join(map(str, following))} because of: {decisive}')


if __name__ == '__main__':
    main()

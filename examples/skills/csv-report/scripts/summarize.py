#!/usr/bin/env python3
"""Count, sum and average a column of a CSV file, for each group of rows."""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from decimal import Decimal, InvalidOperation
from pathlib import Path

SKILL = Path(__file__).resolve().parent.parent


def main() -> None:
    """Print one line of CSV for each group, largest sum first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('file', type=Path, help='the CSV file, here or in the folder of the skill')
    parser.add_argument('--value', required=True, metavar='COLUMN', help='the column to add up')
    parser.add_argument('--group-by', metavar='COLUMN', help='one line for each value of this column')
    args = parser.parse_args()

    groups: defaultdict[str, list[Decimal]] = defaultdict(list)
    skipped = 0
    try:
        with (args.file if args.file.exists() else SKILL / args.file).open(newline='', encoding='utf-8-sig') as file:
            reader = csv.DictReader(file)
            for column in filter(None, (args.value, args.group_by)):
                if column not in (reader.fieldnames or ()):
                    parser.error(f'no column {column!r}; there are: {", ".join(reader.fieldnames or ())}')
            for row in reader:
                try:
                    value = Decimal(row[args.value] or '')
                except InvalidOperation:
                    skipped += 1
                else:
                    groups[row[args.group_by] if args.group_by else 'all'].append(value)
    except OSError as error:
        parser.error(f'{args.file}: {error.strerror}')

    out = csv.writer(sys.stdout, lineterminator='\n')
    out.writerow([args.group_by or 'group', 'count', 'sum', 'mean'])
    for group, values in sorted(groups.items(), key=lambda item: (-sum(item[1]), item[0])):
        out.writerow([group, len(values), sum(values), f'{sum(values) / len(values):.3f}'])
    if skipped:
        print(f'{skipped} rows have no number in {args.value!r}', file=sys.stderr)


if __name__ == '__main__':
    main()

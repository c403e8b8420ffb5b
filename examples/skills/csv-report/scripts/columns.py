#!/usr/bin/env python3
"""List the columns of a CSV file with their type and an example."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

SKILL = Path(__file__).resolve().parent.parent


def is_number(text: str) -> bool:
    """Whether `float` reads the text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def main() -> None:
    """Print one line of CSV for each column."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('file', type=Path, help='the CSV file, here or in the folder of the skill')
    args = parser.parse_args()

    try:
        with (args.file if args.file.exists() else SKILL / args.file).open(newline='', encoding='utf-8-sig') as file:
            reader = csv.DictReader(file)
            columns = list(reader.fieldnames or ())
            rows = list(reader)
    except OSError as error:
        parser.error(f'{args.file}: {error.strerror}')
    out = csv.writer(sys.stdout, lineterminator='\n')
    out.writerow(['column', 'type', 'example'])
    for column in columns:
        values = [row[column] for row in rows if row[column]]
        kind = 'number' if values and all(map(is_number, values)) else 'text'
        out.writerow([column, kind, values[0] if values else ''])


if __name__ == '__main__':
    main()

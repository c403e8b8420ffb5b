#!/usr/bin/env python3
"""Fill in the form that list_fields.py has read."""

from __future__ import annotations

import argparse
import datetime
import json
import re
from decimal import Decimal, InvalidOperation
from pathlib import Path


def written(kind: str, value: str) -> str:
    """A value as it stands in the form."""
    if kind == 'date':
        return f'{datetime.date.fromisoformat(value):%d %b %Y}'
    return f'{Decimal(value):,.2f}' if kind == 'amount' else value


def main() -> None:
    """Check every value, then write the form; write nothing if a value is wrong or missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('fields', type=Path, help='the file that list_fields.py wrote')
    parser.add_argument('output', type=Path, help='the file to write')
    parser.add_argument('--set', nargs='+', default=[], metavar='NAME=VALUE', help='the values')
    args = parser.parse_args()
    try:
        read = json.loads(args.fields.read_text('utf-8'))
    except OSError as error:
        parser.error(f'{args.fields}: {error.strerror}; run list_fields.py first')
    values = dict(pair.partition('=')[::2] for pair in args.set)
    if values.keys() != read['fields'].keys():
        parser.error(f'the form has these fields: {", ".join(read["fields"])}; you gave: {", ".join(values)}')
    shown: dict[str, str] = {}
    for name, kind in read['fields'].items():
        try:
            shown[name] = written(kind, values[name])
        except (InvalidOperation, ValueError):
            parser.error(f'{name} is not a valid {kind}: {values[name]!r}')
    filled = re.sub(r'\{(\w+)[^}]*\}', lambda field: shown[field[1]], read['form'])
    args.output.write_text(filled, 'utf-8')
    print(f'Filled in {len(shown)} fields of {args.output}.')


if __name__ == '__main__':
    main()

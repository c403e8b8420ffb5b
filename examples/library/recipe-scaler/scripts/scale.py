#!/usr/bin/env python3
"""Scale the quantities of a recipe."""

from __future__ import annotations

import argparse
import re
from fractions import Fraction
from pathlib import Path

SERVES = re.compile(r'serves\s+(\d+)', re.IGNORECASE)
QUANTITY = re.compile(r'^(\d+(?:\.\d+)?|\d+/\d+)(?=\s)')


def main() -> None:
    """Write the scaled recipe to scaled.txt, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('file', type=Path, help='a recipe with a line like "Serves 4"')
    parser.add_argument('--servings', type=int, required=True)
    args = parser.parse_args()
    try:
        text = args.file.read_text('utf-8')
    except OSError as error:
        parser.error(f'{args.file}: {error.strerror}')
    serves = SERVES.search(text)
    if serves is None or args.servings < 1:
        parser.error('the recipe needs a line like "Serves 4", and --servings a number from 1 on')
    factor = Fraction(args.servings, int(serves[1]))
    lines = [QUANTITY.sub(lambda match: f'{float(Fraction(match[1]) * factor):g}', line) for line in text.splitlines()]
    scaled = SERVES.sub(f'Serves {args.servings}', '\n'.join(lines))
    Path('scaled.txt').write_text(f'{scaled}\n', 'utf-8')
    print(scaled)


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
"""Group the errors and warnings of a log by what they have in common."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

LEVEL = re.compile(r'\b(CRITICAL|FATAL|ERROR|WARN(?:ING)?)\b[:\]]?\s*(.*)')
VARIES = re.compile(r'0x[0-9a-f]+|\d+(?:[.:]\d+)*')


def main() -> None:
    """Print how often each message occurs, then the first error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('file', type=Path, help='a log with one message on each line')
    args = parser.parse_args()
    try:
        lines = args.file.read_text('utf-8', 'replace').splitlines()
    except OSError as error:
        parser.error(f'{args.file}: {error.strerror}')
    found = [(match[1], match[2], line) for line in lines if (match := LEVEL.search(line))]
    groups = Counter((level, VARIES.sub('#', text)) for level, text, _ in found)
    for (level, text), count in groups.most_common(10):
        print(f'{count:>5}  {level}  {text}')
    first = next((line for level, _, line in found if not level.startswith('WARN')), None)
    print(f'first error: {first}' if first else 'no errors')


if __name__ == '__main__':
    main()

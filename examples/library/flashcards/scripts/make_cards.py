#!/usr/bin/env python3
"""Make flashcards from notes with one `term: meaning` on each line."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path


def main() -> None:
    """Write cards.tsv, and print what became of the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('file', type=Path, help='notes with one fact on each line')
    args = parser.parse_args()
    try:
        lines = [line.strip() for line in args.file.read_text('utf-8').splitlines() if line.strip()]
    except OSError as error:
        parser.error(f'{args.file}: {error.strerror}')
    cards = [
        (term.strip(), meaning.strip()) for term, colon, meaning in (line.partition(':') for line in lines) if colon
    ]
    with open('cards.tsv', 'w', newline='', encoding='utf-8') as file:
        csv.writer(file, delimiter='\t', lineterminator='\n').writerows(cards)
    print(f'{len(cards)} cards in cards.tsv')
    for line in lines:
        if ':' not in line:
            print(f'left out: {line}')


if __name__ == '__main__':
    main()

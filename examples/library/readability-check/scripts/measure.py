#!/usr/bin/env python3
"""Measure how hard an English text is to read."""

from __future__ import annotations

import argparse
import re
from pathlib import Path


def syllables(word: str) -> int:
    """About how many syllables a word has: groups of vowels, without a silent e at the end."""
    return max(1, len(re.findall(r'[aeiouy]+', re.sub(r'e$', '', word.lower()))))


def main() -> None:
    """Print the figures, then the longest sentences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('file', type=Path, help='a plain text')
    parser.add_argument('--longest', type=int, default=3, help='how many sentences to list')
    args = parser.parse_args()
    try:
        text = ' '.join(args.file.read_text('utf-8').split())
    except OSError as error:
        parser.error(f'{args.file}: {error.strerror}')
    sentences = [sentence for sentence in re.split(r'(?<=[.!?])\s+', text) if re.search(r'\w', sentence)]
    words = re.findall(r"[A-Za-z']+", text)
    if not words:
        parser.error(f'{args.file} has no words')
    length, weight = len(words) / len(sentences), sum(map(syllables, words)) / len(words)
    print(f'reading ease {206.835 - 1.015 * length - 84.6 * weight:.0f}')
    print(f'{len(words)} words, {len(sentences)} sentences, {length:.1f} words a sentence')
    for sentence in sorted(sentences, key=len, reverse=True)[: args.longest]:
        print(f'- {sentence}')


if __name__ == '__main__':
    main()

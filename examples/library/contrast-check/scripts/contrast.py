#!/usr/bin/env python3
"""Measure the contrast ratio of two colours by the WCAG 2 formula."""

from __future__ import annotations

import argparse


def luminance(colour: str) -> float:
    """How bright a colour is, from 0 for black to 1 for white."""
    digits = colour.removeprefix('#')
    if len(digits) == 3:
        digits = ''.join(digit * 2 for digit in digits)
    if len(digits) != 6:
        raise ValueError(f'{colour} is not a colour such as #1a2b3c')
    parts = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def main() -> None:
    """Print the ratio and the level it meets for normal text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('text', help='such as #1a2b3c')
    parser.add_argument('background')
    args = parser.parse_args()
    try:
        dark, light = sorted((luminance(args.text), luminance(args.background)))
    except ValueError as error:
        parser.error(str(error))
    ratio = (light + 0.05) / (dark + 0.05)
    level = 'AAA' if ratio >= 7 else 'AA' if ratio >= 4.5 else 'AA for large text' if ratio >= 3 else 'no level'
    print(f'{ratio:.2f}:1 meets {level}')


if __name__ == '__main__':
    main()

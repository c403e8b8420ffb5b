#!/usr/bin/env python3
"""Count the working days from one date to another, both included."""

from __future__ import annotations

import argparse
from datetime import date, timedelta


def main() -> None:
    """Print the number of days."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('first', type=date.fromisoformat, help='such as 2026-11-02')
    parser.add_argument('last', type=date.fromisoformat)
    parser.add_argument('--holiday', type=date.fromisoformat, action='append', default=[], metavar='DATE')
    args = parser.parse_args()
    if args.last < args.first:
        parser.error(f'{args.last} is before {args.first}')
    days = (args.first + timedelta(days=number) for number in range((args.last - args.first).days + 1))
    working = [day for day in days if day.weekday() < 5 and day not in args.holiday]
    print(f'{len(working)} working days from {args.first} to {args.last}')


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
"""Find the payments that settle shared expenses."""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from decimal import Decimal, InvalidOperation
from pathlib import Path


def main() -> None:
    """Print the share of each person, then one payment on each line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('file', type=Path, help='a CSV file with the columns person and amount')
    args = parser.parse_args()
    paid: defaultdict[str, int] = defaultdict(int)
    try:
        with args.file.open(newline='', encoding='utf-8-sig') as file:
            for row in csv.DictReader(file):
                paid[row['person']] += int(Decimal(row['amount']) * 100)
    except OSError as error:
        parser.error(f'{args.file}: {error.strerror}')
    except (KeyError, InvalidOperation):
        parser.error(f'{args.file} needs the columns person and amount')
    if not paid:
        parser.error(f'{args.file} has no rows')
    share, left = divmod(sum(paid.values()), len(paid))
    print(f'share {share / 100:.2f}')
    # The cents that cannot be shared are taken by the first people.
    owes = {person: share + (at < left) - paid[person] for at, person in enumerate(sorted(paid))}
    while any(owes.values()):
        debtor, creditor = max(owes, key=owes.__getitem__), min(owes, key=owes.__getitem__)
        amount = min(owes[debtor], -owes[creditor])
        owes[debtor] -= amount
        owes[creditor] += amount
        print(f'{debtor} pays {creditor} {amount / 100:.2f}')


if __name__ == '__main__':
    main()

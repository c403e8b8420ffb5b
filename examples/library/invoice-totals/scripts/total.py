#!/usr/bin/env python3
"""Add up an invoice: net, VAT and gross."""

from __future__ import annotations

import argparse
import csv
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path

CENT = Decimal('0.01')


def main() -> None:
    """Print the three amounts, one on each line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('file', type=Path, help='a CSV file with the columns item, quantity and price')
    parser.add_argument('--vat', type=Decimal, default=Decimal(20), metavar='PERCENT', help='the rate of the tax')
    args = parser.parse_args()
    try:
        with args.file.open(newline='', encoding='utf-8-sig') as file:
            rows = list(csv.DictReader(file))
        net = sum((Decimal(row['quantity']) * Decimal(row['price']) for row in rows), Decimal(0))
    except OSError as error:
        parser.error(f'{args.file}: {error.strerror}')
    except (KeyError, InvalidOperation):
        parser.error(f'{args.file} needs the columns quantity and price, with a number in each row')
    vat = net * args.vat / 100
    for name, amount in (('net', net), ('vat', vat), ('gross', net + vat)):
        print(f'{name} {amount.quantize(CENT, ROUND_HALF_UP)}')


if __name__ == '__main__':
    main()

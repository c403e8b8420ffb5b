#!/usr/bin/env python3
"""Convert a value from one unit to another, exactly until the result is rounded."""

from __future__ import annotations

import argparse
from decimal import Decimal, InvalidOperation
from typing import NamedTuple


class Unit(NamedTuple):
    """How a unit relates to the base unit of what it measures: base = (value + offset) * factor."""

    measures: str
    factor: Decimal
    offset: Decimal = Decimal(0)


UNITS = {
    'm': Unit('length', Decimal(1)),
    'km': Unit('length', Decimal(1000)),
    'cm': Unit('length', Decimal('0.01')),
    'mm': Unit('length', Decimal('0.001')),
    'in': Unit('length', Decimal('0.0254')),
    'ft': Unit('length', Decimal('0.3048')),
    'yd': Unit('length', Decimal('0.9144')),
    'mi': Unit('length', Decimal('1609.344')),
    'nmi': Unit('length', Decimal(1852)),
    'kg': Unit('mass', Decimal(1)),
    'g': Unit('mass', Decimal('0.001')),
    't': Unit('mass', Decimal(1000)),
    'oz': Unit('mass', Decimal('0.028349523125')),
    'lb': Unit('mass', Decimal('0.45359237')),
    'L': Unit('volume', Decimal(1)),
    'mL': Unit('volume', Decimal('0.001')),
    'cup': Unit('volume', Decimal('0.2365882365')),
    'gal': Unit('volume', Decimal('3.785411784')),
    'K': Unit('temperature', Decimal(1)),
    'C': Unit('temperature', Decimal(1), Decimal('273.15')),
    'F': Unit('temperature', Decimal(5) / Decimal(9), Decimal('459.67')),
}


def number(text: str) -> Decimal:
    """A finite decimal number."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal('NaN')
    if not value.is_finite():
        raise argparse.ArgumentTypeError(f'{text!r} is not a number')
    return value


def convert(value: Decimal, source: Unit, target: Unit) -> Decimal:
    """Convert by way of the base unit."""
    return (value + source.offset) * source.factor / target.factor - target.offset


def main() -> None:
    """Print one line such as `26.2 mi = 42.1648 km`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('value', type=number, help='the number to convert')
    parser.add_argument('source', choices=UNITS, metavar='from', help='the unit it is in, such as mi')
    parser.add_argument('target', choices=UNITS, metavar='to', help='the unit wanted, such as km')
    parser.add_argument('--digits', type=int, choices=range(16), default=4, metavar='N', help='decimal places, 0 to 15')
    args = parser.parse_args()

    source, target = UNITS[args.source], UNITS[args.target]
    if source.measures != target.measures:
        parser.error(f'{args.source} measures {source.measures}, {args.target} measures {target.measures}')
    result = convert(args.value, source, target)
    print(f'{args.value} {args.source} = {result:.{args.digits}f} {args.target}')


if __name__ == '__main__':
    main()

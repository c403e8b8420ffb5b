#!/usr/bin/env python3
"""Compare the values of two JSON files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def leaves(value: Any, place: str = '$') -> Iterator[tuple[str, str]]:
    """Each value that is not a container with something in it, and its place."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():  # pyright: ignore[reportUnknownVariableType] - of JSON
            yield from leaves(inner, f'{place}.{key}')
    elif isinstance(value, list) and value:
        for at, inner in enumerate(value):  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType] - of JSON
            yield from leaves(inner, f'{place}[{at}]')
    else:
        yield place, json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Print one difference on each line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('old', type=Path)
    parser.add_argument('new', type=Path)
    args = parser.parse_args()
    try:
        old, new = (dict(leaves(json.loads(path.read_text('utf-8')))) for path in (args.old, args.new))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    different = [place for place in sorted(old.keys() | new.keys()) if old.get(place) != new.get(place)]
    for place in different:
        if place not in old:
            print(f'+ {place} = {new[place]}')
        elif place not in new:
            print(f'- {place} = {old[place]}')
        else:
            print(f'~ {place}: {old[place]} -> {new[place]}')
    if not different:
        print('equal')


if __name__ == '__main__':
    main()

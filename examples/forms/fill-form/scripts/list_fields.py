#!/usr/bin/env python3
"""List the fields of a text form and write them to fields.json."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

ASSETS = Path(__file__).resolve().parent.parent / 'assets'
FIELD = re.compile(r'\{(\w+)(?::(\w+))?\}')


def main() -> None:
    """Print the fields, and write the form and its fields to a file for the next script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('form', type=Path, help='a file, or the name of a form in assets/')
    args = parser.parse_args()
    path: Path = args.form if args.form.is_file() else ASSETS / args.form.name
    try:
        form = path.read_text('utf-8')
    except OSError as error:
        parser.error(f'{args.form}: {error.strerror}')
    fields = {name: kind or 'text' for name, kind in FIELD.findall(form)}
    Path('fields.json').write_text(json.dumps({'form': form, 'fields': fields}, indent=2), 'utf-8')
    told = (name if kind == 'text' else f'{name} ({kind})' for name, kind in fields.items())
    print(f'{len(fields)} fields:', ', '.join(told))


if __name__ == '__main__':
    main()

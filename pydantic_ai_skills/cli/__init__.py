"""The command line, over the same public names that everybody has.

`app` has the list of commands; each module beside it has those of one kind. `output` is the only one that writes to the
terminal: text of strangers passes through it and cannot do anything there.
"""

from __future__ import annotations

import logging
import os
import sys
from importlib.util import find_spec

__all__ = ('main',)

PROGRAM = 'pydantic-ai-skills'


def main() -> None:
    """Run the command line, and exit with its status."""
    missing = [name for name in ('typer', 'rich') if find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"{PROGRAM}: {' and '.join(missing)} needed for the command line: pip install 'pydantic-ai-skills[cli]'\n"
        )
        sys.exit(2)
    from .app import app

    # What it logs is told by the commands, with care for the terminal.
    logging.getLogger('pydantic_ai_skills').addHandler(logging.NullHandler())
    logging.getLogger('pydantic_ai_skills').propagate = False
    for name, mode in (('stdin', 'r'), ('stdout', 'w'), ('stderr', 'w')):
        if getattr(sys, name) is None:  # whoever started it has closed it
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding='utf-8'))
    for stream in (sys.stdout, sys.stderr):
        # Where a character cannot be written, such as half of one in the name of a file, it is written as an escape.
        stream.reconfigure(errors='backslashreplace')  # pyright: ignore[reportUnknownMemberType,reportAttributeAccessIssue] - they are text streams
    app(prog_name=PROGRAM)

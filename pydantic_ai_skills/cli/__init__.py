"""The command line, built on the public API.

`app` lists the commands. Only `output` writes to the terminal: it escapes what untrusted text could do there.
"""

from __future__ import annotations

import logging
import os
import sys
from importlib.util import find_spec

__all__ = ('main',)

PROGRAM, ALIAS = 'pydantic-ai-skills', 'pai-skills'
"""What the command line is called; both names do the same."""


def main() -> None:
    """Run the command line, and exit with its status."""
    missing = [name for name in ('typer', 'rich') if find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"{PROGRAM}: {' and '.join(missing)} needed for the command line: pip install 'pydantic-ai-skills[cli]'\n"
        )
        sys.exit(2)
    from .app import app

    # The commands print what is logged, made safe for the terminal.
    logging.getLogger('pydantic_ai_skills').addHandler(logging.NullHandler())
    logging.getLogger('pydantic_ai_skills').propagate = False
    for name, mode in (('stdin', 'r'), ('stdout', 'w'), ('stderr', 'w')):
        if getattr(sys, name) is None:  # the parent process closed it
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding='utf-8'))
    for stream in (sys.stdout, sys.stderr):
        # Write characters that cannot be encoded, such as half of one in a file name, as escapes.
        stream.reconfigure(errors='backslashreplace')  # pyright: ignore[reportUnknownMemberType,reportAttributeAccessIssue] - they are text streams
    # A relative entry is below the current folder, where a checkout may have a program called `git`.
    folders = filter(os.path.isabs, os.environ.get('PATH', '').split(os.pathsep))
    os.environ['PATH'] = os.pathsep.join(folders) or os.defpath
    # pydantic-ai would print an advertisement before the first answer of an agent.
    os.environ['PYDANTIC_AI_NO_BANNER'] = '1'
    called = os.path.basename(sys.argv[0])
    app(prog_name=called if called == ALIAS else PROGRAM)

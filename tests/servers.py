"""Starts the servers among the examples the way a user does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / 'examples'


@contextmanager
def serving(*arguments: str | Path, home: Path) -> Generator[str]:
    """Start a server and yield the address it reports; stop it afterwards."""
    env = {**os.environ, 'HOME': str(home)}
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = ''
        for line in server.stderr:
            said += line
            if found := re.search(r'running on (http://127\.0\.0\.1:\d+)', line):
                break
        else:
            raise AssertionError(said)
        try:
            yield found[1]
        finally:
            server.terminate()
            server.stderr.read()

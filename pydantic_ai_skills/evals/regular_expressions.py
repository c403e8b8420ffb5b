"""Searches text with an untrusted regular expression, in a process that is stopped after a time limit."""

from __future__ import annotations

import json
import subprocess
import sys

import anyio

SEARCH_SECONDS = 10.0
"""How long a search may take. Some expressions would take longer than the age of the universe."""

MAX_TEXT_CHARS = 1_000_000
"""How much of a text is searched."""

_PROGRAM = """
import json, re, sys
pattern, text = json.load(sys.stdin)
try:
    found = re.search(pattern, text)
    json.dump({'found': None if found is None else found[0][:200]}, sys.stdout)
except (re.error, OverflowError, RecursionError) as error:
    json.dump({'invalid': str(error)}, sys.stdout)
"""


class ExpressionError(Exception):
    """An expression is invalid or takes too long. The message says so."""


async def search(pattern: str, text: str, *, seconds: float = SEARCH_SECONDS) -> str | None:
    """The first part of a text that matches; `None` if there is none.

    Raises:
        ExpressionError: The expression is invalid or takes too long.
    """
    command = [sys.executable, '-I', '-S', '-c', _PROGRAM]
    try:
        with anyio.fail_after(seconds):
            asked = json.dumps([pattern, text[:MAX_TEXT_CHARS]]).encode()
            done = await anyio.run_process(command, input=asked, stderr=subprocess.DEVNULL, check=False)
    except TimeoutError:
        raise ExpressionError(f'The expression was stopped after {seconds:g} seconds.') from None
    answer = json.loads(done.stdout or b'{"invalid": "it ended the process"}')
    if 'invalid' in answer:
        raise ExpressionError(f'The expression is invalid: {answer["invalid"]}.')
    return answer['found']

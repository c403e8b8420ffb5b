"""Reads git's standard error: progress for the callback, and the last lines for error messages."""

from __future__ import annotations

import logging
import os
import re
from collections import deque
from collections.abc import Callable
from typing import Any

from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.registries.progress import FetchProgress, ProgressCallback

logger = logging.getLogger('pydantic_ai_skills')

STAGES = {
    'CHECKING_OUT': 'Checking out files',
    'COMPRESSING': 'Compressing objects',
    'COUNTING': 'Counting objects',
    'FINDING_SOURCES': 'Finding sources',
    'RECEIVING': 'Receiving objects',
    'RESOLVING': 'Resolving deltas',
    'WRITING': 'Writing objects',
}

_KEPT_LINES = 40
_LINE_BYTES = 4096
_LINE_END = re.compile(rb'[\r\n]+')


class GitProgress(FetchProgress):
    """How far a fetch from a git repository is."""


class Report:
    """Reads git's standard error."""

    def __init__(self, callback: ProgressCallback | None) -> None:
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._handle = _handler(callback) if callback else None

    @property
    def text(self) -> str:
        return '\n'.join(self._lines)

    def listen(self, descriptor: int) -> None:
        """Read until git closes it."""
        rest = b''
        while chunk := os.read(descriptor, 4096):
            *lines, rest = _LINE_END.split(rest + chunk)
            rest = rest[:_LINE_BYTES]
            for line in lines:
                self._take(line.decode('utf-8', 'replace'))
        self._take(rest.decode('utf-8', 'replace'))

    def _take(self, line: str) -> None:
        if line.strip():
            self._lines.append(line)
            if self._handle is not None:
                try:
                    self._handle(line)
                except Exception:  # the developer's own function
                    logger.exception('The progress callback failed and is not called again.')
                    self._handle = None


def _handler(callback: ProgressCallback) -> Callable[[str], None]:
    """GitPython's parser of progress lines, calling `callback`."""
    try:
        import git
    except ImportError as error:
        reason = str(error).strip().partition('\n')[0]
        message = f"GitPython is needed for progress (pip install 'pydantic-ai-skills[git]'): {reason}"
        raise SkillRegistryError(message) from None
    base: Any = git.RemoteProgress
    names = {getattr(base, name): stage for name, stage in STAGES.items()}

    class Progress(base):
        def update(self, op_code: int, cur_count: Any, max_count: Any = None, message: str = '') -> None:
            stage = names[op_code & base.OP_MASK]
            callback(GitProgress(stage=stage, done=int(cur_count), total=int(max_count) if max_count else None))

    return Progress().new_message_handler()

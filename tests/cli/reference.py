"""The page `docs/cli.md`: what is above its first command is written by hand, the rest is what `--help` says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic_ai_skills.cli.app import COMMANDS

PAGE = Path(__file__).parent.parent.parent / 'docs' / 'cli.md'
FIRST = '## list\n'


def reference(page: str, help_of: Callable[[str], str]) -> str:
    """The page, with the commands as they are now."""
    sections = (f'## {name}\n\n```text\n{help_of(name).strip()}\n```\n' for name in COMMANDS)
    return page.partition(FIRST)[0] + '\n'.join(sections)

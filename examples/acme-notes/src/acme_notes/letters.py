"""A skill written in Python. It is imported when an agent loads it."""

from __future__ import annotations

from pydantic_ai_skills import Skill

letters = Skill(
    'acme-notes-letters',
    'Turn notes into letters. Use when a note has to be sent to somebody.',
    'Begin with the output of `greeting`, then one paragraph for each note.',
)


@letters.script
def greeting(name: str) -> str:
    """The first line of a letter."""
    return f'Dear {name},'

"""Checking skills by every rule."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from pydantic_ai_skills import SkillsDirectory, validate_skills

from .figure import ROUNDS, Figure, best_of
from .skills import write_skills


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / 'thousand'
        write_skills(root, 1000)
        works = (lambda: validate_skills(root), lambda: SkillsDirectory(root).get_skills())
        ours, discovery = best_of(*works, rounds=3 * ROUNDS)
    yield Figure(
        what='validation of 1,000 skills',
        measured=ours,
        unit='ms',
        baseline=discovery,
        baseline_is='the discovery of the same',
        judged_by='ratio',
        limit=2,
    )

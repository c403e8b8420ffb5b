"""Which files of a source are fetched: those in folders with a `SKILL.md`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pydantic_ai_skills.directory.scan import may_hold_skills

from .manifest import SKILL_FILE

MAX_FILES = 50_000
"""How many files of one source are fetched at most."""


def inside_skills(
    paths: Iterable[str], *, below: str = '', max_depth: int | None = None
) -> Callable[[str], bool] | None:
    """A function that says whether a file is in one of the skills; `None` if there are none.

    Args:
        paths: The paths of the source; those that are not a `SKILL.md` do not matter.
        below: The folder to look for skills in.
        max_depth: How deep below it to look; `None` for no limit.
    """
    folders = {path.rpartition('/')[0] for path in paths if _is_skill_file(path, below, max_depth)}

    def is_inside(path: str) -> bool:
        while path:
            path = path.rpartition('/')[0]
            if path in folders:
                return True
        return False

    return is_inside if folders else None


def _is_skill_file(path: str, below: str, max_depth: int | None) -> bool:
    """Whether a file makes its folder a skill that `SkillsDirectory` will find."""
    start = f'{below}/' if below else ''
    # Checked first, because nearly all paths fail it.
    if path[-8:].lower() != SKILL_FILE or not path.startswith(start):
        return False
    *steps, name = path.removeprefix(start).split('/')
    if name.lower() != SKILL_FILE or (max_depth is not None and len(steps) > max_depth):
        return False
    return all(may_hold_skills(step, hidden=True) for step in steps)

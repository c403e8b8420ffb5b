"""The skills of one user: a folder of their own, in which skills are made, switched off and on, and removed.

Every change is one rename, so that nobody sees half of it. A skill that is switched off is in the folder `.disabled`,
where no skills are looked for.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Generator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic_ai_skills.exceptions import SkillNotFoundError, SkillValidationError
from pydantic_ai_skills.filesystem.user_dirs import expand_home, user_skills_folder
from pydantic_ai_skills.parsing import parse_skill_text
from pydantic_ai_skills.parsing.rules import check_skill_name
from pydantic_ai_skills.types.lookup import closest_first

__all__ = (
    'create_user_skill',
    'disable_user_skill',
    'enable_user_skill',
    'list_user_skills',
    'remove_user_skill',
    'user_skills_folder',
)

DISABLED = '.disabled'
INSTALLED = frozenset({'site-packages', 'dist-packages'})
"""Folders that belong to a package installer."""

_NOT_PLAIN = re.compile(r'[^\x20-\x7e\u00a1-\u1fff\u3000-\ud7ff\U00010000-\U0010ffff]')


def list_user_skills(*, folder: str | Path | None = None) -> dict[str, bool]:
    """The names of a user's skills, each with whether it is switched on.

    Args:
        folder: The folder of the skills; `user_skills_folder()` when not given.
    """
    root = _root(folder)
    enabled = dict.fromkeys(_names(root), True)
    return dict(sorted({**dict.fromkeys(_names(root / DISABLED), False), **enabled}.items()))


def create_user_skill(
    name: str,
    description: str,
    content: str,
    *,
    license: str | None = None,
    compatibility: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    files: Mapping[str, str | bytes] | None = None,
    folder: str | Path | None = None,
) -> Path:
    """Write a skill into the user's folder and return where it is.

    Args:
        name: Lower-case letters, digits and single hyphens; at most 64 characters.
        description: What it does and when to use it; at most 1024 characters.
        content: The instructions.
        license: Its license.
        compatibility: What it needs.
        metadata: Anything else.
        files: More files by their paths in the skill, such as `'references/units.md'`.
        folder: The folder of the skills; `user_skills_folder()` when not given.

    Raises:
        SkillValidationError: The skill would break a rule, or there is one of this name.
    """
    fields = {'license': license, 'compatibility': compatibility, 'metadata': dict(metadata or {})}
    text = _skill_md(
        check_skill_name(name), description, content, {key: value for key, value in fields.items() if value}
    )
    for path in files or {}:
        _check_path(path)
    written: dict[str, str | bytes] = {'SKILL.md': text, **(files or {})}
    root = _root(folder)
    _check_free(root, name)
    with _beside(root) as new:
        for path, data in written.items():
            file = new / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data if isinstance(data, bytes) else data.encode())
        _move(new, root / name)
    return root / name


def disable_user_skill(name: str, *, folder: str | Path | None = None) -> None:
    """Switch a skill of the user off. It stays on disk.

    Args:
        name: The name of the skill.
        folder: The folder of the skills; `user_skills_folder()` when not given.

    Raises:
        SkillNotFoundError: There is no such skill.
    """
    root = _root(folder)
    if _find(root, name):
        (root / DISABLED).mkdir(exist_ok=True)
        _move(root / name, root / DISABLED / name)


def enable_user_skill(name: str, *, folder: str | Path | None = None) -> None:
    """Switch a skill of the user on again.

    Args:
        name: The name of the skill.
        folder: The folder of the skills; `user_skills_folder()` when not given.

    Raises:
        SkillNotFoundError: There is no such skill.
    """
    root = _root(folder)
    if not _find(root, name):
        _move(root / DISABLED / name, root / name)


def remove_user_skill(name: str, *, folder: str | Path | None = None) -> None:
    """Remove a skill of the user, with all its files.

    Args:
        name: The name of the skill.
        folder: The folder of the skills; `user_skills_folder()` when not given.

    Raises:
        SkillNotFoundError: There is no such skill.
    """
    root = _root(folder)
    place = root / name if _find(root, name) else root / DISABLED / name
    if place.is_symlink():
        place.unlink()
        return
    with _beside(root) as aside:
        _move(place, aside / name)


# --- Files --------------------------------------------------------------------------------------------------------


def _root(folder: str | Path | None) -> Path:
    root = user_skills_folder() if folder is None else expand_home(folder)
    if not INSTALLED.isdisjoint(root.resolve().parts):
        raise SkillValidationError(f'{str(root)!r} is where packages are installed; no skills are written there.')
    return root


def _names(folder: Path) -> list[str]:
    """The names of the skills in a folder; what is no skill is left alone."""
    with contextlib.suppress(OSError):
        return [
            path.name for path in folder.iterdir() if not path.name.startswith('.') and (path / 'SKILL.md').is_file()
        ]
    return []


def _find(root: Path, name: str) -> bool:
    """Whether a skill that there is is switched on."""
    known = {**dict.fromkeys(_names(root / DISABLED), False), **dict.fromkeys(_names(root), True)}
    if name not in known:
        raise SkillNotFoundError(f'There is no skill {name!r} in {str(root)!r}. {closest_first("skill", name, known)}')
    return known[name]


def _check_free(root: Path, name: str) -> None:
    for place in (root / name, root / DISABLED / name):
        if place.exists() or place.is_symlink():
            raise SkillValidationError(f'There is a skill {name!r} already, in {str(place)!r}.')


def _move(place: Path, target: Path) -> None:
    """Rename a folder. Nothing is put in the place of something else."""
    if target.exists() or target.is_symlink():
        raise SkillValidationError(f'There is a skill {target.name!r} already, in {str(target)!r}.')
    if place.is_symlink() and not os.path.isabs(os.readlink(place)):
        # From another folder a relative link would lead elsewhere.
        target.symlink_to(place.parent.resolve() / os.readlink(place), target_is_directory=True)
        place.unlink()
    else:
        place.rename(target)


@contextlib.contextmanager
def _beside(root: Path) -> Generator[Path]:
    """A folder beside the skills that no skills are looked for in; it is gone in the end, with what is in it."""
    folder = root / f'.{uuid.uuid4().hex}'
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_path(path: str) -> None:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith('/') or '..' in parts or '\\' in path or '\0' in path:
        raise SkillValidationError(f"{path!r} is not a path in the skill's folder.")
    if parts[0].lower() == 'skill.md':
        raise SkillValidationError('Give the text of SKILL.md as description and content, not among the files.')


def _skill_md(name: str, description: str, content: str, fields: Mapping[str, Any]) -> str:
    """The text of a `SKILL.md`, which reads back as what it was made of."""
    values = {'name': name, 'description': description, **fields}
    head = ''.join(f'{key}: {_yaml(value)}\n' for key, value in values.items())
    text = f'---\n{head}---\n\n{content.strip()}\n'
    header, _, problems = parse_skill_text(text, folder_name=name)
    if header is None or problems:
        raise SkillValidationError(' '.join(problem.message for problem in problems))
    if (header.name, header.description) != (name, description):
        raise SkillValidationError(
            'The description begins or ends with blanks, or has characters that YAML cannot hold.'
        )
    return text


def _yaml(value: Any) -> str:
    # JSON is YAML, but for characters that YAML takes for the end of a line, or not at all.
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_PLAIN.sub(lambda match: f'\\U{ord(match[0]):08x}', text)

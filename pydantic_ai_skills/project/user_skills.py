"""Creates, disables, enables and removes the skills in the user's own folder.

Every change is one rename, so nobody sees half of it. Disabled skills are in the folder `.disabled`, which is never
searched.
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
from pydantic_ai_skills.parsing.skill_names import check_skill_name
from pydantic_ai_skills.types.lookup import closest_first

DISABLED = '.disabled'
INSTALLED = frozenset({'site-packages', 'dist-packages'})
"""Folders that belong to a package installer."""

_NEEDS_NO_QUOTES = re.compile(r"[^\W\d_]\w*[ -][\w .,;()'-]*")
_NOT_PRINTABLE = re.compile(r'[^\x20-\x7e\u00a1-\u1fff\u3000-\ud7ff\U00010000-\U0010ffff]')


def list_user_skills(*, folder: str | Path | None = None) -> dict[str, bool]:
    """The names of a user's skills, and whether each is enabled.

    Args:
        folder: The folder of the skills; `user_skills_folder()` when not given.
    """
    return dict(sorted(_known(_root(folder)).items()))


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
    """Write a skill to the user's folder and return its path.

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
        SkillValidationError: The skill would break a rule, or one of this name exists.
    """
    fields = {'license': license, 'compatibility': compatibility, 'metadata': dict(metadata or {})}
    given = {key: value for key, value in fields.items() if value}
    text = _skill_md({'name': check_skill_name(name), 'description': description, **given}, content)
    for path in files or {}:
        _check_path(path)
    root = _root(folder)
    for parent in (root, root / DISABLED):
        _check_free(parent / name)
    with _beside(root) as new:
        for path, data in {'SKILL.md': text, **(files or {})}.items():
            file = new / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data if isinstance(data, bytes) else data.encode())
        _move(new, root / name)
    return root / name


def disable_user_skill(name: str, *, folder: str | Path | None = None) -> None:
    """Disable a skill of the user. It stays on disk.

    Args:
        name: The name of the skill.
        folder: The folder of the skills; `user_skills_folder()` when not given.

    Raises:
        SkillNotFoundError: There is no such skill.
    """
    root = _root(folder)
    if _is_enabled(root, name):
        (root / DISABLED).mkdir(exist_ok=True)
        _move(root / name, root / DISABLED / name)


def enable_user_skill(name: str, *, folder: str | Path | None = None) -> None:
    """Enable a skill of the user again.

    Args:
        name: The name of the skill.
        folder: The folder of the skills; `user_skills_folder()` when not given.

    Raises:
        SkillNotFoundError: There is no such skill.
    """
    root = _root(folder)
    if not _is_enabled(root, name):
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
    place = root / name if _is_enabled(root, name) else root / DISABLED / name
    if place.is_symlink():
        place.unlink()
        return
    with _beside(root) as aside:
        _move(place, aside / name)


# --- Files --------------------------------------------------------------------------------------------------------


def _root(folder: str | Path | None) -> Path:
    root = user_skills_folder() if folder is None else expand_home(folder)
    if not INSTALLED.isdisjoint(root.resolve().parts):
        raise SkillValidationError(f'{str(root)!r} is where packages are installed. Skills are not written there.')
    return root


def _names(folder: Path) -> list[str]:
    """The names of the skills in a folder."""
    with contextlib.suppress(OSError):
        return [
            path.name for path in folder.iterdir() if not path.name.startswith('.') and (path / 'SKILL.md').is_file()
        ]
    return []


def _known(root: Path) -> dict[str, bool]:
    """The names of all skills, and whether each is enabled."""
    return {**dict.fromkeys(_names(root / DISABLED), False), **dict.fromkeys(_names(root), True)}


def _is_enabled(root: Path, name: str) -> bool:
    known = _known(root)
    if name not in known:
        raise SkillNotFoundError(f'There is no skill {name!r} in {str(root)!r}. {closest_first("skill", name, known)}')
    return known[name]


def _check_free(place: Path) -> None:
    if place.exists() or place.is_symlink():
        raise SkillValidationError(f'The skill {place.name!r} already exists in {str(place)!r}.')


def _move(place: Path, target: Path) -> None:
    """Rename a folder, without replacing anything."""
    _check_free(target)
    if place.is_symlink() and not os.path.isabs(os.readlink(place)):
        # From another folder a relative link would lead elsewhere.
        target.symlink_to(place.parent.resolve() / os.readlink(place), target_is_directory=True)
        place.unlink()
    else:
        place.rename(target)


@contextlib.contextmanager
def _beside(root: Path) -> Generator[Path]:
    """A temporary folder beside the skills, which is never searched for skills."""
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


def _skill_md(fields: Mapping[str, Any], content: str) -> str:
    """The text of a `SKILL.md` that reads back the same."""
    head = ''.join(f'{key}: {_yaml(value)}\n' for key, value in fields.items())
    text = f'---\n{head}---\n\n{content.strip()}\n'
    header, _, problems = parse_skill_text(text, folder_name=fields['name'])
    if header is None or problems:
        raise SkillValidationError(' '.join(problem.message for problem in problems))
    if header.description != fields['description']:
        raise SkillValidationError('The description begins or ends with blanks, or has characters that YAML forbids.')
    return text


def _yaml(value: Any) -> str:
    if isinstance(value, str) and _NEEDS_NO_QUOTES.fullmatch(value):
        return value
    # JSON is YAML, except for characters that YAML reads as the end of a line or does not allow.
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_PRINTABLE.sub(lambda match: f'\\U{ord(match[0]):08x}', text)

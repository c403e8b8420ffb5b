"""The folders of a project that its `pyproject.toml` names for writing: inside the project, and nowhere else."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.filesystem.safe_open import OpenFolder

from .pyproject_toml import ProjectSource

_CONTROL_FOLDERS = frozenset({'.git', '.hg', '.svn', '.bzr', '.jj', '.sl', '.pijul', '_darcs', 'cvs', '_mtn'})
"""Folders of version control systems, which hold commands they run and settings they trust."""

_SHORT_NAME = re.compile(r'(?:git|hg|svn|bzr|jj|sl|pijul)~\d+')
"""What Windows also calls a name that begins with a dot."""


def folder_in(root: Path, path: str | Path, *, setting: str) -> Path:
    """The folder of a project that a setting names for writing. It need not exist.

    It is walked from descriptor to descriptor, so that no link in the checkout is followed.

    Raises:
        SkillValidationError: It is not inside the project, goes through a link, or belongs to version control.
    """
    what = f'{setting} = {str(path)!r}'
    folder = Path(os.path.normpath(root / path))
    if not folder.is_relative_to(root) or folder == root:
        raise SkillValidationError(f'{what} is not a folder inside the project.')
    steps = folder.relative_to(root).parts
    if any(map(_is_control_folder, steps)):
        raise SkillValidationError(f'{what} is a folder of version control, which is not written to.')
    try:
        with OpenFolder.beneath(str(root), steps):
            return folder
    except FileNotFoundError:
        return folder  # what does not exist cannot be a link
    except (OSError, ValueError):
        raise SkillValidationError(f'{what} goes through a link, or something else that is not a folder.') from None


def folder_for(source: ProjectSource, root: Path, *, sources: Iterable[ProjectSource], skills: Iterable[Path]) -> Path:
    """Where the files of a source go: apart from the project's own `skills` and from those of other `sources`.

    Raises:
        SkillValidationError: `folder_in` refuses the folder, or it overlaps with one of those.
    """
    folder = folder_in(root, source.into or '', setting='into')
    for taken, reason in _taken_folders(source, root, sources, skills):
        if folder.is_relative_to(taken) or taken.is_relative_to(folder):
            raise SkillValidationError(f'into = {source.into!r} overlaps with {reason}. Choose another folder.')
    return folder


def is_same_place(one: ProjectSource, other: ProjectSource) -> bool:
    """Whether two sources are the same folder of the same source, at any ref."""
    return (one.kind, one.url, one.path) == (other.kind, other.url, other.path)


def _taken_folders(
    source: ProjectSource, root: Path, sources: Iterable[ProjectSource], skills: Iterable[Path]
) -> Iterator[tuple[Path, str]]:
    """The folders where files of a source must not go, and why."""
    for directory in skills:
        yield directory, f"the directory {str(directory)!r}, so a stranger's skills would be taken for your own"
    for other in sources:
        if other.into and not is_same_place(other, source):
            folder = Path(os.path.normpath(root / other.into))
            yield folder, f'that of {str(other)!r}, and each would remove what the other put there'


def _is_control_folder(step: str) -> bool:
    """Whether a file system might take this for a folder of version control.

    Some ignore letter case, invisible characters, blanks and dots at the end, or what follows a colon.
    """
    visible = ''.join(char for char in unicodedata.normalize('NFKC', step) if unicodedata.category(char)[0] != 'C')
    plain = visible.partition(':')[0].rstrip(' .').casefold()
    return plain in _CONTROL_FOLDERS or _SHORT_NAME.fullmatch(plain) is not None

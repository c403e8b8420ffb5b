"""Opens the file of a script right before it is started, step by step and without following links.

A script was a file of its skill when it was listed. Since then, whoever can write into the folder may have put a link
to any program in its place, or in place of a folder on the way to it.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillScriptExecutionError
from pydantic_ai_skills.filesystem.safe_open import SkillFolder, reason, split_path

if TYPE_CHECKING:
    from pydantic_ai_skills.types.script import SkillScript

MAX_HEAD_BYTES = 64 * 1024
"""How much of a script is read. Inline dependencies of a Python script have to be in it."""


class ScriptHead(NamedTuple):
    """What tells how to run a script."""

    name: str
    """The name of its file."""

    head: bytes
    """Its first bytes."""

    executable: bool


def local_file(script: SkillScript) -> Path:
    """The file of a script."""
    if script.path is None:
        raise SkillScriptExecutionError(f'The script {script.name!r} is not a file on this machine.')
    return script.path


def read_script_head(script: SkillScript) -> ScriptHead:
    """Open the file of a script and read its beginning.

    Raises:
        SkillScriptExecutionError: It is not a regular file, or a link is in its way.
    """
    path = local_file(script).absolute()
    try:
        status, head = _head(path, script)
    except (OSError, SkillResourceLoadError) as error:
        raise SkillScriptExecutionError(f'The script {path.name!r} cannot be read: {reason(error)}.') from error
    if not stat.S_ISREG(status.st_mode):
        raise SkillScriptExecutionError(f'The script {path.name!r} is not a regular file.')
    return ScriptHead(path.name, head, os.access(path, os.X_OK))


def refuse_links(script: SkillScript) -> None:
    """Raise `SkillScriptExecutionError` if the file of a script, or a folder on the way to it, is a link by now.

    A file that is not on this machine is none of its business.
    """
    with suppress(SkillResourceLoadError):
        if script.path is not None and os.path.lexists(script.path):
            read_script_head(script)


def _head(path: Path, script: SkillScript) -> tuple[os.stat_result, bytes]:
    skill_dir = script.skill_dir and script.skill_dir.absolute()
    if skill_dir is None or skill_dir not in path.parents:  # named by the developer, or shared by skills
        skill_dir, folder = path.parent, SkillFolder(str(path.parent))
    else:
        folder = SkillFolder(script.root or str(skill_dir.parent), str(skill_dir))
    *parents, last = split_path(path.relative_to(skill_dir).as_posix())
    with folder.open(*parents) as opened:
        return opened.head(last, MAX_HEAD_BYTES)

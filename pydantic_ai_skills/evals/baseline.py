"""Finds the other versions that skills are compared with."""

from __future__ import annotations

import os
import subprocess
import tarfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias, cast

from pydantic_ai.exceptions import UserError

from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.execution.work_dir import make_private_folder, remove_empty_roots, remove_private_folder
from pydantic_ai_skills.registries.git.process import FIXED_SETTINGS, FIXED_VARIABLES, KEPT_VARIABLES, git_program
from pydantic_ai_skills.toolset.toolset import SkillsToolset
from pydantic_ai_skills.types.skill import Skill

Baseline: TypeAlias = str | SkillsToolset[Any] | Mapping[str, Skill[Any]] | Callable[[Skill[Any]], Skill[Any] | None]
"""What skills are compared with.

`'none'` for nothing; any other text is a ref of the git repository that a skill is in, such as `main` or `v1.2`. Or a
toolset, skills by name, or a function of the skill that returns its other version (`None` if it has none).

To compare with what a lock file pins, pass the toolset of a `SkillsProject`.
"""

GIT_SECONDS = 60
"""How long git may take."""

MAX_VERSION_BYTES = 64 * 1024 * 1024
"""How large a skill may be at another commit."""


def name_of(baseline: Baseline | None) -> str | None:
    """What the report calls a baseline; `None` if nothing is compared."""
    if baseline is None or baseline == 'none':
        return None
    return baseline if isinstance(baseline, str) else 'another version'


@contextmanager
def other_versions(baseline: Baseline | None, skills: Iterable[Skill[Any]]) -> Generator[dict[str, Skill[Any]]]:
    """The other versions of skills by name, until the context ends. A skill without one is left out. It blocks.

    Raises:
        SkillError: git cannot provide them.
        UserError: The baseline is `'locked'`, which only a project can resolve.
    """
    if baseline is None or baseline == 'none':
        yield {}
    elif isinstance(baseline, str):
        if baseline == 'locked':
            raise UserError(
                'What a lock file pins belongs to a project: pass `baseline=SkillsProject(...).toolset()`, or use the '
                'command line.'
            )
        with _at_ref(baseline, skills) as found:
            yield found
    elif isinstance(baseline, Mapping):
        yield {skill.name: baseline[skill.name] for skill in skills if skill.name in baseline}
    elif isinstance(baseline, SkillsToolset):
        others = cast('SkillsToolset[Any]', baseline).skills
        yield {skill.name: others[skill.name] for skill in skills if skill.name in others}
    else:
        asked = {skill.name: baseline(skill) for skill in skills}
        yield {name: other for name, other in asked.items() if other is not None}


@contextmanager
def replaced(toolsets: Sequence[SkillsToolset[Any]], others: Mapping[str, Skill[Any]]) -> Generator[None]:
    """Give toolsets other versions of their skills until the context ends, as skills in Python, which always win."""
    undo: list[Callable[[], None]] = []
    try:
        for toolset in toolsets:
            skills = [skill for name, skill in toolset.skills.items() if name in others]
            undo.extend(_put(toolset, skill, others[skill.name]) for skill in skills)
        yield
    finally:
        for each in reversed(undo):
            each()


def _put(toolset: SkillsToolset[Any], skill: Skill[Any], other: Skill[Any]) -> Callable[[], None]:
    owner = toolset.library.owner_of(skill)
    before = owner.in_python.get(skill.name)
    owner.write(other)
    return lambda: owner.remove(other) if before is None else owner.write(before)


# --- From git -----------------------------------------------------------------------------------------------------


@contextmanager
def _at_ref(ref: str, skills: Iterable[Skill[Any]]) -> Generator[dict[str, Skill[Any]]]:
    """The skills as they are at a ref of the repositories they are in."""
    folders: list[Path] = []
    found: dict[str, Skill[Any]] = {}
    try:
        for skill in skills:
            if skill.path is not None:
                folders.append(make_private_folder())
                if (other := _version(skill, skill.path, ref, folders[-1])) is not None:
                    found[skill.name] = other
        yield found
    finally:
        for folder in folders:
            remove_private_folder(folder)
        remove_empty_roots()


def _version(skill: Skill[Any], path: str, ref: str, into: Path) -> Skill[Any] | None:
    root = os.path.realpath(_git(path, 'rev-parse', '--show-toplevel').decode().rstrip('\n'))
    commit = _git(path, 'rev-parse', '--verify', '--end-of-options', f'{ref}^{{commit}}').decode().strip()
    inside = Path(os.path.realpath(path)).relative_to(root).as_posix()
    if inside != '.' and not _git(root, 'ls-tree', '-z', commit, '--', inside):
        return None
    data = _git(root, 'archive', '--format=tar', commit, *(() if inside == '.' else (inside,)))
    if len(data) > MAX_VERSION_BYTES:
        raise SkillError(f'The skill {skill.name!r} at {ref!r} is larger than {MAX_VERSION_BYTES:,} bytes.')
    # A skill at the root of its repository keeps the name of its folder.
    target = into / Path(path).name if inside == '.' else into
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        archive.extractall(target, filter='data')
    executor = next((script.executor for script in skill.scripts if script.executor is not None), None)
    directory = SkillsDirectory(
        target if inside == '.' else into / inside, script_executor=executor, trusted=skill.is_trusted
    )
    return directory.get_skills().get(skill.name)


def _git(folder: str, *arguments: str) -> bytes:
    """What git prints, run with fixed settings and few environment variables."""
    settings = [part for name, value in FIXED_SETTINGS.items() for part in ('-c', f'{name}={value}')]
    env = {name: value for name, value in os.environ.items() if name.upper() in KEPT_VARIABLES} | FIXED_VARIABLES
    command = [git_program(), *settings, '-C', folder, *arguments]
    try:
        done = subprocess.run(command, env=env, capture_output=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SkillError(f'git could not be run: {error}') from error
    if done.returncode:
        said = done.stderr.decode('utf-8', 'replace').strip().removeprefix('fatal: ')
        raise SkillError(f'git has no other version of {folder}: {said}')
    return done.stdout

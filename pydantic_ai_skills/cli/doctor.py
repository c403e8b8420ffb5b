"""`doctor`: what is there, what is missing, and what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    PackageSkillsRegistry,
    SandboxUnavailableError,
    SkillError,
    SkillsDirectory,
    SkillsProject,
)

from .options import DONE, JsonOption, command
from .output import Output, counted, place

__all__ = ('doctor',)

State = Literal['ok', 'missing', 'note']
_MARKS: dict[State, tuple[str, str]] = {
    'ok': ('ok      ', 'green'),
    'missing': ('missing ', 'yellow'),
    'note': ('note    ', 'cyan'),
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: State
    found: str
    """What is there."""
    advice: str = ''
    """What to do about it."""


@command
def doctor(as_json: JsonOption = False) -> int:
    """Say what is missing here, and what to do.

    It looks at versions, extras, programs, the sandbox, the cache and the places of skills. The exit status is 0
    whatever is missing: only you know what you need.
    """
    out = Output(as_json=as_json)
    if as_json:
        findings = [finding for section in SECTIONS.values() for finding in _safely(section)]
        out.data({'findings': [asdict(finding) for finding in findings]})
        return DONE
    for title, section in SECTIONS.items():
        out.line((title, 'bold'))
        for finding in _safely(section):
            out.line('  ', _MARKS[finding.state], f'{finding.what}: {finding.found}')
            if finding.advice:
                out.line(f'          {finding.advice}')
    return DONE


def _safely(section: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """What a section finds; what it stumbles over is a finding too."""
    try:
        yield from section()
    except Exception as error:  # noqa: BLE001 - a doctor does not fall ill himself
        yield Finding(what='looking', state='note', found=f'{type(error).__name__}: {error}')


def _versions() -> Iterator[Finding]:
    yield Finding(what='Python', state='ok', found=f'{platform.python_version()} ({sys.executable})')
    yield Finding(what='system', state='ok', found=f'{platform.system()} {platform.release()} {platform.machine()}')
    for name in ('pydantic-ai-skills', 'pydantic-ai-slim', 'pydantic'):
        yield Finding(what=name, state='ok', found=version(name))


def _extras() -> Iterator[Finding]:
    for extra, package, purpose in (
        ('cli', 'typer', 'this command line'),
        ('git', 'gitpython', 'skills from git repositories'),
        ('packages', 'griffelib', 'modules of installed packages as skills'),
        ('watch', 'watchfiles', 'noticing changes as they happen'),
    ):
        try:
            yield Finding(what=f'extra {extra}', state='ok', found=f'{package} {version(package)}')
        except PackageNotFoundError:
            advice = f"For {purpose}: pip install 'pydantic-ai-skills[{extra}]'"
            yield Finding(what=f'extra {extra}', state='missing', found=f'{package} is not installed', advice=advice)


def _programs() -> Iterator[Finding]:
    for program, purpose in (
        ('git', 'skills from git repositories; 2.31 or newer'),
        ('uv', 'scripts that name their dependencies (PEP 723)'),
        ('node', 'scripts in JavaScript'),
    ):
        # uv is often beside the Python it works for, and is looked for there too when a script needs it.
        found = shutil.which(program) or shutil.which(str(Path(sys.executable).with_name(program)))
        if found is None:
            yield Finding(what=program, state='missing', found='not on the PATH', advice=f'Needed for {purpose}.')
        else:
            yield Finding(what=program, state='ok', found=_first_line([found, '--version']) or found)


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors='replace', timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return ''
    return done.stdout.partition('\n')[0]


def _sandbox() -> Iterator[Finding]:
    try:
        sandbox = BubblewrapSkillScriptExecutor()
    except SandboxUnavailableError as error:
        advice = 'Scripts that were fetched do not run without it, unless you trust their source.'
        yield Finding(what='bubblewrap', state='missing', found=str(error), advice=advice)
        return
    extent = 'with' if sandbox.seccomp else 'without'
    yield Finding(what='bubblewrap', state='ok', found=f'a sandbox was made, {extent} a filter for system calls')
    for limit in sandbox.unenforced:
        yield Finding(what='limit', state='note', found=f'{limit} cannot be enforced here')


def _cache() -> Iterator[Finding]:
    from pydantic_ai_skills.registries.git import default_cache_dir

    folder = default_cache_dir()
    writable = next(parent for parent in (folder, *folder.parents) if parent.exists())
    advice = ''
    if not os.access(writable, os.W_OK):
        advice = 'It cannot be written. Name another folder in PYDANTIC_AI_SKILLS_CACHE_DIR.'
    size = sum(file.stat().st_size for file in folder.rglob('*') if file.is_file()) if folder.is_dir() else 0
    found = f'{folder} ({size / 1e6:,.1f} MB)' if folder.is_dir() else f'{folder} (not made yet)'
    yield Finding(what='cache', state='note' if advice else 'ok', found=found, advice=advice)


def _places() -> Iterator[Finding]:
    try:
        project = SkillsProject.find()
    except SkillError as error:
        yield Finding(what='project', state='note', found=str(error), advice='Correct the file.')
        return
    named = 'names its directories' if project.settings.directories is not None else 'uses the usual places'
    yield Finding(what='project', state='ok', found=f'{project.root}, {named}')
    if not project.directories:
        advice = 'Make a skill with: pydantic-ai-skills new NAME'
        yield Finding(what='skills', state='missing', found='no directory of skills', advice=advice)
    for directory in project.directories:
        yield _directory(directory)
    for folder in SkillsDirectory.standard(project=False):
        if folder.path.is_dir():
            yield _directory(folder.path)
        else:
            yield Finding(what=str(folder.path), state='note', found='your own place for skills, not made yet')
    for package in PackageSkillsRegistry(packages=project.settings.packages).available:
        found = f'{package.version}, {counted(len(package.skills), "skill")}'
        state, advice = 'ok', ''
        if not package.offered:
            state, advice = 'note', 'To use them, name the package in `packages` of [tool.pydantic-ai-skills].'
        yield Finding(what=f'package {package.distribution}', state=state, found=found, advice=advice)
    for source in project.sources:
        locked = project.is_locked(source)
        advice = '' if locked else 'Lock it with: pydantic-ai-skills sync'
        found = 'locked' if locked else 'not in the lock file'
        yield Finding(what=str(source), state='ok' if locked else 'missing', found=found, advice=advice)


def _directory(directory: Path) -> Finding:
    if not directory.is_dir():
        advice = 'Create it, or correct its path in pyproject.toml.'
        return Finding(what=place(str(directory)), state='missing', found='not there', advice=advice)
    found = SkillsDirectory(directory)
    problems = len(found.problems)
    advice = f'See them with: pydantic-ai-skills validate {place(str(directory))}' if problems else ''
    text = f'{counted(len(found.get_skills()), "skill")}, {counted(problems, "problem")}'
    return Finding(what=place(str(directory)), state='note' if problems else 'ok', found=text, advice=advice)


SECTIONS: dict[str, Callable[[], Iterator[Finding]]] = {
    'Versions': _versions,
    'Extras': _extras,
    'Programs': _programs,
    'Sandbox': _sandbox,
    'Cache': _cache,
    'Places': _places,
}

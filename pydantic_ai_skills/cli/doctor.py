"""`doctor`: report what is installed, what is missing and how to get it."""

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
from typing import Annotated, Any, Literal

from typer import Argument

import pydantic_ai_skills as api

from .command import command
from .needs import need_lines, needs_data
from .output import Failure, Output, counted, place
from .skills import ChosenSkills, complete_skill_names, find_project, find_skill, hint_to_trust

State = Literal['ok', 'missing', 'note']
_STYLES: dict[State, str] = {'ok': 'green', 'missing': 'yellow', 'note': 'cyan'}


@dataclass(frozen=True)
class Check:
    """The result of one check: what was found, and what to do about it."""

    what: str
    state: State
    found: str
    advice: str = ''


@command
def doctor(
    out: Output,
    name: Annotated[
        str | None,
        Argument(
            metavar='SKILL',
            help='Report what this skill needs, by its name or path.',
            autocompletion=complete_skill_names,
        ),
    ] = None,
    *,
    chosen: ChosenSkills,
) -> None:
    """It checks versions, extras, programs, the sandbox, the cache and the folders of skills.

    With SKILL, it reports the packages, programs and keys that the skill needs; its files are read, nothing of it is
    run. The exit status is always 0: only you know what you need.
    """
    if name is not None:
        _report_needs(out, find_skill(chosen.naming(name).look(out), name))
        return
    if chosen != ChosenSkills():
        raise Failure('Options that choose skills need the name of a skill.')
    if out.as_json:
        out.data({'findings': [asdict(check) for section in SECTIONS.values() for check in _safely(section)]})
        return
    for title, section in SECTIONS.items():
        out.line((title, 'bold'))
        for check in _safely(section):
            _show(out, check)


def _show(out: Output, check: Check) -> None:
    out.line('  ', (f'{check.state:<8}', _STYLES[check.state]), f'{check.what}: {check.found}')
    if check.advice:
        out.line(f'          {check.advice}')


def _report_needs(out: Output, skill: api.Skill[Any]) -> None:
    needs = api.skill_needs(skill)
    if out.as_json:
        out.data({'skill': skill.name, 'needs': needs_data(needs)})
        return
    sections = list(need_lines(skill, needs))
    for title, lines in sections:
        out.line((title, 'bold'))
        for line in lines:
            _show(out, Check(*line))
    if not sections:
        out.line(f'{skill.name} needs no packages, programs or keys, as far as its files show.')


def _safely(section: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """The checks of a section. An error becomes a check too."""
    try:
        yield from section()
    except Exception as error:  # noqa: BLE001 - one check that fails must not hide the others
        yield Check('error', 'note', f'{type(error).__name__}: {error}')


def _versions() -> Iterator[Check]:
    yield Check('Python', 'ok', f'{platform.python_version()} ({sys.executable})')
    yield Check('system', 'ok', f'{platform.system()} {platform.release()} {platform.machine()}')
    for name in ('pydantic-ai-skills', 'pydantic-ai-slim', 'pydantic'):
        yield Check(name, 'ok', version(name))


def _extras() -> Iterator[Check]:
    for extra, package, purpose in (
        ('cli', 'typer', 'this command line'),
        ('git', 'gitpython', 'skills from git repositories'),
        ('mcp', 'fastmcp-slim', 'skills from MCP servers, and serving them'),
        ('objects', 'obstore', 'skills from object stores'),
        ('packages', 'griffelib', 'modules of installed packages as skills'),
        ('watch', 'watchfiles', 'noticing changes as they happen'),
    ):
        try:
            yield Check(f'extra {extra}', 'ok', f'{package} {version(package)}')
        except PackageNotFoundError:
            advice = f"For {purpose}: pip install 'pydantic-ai-skills[{extra}]'"
            yield Check(f'extra {extra}', 'missing', f'{package} is not installed', advice)


def _programs() -> Iterator[Check]:
    for program, purpose in (
        ('git', 'skills from git repositories; 2.31 or newer'),
        ('uv', 'scripts that name their dependencies (PEP 723)'),
        ('node', 'scripts in JavaScript'),
    ):
        # uv is often beside the Python it works for, and is looked for there too when a script needs it.
        found = shutil.which(program) or shutil.which(str(Path(sys.executable).with_name(program)))
        if found is None:
            yield Check(program, 'missing', 'not on the PATH', f'Needed for {purpose}.')
        else:
            yield Check(program, 'ok', _first_line([found, '--version']) or found)


def _first_line(command: list[str]) -> str:
    try:
        # In the root folder: some programs act on files in the current one.
        done = subprocess.run(
            command,
            cwd=os.sep,
            capture_output=True,
            text=True,
            errors='replace',
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ''
    return done.stdout.partition('\n')[0]


def _sandbox() -> Iterator[Check]:
    try:
        sandbox = api.BubblewrapSkillScriptExecutor()
    except api.SandboxUnavailableError as error:
        advice = 'Without it, fetched scripts run only if you trust their source.'
        yield Check('bubblewrap', 'missing', str(error), advice)
        return
    extent = 'with' if sandbox.seccomp else 'without'
    yield Check('bubblewrap', 'ok', f'a sandbox was made, {extent} a filter for system calls')
    for limit in sandbox.unenforced:
        yield Check('limit', 'note', f'{limit} cannot be enforced here')


def _cache() -> Iterator[Check]:
    from pydantic_ai_skills.registries.git import default_cache_dir

    folder = default_cache_dir()
    writable = next(parent for parent in (folder, *folder.parents) if parent.exists())
    hint = 'It is not writable. Set PYDANTIC_AI_SKILLS_CACHE_DIR to another folder.'
    advice = '' if os.access(writable, os.W_OK) else hint
    size = sum(file.stat().st_size for file in folder.rglob('*') if file.is_file()) if folder.is_dir() else 0
    found = f'{folder} ({size / 1e6:,.1f} MB)' if folder.is_dir() else f'{folder} (not created yet)'
    yield Check('cache', 'note' if advice else 'ok', found, advice)


def _places() -> Iterator[Check]:
    try:
        project = find_project()
    except api.SkillError as error:
        yield Check('project', 'note', str(error), 'Correct the file.')
        return
    named = 'names its directories' if project.settings.directories is not None else 'uses the default directories'
    yield Check('project', 'ok', f'{project.root}, {named}')
    if project.is_trusted:
        yield Check('trust', 'ok', f'{project.checkout} is trusted')
    else:
        found = f'nothing of {project.checkout} is run, imported or fetched'
        yield Check('trust', 'note', found, hint_to_trust(project))
    if not project.directories:
        yield Check('skills', 'missing', 'no directory of skills', 'Create a skill with: pydantic-ai-skills new NAME')
    yield from map(_directory, project.directories)
    for folder in api.SkillsDirectory.standard(project=False):
        if folder.path.is_dir():
            yield _directory(folder.path)
        else:
            yield Check(str(folder.path), 'note', 'your own folder for skills, not created yet')
    yield from _packages(project)
    yield from (_source(project, source) for source in project.sources)


def _source(project: api.SkillsProject, source: api.ProjectSource) -> Check:
    if not project.is_trusted:
        return Check(str(source), 'note', 'not used')
    if project.is_locked(source):
        return Check(str(source), 'ok', 'locked')
    return Check(str(source), 'missing', 'not in the lock file', 'Lock it with: pydantic-ai-skills sync')


def _packages(project: api.SkillsProject) -> Iterator[Check]:
    for package in api.PackageSkillsRegistry(packages=project.settings.packages).available:
        found = f'{package.version}, {counted(len(package.skills), "skill")}'
        advice = '' if package.offered else 'To use them, add the package to `packages` in [tool.pydantic-ai-skills].'
        yield Check(f'package {package.distribution}', 'note' if advice else 'ok', found, advice)


def _directory(directory: Path) -> Check:
    name = place(str(directory))
    if not directory.is_dir():
        return Check(name, 'missing', 'does not exist', 'Create it, or correct its path in pyproject.toml.')
    found = api.SkillsDirectory(directory)
    problems = len(found.problems)
    advice = f'See them with: pydantic-ai-skills validate {name}' if problems else ''
    text = f'{counted(len(found.get_skills()), "skill")}, {counted(problems, "problem")}'
    return Check(name, 'note' if problems else 'ok', text, advice)


SECTIONS: dict[str, Callable[[], Iterator[Check]]] = {
    'Versions': _versions,
    'Extras': _extras,
    'Programs': _programs,
    'Sandbox': _sandbox,
    'Cache': _cache,
    'Places': _places,
}

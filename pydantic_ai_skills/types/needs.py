"""Finds out what a skill needs and whether it is there. Nothing of the skill is run or imported."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillScriptExecutionError
from pydantic_ai_skills.filesystem.safe_open import OpenFolder, SkillFolder, is_skipped_folder
from pydantic_ai_skills.parsing.needs import Found, SkillSources, read_needs
from pydantic_ai_skills.parsing.needs.distributions import distribution_of
from pydantic_ai_skills.parsing.needs.openai_yaml import OPENAI_FILE, read_settings
from pydantic_ai_skills.parsing.needs.programs import PROGRAMS
from pydantic_ai_skills.parsing.needs.reader import is_read
from pydantic_ai_skills.parsing.needs.requirements import inline_requirements

from .installed import InstalledPackages, find_program, has_npm_package

if TYPE_CHECKING:
    from .skill import Skill

MAX_FILES = 200
"""How many files of a skill are read to find out what it needs."""

MAX_ENTRIES = 5_000
"""How many entries of its folders are looked at."""

MAX_FILE_BYTES = 256 * 1024
"""Longer files are not read."""

MAX_DEPTH = 6
"""How deep in nested folders files are read."""

NeedState = Literal['met', 'missing', 'unknown']
"""Whether a need is met where scripts run on this machine; `'unknown'` if that cannot be told."""


@dataclass(frozen=True, kw_only=True)
class SkillNeed:
    """One thing that a skill needs."""

    name: str
    """What to install or set: a package, a program, a variable or a tool."""

    state: NeedState
    """Whether it is there."""

    files: tuple[str, ...]
    """Where the skill names it: paths in its folder."""

    optional: bool = False
    """Whether the skill can do without it."""

    requirement: str | None = None
    """A Python package as an installer takes it, such as `pypdf>=5`; `None` if the name is a guess."""

    detail: str = ''
    """What a tool is for, or what brings a program, such as `poppler-utils`."""

    @property
    def is_lacking(self) -> bool:
        """Whether it is missing and the skill cannot do without it."""
        return self.state == 'missing' and not self.optional


@dataclass(frozen=True, kw_only=True)
class SkillNeeds:
    """What a skill needs, as far as its files show, and whether it is there."""

    python: tuple[SkillNeed, ...] = ()
    """Python packages: declared in `requirements.txt`, `pyproject.toml` or a script's head, or imported by a script."""

    npm: tuple[SkillNeed, ...] = ()
    """npm packages: declared in `package.json`, or imported by a script."""

    programs: tuple[SkillNeed, ...] = ()
    """Programs that run its scripts, and well-known programs that its scripts and instructions call."""

    keys: tuple[SkillNeed, ...] = ()
    """Environment variables. Each is met if this process has it; the developer passes it on with `skill_env`."""

    tools: tuple[SkillNeed, ...] = ()
    """Tools, such as MCP servers, that its `agents/openai.yaml` names."""

    compatibility: str | None = None
    """What the skill itself says it needs."""

    interface: Mapping[str, str] = field(default_factory=dict[str, str])
    """How its `agents/openai.yaml` presents it, such as `display_name`."""

    implicit_invocation: bool = True
    """Whether its `agents/openai.yaml` lets a model load it without a person asking. Nothing here acts on it."""

    def __iter__(self) -> Iterator[SkillNeed]:
        """All needs, one kind after another."""
        return iter((*self.python, *self.npm, *self.programs, *self.keys, *self.tools))

    @property
    def missing(self) -> tuple[SkillNeed, ...]:
        """The missing needs that the skill cannot do without."""
        return tuple(need for need in self if need.is_lacking)


def skill_needs(
    skill: Skill[Any], *, python_executable: str | Path | None = None, environ: Mapping[str, str] | None = None
) -> SkillNeeds:
    """Find out what a skill needs and whether it is there, without running or importing anything of it.

    It reads the skill's scripts and declarations, up to a limit, so call it in a thread from async code.

    ```python
    from pydantic_ai_skills import SkillsDirectory, skill_needs

    skill = SkillsDirectory('examples/skills').get_skills()['unit-converter']
    print(skill_needs(skill).missing)
    #> ()
    ```

    Args:
        skill: The skill.
        python_executable: The Python that its scripts run on; by default the one of this process.
        environ: The variables that are set; by default those of this process.
    """
    if skill.path is not None and os.path.isdir(skill.path):
        sources = read_sources(SkillFolder(getattr(skill, 'root', skill.path), skill.path))
    else:
        sources = SkillSources({}, instructions='' if skill.is_late else skill.content)
    settings = read_settings(sources.files.get(OPENAI_FILE, ''))
    found = [*read_needs(sources), *_interpreters(sources)]
    packages = InstalledPackages(None if python_executable is None else os.fspath(python_executable))
    variables = os.environ if environ is None else environ
    folder = Path(skill.path or '/').absolute()
    return SkillNeeds(
        python=_python(found, packages),
        npm=_checked(found, 'npm', lambda name: has_npm_package(name, folder)),
        programs=_checked(found, 'program', lambda name: find_program(name) is not None),
        keys=_checked(found, 'key', lambda name: name in variables),
        tools=_checked(found, 'tool', lambda name: None),
        compatibility=skill.compatibility,
        interface=settings.interface,
        implicit_invocation=settings.implicit_invocation,
    )


def required_packages(folder: SkillFolder, script: str) -> tuple[str, ...]:
    """The Python packages that a script needs, as an installer takes them, sorted.

    A script that declares its own (PEP 723) needs those. Any other needs what the skill declares, and the well-known
    packages that its scripts import.
    """
    sources = read_sources(folder)
    inline = inline_requirements(sources.files.get(script, ''))
    if inline is not None:
        return tuple(sorted({found.detail for found in inline}))
    shared = {path: text for path, text in sources.files.items() if inline_requirements(text) is None}
    needs = _python(list(read_needs(sources._replace(files=shared))), InstalledPackages())
    return tuple(sorted(need.requirement for need in needs if need.requirement and not need.optional))


def read_sources(folder: SkillFolder) -> SkillSources:
    """Read the files of a skill that say what it needs, within limits."""
    files: dict[str, str] = {}
    modules: set[str] = set()
    instructions = ''
    for path, opened in _walk(folder):
        file = PurePosixPath(path)
        if file.suffix == '.py':
            modules |= {file.stem, *file.parts[:-1]}
        if path.lower() == 'skill.md':
            instructions = _text(opened, file.name)
        elif len(files) < MAX_FILES and is_read(path):
            files[path] = _text(opened, file.name)
    return SkillSources(files, frozenset(modules), instructions)


def _walk(folder: SkillFolder) -> Iterator[tuple[str, OpenFolder]]:
    """The paths of the files in a folder, nearest first, each with the open folder it is in."""
    pending: deque[tuple[str, ...]] = deque([()])
    left = MAX_ENTRIES
    while pending and left > 0:
        steps = pending.popleft()
        with suppress(OSError), folder.open(*steps) as opened:
            for entry in opened.entries(left):
                left -= 1
                if not entry.is_dir(follow_symlinks=False):
                    yield '/'.join((*steps, entry.name)), opened
                elif len(steps) < MAX_DEPTH and not is_skipped_folder(entry.name):
                    pending.append((*steps, entry.name))


def _text(folder: OpenFolder, name: str) -> str:
    """The text of a file; empty for a link, a special file, or a file that is too large."""
    with suppress(OSError, SkillResourceLoadError):
        return folder.read(name, MAX_FILE_BYTES).data.decode('utf-8', 'replace').replace('\r\n', '\n')
    return ''


def _interpreters(sources: SkillSources) -> Iterator[tuple[str, Found]]:
    """The programs that run the scripts, unless every system has them."""
    from pydantic_ai_skills.execution.interpreters import interpreters_for  # not needed before

    for path, text in sources.files.items():
        if PurePosixPath(path).suffix not in ('.py', '.js', '.mjs', '.cjs', '.ts', '.mts', '.zsh'):
            continue
        with suppress(SkillScriptExecutionError):  # a first line that cannot be used
            candidates = interpreters_for(path, text[:65536].encode(), executable=False)
            names = [PurePosixPath(candidate.program).name for candidate in candidates if not candidate.is_python]
            installed = next(filter(find_program, names), None)
            yield from ((path, Found('program', name)) for name in ([installed] if installed else names[:1]))


def _python(found: Iterable[tuple[str, Found]], installed: InstalledPackages) -> tuple[SkillNeed, ...]:
    needs: dict[str, SkillNeed] = {}
    for path, item in found:
        if item.kind == 'python':
            is_there = item.name in installed.names
            _add(needs, item.name, path, item, is_there, requirement=item.detail)
        elif item.kind == 'module' and item.name.partition('.')[0] not in sys.stdlib_module_names:
            known, is_there = distribution_of(item.name), installed.has_module(item.name)
            known = known or (installed.package_of(item.name) if is_there else None)
            _add(needs, known or item.name.partition('.')[0].replace('_', '-'), path, item, is_there, requirement=known)
    return tuple(sorted(needs.values(), key=lambda need: need.name))


def _checked(
    found: Iterable[tuple[str, Found]], kind: str, is_there: Callable[[str], bool | None]
) -> tuple[SkillNeed, ...]:
    needs: dict[str, SkillNeed] = {}
    for path, item in found:
        if item.kind == kind:
            _add(needs, item.name, path, item, is_there(item.name))
    return tuple(sorted(needs.values(), key=lambda need: need.name))


def _add(
    needs: dict[str, SkillNeed],
    name: str,
    path: str,
    item: Found,
    is_there: bool | None,
    *,
    requirement: str | None = None,
) -> None:
    """Add a need, or add the file to a known need, which is optional only if all of its files can do without it."""
    state: NeedState = 'unknown' if is_there is None else 'met' if is_there else 'missing'
    detail = PROGRAMS.get(name, '') if item.kind == 'program' else item.detail if item.kind == 'tool' else ''
    need = needs.get(name)
    if need is None:
        needs[name] = SkillNeed(
            name=name, state=state, files=(path,), optional=item.optional, requirement=requirement, detail=detail
        )
        return
    files = need.files if path in need.files else (*need.files, path)
    # A declared requirement says more than an import.
    longer = max((need.requirement or '', requirement or ''), key=len) or None
    state = 'missing' if 'missing' in (state, need.state) else state
    optional = need.optional and item.optional
    needs[name] = replace(need, state=state, files=files, optional=optional, requirement=longer)

"""The skills that a command works with: the options that choose them, and lookups among them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Self

from typer import Argument, Option

import pydantic_ai_skills as api

from .closest import did_you_mean
from .output import Failure, Output, place

DIRECTORY = '--directory', '-d'
"""The option that names a directory of skills, in every command that has it."""


@dataclass(frozen=True, kw_only=True)
class ChosenSkills:
    """The options that choose skills; without any, the skills of the current project."""

    directory: Annotated[
        list[Path] | None,
        Option(
            *DIRECTORY,
            metavar='DIR',
            help="Use the skills in this directory instead of the project's. Can be repeated.",
        ),
    ] = None
    standard: Annotated[
        bool, Option('--standard', help='Use the standard folders of the project and your own, such as .agents/skills.')
    ] = False
    packages: Annotated[bool, Option('--packages', help='Add the skills of installed packages.')] = False

    def open(self, **options: Any) -> api.SkillsToolset[Any]:
        """A toolset of these skills, with options as for `SkillsProject.toolset`. Nothing is fetched."""
        named = self.directory or []
        if named and self.standard:
            raise Failure('Give either directories or --standard.')
        for directory in named:
            if not directory.is_dir():
                raise Failure(f'There is no directory {str(directory)!r}.')
        project = find_project()
        registries: list[api.PackageSkillsRegistry] = []
        if self.packages:
            executor = options.get('script_executor') or _sandbox(project)
            registries.append(api.PackageSkillsRegistry(packages='all', script_executor=executor))
        directories = 'standard' if self.standard else named or None
        return project.toolset(directories=directories, registries=registries, offline=True, **options)

    def look(
        self, out: Output | None = None, *, require: bool = True, executor: api.SkillScriptExecutor | None = None
    ) -> api.SkillsToolset[Any]:
        """Like `open`, for commands that only show something: nothing is run, imported or fetched.

        If the project is not trusted, a note is written to `out`. Without `require`, skills that lack what the project
        requires are included. The executor only matters to what is said about scripts.
        """
        if out is not None and not self.directory:
            note_trust(out, find_project())
        return self.open(read_only=True, require=require, script_executor=executor or api.LocalSkillScriptExecutor())

    def naming(self, *names: str) -> Self:
        """These options, with the folders of skills that are named by their paths."""
        folders = [folder for name in names if (folder := skill_folder(name)) and not self._has(name)]
        return replace(self, directory=[*(self.directory or ()), *folders]) if folders else self

    def _has(self, name: str) -> bool:
        """Whether a word is the name of a skill, even if the current folder has a folder of that name."""
        return os.sep not in name and name in self.look().skills


def skill_folder(name: str) -> Path | None:
    """The folder of a skill that is named by its path, or by that of its `SKILL.md`; `None` for other names."""
    path = Path(name)
    path = path.parent if path.name == 'SKILL.md' else path
    return path if (path / 'SKILL.md').is_file() else None


def find_project(start: str | Path = '.') -> api.SkillsProject:
    """The project of a folder. Until the user trusts it, it can only be looked at."""
    return api.SkillsProject.find(start, trust=api.UserTrust())


def note_trust(out: Output, project: api.SkillsProject) -> None:
    """Say that a project is not trusted, and how to trust it, if there is anything to trust."""
    if not project.is_trusted and (project.sources or project.directories):
        out.note(('not trusted: ', 'yellow'), f'nothing of this checkout is run or fetched. {hint_to_trust(project)}')


def hint_to_trust(project: api.SkillsProject) -> str:
    """How to trust the checkout of a project."""
    return f'To trust it, run: {trust_command(project)}'


def trust_command(project: api.SkillsProject) -> str:
    """The command that trusts the checkout of a project."""
    return f'pydantic-ai-skills trust {shlex.quote(str(project.checkout))}'


def locked_skills(project: api.SkillsProject) -> api.SkillsToolset[Any]:
    """What the lock file of a project pins, as far as it was fetched."""
    if not project.sources:
        raise Failure('This project has no sources, so its lock file pins nothing to compare with.')
    executor = _sandbox(project)
    registries = [project.registry(source, offline=True, script_executor=executor) for source in project.sources]
    return api.SkillsToolset(registries=registries)


def _sandbox(project: api.SkillsProject) -> api.SkillScriptExecutor | None:
    try:
        return project.executor(sandbox=True)
    except api.SandboxUnavailableError:
        return None  # the policy then refuses scripts that are not trusted


def complete_skill_names(incomplete: str) -> list[tuple[str, str]]:
    """Complete the name of a skill, for the shell."""
    try:
        skills = ChosenSkills().look().skills.values()
    except (api.SkillError, Failure, ImportError, OSError):
        return []
    return [(skill.name, skill.description) for skill in skills if skill.name.startswith(incomplete)]


SkillArgument = Annotated[
    str,
    Argument(
        metavar='SKILL', help='The name of a skill, or the path of its folder.', autocompletion=complete_skill_names
    ),
]


def find_skill(toolset: api.SkillsToolset[Any], name: str) -> api.Skill[Any]:
    """The skill of this name or in this folder. If it was left out, the failure says why."""
    folder = skill_folder(name)
    if folder is not None:
        by_folder = {os.path.realpath(skill.path): skill for skill in toolset.skills.values() if skill.path}
        if found := by_folder.get(os.path.realpath(folder)):
            return found
        name = folder.absolute().name
    try:
        return toolset.get_skill(name)
    except api.SkillNotFoundError as error:
        raise Failure(_why_missing(toolset, name, str(error))) from None


def _why_missing(toolset: api.SkillsToolset[Any], name: str, error: str) -> str:
    about = [
        problem
        for problem in toolset.problems
        if f'/{name}/' in problem.path
        or repr(name) in problem.message
        or problem.is_source_failure
        or problem.code == 'project-untrusted'
    ]
    why = [f'{place(problem.path)}: {problem.message}' for problem in about]
    if close := did_you_mean(name, toolset.skills):
        error = f'There is no skill {name!r}. {close} To see all, run: pydantic-ai-skills list'
    return ' '.join((error, *why, hint_for(about))).rstrip()


def source_of(skill: api.Skill[Any]) -> str:
    """Where a skill comes from, as people read it."""
    if skill.source is None:
        return place(skill.path) if skill.path else 'Python'
    return skill.source.name


def hint_for(problems: Iterable[api.SkillProblem]) -> str:
    """The command that solves some of these problems, if there is one."""
    about = list(problems)
    if any(problem.code == 'project-untrusted' for problem in about):
        return hint_to_trust(find_project())
    failed = any(problem.is_source_failure for problem in about)
    return 'To fetch what is missing, run: pydantic-ai-skills sync' if failed else ''

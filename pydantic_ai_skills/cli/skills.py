"""The skills that a command works with: the options that choose them, and lookups among them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from pydantic_ai_skills import (
    LocalSkillScriptExecutor,
    PackageSkillsRegistry,
    SandboxUnavailableError,
    Skill,
    SkillError,
    SkillNotFoundError,
    SkillProblem,
    SkillScriptExecutor,
    SkillsProject,
    SkillsToolset,
    UserTrust,
)

from .output import Failure, Output, place


@dataclass(frozen=True, kw_only=True)
class ChosenSkills:
    """The options that choose skills; without any, the skills of the current project."""

    directory: Annotated[
        list[Path] | None,
        Option(
            '--directory',
            '-d',
            metavar='DIR',
            help="Use the skills in this directory instead of the project's. Can be repeated.",
        ),
    ] = None
    standard: Annotated[
        bool, Option('--standard', help='Use the standard folders of the project and your own, such as .agents/skills.')
    ] = False
    packages: Annotated[bool, Option('--packages', help='Add the skills of installed packages.')] = False

    def open(self, **options: Any) -> SkillsToolset[Any]:
        """A toolset of these skills, with options as for `SkillsProject.toolset`. Nothing is fetched."""
        named = self.directory or []
        if named and self.standard:
            raise Failure('Give either directories or --standard.')
        for directory in named:
            if not directory.is_dir():
                raise Failure(f'There is no directory {str(directory)!r}.')
        project = find_project()
        registries: list[PackageSkillsRegistry] = []
        if self.packages:
            executor = options.get('script_executor') or _sandbox(project)
            registries.append(PackageSkillsRegistry(packages='all', script_executor=executor))
        directories = 'standard' if self.standard else named or None
        return project.toolset(directories=directories, registries=registries, offline=True, **options)

    def look(self, out: Output | None = None, *, require: bool = True) -> SkillsToolset[Any]:
        """Like `open`, for commands that only show something: nothing is run, imported or fetched.

        If the project is not trusted, `out` is told. Without `require`, skills that lack what the project requires are
        there too.
        """
        if out is not None and not self.directory:
            note_trust(out, find_project())
        return self.open(read_only=True, require=require, script_executor=LocalSkillScriptExecutor())


def find_project(start: str | Path = '.') -> SkillsProject:
    """The project of a folder. Until the user trusts it, it can only be looked at."""
    return SkillsProject.find(start, trust=UserTrust())


def note_trust(out: Output, project: SkillsProject) -> None:
    """Say that a project is not trusted, and how to trust it, if there is anything to trust."""
    if not project.is_trusted and (project.sources or project.directories):
        out.note(('not trusted: ', 'yellow'), f'nothing of this checkout is run or fetched. {hint_to_trust(project)}')


def hint_to_trust(project: SkillsProject) -> str:
    """How to trust the checkout of a project."""
    return f'To trust it, run: {trust_command(project)}'


def trust_command(project: SkillsProject) -> str:
    """The command that trusts the checkout of a project."""
    return f'pydantic-ai-skills trust {shlex.quote(str(project.checkout))}'


def locked_skills(project: SkillsProject) -> SkillsToolset[Any]:
    """What the lock file of a project pins, as far as it was fetched."""
    if not project.sources:
        raise Failure('This project has no sources, so its lock file pins nothing to compare with.')
    executor = _sandbox(project)
    registries = [project.registry(source, offline=True, script_executor=executor) for source in project.sources]
    return SkillsToolset(registries=registries)


def _sandbox(project: SkillsProject) -> SkillScriptExecutor | None:
    try:
        return project.executor(sandbox=True)
    except SandboxUnavailableError:
        return None  # the policy then refuses scripts that are not trusted


def complete_skill_names(incomplete: str) -> list[tuple[str, str]]:
    """Complete the name of a skill, for the shell."""
    try:
        skills = ChosenSkills().look().skills.values()
    except (SkillError, Failure, ImportError, OSError):
        return []
    return [(skill.name, skill.description) for skill in skills if skill.name.startswith(incomplete)]


SkillArgument = Annotated[
    str, Argument(metavar='NAME', help='The name of a skill.', autocompletion=complete_skill_names)
]


def find_skill(toolset: SkillsToolset[Any], name: str) -> Skill[Any]:
    """The skill of this name. If it was left out, the failure says why."""
    try:
        return toolset.get_skill(name)
    except SkillNotFoundError as error:
        about = [
            problem
            for problem in toolset.problems
            if f'/{name}/' in problem.path
            or repr(name) in problem.message
            or problem.is_source_failure
            or problem.code == 'project-untrusted'
        ]
        why = [f'{place(problem.path)}: {problem.message}' for problem in about]
        raise Failure(' '.join((str(error), *why, hint_for(about))).rstrip()) from None


def source_of(skill: Skill[Any]) -> str:
    """Where a skill comes from, as people read it."""
    if skill.source is None:
        return place(skill.path) if skill.path else 'Python'
    return skill.source.name


def hint_for(problems: Iterable[SkillProblem]) -> str:
    """The command that solves some of these problems, if there is one."""
    about = list(problems)
    if any(problem.code == 'project-untrusted' for problem in about):
        return hint_to_trust(find_project())
    failed = any(problem.is_source_failure for problem in about)
    return 'To fetch what is missing, run: pydantic-ai-skills sync' if failed else ''

"""`scan`: look for what a reader of a skill would not see, and record the verdict."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import pydantic_ai_skills as api

from .command import PROBLEMS_FOUND, SUCCESS, command
from .formats import problems_data
from .output import Failure, Output, counted, place
from .skills import ChosenSkills, find_project, find_skill
from .trust_facts import is_of_source


@dataclass(frozen=True, kw_only=True)
class Scanned:
    """What all scanners said about a skill."""

    skill: api.Skill[Any]
    content_hash: str | None
    problems: tuple[api.SkillProblem, ...]
    verdicts: tuple[api.ScanVerdict, ...]

    @property
    def passed(self) -> bool:
        """Whether no scanner failed it."""
        return all(verdict.passed for verdict in self.verdicts)


@command
def scan(
    out: Output,
    skills: Annotated[
        list[str] | None,
        Argument(
            metavar='SKILL', help='Names of skills, or paths of skills or of directories of them; all by default.'
        ),
    ] = None,
    sarif: Annotated[
        list[Path] | None,
        Option('--sarif', metavar='FILE', help='Take in what another scanner found in these skills. Can be repeated.'),
    ] = None,
    scanners: Annotated[
        list[str] | None,
        Option(
            '--with',
            metavar='COMMAND',
            help='Run another scanner that prints SARIF on each skill; {} stands for its folder. Can be repeated.',
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        Option('--ignore', metavar='CODE', help='Do not count problems with this code. Can be repeated.'),
    ] = None,
    lenient: Annotated[
        bool, Option('--lenient', help='Succeed if there are no errors, whatever warnings there are.')
    ] = False,
    record: Annotated[
        bool | None,
        Option(
            '--record/--no-record',
            show_default=False,
            help="Write the verdicts to skills.lock; by default those about skills of the project's sources.",
        ),
    ] = None,
    *,
    chosen: ChosenSkills,
) -> int:
    """Nothing of a skill is run.

    Each verdict is bound to the content of the skill: `require = ["scanned"]` of a project leaves out skills whose
    content has no verdict, or failed. The exit status is 0 without problems, 1 with problems, and 2 if there is nothing
    to scan.
    """
    given = [api.read_sarif(file) for file in sarif or ()]
    runs = [run.without(ignore or ()) for file in given for run in file]
    found = list(_chosen(out, chosen, skills or ()))
    results: list[Scanned] = []
    with out.progress('Scanning') as working:
        for number, skill in enumerate(found):
            if working.on_step is not None:
                working.on_step(number, len(found))
            results.append(_scan(skill, runs, scanners or (), ignore or ()))
    recorded = _record(find_project(), results, wanted=record)
    if out.as_json:
        out.data(_data(results, recorded))
    else:
        _show(out, results, recorded)
    problems = [problem for result in results for problem in result.problems]
    return PROBLEMS_FOUND if any(each.severity == 'error' or not lenient for each in problems) else SUCCESS


def _chosen(out: Output, chosen: ChosenSkills, names: Sequence[str]) -> Iterator[api.Skill[Any]]:
    """The skills to scan: only those with files here, but also those that lack what the project requires."""
    paths = [name for name in names if os.sep in name or name.startswith('.') or os.path.isdir(name)]
    found: dict[int, api.Skill[Any]] = {}
    if paths:
        there = replace(chosen, directory=[Path(path) for path in paths]).look(require=False).skills
        if not there:
            raise Failure(f'No skills found in {", ".join(paths)}.')
        found |= {id(skill): skill for skill in there.values()}
    if len(paths) < len(names) or not names:
        toolset = chosen.look(out, require=False)
        named = [find_skill(toolset, name) for name in names if name not in paths] or list(toolset.skills.values())
        found |= {id(skill): skill for skill in named}
    with_files = [skill for skill in found.values() if skill.path is not None]
    if not with_files:
        raise Failure('No skills with files on this machine found. Name a skill, or a directory of skills.')
    yield from with_files


def _scan(
    skill: api.Skill[Any], runs: Sequence[api.SarifRun], scanners: Sequence[str], ignore: Collection[str]
) -> Scanned:
    assert skill.path is not None
    audit = api.audit_skill(skill.path, ignore=ignore)
    others = api.merge_runs(
        (
            *(run.about(skill.path) for run in runs),
            *(run.without(ignore) for scanner in scanners for run in api.run_scanner(scanner, skill.path)),
        )
    )
    problems = (*audit.problems, *(problem for run in others for problem in run.problems))
    verdicts = (audit.verdict, *(run.verdict for run in others))
    return Scanned(
        skill=skill,
        content_hash=_content_hash(skill, audit.content_hash),
        problems=problems,
        verdicts=tuple(replace(verdict, ignored=tuple(sorted(ignore))) for verdict in verdicts),
    )


def _content_hash(skill: api.Skill[Any], scanned: str | None) -> str | None:
    """The hash of the scanned content; for a fetched skill, of the content as fetched, if that is still unchanged."""
    return scanned if skill.source is None else api.skill_content_hash(skill)


def _record(project: api.SkillsProject, results: Sequence[Scanned], *, wanted: bool | None) -> list[str]:
    """Record the verdicts, and return the names of the skills that they are about."""
    recorded: list[str] = []
    for result in results if project.is_trusted and wanted is not False else ():
        skill = result.skill
        if result.content_hash is None or not (wanted or is_of_source(skill)):
            continue
        for verdict in result.verdicts:
            api.record_scan(project.lock_file, result.content_hash, verdict, name=skill.name)
        recorded.append(skill.name)
    return recorded


def _data(results: Sequence[Scanned], recorded: Collection[str]) -> dict[str, Any]:
    return {
        'skills': [
            {
                'name': result.skill.name,
                'path': result.skill.path,
                'content_hash': result.content_hash,
                'passed': result.passed,
                'verdicts': [asdict(verdict) for verdict in result.verdicts],
                'recorded': result.skill.name in recorded,
            }
            for result in results
        ],
        'problems': [problem for result in results for problem in problems_data(result.problems)],
    }


def _show(out: Output, results: Sequence[Scanned], recorded: Collection[str]) -> None:
    problems = [problem for result in results for problem in result.problems]
    out.problems(problems)
    failed = [result.skill.name for result in results if not result.passed]
    told = f'{counted(len(problems), "problem")}' if problems else 'no problems'
    out.line((f'{counted(len(results), "skill")} scanned, {told}.', 'bold'))
    if failed:
        out.line(('failed: ', 'red'), ', '.join(failed))
    if recorded:
        out.line(('Recorded in ', 'dim'), f'{place(str(find_project().lock_file))}: {", ".join(recorded)}.')
    if problems:
        out.line(('What each code means: ', 'dim'), problems[0].url.partition('#')[0])

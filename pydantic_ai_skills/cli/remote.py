"""`add`, `sync`, `lock`, `outdated` and `remove`: skills from git repositories, held to the lock file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from pydantic_ai_skills import GitSkillsRegistry, ProjectSource, SkillProblem, SkillRegistryError, SkillsProject
from pydantic_ai_skills.types import FoundSkills

from .address import Protocol, parse_source
from .listing import problem_data
from .options import DONE, FAILED, FOUND_SOMETHING, JsonOption, command, hint_for
from .output import Failure, Output, place

__all__ = ('add', 'lock', 'outdated', 'remove', 'sync')

SourceArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar='SOURCE', help='URLs of sources, or names of skills of theirs; all if none.'),
]


@command
def add(
    url: Annotated[str, typer.Argument(metavar='URL[@REF]', help='A git repository, and a branch, tag or commit.')],
    path: Annotated[
        str, typer.Option('--path', metavar='FOLDER', help='The folder in it that has the skills, or is one.')
    ] = '',
    prefix: Annotated[str, typer.Option('--prefix', metavar='TEXT', help='Begin the names of its skills so.')] = '',
    trust: Annotated[
        bool, typer.Option('--trust', help='Vouch for it: its scripts may run outside a sandbox.')
    ] = False,
    token_env: Annotated[
        str | None, typer.Option('--token-env', metavar='NAME', help='The environment variable that holds a token.')
    ] = None,
    ssh_key: Annotated[
        str | None, typer.Option('--ssh-key', metavar='FILE', help='The private key for an ssh URL.')
    ] = None,
    into: Annotated[
        str | None, typer.Option('--into', metavar='DIR', help='Keep its files in this folder of the project, too.')
    ] = None,
    allow: Annotated[
        list[Protocol] | None,
        typer.Option('--allow', help='Allow a way to reach it that is not allowed by default.'),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Add the skills of a git repository.

    They are fetched, and written to `pyproject.toml` and `skills.lock`; keep both in git. Adding a repository again
    with another ref changes the ref.
    """
    out = Output(as_json=as_json)
    address = parse_source(url)
    if path and address.path:
        raise Failure(f'The URL names the folder {address.path!r} already; leave --path out.')
    if token_env is not None and token_env not in os.environ:
        # Not repeated: `--token-env $TOKEN` gives the token itself, which is not to be shown nor written down.
        raise Failure('--token-env takes the name of an environment variable, and none of this name is set.')
    project = SkillsProject.find()
    source = ProjectSource(url=address.url, ref=address.ref)
    allowed = {protocol.value for protocol in allow or ()}
    local = source.is_local
    if local:
        allowed.add('file')  # somebody who names a folder means it
    source = ProjectSource(
        url=_from_project(address.url, project) if local else address.url,
        ref=address.ref,
        path=path or address.path,
        prefix=prefix,
        trusted=trust,
        token_env=token_env,
        ssh_key_file=ssh_key,
        into=into,
        allow=tuple(each.value for each in Protocol if each.value in allowed),
    )
    with out.progress('Fetching') as working:
        found = project.add(source, progress=working.on_git).find()
    if as_json:
        out.data({'source': source.fields(), **_found_data(found)})
        return DONE
    for skill in found.skills:
        out.line(('added ', 'green'), (skill.name, 'bold'), f'  {" ".join(skill.description.split())}')
    out.problems(found.problems)
    out.line(('Written to ', 'dim'), f'{place(str(project.file))} and {place(str(project.lock_file))}.')
    return DONE


@command
def sync(
    sources: SourceArgument = None,
    frozen: Annotated[
        bool, typer.Option('--frozen', help='Fail if the lock file lacks a source, and do not lock it.')
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Fetch what the lock file has.

    That is what to do after a clone, and in CI. What is here already needs no network. A source that is not in the lock
    file yet is locked.
    """
    out = Output(as_json=as_json)
    project = SkillsProject.find()
    results: dict[str, Any] = {}
    failed = False
    for source in _chosen(project, sources):
        with out.progress(f'Fetching {source}') as working:
            found = _fetch(project, source, working.on_git, frozen=frozen)
        bad = [problem for problem in found.problems if problem.severity == 'error']
        failed |= bool(bad)
        results[str(source)] = _found_data(found)
        if not as_json:
            out.line((str(source), 'bold'), f': {", ".join(skill.name for skill in found.skills) or "no skills"}')
            out.problems(found.problems)
    _finish(out, results, 'There are no git sources in this project. Add one with: pydantic-ai-skills add URL')
    return FAILED if failed else DONE


def _fetch(project: SkillsProject, source: ProjectSource, progress: Any, *, frozen: bool) -> FoundSkills:
    if not frozen and not project.is_locked(source):
        return project.lock(source, progress=progress).find()
    here = _here(project, source)
    if not _is_bad(here):
        return here
    fetched = source.named(project.registry(source, progress=progress)).find()
    # That a ref has moved on is no problem for who wants what was locked, and is not told by what is here.
    here = _here(project, source)
    return fetched if _is_bad(here) else here


def _is_bad(found: FoundSkills) -> bool:
    return any(problem.code in ('source-failed', 'lock-mismatch') for problem in found.problems)


@command
def lock(sources: SourceArgument = None, as_json: JsonOption = False) -> int:
    """Lock what the sources have now.

    What has changed is shown: look at it before you keep the lock file.
    """
    out = Output(as_json=as_json)
    project = SkillsProject.find()
    results: dict[str, Any] = {}
    for source in _chosen(project, sources):
        before = _locked_skills(project.registry(source))
        with out.progress(f'Fetching {source}') as working:
            found = project.lock(source, progress=working.on_git).find()
        after = _locked_skills(project.registry(source))
        changes = _changes(before, after)
        results[str(source)] = {**_found_data(found), 'changes': changes}
        if not as_json:
            out.line((str(source), 'bold'), f': {len(after)} locked' if changes else ': nothing has changed')
            for skill, what in changes.items():
                out.line((f'  {what:<8}', 'yellow'), skill)
            out.problems(found.problems)
    _finish(out, results, 'There are no git sources in this project. Add one with: pydantic-ai-skills add URL')
    return DONE


@command
def outdated(sources: SourceArgument = None, as_json: JsonOption = False) -> int:
    """Ask whether there is something newer.

    Nothing is fetched. The exit status is 1 if a source has another commit than the lock file.
    """
    out = Output(as_json=as_json)
    project = SkillsProject.find()
    rows: list[dict[str, str | None]] = []
    for source in _chosen(project, sources):
        registry = project.registry(source)
        row: dict[str, str | None] = {'source': str(source), 'locked': None, 'now': None, 'error': None}
        try:
            row['locked'] = registry.locked_source().commit
            with out.progress(f'Asking {source}'):
                row['now'] = registry.remote_commit()
        except SkillRegistryError as error:
            row['error'] = str(error)
        rows.append(row)
    if as_json:
        out.data({'sources': rows})
    elif rows:
        shown = ((r['source'] or '', (r['locked'] or '')[:12], (r['now'] or '')[:12], _state(r)) for r in rows)
        out.table(('source', 'locked', 'now', 'state'), shown)
    else:
        out.line('There are no git sources in this project.')
    if any(row['error'] for row in rows):
        return FAILED
    return FOUND_SOMETHING if any(row['locked'] != row['now'] for row in rows) else DONE


def _state(row: dict[str, str | None]) -> str:
    return row['error'] or ('up to date' if row['locked'] == row['now'] else 'outdated: pydantic-ai-skills lock')


@command
def remove(
    source: Annotated[str, typer.Argument(metavar='SOURCE', help='The URL of a source, or the name of its skill.')],
    as_json: JsonOption = False,
) -> int:
    """Remove the skills of a git repository."""
    out = Output(as_json=as_json)
    project = SkillsProject.find()
    matches = _matching(project, source)
    if len(matches) > 1:
        names = ', '.join(map(str, matches))
        raise Failure(f'{source!r} can mean {names}. Name one with its ref, or as URL (PATH).')
    (chosen,) = matches
    names = _names(_here(project, chosen))
    if source in names and len(names) > 1:
        raise Failure(
            f'{source!r} is one of {len(names)} skills of {chosen}: {", ".join(names)}. Remove all of them by the URL, '
            'or add the others again one by one with --path.'
        )
    project.remove(chosen)
    if as_json:
        out.data({'removed': chosen.fields(), 'skills': names})
    else:
        out.line(('removed ', 'green'), (str(chosen), 'bold'), f'  {", ".join(names)}')
    return DONE


# --- Sources ------------------------------------------------------------------------------------------------------


def _chosen(project: SkillsProject, names: Iterable[str] | None) -> list[ProjectSource]:
    """The sources that were named, or all of them."""
    if not names:
        return list(project.sources)
    return list(dict.fromkeys(source for name in names for source in _matching(project, name)))


def _matching(project: SkillsProject, name: str) -> list[ProjectSource]:
    """The sources that a URL, with or without its ref, or the name of a skill means.

    Raises:
        Failure: There is none.
    """
    wanted = name.removesuffix('/').removesuffix('.git')
    sources = project.sources
    matches = [source for source in sources if wanted in (source.url.removesuffix('.git'), source.url, str(source))]
    matches = matches or [source for source in sources if wanted == f'{source.url}@{source.ref}']
    if matches:
        return matches
    here = {source: _here(project, source) for source in sources}
    matches = [source for source, found in here.items() if name in _names(found)]
    if not matches:
        known = ', '.join(map(str, sources)) or 'none'
        failures = [problem for found in here.values() for problem in found.problems if problem.code == 'source-failed']
        why = [*(problem.message for problem in failures), hint_for(failures) or '']
        told = f'{name!r} is no source of this project, and no skill of one. Its sources: {known}. {" ".join(why)}'
        raise Failure(told.rstrip())
    return matches


def _here(project: SkillsProject, source: ProjectSource) -> FoundSkills:
    """What was fetched of a source.

    Raises:
        SkillRegistryError: There is a lock file, and it cannot be read.
    """
    project.is_locked(source)
    return source.named(project.registry(source, offline=True)).find()


def _names(found: FoundSkills) -> list[str]:
    return [skill.name for skill in found.skills]


def _from_project(path: str, project: SkillsProject) -> str:
    """A local path as the project's file has it: from the project's folder, unless it was given whole."""
    if os.path.isabs(path) or path.startswith('~'):
        return path
    return Path(os.path.relpath(path, project.root)).as_posix()


def _locked_skills(registry: GitSkillsRegistry) -> dict[str, str]:
    try:
        return dict(registry.locked_source().skills)
    except SkillRegistryError:
        return {}


def _changes(before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    """What has happened to each skill."""
    both = {**before, **after}
    return {
        skill: 'added' if skill not in before else 'changed' if skill in after else 'removed'
        for skill in both
        if before.get(skill) != after.get(skill)
    }


def _found_data(found: FoundSkills) -> dict[str, Any]:
    problems: tuple[SkillProblem, ...] = found.problems
    return {
        'skills': [skill.name for skill in found.skills],
        'problems': [problem_data(problem) for problem in problems],
    }


def _finish(out: Output, results: dict[str, Any], nothing: str) -> None:
    if out.as_json:
        out.data({'sources': results})
    elif not results:
        out.line(nothing)

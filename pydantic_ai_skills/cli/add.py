"""`add`: add the skills of a source to the project."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

import pydantic_ai_skills as api

from .choose import choose
from .command import command
from .output import Failure, Output, place
from .skills import find_project
from .sources import found_data, names_of


class ExtraProtocol(StrEnum):
    """A protocol that is not allowed by default. An enum, because typer does not accept a list of `Literal`."""

    file = 'file'
    http = 'http'
    local = 'local'


@command
def add(
    out: Output,
    address: Annotated[
        str,
        Argument(
            metavar='ADDRESS',
            help='OWNER/NAME[@REF] on GitHub, the URL of a git repository, a website, an archive, a bucket, a folder, '
            'mcp+URL or marketplace+REPOSITORY.',
        ),
    ],
    path: Annotated[str, Option(metavar='FOLDER', help='The folder in it that contains skills, or is one.')] = '',
    skill: Annotated[
        list[str] | None, Option('--skill', metavar='NAME', help='Take only this skill. Can be repeated.')
    ] = None,
    plugin: Annotated[
        list[str] | None,
        Option('--plugin', metavar='NAME', help='Take only this plugin of a marketplace. Can be repeated.'),
    ] = None,
    take_all: Annotated[bool, Option('--all', help='Take all its skills, without asking which.')] = False,
    prefix: Annotated[str, Option(metavar='TEXT', help='Put this before the names of its skills.')] = '',
    trust: Annotated[bool, Option('--trust', help='Trust it: its scripts may run outside a sandbox.')] = False,
    token_env: Annotated[
        str | None, Option(metavar='NAME', help='The environment variable that holds a token.')
    ] = None,
    ssh_key: Annotated[str | None, Option(metavar='FILE', help='The private key for an ssh URL.')] = None,
    into: Annotated[
        str | None, Option(metavar='DIR', help='Also keep its files in this folder of the project.')
    ] = None,
    allow: Annotated[
        list[ExtraProtocol] | None, Option('--allow', help='Allow a protocol that is not allowed by default.')
    ] = None,
) -> None:
    """The skills are fetched and written to `pyproject.toml` and `skills.lock`; keep both in git.

    All folders of the source are searched. If it has several skills, a person at a terminal is asked which to take;
    without a terminal, all are taken. Adding a source again with another ref changes the ref, and `--skill` adds to
    the skills that were chosen before.
    """
    if skill and take_all:
        raise Failure('Give either --skill or --all.')
    project = find_project()
    meant = _checked(address, path, token_env)
    # Whoever names a folder allows it.
    allowed = [*(allow or ()), *([ExtraProtocol.file] if meant.is_local else ())]
    source = api.ProjectSource.of(
        kind=meant.kind,
        url=_from_project(meant, project),
        ref=meant.ref,
        path=path or meant.path,
        plugins=tuple(plugin or ()),
        prefix=prefix,
        trusted=trust,
        token_env=token_env,
        ssh_key_file=ssh_key,
        into=into,
        allow=tuple(each.value for each in ExtraProtocol if each in allowed),
    )
    source = source.model_copy(update={'skills': _chosen_skills(out, project, source, skill or (), take_all)})
    with out.progress('Fetching') as working:
        found = project.add(source, progress=working.on_fetch).find()
    if out.as_json:
        out.data({'source': source.fields(), **found_data(found)})
        return
    out.line(('added ', 'green'), (', '.join(names_of(found)), 'bold'))
    out.problems(found.problems)
    if len(found.skills) > 1 and not (source.skills or take_all):
        out.line(('These are all of its skills. To take only some, use --skill NAME.', 'dim'))
    out.line(('Written to ', 'dim'), f'{place(str(project.file))} and {place(str(project.lock_file))}.')


def _chosen_skills(
    out: Output, project: api.SkillsProject, source: api.ProjectSource, named: Iterable[str], take_all: bool
) -> tuple[str, ...]:
    """The names of the skills to take, with those that were chosen before; empty for all."""
    where = (source.kind, source.url, source.path)
    before = next((each.skills for each in project.sources if (each.kind, each.url, each.path) == where), ())
    if named or before or take_all:
        return () if take_all else tuple(dict.fromkeys((*before, *named)))
    if out.as_json or not sys.stdin.isatty():
        return ()
    with out.progress('Fetching') as working:
        skills = project.registry(source, locked=False, require=False, progress=working.on_fetch).find().skills
    return choose(out, skills) if len(skills) > 1 else ()


def _checked(url: str, path: str, token_env: str | None) -> api.ProjectSource:
    address = api.ProjectSource.parse(url)
    if path and address.path:
        raise Failure(f'The address already names the folder {address.path!r}; leave --path out.')
    if token_env is not None and token_env not in os.environ:
        # Not repeated: `--token-env $TOKEN` gives the token itself, which must not be shown or written down.
        raise Failure('--token-env takes the name of an environment variable, and none of this name is set.')
    return address


def _from_project(address: api.ProjectSource, project: api.SkillsProject) -> str:
    """The URL, or a local path relative to the project's folder, unless it is absolute."""
    if not address.is_local or os.path.isabs(address.url) or address.url.startswith('~'):
        return address.url
    return Path(os.path.relpath(address.url, project.root)).as_posix()

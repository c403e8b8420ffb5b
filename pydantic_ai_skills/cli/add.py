"""`add`: add the skills of a git repository to the project."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pydantic_ai_skills import ProjectSource, SkillsProject

from .command import command
from .output import Failure, Output, place
from .skills import find_project
from .sources import found_data


class ExtraProtocol(StrEnum):
    """A protocol that is not allowed by default. Typer takes no `Literal` in a list."""

    file = 'file'
    http = 'http'


@command
def add(
    out: Output,
    url: Annotated[str, Argument(metavar='URL[@REF]', help='A git repository, and a branch, tag or commit.')],
    path: Annotated[str, Option(metavar='FOLDER', help='The folder in it that contains skills, or is one.')] = '',
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
    """Add the skills of a git repository.

    They are fetched and written to `pyproject.toml` and `skills.lock`; keep both in git. Adding a repository again
    with another ref changes the ref.
    """
    project = find_project()
    address = _checked(url, path, token_env)
    # Whoever names a folder allows it.
    allowed = [*(allow or ()), *([ExtraProtocol.file] if address.is_local else ())]
    source = ProjectSource(
        url=_from_project(address, project),
        ref=address.ref,
        path=path or address.path,
        prefix=prefix,
        trusted=trust,
        token_env=token_env,
        ssh_key_file=ssh_key,
        into=into,
        allow=tuple(each.value for each in ExtraProtocol if each in allowed),
    )
    with out.progress('Fetching') as working:
        found = project.add(source, progress=working.on_git).find()
    if out.as_json:
        out.data({'source': source.fields(), **found_data(found)})
        return
    for skill in found.skills:
        out.line(('added ', 'green'), (skill.name, 'bold'), f'  {" ".join(skill.description.split())}')
    out.problems(found.problems)
    out.line(('Written to ', 'dim'), f'{place(str(project.file))} and {place(str(project.lock_file))}.')


def _checked(url: str, path: str, token_env: str | None) -> ProjectSource:
    address = ProjectSource.parse(url)
    if path and address.path:
        raise Failure(f'The URL already names the folder {address.path!r}; leave --path out.')
    if token_env is not None and token_env not in os.environ:
        # Not repeated: `--token-env $TOKEN` gives the token itself, which must not be shown or written down.
        raise Failure('--token-env takes the name of an environment variable, and none of this name is set.')
    return address


def _from_project(address: ProjectSource, project: SkillsProject) -> str:
    """The URL, or a local path relative to the project's folder, unless it is absolute."""
    if not address.is_local or os.path.isabs(address.url) or address.url.startswith('~'):
        return address.url
    return Path(os.path.relpath(address.url, project.root)).as_posix()

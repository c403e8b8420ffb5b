"""`new`: create a skill from a template."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

import pydantic_ai_skills as api

from .command import command
from .output import Failure, Output, place
from .skills import DIRECTORY, find_project

INSTRUCTIONS = """\
# {title}

1. Say what to do first, and how to tell that it worked.
2. Name the files that help: `references/guide.md`{script_hint}.
3. Say what to answer, and in what form.
"""

GUIDE = """\
# Guide

What is too long for `SKILL.md`, or needed only now and then. The model reads it when the instructions name it.
"""

SCRIPT = '''\
"""Say hello to somebody: the first line tells the model what the script does."""

import argparse

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('name', help='whom to greet')
parser.add_argument('--greeting', default='Hello')
args = parser.parse_args()
print(f'{args.greeting}, {args.name}!')
'''


@command
def new(
    out: Output,
    name: Annotated[str, Argument(metavar='NAME', help='Its name, such as pdf-forms.')],
    directory: Annotated[
        Path | None,
        Option(*DIRECTORY, metavar='DIR', help="Create it in this directory of skills instead of the project's."),
    ] = None,
    package: Annotated[
        str | None, Option('--package', metavar='PACKAGE', help='Create it in this Python package, which ships it.')
    ] = None,
    description: Annotated[str | None, Option(metavar='TEXT', help='What it does and when to use it.')] = None,
    script: Annotated[bool, Option('--script', help='Add an example script.')] = False,
) -> None:
    """The template has a SKILL.md, a reference and, with --script, an example script."""
    folder = _place_for(name, package, directory)
    text = f'Describe what {name} does. Use when somebody asks for it.' if description is None else description
    hint = ', `scripts/hello.py NAME`' if script else ''
    content = INSTRUCTIONS.format(title=name.replace('-', ' ').capitalize(), script_hint=hint)
    more = {'references/guide.md': GUIDE, **({'scripts/hello.py': SCRIPT} if script else {})}
    api.create_user_skill(name, ' '.join(text.split()), content, files=more, folder=folder.parent)
    files = ['SKILL.md', *more]
    if out.as_json:
        out.data({'name': name, 'path': str(folder), 'files': files})
        return
    out.line('Created ', (place(str(folder)), 'bold'), f': {", ".join(files)}')
    if description is None:
        out.line('Now write its description: the model uses it to choose the skill.')
    out.line(f'Check it with: pydantic-ai-skills validate {place(str(folder))}')
    if script:
        _note_trust(out, folder)
    if package is not None:
        out.line('Check that your wheel contains it: build back ends may leave out folders that begin with a dot.')


def _note_trust(out: Output, folder: Path) -> None:
    try:
        find_project().check_directory(folder)
    except api.SkillValidationError as error:
        out.line(str(error))


def _place_for(name: str, package: str | None, directory: Path | None) -> Path:
    checked = api.normalize_skill_name(name)
    if checked != name:
        raise Failure(f'{name!r} is not a valid skill name. Use {checked!r}.')
    if package is not None and directory is not None:
        raise Failure('Give either --package or --directory.')
    folder = (_in_package(package) if package is not None else directory or find_project().new_skills_folder) / name
    if folder.exists() or folder.is_symlink():
        raise Failure(f'{place(str(folder))} already exists.')
    return folder


def _in_package(package: str) -> Path:
    """The folder for skills in a package, which is given as a path or by its name in the project."""
    from pydantic_ai_skills.directory import AGENTS_FOLDER  # imports all that it takes to read skills

    root = find_project().root
    for folder in (Path(package), root / package.replace('.', '/'), root / 'src' / package.replace('.', '/')):
        if (folder / '__init__.py').is_file():
            return folder / AGENTS_FOLDER
    hint = ' It is installed, but not part of this project.' if _is_installed(package) else ''
    raise Failure(f'There is no Python package {package!r} in {place(str(root))!r}.{hint}')


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package.partition('.')[0]) is not None
    except (ImportError, ValueError):
        return False

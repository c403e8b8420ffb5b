"""`new`: a skill to begin with."""

from __future__ import annotations

import re
import shutil
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from pydantic_ai_skills import SkillsProject, normalize_skill_name, validate_skills

from .options import DONE, JsonOption, command
from .output import Failure, Output, place

__all__ = ('new',)

_PLAIN = re.compile(r"[^\W_][\w .,;()'-]*").fullmatch
"""Whether a text means the same without quotes in YAML."""

SKILL_MD = """\
---
name: {name}
description: {description}
---

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
    name: Annotated[str, typer.Argument(metavar='NAME', help='Its name, such as pdf-forms.')],
    directory: Annotated[
        Path | None, typer.Option('--directory', '-d', metavar='DIR', help='The directory of skills to make it in.')
    ] = None,
    package: Annotated[
        str | None,
        typer.Option('--package', metavar='PACKAGE', help='Make it in this Python package, which ships it.'),
    ] = None,
    description: Annotated[
        str | None, typer.Option('--description', metavar='TEXT', help='What it does and when to use it.')
    ] = None,
    script: Annotated[bool, typer.Option('--script', help='Add a script to begin with.')] = False,
    as_json: JsonOption = False,
) -> int:
    """Make a new skill, from a template."""
    out = Output(as_json=as_json)
    checked = normalize_skill_name(name)
    if checked != name:
        raise Failure(f'{name!r} is not a name for a skill. Use {checked!r}.')
    if package is not None and directory is not None:
        raise Failure('Give either --package or --directory.')
    folder = (_in_package(package) if package is not None else directory or _usual_directory()) / name
    if folder.exists() or folder.is_symlink():
        raise Failure(f'{place(str(folder))!r} is there already.')
    text = f'Describe what {name} does. Use when somebody asks for it.' if description is None else description
    _write(folder, name, text, script=script)
    report = validate_skills(folder)
    if not report.ok:
        # Only a description that was given can be at fault.
        shutil.rmtree(folder)
        raise Failure(' '.join(problem.message for problem in report.problems))
    files = sorted(str(file.relative_to(folder)) for file in folder.rglob('*') if file.is_file())
    if as_json:
        out.data({'name': name, 'path': str(folder), 'files': files})
        return DONE
    out.line('Made ', (place(str(folder)), 'bold'), f': {", ".join(files)}')
    if description is None:
        out.line('Now write its description: the model chooses the skill by it.')
    out.line(f'Check it with: pydantic-ai-skills validate {place(str(folder))}')
    if package is not None:
        out.line('See that your wheel has it: build back ends may leave out folders that begin with a dot.')
    return DONE


def _write(folder: Path, name: str, description: str, *, script: bool) -> None:
    hint = ', `scripts/hello.py NAME`' if script else ''
    quoted = ' '.join(description.split())
    if not _PLAIN(quoted):
        # In a block, so that no character of it means anything to YAML.
        quoted = f'>-\n  {quoted}'
    files = {
        'SKILL.md': SKILL_MD.format(
            name=name, description=quoted, title=name.replace('-', ' ').capitalize(), script_hint=hint
        ),
        'references/guide.md': GUIDE,
        **({'scripts/hello.py': SCRIPT} if script else {}),
    }
    beside = folder.with_name(f'.{folder.name}.new')
    try:
        for path, text in files.items():
            (beside / path).parent.mkdir(parents=True, exist_ok=True)
            (beside / path).write_text(textwrap.dedent(text), 'utf-8')
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _usual_directory() -> Path:
    project = SkillsProject.find()
    return project.directories[-1] if project.directories else project.root / 'skills'


def _in_package(package: str) -> Path:
    """The folder for skills in a package: a folder, or a name that is looked up in the project."""
    root = SkillsProject.find().root
    for folder in (Path(package), root / package.replace('.', '/'), root / 'src' / package.replace('.', '/')):
        if (folder / '__init__.py').is_file():
            return folder / '.agents' / 'skills'
    hint = ' It is installed, but not part of this project.' if _is_installed(package) else ''
    raise Failure(f'There is no Python package {package!r} in {place(str(root))!r}.{hint}')


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package.partition('.')[0]) is not None
    except (ImportError, ValueError):
        return False

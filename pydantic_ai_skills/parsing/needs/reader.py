"""Decides which files of a skill say what it needs, and reads each in its own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from .found import Found
from .javascript import javascript_needs, package_json_needs
from .openai_yaml import OPENAI_FILE, tool_needs
from .programs import instruction_needs, shell_needs
from .python_source import python_needs
from .requirements import inline_requirements, pyproject_toml, requirements_txt

READ_SUFFIXES = frozenset({'.py', '.js', '.mjs', '.cjs', '.ts', '.mts', '.sh', '.bash', '.zsh'})
"""Suffixes of the scripts that are read."""

_DECLARATIONS: dict[str, Callable[[str], Iterable[Found]]] = {
    'requirements.txt': requirements_txt,
    'pyproject.toml': pyproject_toml,
    'package.json': package_json_needs,
}
# Files in these folders are for other projects, for people or for tests of the skill.
_NOT_RUN = frozenset(
    (
        *('asset', 'assets', 'doc', 'docs', 'eval', 'evals', 'example', 'examples', 'fixtures', 'reference'),
        *('references', 'sample', 'samples', 'template', 'templates', 'test', 'tests', '__tests__'),
    )
)
_TEST_STEMS = ('test_', 'conftest')
_TEST_ENDS = ('_test', '.test', '.spec', '.d', '.config')


class SkillSources(NamedTuple):
    """The texts of a skill that say what it needs."""

    files: Mapping[str, str]
    """The text of each file that `is_read` accepts, by its path in the skill."""

    modules: frozenset[str] = frozenset()
    """Names of the modules and folders of the skill, which need no package."""

    instructions: str = ''
    """The body of its `SKILL.md`."""


def is_read(path: str) -> bool:
    """Whether the file at a path in a skill says what the skill needs."""
    file = PurePosixPath(path)
    if path == OPENAI_FILE:
        return True
    if any(part.lower() in _NOT_RUN for part in file.parts[:-1]):
        return False
    is_test = file.stem.startswith(_TEST_STEMS) or file.stem.endswith(_TEST_ENDS)
    return file.name in _DECLARATIONS or (file.suffix.lower() in READ_SUFFIXES and not is_test)


def read_needs(sources: SkillSources) -> Iterator[tuple[str, Found]]:
    """What each file of a skill needs. A module of the skill itself is not a need."""
    for path, text in sources.files.items():
        for found in needs_of_file(path, text):
            if found.kind != 'module' or found.name.partition('.')[0] not in sources.modules:
                yield path, found
    for found in instruction_needs(sources.instructions):
        yield 'SKILL.md', found


def needs_of_file(path: str, text: str) -> Iterable[Found]:
    """What one file needs. Imports count only in a Python script that declares no requirements itself."""
    file = PurePosixPath(path)
    if path == OPENAI_FILE:
        return tool_needs(text)
    if read := _DECLARATIONS.get(file.name):
        return read(text)
    suffix = file.suffix.lower()
    if suffix == '.py':
        return _python(text)
    return shell_needs(text) if suffix in ('.sh', '.bash', '.zsh') else javascript_needs(text)


def _python(text: str) -> Iterator[Found]:
    inline = inline_requirements(text)
    yield from inline or ()
    yield from (found for found in python_needs(text) if inline is None or found.kind != 'module')

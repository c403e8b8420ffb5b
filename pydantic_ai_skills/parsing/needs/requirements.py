"""Reads requirements of Python packages: `requirements.txt`, `pyproject.toml` and inline metadata (PEP 723).

Only names, extras, versions and markers are read. Addresses, paths and options such as `--index-url` are left out,
so that a file cannot choose where packages come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from pydantic_ai_skills.parsing.toml_reader import load_toml

from .found import MAX_NAME, Found

_REQUIREMENT = re.compile(
    r'([A-Za-z0-9][A-Za-z0-9._-]{0,99}+)[ \t]*+'
    r'(\[[A-Za-z0-9._, \t-]{0,200}+\])?[ \t]*+'
    r'(\(?(?:[<>=!~]=?=?[ \t]*+[A-Za-z0-9.*+!_-]{1,60}+[ \t]*+,?[ \t]*+){0,10}+\)?)'
    r'(;[ \t]*+[\w \t.<>=!\'"()-]{1,300}+)?'
)
_SEPARATORS = re.compile(r'[-_.]+')


def canonical(name: str) -> str:
    """The name of a package as package indexes compare it."""
    return _SEPARATORS.sub('-', name).lower()


def requirement(text: str) -> Found | None:
    """A requirement by name; `None` for anything else. One with a marker may not apply, so it is optional."""
    match = _REQUIREMENT.fullmatch(text.strip())
    if match is None or len(match[1]) > MAX_NAME:
        return None
    detail = ' '.join(text.split())
    return Found('python', canonical(match[1]), optional=match[4] is not None, detail=detail)


def requirements_txt(text: str) -> Iterator[Found]:
    """The requirements in a `requirements.txt`."""
    return _read(line.split(' #', 1)[0] for line in text.splitlines() if not line.lstrip().startswith(('#', '-')))


def pyproject_toml(text: str) -> Iterator[Found]:
    """The requirements of the project in a `pyproject.toml`."""
    project = _table(text).get('project')
    return _read(_texts(cast('dict[str, Any]', project).get('dependencies')) if isinstance(project, dict) else ())


def inline_requirements(text: str) -> list[Found] | None:
    """The requirements in the `# /// script` block of a Python script; `None` if it has no such block."""
    lines = iter(text.splitlines())
    if not any(line.rstrip() == '# /// script' for line in lines):
        return None
    block: list[str] = []
    for line in lines:  # continues after the opening line
        if not line.startswith('#') or line.rstrip() == '# ///':
            break
        block.append(line.removeprefix('#').removeprefix(' '))
    return list(_read(_texts(_table('\n'.join(block)).get('dependencies'))))


def _read(lines: Iterable[str]) -> Iterator[Found]:
    return (found for line in lines if (found := requirement(line)) is not None)


def _table(text: str) -> dict[str, Any]:
    try:
        return load_toml(text)
    except (ValueError, RecursionError):
        return {}


def _texts(value: object) -> list[str]:
    return [item for item in cast('list[object]', value) if isinstance(item, str)] if isinstance(value, list) else []

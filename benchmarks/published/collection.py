"""What a collection of published skills contains: its skills, and the programs in them."""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_ai_skills import SkillsDirectory, SkillsToolset
from pydantic_ai_skills.execution import SkillScriptExecutor

PLAIN_PROGRAMS = {'.py': 'python', '.js': 'node', '.mjs': 'node', '.cjs': 'node', '.sh': 'bash', '.bash': 'bash'}
"""What starts a file at a terminal, by its suffix."""

SKIPPED = frozenset({'.git', 'node_modules', '__pycache__', 'tests', 'test', '__tests__', '.venv', 'venv'})


@dataclass(frozen=True)
class Program:
    """A file in a skill that a person would start."""

    name: str
    """Its path in the skill's folder."""

    interpreter: str


@dataclass(frozen=True)
class PublishedSkill:
    """A folder with a `SKILL.md`."""

    folder: Path
    programs: tuple[Program, ...]

    def toolset(self, executor: SkillScriptExecutor, *, trusted: bool) -> SkillsToolset[Any]:
        """A toolset with this skill."""
        # A folder of skills inside it is looked at on its own.
        directory = SkillsDirectory(self.folder, max_depth=0, script_executor=executor, trusted=trusted)
        return SkillsToolset(directories=[directory], script_policy='allow')


def copy_of(collection: Path, target: Path) -> Path:
    """Copy a collection without its history: what is started must not write into the original."""
    shutil.copytree(collection, target, symlinks=True, ignore=shutil.ignore_patterns('.git'))
    return target


def skills_in(collection: Path) -> Iterator[PublishedSkill]:
    """Every folder with a `SKILL.md`, in order, with the programs that belong to it and to no skill inside it."""
    for folder in sorted(_skill_folders(collection)):
        yield PublishedSkill(folder, tuple(_programs(folder)))


def content_hash(folder: Path) -> dict[str, str]:
    """The hash of each file in a folder, links and their targets too."""
    hashes: dict[str, str] = {}
    for path in sorted(folder.rglob('*')):
        if path.is_symlink():
            hashes[str(path.relative_to(folder))] = f'-> {os.readlink(path)}'
        elif path.is_file():
            hashes[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return hashes


def _skill_folders(collection: Path) -> Iterator[Path]:
    for current, folders, files in os.walk(collection):
        folders[:] = [name for name in folders if name not in ('.git', 'node_modules', '.venv', 'venv')]
        if any(name.lower() == 'skill.md' for name in files):
            yield Path(current)


def _programs(folder: Path) -> Iterator[Program]:
    for current, folders, files in os.walk(folder):
        here = Path(current)
        if here != folder and any(name.lower() == 'skill.md' for name in files):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(files):
            interpreter = PLAIN_PROGRAMS.get(Path(name).suffix)
            if interpreter and not (here / name).is_symlink() and _is_program(here / name, interpreter):
                yield Program((here / name).relative_to(folder).as_posix(), interpreter)


def _is_program(path: Path, interpreter: str) -> bool:
    """Whether a file is meant to be started, rather than imported, sourced or run as a test."""
    name = path.name.lower()
    if name.startswith(('test_', 'test-', 'conftest')) or path.stem.lower().endswith(('_test', '.test', '.spec')):
        return False
    text = path.read_text('utf-8', errors='replace')
    if interpreter == 'python':
        return name != '__init__.py' and ('__main__' in text or (text.startswith('#!') and _does_something(text)))
    return text.startswith('#!') or 'scripts' in path.parts[-3:-1]


def _does_something(text: str) -> bool:
    """Whether a Python file calls a function of its own, or a builtin: some modules have a `#!` line, too."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return True
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
    inside = (node for each in body if not isinstance(each, definitions) for node in ast.walk(each))
    return any(isinstance(node, ast.Call) and isinstance(node.func, ast.Name) for node in inside)

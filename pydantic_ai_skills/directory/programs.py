"""Tells the programs of a skill from its helper modules, tests and templates, by their names and text.

Nothing is run. What is not offered can still be run by its exact name.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from pydantic_ai_skills.execution.declared.python_source import called, parse_python
from pydantic_ai_skills.filesystem.safe_open import SkillFolder
from pydantic_ai_skills.types.attached import SkillFiles
from pydantic_ai_skills.types.resource import FileSkillResource
from pydantic_ai_skills.types.script import ImportedCode, SkillScript

from .settings import TOOLS_MODULE

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

    from .folder_skill import Listing

MAX_EXAMINED_BYTES = 64 * 1024
"""How much of a file is examined."""

MAX_EXAMINED_TOTAL = 4 * 1024 * 1024
"""How much text of one skill is examined. What comes later is judged by its place."""

Offer = Literal['script', 'resource', 'hidden']
"""Whether a file is listed as something to run, listed as something to read, or not listed."""

_TEST = re.compile(r'(?:test_.*|.*_test|conftest)\.py|.*[._-](?:test|spec)\.[cm]?[jt]sx?', re.DOTALL)
_TEST_FOLDERS = frozenset({'__tests__', 'test', 'tests', 'testing'})
_TEMPLATE_FOLDERS = frozenset({'asset', 'assets', 'template', 'templates'})

_NODE = frozenset({'.js', '.mjs', '.cjs', '.ts', '.mts'})
_SHELL = frozenset({'.sh', '.bash', '.zsh'})
_NODE_PROGRAM = re.compile(r'process\.argv|require\.main|import\.meta\.(?:main|url)|process\.exit|Deno\.args|Bun\.argv')
_NODE_MODULE = re.compile(r'^[ \t]{0,40}(?:export\b|module\.exports\b|exports\.)', re.MULTILINE)
_SHELL_FUNCTION = re.compile(r'(?:function[ \t]{1,9})?[\w:-]{1,80}[ \t]{0,9}(?:\(\))?[ \t]{0,9}\{[ \t]{0,9}$')
_SHELL_SETUP = re.compile(r'(?:[A-Za-z_]\w*=|#|export |readonly |declare |local |set |shopt |alias |source |\. )')


_GUARD = re.compile(
    r'^if[ \t]{1,9}\(?__name__[ \t]{0,9}==[^\n:]{1,60}:[ \t]{0,9}(?:#[^\n]{0,200})?'
    r'\s{0,99}(?!raise\b(?![ \t]{1,9}SystemExit\b)|pass\b)\S',
    re.MULTILINE,
)

_SETUP = frozenset(
    {'basicConfig', 'filterwarnings', 'load_dotenv', 'reconfigure', 'register_namespace', 'seed', 'setlocale'}
    | {'simplefilter', 'update', 'use', 'setLevel', 'register', 'set_option', 'setdefault', 'append', 'extend'}
)
"""Functions that modules call while they are imported, to prepare something."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


class SkillFile(FileSkillResource):
    """A file in a skill's folder that the model can read."""

    def __post_init__(self) -> None:
        """Check nothing: its folder was listed just now."""


class SkillProgram(SkillScript):
    """A file in a skill's folder that the model can run."""

    def __post_init__(self) -> None:
        """Check nothing: its folder was listed just now."""


def judge_files(listing: Listing, name: str, executor: SkillScriptExecutor, root: str) -> SkillFiles:
    """The resources and scripts of the skill of this name, its unlisted files and its `tools.py`.

    Args:
        listing: The files in its folder.
        name: The name of the skill.
        executor: What runs its programs.
        root: The folder from which its own folder is reached without following links.
    """
    folder, path = listing.folder, listing.folder.path
    skill_dir, examiner = Path(path), Examiner(listing.read_head)
    files = SkillFiles(problems=tuple(listing.problems), executor=executor)
    for file, head, can_run in sorted(listing.files):
        uri = os.path.join(path, file)
        if file == TOOLS_MODULE and _has_tools(folder):
            files.tools_module = ImportedCode(file, uri=uri, skill_name=name, skill_dir=skill_dir)
            continue
        offer = examiner.judge(file, head, can_run=can_run)
        if offer == 'script':
            files.scripts.append(
                SkillProgram(file, uri=uri, skill_name=name, skill_dir=skill_dir, executor=executor, root=root)
            )
        text = SkillFile(file, uri=uri, folder=folder)
        (files.resources if offer == 'resource' else files.unlisted).append(text)
    return files


def _has_tools(folder: SkillFolder) -> bool:
    """Whether `tools.py` has typed tools. A file that never mentions pydantic_ai is a script like any other."""
    return b'pydantic_ai' in folder.read_bytes(TOOLS_MODULE)


class Examiner:
    """Judges the files of one skill, by their text as long as the allowance lasts."""

    def __init__(self, read: Callable[[str, int], bytes]) -> None:
        self._read = read
        self._left = MAX_EXAMINED_TOTAL

    def judge(self, name: str, head: bytes, *, can_run: bool) -> Offer:
        """Whether a file is offered to be run or to be read.

        Args:
            name: Its path in the skill.
            head: Its first bytes.
            can_run: Whether it can be started.
        """
        path = PurePosixPath(name)
        folders = {folder.lower() for folder in path.parts[:-1]}
        if path.name == '__init__.py' or (can_run and _is_test(path, folders)):
            return 'hidden'
        if folders & _TEMPLATE_FOLDERS or not can_run:
            return 'resource'
        text = self._text(name)
        at_home = len(path.parts) == 1 or path.parts[0] == 'scripts'
        is_program = at_home or head.startswith(b'#!') if text is None else _is_program(path, text, at_home)
        return 'script' if is_program else 'resource'

    def _text(self, name: str) -> str | None:
        """The text of a file, if it is short enough and the allowance lasts."""
        if self._left <= 0:
            return None
        data = self._read(name, MAX_EXAMINED_BYTES)
        self._left -= len(data)
        return data.decode('utf-8', 'replace') if len(data) < MAX_EXAMINED_BYTES else None


def _is_test(path: PurePosixPath, folders: set[str]) -> bool:
    return bool(folders & _TEST_FOLDERS) or _TEST.fullmatch(path.name) is not None


def _is_program(path: PurePosixPath, text: str, at_home: bool) -> bool:
    """Whether a file does something when it is run, from its text; `at_home` if it is where skills keep scripts."""
    suffix = path.suffix.lower()
    if not text.strip():
        return at_home
    if suffix == '.py':
        return is_python_program(text)
    if suffix in _NODE:
        is_module = _NODE_MODULE.search(text) is not None
        return text.startswith('#!') or _NODE_PROGRAM.search(text) is not None or (at_home and not is_module)
    if suffix in _SHELL:
        return (at_home or text.startswith('#!')) and _shell_does_something(text)
    return at_home or text.startswith('#!') or not suffix  # without a suffix, its rights or first bytes say so


def _shell_does_something(text: str) -> bool:
    """Whether a shell script has more than functions and variables at its top."""
    in_function = False
    for line in text.splitlines():
        if in_function:
            in_function = not line.startswith('}')
        elif _SHELL_FUNCTION.match(line):
            in_function = True
        elif line.strip() and not line.startswith((' ', '\t')) and not _SHELL_SETUP.match(line):
            return True
    return False


def is_python_program(text: str) -> bool:
    """Whether a Python file does something when it is run: a module with nothing but definitions does not.

    One that cannot be parsed counts as a program.
    """
    if _GUARD.search(text):
        return True
    tree = parse_python(text)
    return tree is None or any(map(_does_something, _top_level(tree.body)))


def _top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module does, those in blocks too, but not what follows a failed import."""
    pending = list(body)
    while pending:
        statement = pending.pop()
        if isinstance(statement, _DEFINITIONS):
            continue
        yield statement
        for block in ('body', 'orelse', 'finalbody'):
            pending += getattr(statement, block, ())


def _does_something(statement: ast.stmt) -> bool:
    """Whether a statement is there for its effect: a call, unless it only prepares the module."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    if value is None or isinstance(value, ast.Constant | ast.Name | ast.Attribute):
        return False
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and _is_sys_path(value.func.value):
        return False
    return called(value) not in _SETUP


def _is_sys_path(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == 'path'

"""What scripts import and call inside their skill, whoever runs them and wherever they start."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from pydantic_ai import Agent
from pydantic_ai.workspaces import LocalWorkspaceBackend

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    LocalSkillScriptExecutor,
    SkillsDirectory,
    SkillsToolset,
    WorkspaceSkillScriptExecutor,
)
from pydantic_ai_skills.execution.environment import import_variables, top_modules_in, with_folder_first
from pydantic_ai_skills.execution.interpreters import module_name
from tests.conversations import ScriptedModel
from tests.folders import write_skill

FILES = {
    'scripts/helper.py': 'VALUE = "sibling"\n',
    'scripts/sibling.py': 'import helper\nprint(helper.VALUE)\n',
    'scripts/absolute.py': 'from scripts.helper import VALUE\nfrom shared.names import NAME\nprint(VALUE, NAME)\n',
    'shared/names.py': 'NAME = "shared"\n',
    'pack/__init__.py': '',
    'pack/deep/__init__.py': '',
    'pack/base.py': 'BASE = "base"\n',
    'pack/deep/tool.py': (
        'import sys\nfrom ..base import BASE\nfrom . import other\n'
        "if __name__ == '__main__':\n    print(BASE, other.OTHER, sys.argv[1:], __file__.endswith('pack/deep/tool.py'))\n"
    ),
    'pack/deep/other.py': 'OTHER = "other"\n',
    'scripts/lib.sh': 'greet() {\n  echo "hello $1"\n}\n',
    'scripts/main.sh': '. "$(dirname "$0")/lib.sh"\ngreet shell\npython3 "$SKILL_DIR/scripts/absolute.py"\n',
    'scripts/lib.mjs': 'export const value = "esm"\n',
    'scripts/main.mjs': 'import { value } from "./lib.mjs"\nimport { createRequire } from "module"\n'
    'console.log(value, createRequire(import.meta.url)("./lib.cjs"))\n',
    'scripts/lib.cjs': 'module.exports = "cjs"\n',
}

RUNS: list[tuple[str, Any, str]] = [
    ('scripts/sibling.py', None, 'sibling\n'),
    ('scripts/absolute.py', None, 'sibling shared\n'),
    ('pack/deep/tool.py', ['x', '--y'], "base other ['x', '--y'] True\n"),
    ('pack.deep.tool', ['x'], "base other ['x'] True\n"),
    ('scripts/main.sh', None, 'hello shell\nsibling shared\n'),
]
if shutil.which('node'):
    RUNS.append(('scripts/main.mjs', None, 'esm cjs\n'))


def fingerprint(folder: Path) -> dict[str, str]:
    """The files in a folder and what they hold."""
    files = (path for path in folder.rglob('*') if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize('kind', ['local', 'sandbox', 'workspace'])
async def test_scripts_import_modules_of_their_skill_and_leave_no_file_in_it(tmp_path: Path, kind: str) -> None:
    executors: dict[str, Any] = {
        'local': LocalSkillScriptExecutor,
        'sandbox': BubblewrapSkillScriptExecutor,
        'workspace': WorkspaceSkillScriptExecutor,
    }
    executor = await to_thread.run_sync(executors[kind])
    folder = write_skill(tmp_path / 'skills/tool', files=FILES)
    (tmp_path / 'work').mkdir()
    before = fingerprint(folder)
    toolset = SkillsToolset[Any](directories=[SkillsDirectory(tmp_path / 'skills', script_executor=executor)])
    calls: list[tuple[str, Any]] = [
        ('run_skill_script', {'skill_name': 'tool', 'script_name': name, 'args': args}) for name, args, _ in RUNS
    ]
    script = ScriptedModel(calls=calls)
    agent = Agent[Any, str](script.model, toolsets=[toolset])
    await agent.run('Go.', workspace=LocalWorkspaceBackend(tmp_path / 'work') if kind == 'workspace' else None)
    assert script.results == [('run_skill_script', 'success', printed) for _, _, printed in RUNS]
    assert fingerprint(folder) == before
    assert not list((tmp_path / 'work').rglob('*.pyc'))


async def test_a_skill_shadows_the_standard_library_no_more_than_plain_python(tmp_path: Path) -> None:
    files = {'json.py': 'raise SystemExit("shadowed")', 'scripts/a.py': 'import json; print(json.dumps(1))'}
    write_skill(tmp_path / 'tool', files=files)
    toolset = SkillsToolset[Any](directories=[tmp_path])
    script = ScriptedModel(calls=[('run_skill_script', {'skill_name': 'tool', 'script_name': 'a'})])
    await Agent[Any, str](script.model, toolsets=[toolset]).run('Go.')
    assert script.results[-1][1:] == ('success', '1\n')


def test_the_skills_folder_comes_after_what_the_developer_set(tmp_path: Path) -> None:
    assert import_variables('/s', [], {}, as_module=False) == {'PYTHONPATH': '/s'}
    assert import_variables('/s', ['own'], {'PYTHONPATH': '/d'}, as_module=False) == {'PYTHONPATH': '/d:/s'}
    assert import_variables('/s', ['types.py'], {}, as_module=False) == {}
    assert import_variables('/s', ['sitecustomize.py'], {}, as_module=False) == {}
    assert import_variables('/s', ['types.py'], {}, as_module=True) == {'PYTHONPATH': '/s'}
    assert import_variables('/a:b', [], {}, as_module=True) == {}
    assert top_modules_in(tmp_path / 'none') == set()
    assert with_folder_first('/bin', '/bin/python') == with_folder_first('/bin', None) == '/bin'
    assert with_folder_first('/bin', '/venv/bin/python') == '/venv/bin:/bin'


@pytest.mark.parametrize(
    ('file', 'head', 'module'),
    [
        ('scripts/a.py', b'from . import b', 'scripts.a'),
        ('a/b/c.py', b'try:\n    from ..x.y import (\n z)', 'a.b.c'),
        ('scripts/a.py', b'from .b import c', 'scripts.a'),
        ('scripts/a.py', b'import b', None),
        ('scripts/a.py', b'"""Reads from .env files."""', None),
        ('a.py', b'from . import b', None),
        ('my-scripts/a.py', b'from . import b', None),
        ('scripts/a.sh', b'from . import b', None),
    ],
)
def test_a_script_with_relative_imports_is_a_module(file: str, head: bytes, module: str | None) -> None:
    assert module_name(file, head) == module

"""What a failed script lacked, told to the model and to the developer."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    CallableSkillScriptExecutor,
    LocalSkillScriptExecutor,
    ScriptResult,
    SkillScript,
    SkillsToolset,
)
from pydantic_ai_skills.types.failures import explain_failure
from tests.folders import call_tool, write, write_skill

FILES: dict[str, str | bytes] = {
    'scripts/run.py': 'import os\nos.environ["ACME_TENANT"], os.getenv("ACME_API_KEY")',
    'scripts/office/tool.py': '',
}


@pytest.mark.parametrize(
    ('stderr', 'expected'),
    [
        ("ModuleNotFoundError: No module named 'PIL'", ('python', 'pillow')),
        ("ModuleNotFoundError: No module named 'acme_lib.part'", ('python', 'acme-lib')),
        ("ModuleNotFoundError: No module named 'office'", None),
        ("ImportError: cannot import name 'x'", None),
        ("Error: Cannot find module 'docx'\nRequire stack:", ('npm', 'docx')),
        ("Cannot find package '@acme/tools' imported from /x.mjs", ('npm', '@acme/tools')),
        ("Error: Cannot find module './helper'", None),
        ('run.sh: line 3: soffice: command not found', ('program', 'soffice')),
        ('run.sh: 3: acme-tool: not found', ('program', 'acme-tool')),
        ('zsh: command not found: jq', ('program', 'jq')),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'pdftoppm'", ('program', 'pdftoppm')),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'input.pdf'", None),
        ('Error: spawn ffmpeg ENOENT', ('program', 'ffmpeg')),
        ("KeyError: 'ACME_TENANT'", ('key', 'ACME_TENANT')),
        ("KeyError: 'OTHER_TENANT'", None),
        ('run.sh: line 2: ACME_API_KEY: unbound variable', ('key', 'ACME_API_KEY')),
        ('Error: ACME_API_KEY environment variable is not set', ('key', 'ACME_API_KEY')),
        ('Please set the ACME_API_KEY variable.', ('key', 'ACME_API_KEY')),
        ('ACME_API_KEY was rejected: 401', None),
        ('Traceback: something else', None),
    ],
)
def test_the_output_tells_what_was_missing(stderr: str, expected: tuple[str, str] | None, tmp_path: Path):
    skill = write_skill(tmp_path / 'one', files=FILES)
    script = SkillScript('scripts/run.py', uri=str(skill / 'scripts/run.py'), skill_name='one', skill_dir=skill)
    result = explain_failure(ScriptResult(exit_code=1, stdout='', stderr=stderr, duration=0), script)
    assert (result.missing and (result.missing.kind, result.missing.name)) == expected


def test_a_script_without_a_skill_has_no_keys(tmp_path: Path):
    script = SkillScript('run.py', uri=str(write(tmp_path, FILES) / 'scripts/run.py'))
    result = ScriptResult(exit_code=1, stdout='', stderr="KeyError: 'ACME_TENANT'", duration=0)
    assert explain_failure(result, script) == result


SCRIPTS: dict[str, tuple[str, str, str]] = {
    'module.py': (
        'import absent_module\nabsent_module.run()',
        "The Python package 'absent-module' is not installed where this script runs.",
        "run 'pip install absent-module' for the Python of its scripts, or use dependencies='uv'",
    ),
    'program.sh': (
        'soffice_absent --convert',
        "The program 'soffice_absent' is not installed where this script runs.",
        'install soffice_absent, and have it on the PATH of scripts',
    ),
    'known.py': (
        'import os, subprocess; os.environ["PATH"] = ""; subprocess.run(["pdftoppm"])',
        "The program 'pdftoppm' is not installed where this script runs.",
        'install poppler-utils, and have it on the PATH of scripts',
    ),
    'key.py': (
        'import os; print(os.environ["ACME_TENANT"])',
        "The environment variable 'ACME_TENANT' is not set for this script, and you cannot set it.",
        "set it for this process, and pass it on with skill_env={'one': ['ACME_TENANT']}",
    ),
}


@pytest.mark.parametrize('name', SCRIPTS)
@pytest.mark.parametrize(
    'executor_type',
    [
        pytest.param(LocalSkillScriptExecutor, id='local'),
        pytest.param(BubblewrapSkillScriptExecutor, id='sandbox'),
    ],
)
async def test_the_model_and_the_developer_are_told(
    executor_type: Any, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    source, for_model, for_developer = SCRIPTS[name]
    executor = await to_thread.run_sync(executor_type)
    write_skill(tmp_path / 'one', files={f'scripts/{name}': source})
    toolset = SkillsToolset(directories=[tmp_path], script_executor=executor)
    with caplog.at_level(logging.WARNING, 'pydantic_ai_skills'):
        _, told = await call_tool(toolset, 'run_skill_script', skill_name='one', script_name=f'scripts/{name}')
    assert for_model in told
    assert 'pip install' not in told
    assert f"Script 'scripts/{name}' of skill 'one' lacks" in caplog.text
    assert for_developer in caplog.text


async def test_an_npm_package_has_a_way_out_too(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    async def run(script: SkillScript, args: Any) -> ScriptResult:
        return ScriptResult(exit_code=1, stdout='', stderr="Error: Cannot find module 'docx'", duration=0)

    write_skill(tmp_path / 'one', files={'scripts/a.js': ''})
    toolset = SkillsToolset(directories=[tmp_path], script_executor=CallableSkillScriptExecutor(run))
    with caplog.at_level(logging.WARNING, 'pydantic_ai_skills'):
        _, told = await call_tool(toolset, 'run_skill_script', skill_name='one', script_name='scripts/a.js')
    assert "The npm package 'docx' is not installed" in told
    assert "run 'npm install docx'" in caplog.text


async def test_a_key_that_is_bound_to_a_skill_is_masked_and_not_given_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv('ACME_PAT', 'tenant-value-123')
    source = (
        'import os, sys; print(os.environ["ACME_PAT"]); print(os.environ["ACME_PAT"], file=sys.stderr); sys.exit(1)'
    )
    for skill in ('one', 'two'):
        write_skill(tmp_path / skill, files={'scripts/a.py': source})
    executor = LocalSkillScriptExecutor(skill_env={'one': ['ACME_PAT']})
    toolset = SkillsToolset(directories=[tmp_path], script_executor=executor)
    _, told = await call_tool(toolset, 'run_skill_script', skill_name='one', script_name='scripts/a.py')
    assert 'tenant-value-123' not in told
    assert told.count('[secret]') == 2
    _, told = await call_tool(toolset, 'run_skill_script', skill_name='two', script_name='scripts/a.py')
    assert "The environment variable 'ACME_PAT' is not set for this script" in told

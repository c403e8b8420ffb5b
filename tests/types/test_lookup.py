"""Names of resources and scripts as models write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import Skill, SkillScript, SkillsToolset
from pydantic_ai_skills.types.lookup import find_resource, find_script
from tests.folders import call_tool, write_skill

FILES = {
    'reference.md': 'reference',
    'docs/FORMS.md': 'forms',
    'docs/a/notes.md': 'a',
    'docs/b/notes.md': 'b',
    'scripts/fill.py': 'print("fill")',
    'scripts/office/unpack.py': 'print("unpack")',
    'scripts/a/same.py': 'print("a")',
    'scripts/b/same.py': 'print("b")',
    'scripts/Case.sh': 'echo case',
}


def toolset_with_pdf(root: Path) -> SkillsToolset[None]:
    write_skill(root / 'pdf', files=FILES)
    return SkillsToolset[None](directories=[root])


@pytest.mark.parametrize(
    ('name', 'file'),
    [
        ('scripts/fill.py', 'fill'),
        ('fill.py', 'fill'),
        ('fill', 'fill'),
        ('scripts/fill', 'fill'),
        ('FILL.PY', 'fill'),
        ('Scripts/Fill.py', 'fill'),
        ('./scripts/fill.py', 'fill'),
        ('././scripts/fill.py', 'fill'),
        ('ROOT/pdf/scripts/fill.py', 'fill'),
        ('file://ROOT/pdf/scripts/fill.py', 'fill'),
        ('skill://pdf/scripts/fill.py', 'fill'),
        ('{baseDir}/scripts/fill.py', 'fill'),
        ('${baseDir}/scripts/fill.py', 'fill'),
        ('${CLAUDE_SKILL_DIR}/scripts/fill.py', 'fill'),
        ('${SKILL_DIR}/scripts/fill.py', 'fill'),
        ('$SKILL_DIR/scripts/fill.py', 'fill'),
        ('pdf/scripts/fill.py', 'fill'),
        ('.claude/skills/pdf/scripts/fill.py', 'fill'),
        ('/mnt/skills/public/pdf/scripts/fill.py', 'fill'),
        ('scripts\\fill.py', 'fill'),
        ('scripts.fill', 'fill'),
        ('office/unpack.py', 'unpack'),
        ('office/unpack', 'unpack'),
        ('scripts.office.unpack', 'unpack'),
        ('a/same.py', 'a'),
        ('scripts/b/same', 'b'),
        ('case.sh', 'case'),
    ],
)
async def test_each_form_of_a_name_finds_its_script(tmp_path: Path, name: str, file: str) -> None:
    asked = name.replace('ROOT', str(tmp_path))
    toolset = toolset_with_pdf(tmp_path)
    succeeded, result = await call_tool(toolset, 'run_skill_script', skill_name='pdf', script_name=asked)
    assert (succeeded, result.return_value) == (True, f'{file}\n')


@pytest.mark.parametrize(
    ('name', 'text'),
    [
        ('reference.md', 'reference'),
        ('REFERENCE.md', 'reference'),
        ('reference', 'reference'),
        ('./reference.md', 'reference'),
        ('skill://pdf/reference.md', 'reference'),
        ('forms.md', 'forms'),
        ('Docs/forms.md', 'forms'),
        ('a/notes.md', 'a'),
        ('scripts/fill.py', 'print("fill")'),
        ('fill.py', 'print("fill")'),
        ('{baseDir}/scripts/office/unpack.py', 'print("unpack")'),
        ('SKILL.md', 'Do it.'),
        ('skill.md', 'Do it.'),
        ('skill://pdf/SKILL.md', 'Do it.'),
    ],
)
async def test_each_form_of_a_name_finds_its_resource(tmp_path: Path, name: str, text: str) -> None:
    toolset = toolset_with_pdf(tmp_path)
    succeeded, result = await call_tool(toolset, 'read_skill_resource', skill_name='pdf', resource_name=name)
    assert (succeeded, str(result).strip()) == (True, text)


SCRIPTS = "'scripts/Case.sh', 'scripts/a/same.py', 'scripts/b/same.py', 'scripts/fill.py', 'scripts/office/unpack.py'"


@pytest.mark.parametrize(
    ('tool', 'name', 'message'),
    [
        ('run', 'same.py', "'same.py' can mean 'scripts/a/same.py' or 'scripts/b/same.py' in skill 'pdf'."),
        ('run', 'same', "'same' can mean 'scripts/a/same.py' or 'scripts/b/same.py' in skill 'pdf'."),
        ('run', 'other/fill.py', "There is no script 'other/fill.py' in skill 'pdf'. The scripts are: 'scripts/fill.py'"),
        ('run', 'skill://pdf/fill.py', "There is no script 'skill://pdf/fill.py' in skill 'pdf'."),
        ('run', 'skill://other/scripts/fill.py', "There is no script 'skill://other/scripts/fill.py'"),
        ('run', '{baseDir}/fill.py', "There is no script '{baseDir}/fill.py'"),
        ('run', 'other/pdf/scripts/fill.py', "There is no script 'other/pdf/scripts/fill.py'"),
        ('run', '/scripts/fill.py', "There is no script '/scripts/fill.py'"),
        ('run', '/elsewhere/pdf/scripts/fill.py', "There is no script '/elsewhere/pdf/scripts/fill.py'"),
        ('run', '/mnt/skills/public/docx/scripts/fill.py', "There is no script '/mnt/skills/public/docx/scripts/fill.py'"),
        ('run', 'scripts/../scripts/fill.py', "There is no script 'scripts/../scripts/fill.py'"),
        ('run', '../pdf/scripts/fill.py', "There is no script '../pdf/scripts/fill.py'"),
        ('run', '', "There is no script ''"),
        ('run', 'fill.sh', "There is no script 'fill.sh' in skill 'pdf'."),
        ('run', 'reference.md', "'reference.md' in skill 'pdf' is a resource: use read_skill_resource."),
        ('read', 'notes.md', "'notes.md' can mean 'docs/a/notes.md' or 'docs/b/notes.md' in skill 'pdf'."),
        ('read', 'other/reference.md', "There is no resource 'other/reference.md' in skill 'pdf'."),
        ('read', 'same.py', "'same.py' can mean 'scripts/a/same.py' or 'scripts/b/same.py' in skill 'pdf'."),
    ],
)  # fmt: skip
async def test_a_name_that_means_no_file_or_several_is_answered_with_what_there_is(
    tmp_path: Path, tool: str, name: str, message: str
) -> None:
    toolset = toolset_with_pdf(tmp_path)
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        'run': ('run_skill_script', {'script_name': name}),
        'read': ('read_skill_resource', {'resource_name': name}),
    }
    tool_name, args = calls[tool]
    succeeded, told = await call_tool(toolset, tool_name, skill_name='pdf', **args)
    assert not succeeded
    assert str(told).startswith(message)


def test_a_function_has_no_text_to_read_and_text_in_python_cannot_be_run() -> None:
    skill = Skill[Any]('s', 'Does it.', 'Do it.')

    @skill.script(name='go')
    def go() -> str:
        return 'x'

    @skill.resource(name='make.py')
    def make() -> str:
        return 'x'

    assert (go(), make()) == ('x', 'x')
    with pytest.raises(Exception, match="'go' in skill 's' is a script: use run_skill_script"):
        find_resource('go', skill, skill.files)
    with pytest.raises(Exception, match="'make.py' in skill 's' is a resource: use read_skill_resource"):
        find_script('make.py', skill, skill.files)
    assert isinstance(find_script('GO', skill, skill.files), SkillScript)

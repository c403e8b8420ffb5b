from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ToolCallPart

from pydantic_ai_skills import Skill, SkillsCapability, SkillsDirectory
from pydantic_ai_skills.capability.allowed_tools import is_approved
from tests.conversations import ScriptedModel
from tests.folders import write


@pytest.mark.parametrize(
    ('allowed', 'tool', 'args', 'approved'),
    [
        ('Read', 'Read', {'path': 'x'}, True),
        ('Read', 'Write', {'path': 'x'}, False),
        ('read', 'Read', {}, False),
        ('Bash(git add *)', 'Bash', {'command': 'git add .'}, True),
        ('Bash(git add *)', 'Bash', {'command': 'git add .', 'why': 'because'}, False),
        ('Bash(git add *)', 'Bash', {'command': 'git push'}, False),
        ('Bash(git:*)', 'Bash', {'command': 'git'}, True),
        ('Bash(git:*)', 'Bash', {'command': 'git push origin'}, True),
        ('Bash(git:*)', 'Bash', {'command': 'gitk'}, False),
        ('Bash(git:*)', 'Bash', {'command': 'git add . && rm -rf /'}, False),
        ('Bash(git *)', 'Bash', {'command': 'git log $(rm x)'}, False),
        ('Bash(git *)', 'Bash', {'command': 'git log\nrm x'}, False),
        ('Bash(*)', 'Bash', {'command': 'echo a > b'}, False),
        ('Bash(ls; pwd)', 'Bash', {'command': 'ls; pwd'}, True),
        ('Bash(ls)', 'Bash', {'command': ['ls']}, False),
        ('Fetch(https://example.com/*)', 'Fetch', {'url': 'https://example.com/a'}, True),
        ('Fetch(https://example.com/*)', 'Fetch', {'url': 'https://example.com/a', 'depth': 1}, False),
        ('Fetch(https://example.com/*)', 'Fetch', {'url': 'https://example.com/a', 'method': 'PUT'}, False),
        ('Fetch(x)', 'Fetch', '["x"]', False),
        ('fetch', 'web_research__fetch', {}, False),
        ('web_research__fetch', 'web_research__fetch', {}, False),
        ('run_skill_script', 'my_run', {'skill_name': 'web-research', 'script_name': 'a.py'}, False),
        ('Bash(git -c x log *)', 'Bash', {'command': 'git -c x log y'}, True),
        ('Bash(git:*)', 'Bash', {'command': 'git -c x log y'}, False),
        ('Bash(git log * and * more)', 'Bash', {'command': 'git log a and b more'}, True),
        ('Bash(git log * and * more)', 'Bash', {'command': 'git log a more'}, False),
        ('Bash(a*a)', 'Bash', {'command': 'a'}, False),
        ('Bash(cat *)', 'Bash', {'command': 'cat ../x'}, False),
        ('Bash(cat *)', 'Bash', {'command': 'cat "x'}, False),
        ('Bash(cat *)', 'Bash', {'command': 'cat ' + 'x' * 2_000}, False),
        ('Bash(cat ../x)', 'Bash', {'command': 'cat ../x'}, True),
        ('my_run', 'my_run', {'skill_name': 'web-research', 'script_name': 'a.py'}, False),
        ('Bash(a)(b)', 'Bash', {'command': 'a'}, False),
        ('(a)', 'Bash', {'command': 'a'}, False),
    ],
)
def test_a_skill_approves_what_it_names_and_nothing_else(allowed: str, tool: str, args: Any, approved: bool):
    skill = Skill('web-research', 'Researches.', '', allowed_tools=[allowed])
    own = {'my_run', 'web_research__fetch'}
    assert is_approved(ToolCallPart(tool, args), [skill], own_tools=own) is approved


WORKSPACE = {'run_command': 'run_command', 'x_read_file': 'read_file'} | {
    name: name for name in ('list_files', 'write_file', 'edit_file')
}


@pytest.mark.parametrize(
    ('allowed', 'tool', 'args', 'approved'),
    [
        ('Bash', 'run_command', {'command': 'rm -rf build; make'}, True),
        ('Bash(git:*)', 'run_command', {'command': 'git status'}, True),
        ('Bash(git:*)', 'run_command', {'command': 'git'}, True),
        ('Bash(git add *)', 'run_command', {'command': 'git add .'}, True),
        ('run_command(git:*)', 'run_command', {'command': 'git status'}, True),
        ('Bash(git:*)', 'run_command', {'command': 'git status', 'background': True}, False),
        ('Bash(git:*)', 'run_command', {'command': 'gitk'}, False),
        ('Bash(git:*)', 'run_command', {'command': 'git status; rm x'}, False),
        ('Bash(git:*)', 'run_command', {'command': 'git status && rm x'}, False),
        ('Bash(git:*)', 'run_command', {'command': 'git status & rm x'}, False),
        ('Bash(git:*)', 'run_command', {'command': 'git log | sh'}, False),
        ('Bash(git:*)', 'run_command', {'command': 'git log `rm x`'}, False),
        ('Bash(git:*)', 'run_command', {'command': 'git log $(rm x)'}, False),
        ('Bash(git:*)', 'run_command', {'command': 'git log ${IFS}x'}, False),
        ('Bash(git:*)', 'run_command', {'command': 'git log > x'}, False),
        ('Bash(git:*)', 'run_command', {'command': 'git log < x'}, False),
        ('Bash(git:*)', 'run_command', {'command': 'git log\nrm x'}, False),
        ('Bash(git:*)', 'run_command', {'command': 'git log\trm'}, True),
        ('Bash(git:*)', 'run_command', {'command': 'git -c core.pager=x log'}, False),
        ('Bash(git:*)', 'run_command', {'command': 'git "-c" core.pager=x log'}, False),
        ('Bash(git:*)', 'run_command', {'command': 'git \\-c core.pager=x log'}, False),
        ('Bash(git:*)', 'run_command', {'command': 'git diff ../x'}, False),
        ('Bash(git:*)', 'run_command', {'command': 'X=1 git log'}, False),
        ('Bash(git:*)', 'run_command', {'command': ' git log'}, False),
        ('bash', 'run_command', {'command': 'ls'}, False),
        ('Read', 'run_command', {'command': 'ls'}, False),
        ('Read', 'x_read_file', {'path': 'a'}, True),
        ('Read', 'list_files', {'path': 'a'}, True),
        ('Glob', 'list_files', {}, True),
        ('Read(docs/*)', 'x_read_file', {'path': 'docs/a.md', 'page': 2}, True),
        ('Read(docs/*)', 'x_read_file', {'path': 'docs/../a.md'}, False),
        ('Read(docs/*)', 'x_read_file', {}, False),
        ('Read', 'write_file', {'path': 'a', 'content': ''}, False),
        ('Write', 'write_file', {'path': 'a', 'content': ''}, True),
        ('Write(out/*)', 'write_file', {'path': 'out/a', 'content': '; rm'}, True),
        ('Write(out/*)', 'write_file', {'path': 'a', 'content': 'out/a'}, False),
        ('Write', 'edit_file', {'path': 'a'}, False),
        ('Edit', 'edit_file', {'path': 'a', 'old': 'b', 'new': 'c'}, True),
        ('Edit', 'delete_file', {'path': 'a'}, False),
        ('Bash', 'Bash', {'command': 'ls'}, True),
    ],
)
def test_names_of_coding_agents_allow_the_workspace_tools(allowed: str, tool: str, args: Any, approved: bool):
    skill = Skill('web-research', 'Researches.', '', allowed_tools=[allowed])
    call = ToolCallPart(tool, args)
    assert is_approved(call, [skill], own_tools=(), workspace_tools=WORKSPACE) is approved
    assert not is_approved(call, [skill], own_tools={tool}, workspace_tools=WORKSPACE)


@pytest.mark.parametrize(
    ('trusted', 'stranger_too', 'command', 'asked'),
    [
        (True, False, 'git --version', True),
        (True, False, 'git version', False),
        (True, True, 'git version', True),
        (False, False, 'git version', True),
    ],
)
async def test_a_loaded_and_trusted_skill_allows_commands_unless_a_stranger_is_beside_it(
    tmp_path: Path, trusted: bool, stranger_too: bool, command: str, asked: bool
):
    text = '---\nname: {}\ndescription: Does it.\nallowed-tools: Bash(git:*)\n---\n'
    write(tmp_path / 'a/one', {'SKILL.md': text.format('one')})
    write(tmp_path / 'b/two', {'SKILL.md': text.format('two')})
    directories = [SkillsDirectory(tmp_path / 'a', trusted=trusted), SkillsDirectory(tmp_path / 'b', trusted=False)]
    capability = SkillsCapability[Any](directories=directories, workspace_tools=True, work_dir=tmp_path / 'work')
    loads: list[Any] = [('load_skill', {'skill_name': name}) for name in ('one', 'two')[: 1 + stranger_too]]
    script = ScriptedModel(calls=[*loads, ('run_command', {'command': command})])
    agent = Agent[Any, Any](script.model, capabilities=[capability], output_type=[str, DeferredToolRequests])
    result = await agent.run('Go.')
    assert isinstance(result.output, DeferredToolRequests) == asked
    if not asked:
        assert script.results[-1][2].startswith('git version')

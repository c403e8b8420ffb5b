from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ToolCallPart

from pydantic_ai_skills import Skill
from pydantic_ai_skills.capability.allowed_tools import is_approved


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

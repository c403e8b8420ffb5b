"""The file of a script, opened right before it starts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution.interpreters import read_script_head, refuse_links
from pydantic_ai_skills.types import SkillScript

from .conftest import MakeScript


def test_a_link_on_the_way_to_a_script_is_refused(make_script: MakeScript, skill_dir: Path, tmp_path: Path) -> None:
    script = make_script('scripts/a.sh', 'echo done', mode=0o755)
    assert read_script_head(script) == ('a.sh', b'echo done', True)
    (skill_dir / 'scripts').rename(tmp_path / 'moved')
    (skill_dir / 'scripts').symlink_to(tmp_path / 'moved')
    for check in (read_script_head, refuse_links):
        with pytest.raises(SkillScriptExecutionError, match=re.escape("The script 'a.sh' cannot be read: ")):
            check(script)
    script.skill_dir = None
    assert read_script_head(script).head  # the developer named the folder it is in
    script.root = str(tmp_path)
    (skill_dir / 'scripts').unlink()
    refuse_links(script)  # there is nothing to run


def test_what_is_not_on_this_machine_is_not_looked_at() -> None:
    refuse_links(SkillScript('x', uri='https://example.com/x.sh'))
    refuse_links(SkillScript('x', function=print))

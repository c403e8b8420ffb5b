"""A toolset without its capability says which settings of a skill it cannot apply."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.settings import ModelSettings

from pydantic_ai_skills import Skill, SkillsCapability, SkillsToolset
from tests.conversations import converse
from tests.folders import write

pytestmark = pytest.mark.anyio


def skill(**options: Any) -> Skill[Any]:
    return Skill('careful', 'Is careful.', 'Take care.', **options)


NEEDY = [
    ({'model_settings': ModelSettings(temperature=0)}, 'model_settings'),
    ({'allowed_tools': ['Bash']}, 'allowed-tools'),
    ({'model_settings': ModelSettings(temperature=0), 'allowed_tools': ['Bash']}, 'model_settings and allowed-tools'),
]


@pytest.mark.parametrize(('options', 'named'), NEEDY)
def test_a_bare_toolset_warns_at_the_developers_line(options: Any, named: str):
    message = rf"'careful' has {named}, which a toolset alone cannot apply.*capabilities=\[SkillsCapability"
    toolset = SkillsToolset(skills=[])
    with pytest.warns(UserWarning, match=message) as added:
        toolset.add_skill(skill(**options))
    with pytest.warns(UserWarning, match=message) as given:
        SkillsToolset(skills=[skill(**options)])
    assert [Path(warning.filename).name for warning in (*added, *given)] == ['test_bare_toolset.py'] * 2


@pytest.mark.parametrize(('options', 'named'), [*NEEDY, ({}, '')])
def test_a_capability_does_not_warn_and_neither_does_a_toolset_that_can_do_it_all(options: Any, named: str):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        capability = SkillsCapability[Any](skills=skill(**options))
        capability.toolset.add_skill(Skill('other', 'Is other.', 'Other.', **options))
        SkillsToolset[Any](skills=[skill()])
    assert sorted(capability.toolset.skills) == ['careful', 'other']


async def test_for_a_skill_from_a_folder_the_first_load_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    text = '---\nname: careful\ndescription: Is careful.\nallowed-tools: Bash\n---\nTake care.'
    write(tmp_path / 'careful', {'SKILL.md': text})
    load = ('load_skill', {'skill_name': 'careful'})
    for kind, times in ((SkillsToolset[Any], 1), (SkillsCapability[Any], 0)):
        caplog.clear()
        skills = kind(directories=[tmp_path])
        with caplog.at_level(logging.WARNING, 'pydantic_ai_skills'):
            for _ in range(2):
                await converse(skills, load)
        told = [record.message for record in caplog.records if 'a toolset alone cannot apply' in record.message]
        assert len(told) == times

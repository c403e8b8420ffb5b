from __future__ import annotations

from typing import Any

import pytest

from pydantic_ai_skills import SkillProvenance


@pytest.mark.parametrize(
    ('about', 'name'),
    [
        ({'label': 'Team', 'distribution': 'acme', 'version': '1.2'}, 'Team'),
        ({'distribution': 'acme', 'version': '1.2'}, 'acme 1.2'),
        ({'ref': 'v1', 'commit': '0123456789abcdef'}, 'git.example/skills@v1'),
        ({'commit': '0123456789abcdef'}, 'git.example/skills@0123456789ab'),
        ({}, 'git.example/skills'),
    ],
)
def test_people_know_a_source_by_its_label_its_distribution_or_its_address(about: dict[str, Any], name: str):
    assert SkillProvenance(kind='git', url='https://git.example/skills', **about).name == name

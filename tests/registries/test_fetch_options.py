"""The options that all registries which fetch skills take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import GitSkillsRegistry, SkillValidationError
from pydantic_ai_skills.registries.fetch_options import FetchSettings


@pytest.mark.parametrize(
    ('options', 'error', 'message'),
    [
        ({'timeot': 3}, TypeError, "GitSkillsRegistry got an unexpected keyword argument 'timeot'"),
        ({'timeout': 0}, SkillValidationError, 'timeout and refresh_interval must be more than 0'),
        ({'refresh_interval': 0}, SkillValidationError, 'timeout and refresh_interval must be more than 0'),
        ({'allowed_protocols': ['ext']}, SkillValidationError, 'allowed_protocols takes a collection of'),
        ({'script_executor': 'bubblewrap'}, TypeError, 'script_executor'),
    ],
)
def test_a_wrong_option_is_told(options: dict[str, Any], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        GitSkillsRegistry('https://example.com/acme/skills', **options)


def test_options_become_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    settings = FetchSettings.of(None, {'only': 'pdf', 'cache_dir': 'cache', 'allowed_protocols': ['https', 'https']})
    assert (settings.only, settings.cache_dir) == (('pdf',), tmp_path / 'cache')
    assert settings.allowed_protocols == {'https'}
    assert FetchSettings.of(None, {'only': ['b', 'a', 'b']}).only == ('b', 'a')

"""What the documentation lists is what the package has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pydantic_ai_skills
from pydantic_ai_skills import exceptions
from pydantic_ai_skills.parsing.rules import RULES

DOCS = Path(__file__).parent.parent / 'docs'


def test_every_problem_code_is_documented(pytestconfig: pytest.Config) -> None:
    page = DOCS / 'writing-skills.md'
    rows = [f'| `{rule.code}` | {rule.severity} | {rule.summary} |\n' for rule in RULES.values()]
    table = ''.join(('| code | severity | what is wrong |\n', '|---|---|---|\n', *rows))
    text = page.read_text('utf-8')
    if pytestconfig.getoption('--update-examples'):
        page.write_text(re.sub(r'\| code \|.*\n(\|.*\n)*', lambda _: table, text), 'utf-8')
    else:
        assert table in text, 'Bring the table up to date with: pytest tests/test_docs.py --update-examples'


def test_every_public_name_is_documented() -> None:
    text = (DOCS / 'api.md').read_text('utf-8')
    documented = re.findall(r'^::: pydantic_ai_skills\.([A-Za-z]\w+)$', text, re.MULTILINE)
    assert sorted(documented) == sorted({'exceptions', *pydantic_ai_skills.__all__} - set(exceptions.__all__))

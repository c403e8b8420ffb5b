"""What the documentation lists is what the package has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pydantic_ai_skills
from pydantic_ai_skills import exceptions
from pydantic_ai_skills.problems import RULES, problem

DOCS = Path(__file__).parent.parent.parent / 'docs'
OWN_SKILL = Path(pydantic_ai_skills.__file__).parent / '.agents/skills/pydantic-ai-skills'
SEVERITIES = (
    ('error', 'Errors', 'The skill or the source is left out.'),
    ('warning', 'Warnings', 'The skill or the source is loaded anyway.'),
)


def explained(page: str) -> str:
    """The page with every code under a heading of its own. What is written below its first paragraph stays."""
    introduction, *sections = re.split(r'^(?=##)', page, flags=re.MULTILINE)
    parts = [section.strip().split('\n\n', 2) for section in sections]
    written = {part[0].strip('# `'): part[2:] for part in parts}
    blocks = [introduction.strip()]
    for severity, heading, meaning in SEVERITIES:
        blocks += [f'## {heading}', meaning]
        for rule in RULES.values():
            if rule.severity == severity:
                blocks += [f'### `{rule.code}`', f'{rule.summary} {rule.fix}', *written.get(rule.code, [])]
    return '\n\n'.join(blocks) + '\n'


def test_every_problem_code_is_explained_under_its_own_anchor(pytestconfig: pytest.Config) -> None:
    page = DOCS / 'problems.md'
    text = page.read_text('utf-8')
    if pytestconfig.getoption('--update-examples'):
        page.write_text(explained(text), 'utf-8')
    else:
        assert text == explained(text), (
            'Bring the page up to date with: pytest tests/docs/test_docs.py --update-examples'
        )


def test_problems_link_to_that_page() -> None:
    site = re.search(r'^site_url: (.*)$', (DOCS.parent / 'mkdocs.yml').read_text('utf-8'), re.MULTILINE)
    assert site is not None
    assert problem('name-mismatch', 'x', 'y').url == f'{site[1]}problems/#name-mismatch'


def test_the_skill_about_this_package_has_every_problem_code(pytestconfig: pytest.Config) -> None:
    page = OWN_SKILL / 'references/problems.md'
    text = page.read_text('utf-8')
    head = text.partition('|---|---|---|\n')
    table = ''.join(f'| `{rule.code}` | {rule.severity} | {rule.summary} |\n' for rule in RULES.values())
    if pytestconfig.getoption('--update-examples'):
        page.write_text(f'{head[0]}{head[1]}{table}', 'utf-8')
    else:
        assert head[2] == table, 'Bring the table up to date with: pytest tests/docs/test_docs.py --update-examples'


def test_every_public_name_is_documented() -> None:
    text = '\n'.join(path.read_text('utf-8') for path in (DOCS / 'api').glob('*.md'))
    documented = re.findall(r'^::: pydantic_ai_skills\.([A-Za-z]\w+)$', text, re.MULTILINE)
    assert sorted(documented) == sorted({'exceptions', *pydantic_ai_skills.__all__} - set(exceptions.__all__))

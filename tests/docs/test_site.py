"""The documentation as it is published: what others link to is there. Its own links are followed in a browser."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import pydantic_ai_skills
from pydantic_ai_skills.problems import RULES

ROOT = Path(__file__).parent.parent.parent
LINK = re.compile(r'\]\(([^)\s]+)\)')


def anchors(site: Path, page: str) -> set[str]:
    return set(re.findall(r'id="([^"]+)"', (site / page / 'index.html').read_text('utf-8')))


def test_every_public_name_has_an_anchor(site: Path) -> None:
    names = {f'pydantic_ai_skills.{name}' for name in pydantic_ai_skills.__all__}
    pages = [f'api/{path.stem}' for path in (ROOT / 'docs/api').glob('*.md')]
    found = {anchor.replace('.exceptions.', '.') for page in pages for anchor in anchors(site, page)}
    assert names - found == set()


def test_every_problem_code_has_an_anchor(site: Path) -> None:
    assert set(RULES) - anchors(site, 'problems') == set()


def test_agents_find_every_page_as_markdown(site: Path) -> None:
    listed = LINK.findall((site / 'llms.txt').read_text('utf-8'))
    docs = ROOT / 'docs'
    assert sorted(listed) == sorted(path.relative_to(docs).as_posix() for path in docs.rglob('*.md'))
    whole = (site / 'llms-full.txt').read_text('utf-8')
    for name in listed:
        text = (site / name).read_text('utf-8')
        assert text.lstrip().startswith('# ')
        assert text in whole
        assert '--8<--' not in text


def test_the_overview_of_the_api_links_to_every_name(site: Path) -> None:
    page = (site / 'api/index.html').read_text('utf-8')
    linked = {name.replace('.exceptions.', '.') for name in re.findall(r'href="[a-z]+/#([^"]+)"', page)}
    assert {f'pydantic_ai_skills.{name}' for name in pydantic_ai_skills.__all__} - linked == set()


def test_the_changelog_is_a_page(site: Path) -> None:
    first = re.search(r'^### .*\n\n- (.*)$', (ROOT / 'CHANGELOG.md').read_text('utf-8'), re.MULTILINE)
    assert first is not None
    assert first[1] in (site / 'changelog.md').read_text('utf-8')


def test_the_frontmatter_of_a_skill_is_highlighted_as_yaml(site: Path) -> None:
    page = (site / 'writing-skills/index.html').read_text('utf-8')
    assert '<span class="nt">description</span><span class="p">:</span>' in page


@pytest.mark.parametrize('file', ['README.md', 'CHANGELOG.md'])
def test_links_from_the_repository_resolve(site: Path, file: str) -> None:
    text = re.sub(r'^```.*?^```', '', (ROOT / file).read_text('utf-8'), flags=re.MULTILINE | re.DOTALL)
    for link in LINK.findall(text):
        path, _, anchor = link.partition('#')
        if not path.startswith('https://'):
            assert (ROOT / path).is_file(), link
            assert not anchor or anchor in anchors(site, Path(path).stem), link


def test_the_chat_page_to_download_is_the_one_of_this_pydantic_ai() -> None:
    address = importlib.import_module('pydantic_ai.ui._web.app').OFFLINE_HTML_URL
    assert address in (ROOT / 'docs/examples.md').read_text('utf-8')

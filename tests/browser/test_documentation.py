"""The documentation as a reader has it: it can be searched, every link leads somewhere, and nothing is logged."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from playwright.sync_api import Page, expect


def test_every_page_fits_a_phone_and_every_link_leads_somewhere(page: Page, documentation: str, site: Path) -> None:
    page.set_viewport_size({'width': 360, 'height': 720})
    anchors: dict[str, set[str]] = {}
    links: dict[str, list[str]] = {}
    too_wide: list[str] = []
    for file in sorted(site.rglob('index.html')):
        url = f'{documentation}/{file.parent.relative_to(site).as_posix()}/'.replace('/./', '/')
        page.goto(url)
        anchors[url] = set(page.locator('[id]').evaluate_all('all => all.map(element => element.id)'))
        links[url] = page.locator('a[href]').evaluate_all('all => all.map(element => element.href)')
        if page.evaluate('document.documentElement.scrollWidth > innerWidth'):
            too_wide.append(url)
        expect(page.locator('article img:not([alt])')).to_have_count(0)

    def leads_somewhere(link: str) -> bool:
        target, anchor = urldefrag(link)
        if target in anchors:
            return not anchor or unquote(anchor) in anchors[target]
        return not anchor and (site / target.removeprefix(f'{documentation}/')).is_file()

    assert len(anchors) > 5
    broken = [
        (url, link)
        for url, found in links.items()
        for link in found
        if link.startswith(documentation) and not leads_somewhere(link)
    ]
    assert broken == []
    assert too_wide == []


@pytest.mark.parametrize(
    ('query', 'page_name', 'anchor'),
    [
        ('bubblewrap sandbox', 'scripts', 'bubblewrap'),
        ('yaml-duplicate-key', 'problems', 'yaml-duplicate-key'),
        ('lock file', 'registries', 'pins-and-lock-files'),
    ],
)
def test_the_search_finds(page: Page, documentation: str, query: str, page_name: str, anchor: str) -> None:
    page.goto(documentation)
    results = page.locator('.md-search-result__list')
    link = results.locator(f'a[href*="/{page_name}/"][href$="#{anchor}"]')
    box = page.get_by_role('textbox', name='Search')
    box.click()
    expect(page.locator('.md-search-result__meta')).to_contain_text('Type to start searching')
    box.fill(query)
    box.press('End')  # the search listens to keys; whether it sees a filled box without one is luck
    link.wait_for(state='attached')
    if not link.is_visible():
        results.locator('details', has=link).locator('summary').click()
    link.click()
    expect(page).to_have_url(re.compile(rf'/{page_name}/.*#{anchor}$'))
    expect(page.locator(f'[id="{anchor}"]')).to_be_in_viewport()

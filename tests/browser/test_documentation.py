"""The documentation as a reader has it, at a desk and on a phone, in light and in dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

import pytest
from playwright.sync_api import Page, expect

IMAGES = Path(__file__).parent.parent.parent / 'docs/images'
WIDTHS = (1280, 390)
SCHEMES = ('default', 'slate')

DEFECTS = """() => {
    const found = []
    const note = (what, element) => found.push(what + ': ' + element.textContent.trim().slice(0, 60))
    if (document.documentElement.scrollWidth > innerWidth) found.push('the page scrolls sideways')
    for (const element of document.querySelectorAll('article *')) {
        const style = getComputedStyle(element)
        const cut = element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 1
        if (cut && ['hidden', 'clip'].includes(style.overflowX)) note('cut off', element)
        if (!element.matches('pre > code, table')) continue
        let box = element
        while (box && !['auto', 'scroll'].includes(getComputedStyle(box).overflowX)) box = box.parentElement
        if (!box && element.getBoundingClientRect().right > innerWidth + 1) note('runs out of the page', element)
    }
    const shown = [...document.querySelectorAll('article img')].filter(image => image.offsetParent)
    for (const image of shown) if (!image.naturalWidth) found.push('not loaded: ' + image.src)
    for (const image of shown) if (!image.alt) found.push('says nothing to who cannot see: ' + image.src)
    return found
}"""
"""What is wrong with how a page is laid out: it scrolls sideways, or something is cut and cannot be scrolled."""


@pytest.fixture(scope='module')
def urls(documentation: str, site: Path) -> list[str]:
    """The addresses of all pages."""
    folders = sorted(file.parent.relative_to(site).as_posix() for file in site.rglob('index.html'))
    return [f'{documentation}/{folder}/'.replace('/./', '/') for folder in folders]


def states(page: Page) -> Iterator[str]:
    """Put the page into each scheme, as the button at its top does, at each width."""
    for scheme in SCHEMES:
        page.locator(f'input[data-md-color-scheme="{scheme}"]').evaluate('button => button.click()')
        page.locator(f'body[data-md-color-scheme="{scheme}"]').wait_for()
        for width in WIDTHS:
            page.set_viewport_size({'width': width, 'height': 800})
            yield f'{scheme}, {width}'


def test_every_page_fits_a_desk_and_a_phone_in_light_and_dark_and_every_link_leads_somewhere(
    page: Page, documentation: str, site: Path, urls: list[str]
) -> None:
    anchors: dict[str, set[str]] = {}
    links: dict[str, list[str]] = {}
    defects: list[tuple[str, str, str]] = []
    page.emulate_media(reduced_motion='reduce')  # nothing slides into its place
    for url in urls:
        page.goto(url)
        page.evaluate('document.querySelectorAll("img[loading=lazy]").forEach(image => image.loading = "eager")')
        for state in states(page):
            page.wait_for_function('[...document.images].every(image => image.complete)')
            defects += ((url, state, defect) for defect in page.evaluate(DEFECTS))
        anchors[url] = set(page.locator('[id]').evaluate_all('all => all.map(element => element.id)'))
        links[url] = page.locator('a[href]').evaluate_all('all => all.map(element => element.href)')

    def leads_somewhere(link: str) -> bool:
        target, anchor = urldefrag(link)
        if target in anchors:
            return not anchor or unquote(anchor) in anchors[target]
        return not anchor and (site / target.removeprefix(f'{documentation}/')).is_file()

    assert len(anchors) > 40
    assert defects == []
    broken = [
        (url, link)
        for url, found in links.items()
        for link in found
        if link.startswith(documentation) and not leads_somewhere(link)
    ]
    assert broken == []


QUESTIONS = {
    'input file': 'files',
    'working directory': 'files',
    'sandbox': 'scripts',
    'secret': 'security',
    'approve': 'approvals',
    'private repository': 'registries',
    'prompt cache': 'faq',
    'broken skill': 'troubleshooting',
    'stdin': 'scripts',
    'offline': 'faq',
    'bubblewrap sandbox': 'scripts',
    'yaml-duplicate-key': 'problems',
    'lock file': 'registries',
    'model does not use skill': 'troubleshooting',
    'many skills': 'many-skills',
}
"""What people type into the search, and the page that has to be among the first three it finds."""


def test_the_search_finds_the_right_page(page: Page, documentation: str) -> None:
    page.goto(documentation)
    box = page.get_by_role('textbox', name='Search')
    box.click()
    expect(page.locator('.md-search-result__meta')).to_contain_text('Type to start searching')
    wrong: dict[str, list[str]] = {}
    for query, wanted in QUESTIONS.items():
        found = search(page, query)
        if wanted not in found[:3]:
            wrong[query] = found[:4]
    assert wrong == {}


def search(page: Page, query: str) -> list[str]:
    """The pages that are found, the best first."""
    box = page.get_by_role('textbox', name='Search')
    box.fill('')
    box.press('End')  # the search listens to keys; whether it sees a filled box without one is luck
    expect(page.locator('.md-search-result__meta')).to_contain_text('Type to start searching')
    box.fill(query)
    box.press('End')
    expect(page.locator('.md-search-result__meta')).to_contain_text('matching document')
    links = page.locator('.md-search-result__item > a.md-search-result__link')
    addresses: list[str] = links.evaluate_all('all => all.map(element => element.href)')
    return list(dict.fromkeys(urlparse(address).path.strip('/') for address in addresses))


def test_a_result_of_the_search_leads_to_its_section(page: Page, documentation: str) -> None:
    page.goto(documentation)
    box = page.get_by_role('textbox', name='Search')
    box.click()
    expect(page.locator('.md-search-result__meta')).to_contain_text('Type to start searching')
    search(page, 'yaml-duplicate-key')
    link = page.locator('.md-search-result__list a[href*="/problems/"][href$="#yaml-duplicate-key"]')
    if not link.is_visible():
        page.locator('.md-search-result__list details', has=link).locator('summary').click()
    link.click()
    expect(page.locator('[id="yaml-duplicate-key"]')).to_be_in_viewport()


def test_no_picture_cuts_its_text(page: Page) -> None:
    cut: list[tuple[str, str]] = []
    pictures = sorted(IMAGES.glob('*.svg'))
    for picture in pictures:
        page.set_content(picture.read_text('utf-8'))
        texts: list[str] = page.evaluate("""() => {
            const sheet = document.querySelector('svg').viewBox.baseVal
            const out = box => box.x < 0 || box.x + box.width > sheet.width || box.y + box.height > sheet.height
            return [...document.querySelectorAll('text')].filter(t => out(t.getBBox())).map(t => t.textContent)
        }""")
        cut += ((picture.name, text) for text in texts)
    assert len(pictures) > 5
    assert cut == []

"""The page of an evaluation in a browser. `make screenshots` takes its picture for the documentation again."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from pydantic_ai_skills import SkillsToolset
from pydantic_ai_skills.evals import EvalReport, evaluate, html_page, stand_in_model
from tests.evals.reports import REPORT

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize('width', [360, 1280], ids=['a phone', 'a desk'])
def test_it_fits_the_screen_with_everything_unfolded(page: Page, width: int):
    page.set_viewport_size({'width': width, 'height': 800})
    page.set_content(html_page(REPORT))
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    expect(page.get_by_text('There are: <script>alert(1)</script>').first).to_be_visible()
    assert page.evaluate('document.documentElement.scrollWidth') == width


def test_it_is_dark_where_the_screen_is(page: Page):
    page.set_content(html_page(REPORT))
    grounds: list[str] = []
    for scheme in ('light', 'dark'):
        page.emulate_media(color_scheme=scheme)
        grounds.append(page.evaluate('getComputedStyle(document.body).backgroundColor'))
    assert grounds == ['rgb(255, 255, 255)', 'rgb(20, 23, 31)']


def test_it_shows_the_example_library(page: Page, pytestconfig: pytest.Config):
    report: list[EvalReport] = []

    def evaluate_library() -> None:
        toolset = SkillsToolset[None](directories=[ROOT / 'examples/library'])
        report.append(asyncio.run(evaluate(toolset, model=stand_in_model(), repeat=1)))

    # In a thread of its own: the browser's event loop runs in this one.
    thread = threading.Thread(target=evaluate_library)
    thread.start()
    thread.join()
    page.set_content(html_page(report[0]))
    expect(page.get_by_text('It is not a model, and its figures say nothing about one.')).to_be_visible()
    expect(page.locator('.group')).to_have_count(24)
    expect(page.locator('.matrix .right')).to_have_count(13)
    expect(page.locator('.matrix .wrong, .matrix .missed')).to_have_count(0)
    if pytestconfig.getoption('--update-examples'):
        page.screenshot(path=ROOT / 'docs/images/evals.png')

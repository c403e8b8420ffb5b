"""The chat in the browser: a conversation that loads a skill and runs a script, typed and read back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from inline_snapshot import snapshot
from playwright.sync_api import Locator, Page, expect

from tests.servers import EXAMPLES, serving

IMAGES = Path(__file__).parent.parent.parent / 'docs/images'


@pytest.fixture(scope='module')
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the example, which runs as a user would start it."""
    with serving(EXAMPLES / 'web_chat.py', '0', home=tmp_path_factory.mktemp('home')) as address:
        yield address


def say(page: Page, text: str) -> Locator:
    """Type a message and send it; what follows it in the conversation."""
    page.get_by_label('Message').fill(text)
    page.get_by_role('button', name='Send').click()
    return page.get_by_text(text, exact=True).locator('xpath=following-sibling::*')


def test_a_skill_is_loaded_and_its_script_is_run(page: Page, chat: str, pytestconfig: pytest.Config) -> None:
    page.goto(chat)
    told = say(page, 'What are 10 yd in m?')
    expect(told).to_have_text([re.compile('load_skill'), re.compile('run_skill_script'), '10 yd = 9.1440 m\n'])

    load, run = told.nth(0), told.nth(1)
    load.click()
    expect(load.locator('pre').nth(1)).to_contain_text('Convert with the script, never in your head')
    load.locator('summary').click()
    run.click()
    assert run.locator('pre').all_inner_texts() == snapshot(
        [
            '{"skill_name":"unit-converter","script_name":"convert","args":["10","yd","m"]}',
            '10 yd = 9.1440 m\n',
        ]
    )

    if pytestconfig.getoption('--update-examples'):
        page.locator('body').screenshot(path=IMAGES / 'chat.png')


def test_a_script_that_fails_is_told_and_the_conversation_goes_on(page: Page, chat: str) -> None:
    page.goto(chat)
    failed = say(page, 'What are 5 kg in m?')
    expect(failed.last).to_contain_text('kg measures mass, m measures length')
    expect(say(page, 'Then what are 5 kg in g?').last).to_have_text('5 kg = 5000.0000 g\n')
    expect(say(page, 'Thank you.')).to_have_text(['Without a model I know no more than that.'])

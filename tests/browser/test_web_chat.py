"""The chat in the browser: a conversation that loads skills, runs scripts and downloads what they made."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import pytest
from inline_snapshot import snapshot
from playwright.sync_api import Locator, Page, Route, expect

from tests.servers import EXAMPLES, serving

IMAGES = Path(__file__).parent.parent.parent / 'docs/images'
SCHEMES: dict[Literal['light', 'dark'], str] = {'light': 'chat.png', 'dark': 'chat-dark.png'}
HOSTILE = '<img src="x" onerror="window.pwned = true">'


@pytest.fixture(scope='module')
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the example, which runs as a user would start it."""
    with serving(EXAMPLES / 'web_chat.py', '0', home=tmp_path_factory.mktemp('home')) as address:
        yield address


def say(page: Page, text: str) -> Locator:
    """Type a message and send it; what follows it in the conversation."""
    page.get_by_label('Message').fill(text)
    page.get_by_role('button', name='Send').click()
    return after(page, text)


def after(page: Page, text: str) -> Locator:
    """What follows a message of the user in the conversation."""
    return page.locator('[data-role=user]').get_by_text(text, exact=True).locator('xpath=following-sibling::*')


def is_too_wide(page: Page) -> bool:
    return page.evaluate('document.documentElement.scrollWidth > innerWidth')


def test_a_skill_is_loaded_and_its_script_is_run(page: Page, chat: str) -> None:
    page.goto(chat)
    told = say(page, 'What are 10 yd in m?')
    expect(told).to_have_text([re.compile('^Loaded the skill'), re.compile('^Ran convert'), '10 yd = 9.1440 m'])

    load, run = told.nth(0), told.nth(1)
    expect(load.locator('pre').first).to_be_hidden()
    load.locator('summary').click()
    expect(load.locator('pre').nth(1)).to_contain_text('Convert with the script, never in your head')
    run.locator('summary').click()
    assert run.locator('pre').all_inner_texts() == snapshot(
        [
            '{"skill_name":"unit-converter","script_name":"convert","args":["10","yd","m"]}',
            '10 yd = 9.1440 m\n',
        ]
    )


def test_a_script_that_fails_is_marked_and_the_conversation_goes_on(page: Page, chat: str) -> None:
    page.goto(chat)
    failed = say(page, 'What are 5 kg in m?')
    expect(failed.last).to_contain_text('kg measures mass, m measures length')
    expect(failed.locator('xpath=self::details')).to_have_count(2)
    assert [call.get_attribute('data-state') for call in failed.locator('xpath=self::details').all()] == [
        'done',
        'failed',
    ]
    expect(say(page, 'Then what are 5 kg in g?').last).to_have_text('5 kg = 5000.0000 g')
    expect(say(page, 'Thank you.')).to_have_text(['No model is set, and the offline stand-in only knows the examples.'])


def test_the_skills_are_at_the_side_and_show_when_they_are_loaded(page: Page, chat: str) -> None:
    page.goto(chat)
    listed = page.get_by_role('complementary').get_by_role('listitem')
    expect(listed.locator('b')).to_have_text(['csv-report', 'fill-form', 'release-notes', 'unit-converter'])
    expect(listed.nth(3)).to_contain_text('Convert lengths, masses, volumes and temperatures between units.')
    expect(page.locator('li[data-loaded]')).to_have_count(0)
    expect(say(page, 'What are 10 yd in m?').last).to_have_text('10 yd = 9.1440 m')
    expect(page.locator('li[data-loaded] b')).to_have_text(['unit-converter'])
    page.get_by_role('button', name='New chat').click()
    expect(page.locator('li[data-loaded]')).to_have_count(0)
    expect(page.locator('main .said')).to_have_count(0)


@pytest.mark.parametrize('index', range(3))
def test_an_example_prompt_gets_an_answer(page: Page, chat: str, index: int) -> None:
    page.goto(chat)
    expect(page.get_by_text('Try one of these:')).to_be_visible()
    prompt = page.locator('#prompts button').nth(index)
    text = prompt.inner_text()
    prompt.click()
    expect(after(page, text).locator('xpath=self::details').last).to_have_attribute('data-state', 'done')
    expect(after(page, text).last).to_have_attribute('data-role', 'assistant')
    expect(page.get_by_text('Try one of these:')).to_be_hidden()


def test_a_file_that_a_script_made_can_be_downloaded_in_its_conversation_only(
    page: Page, chat: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    page.goto(chat)
    page.get_by_role('button', name='expense claim').click()
    link = page.get_by_role('link', name='claim.txt')
    expect(page.locator('.files a bdi')).to_have_text(['fields.json', 'claim.txt'])
    with page.expect_download() as started:
        link.click()
    started.value.save_as(tmp_path / 'claim.txt')
    assert started.value.suggested_filename == 'claim.txt'
    assert (
        'Name    Ada Byron\nTrip    Lisbon\nFrom    03 Nov 2026 to 06 Nov 2026' in (tmp_path / 'claim.txt').read_text()
    )

    address = chat + (link.get_attribute('href') or '')
    with urllib.request.urlopen(address) as response:
        assert response.headers['Content-Disposition'] == "attachment; filename*=UTF-8''claim.txt"
        assert response.headers['X-Content-Type-Options'] == 'nosniff'
        assert response.headers['Content-Type'] == 'application/octet-stream'
    here = address.removesuffix('claim.txt')
    others = [
        address.replace('conversation=', 'conversation=other'),
        f'{here}other.txt',
        f'{here}../claim.txt',
        f'{here}{quote(str(EXAMPLES / "web_chat.py"), safe="")}',
        f'{chat}/page/files',
    ]
    assert [status(other) for other in others] == [404, 404, 404, 404, 404]

    if pytestconfig.getoption('--update-examples'):
        page.locator('details.call').last.locator('summary').click()
        expect(page.locator('[data-role=assistant]')).to_have_text('Filled in 5 fields of claim.txt.')
        for scheme, name in SCHEMES.items():
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=IMAGES / name)


def status(address: str) -> int:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(address)
    refused.value.close()
    return refused.value.code


def test_what_skills_and_models_say_is_text(page: Page, chat: str) -> None:
    call = {'toolCallId': '1', 'toolName': HOSTILE, 'input': {'skill_name': HOSTILE, 'script_name': HOSTILE}}
    activity = {'activity': 'ran', 'skill_name': HOSTILE, 'item': HOSTILE, 'outcome': 'failed', 'duration': 1}
    events: list[dict[str, Any]] = [
        {'type': 'tool-input-available', **call},
        {'type': 'data-skill_activity', 'data': activity},
        {'type': 'data-files_made', 'data': {'files': {'../"><b>/' + HOSTILE: 1, 'javascript:alert(1)': 2}}},
        {'type': 'tool-output-available', 'toolCallId': '1', 'output': HOSTILE},
        {'type': 'text-start'},
        {'type': 'text-delta', 'delta': f'{HOSTILE} **{HOSTILE}** `{HOSTILE}` ```{HOSTILE}```'},
        {'type': 'text-end'},
        {'type': 'error', 'errorText': HOSTILE},
    ]
    about = {'model': HOSTILE, 'prompts': [HOSTILE], 'skills': [{'name': HOSTILE, 'description': HOSTILE}]}
    page.route('**/page/about', lambda route: route.fulfill(json=about))
    page.route('**/api/chat', lambda route: answer(route, events))
    page.goto(chat)
    page.locator('#prompts button').click()
    expect(page.get_by_role('alert')).to_have_text(HOSTILE)
    expect(page.locator('strong')).to_have_text(HOSTILE)
    expect(page.locator('li[data-loaded]')).to_have_count(1)
    assert page.locator('img').count() == 0
    assert page.evaluate('window.pwned') is None
    paths: list[str] = page.locator('.files a').evaluate_all('all => all.map(link => link.href)')
    assert [re.sub('conversation=[^&]+', '…', path.removeprefix(chat)) for path in paths] == snapshot(
        [
            '/page/files?…&name=..%2F%22%3E%3Cb%3E%2F%3Cimg+src%3D%22x%22+onerror%3D%22window.pwned+%3D+true%22%3E',
            '/page/files?…&name=javascript%3Aalert%281%29',
        ]
    )


def answer(route: Route, events: list[dict[str, Any]]) -> None:
    lines = ''.join(f'data: {json.dumps(event)}\n\n' for event in events)
    route.fulfill(body=lines, content_type='text/event-stream')


def test_a_server_that_refuses_is_told_and_the_chat_goes_on(page: Page, chat: str) -> None:
    page.goto(chat)
    page.route('**/api/chat', lambda route: answer(route, [{'type': 'error', 'errorText': 'Too many requests.'}]))
    expect(say(page, 'Hello?')).to_have_text(['Too many requests.'])
    page.unroute_all()
    expect(say(page, 'What are 10 yd in m?').last).to_have_text('10 yd = 9.1440 m')


@pytest.mark.parametrize('scheme', SCHEMES)
@pytest.mark.parametrize('width', [1280, 390])
def test_the_page_fits(page: Page, chat: str, width: int, scheme: Literal['light', 'dark']) -> None:
    page.set_viewport_size({'width': width, 'height': 800})
    page.emulate_media(color_scheme=scheme)
    page.goto(chat)
    expect(page.get_by_role('heading', name='Skills chat')).to_be_visible()
    expect(page.get_by_text('csv-report')).to_be_visible(visible=width == 1280)
    assert not is_too_wide(page)
    page.get_by_role('button', name='expense claim').click()
    expect(page.get_by_role('link', name='claim.txt')).to_be_visible()
    for call in page.locator('details.call summary').all():
        call.click()
    assert not is_too_wide(page)
    expect(page.get_by_role('button', name='Send')).to_be_in_viewport()


def test_light_and_dark_follow_the_system_and_can_be_switched(page: Page, chat: str) -> None:
    def background() -> str:
        return page.evaluate('getComputedStyle(document.body).backgroundColor')

    page.emulate_media(color_scheme='dark')
    page.goto(chat)
    dark = background()
    page.get_by_role('button', name='Light or dark').click()
    light = background()
    assert (dark, light) == ('rgb(20, 22, 28)', 'rgb(246, 247, 251)')
    page.get_by_role('button', name='Light or dark').click()
    assert background() == dark


def test_the_page_names_no_other_address() -> None:
    text = (EXAMPLES / 'chat.html').read_text('utf-8')
    assert re.findall(r'https?://|//\w+\.\w+|@import|<link(?! rel="icon" href="data:,">)', text) == []

"""A real Chromium, without a window. Every page must load what it needs from this machine, and log no error."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, Response, sync_playwright

CHROMIUM = ('chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome')


# For this package only: as long as it is there, an event loop runs in the background, and async tests cannot.
@pytest.fixture(scope='package')
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        pytest.fail('Chromium is not installed. `make browser` installs it where that needs no password.')
    with sync_playwright() as playwright:
        # Only pages of this repository are opened, so it may run as root in a container.
        browser = playwright.chromium.launch(executable_path=program, chromium_sandbox=False)
        yield browser
        browser.close()


class Watch:
    """What went wrong in a page: what it logged, what did not load, and what it wanted from other machines."""

    def __init__(self, page: Page) -> None:
        self.wrong: list[str] = []
        page.on('console', lambda message: self._note(message.type in ('error', 'warning'), message.text))
        page.on('pageerror', lambda error: self.wrong.append(str(error)))
        page.on('request', self._request)
        page.on('response', self._response)
        page.on('requestfailed', lambda request: self.wrong.append(f'{request.url} {request.failure}'))

    def _note(self, wrong: bool, text: str) -> None:
        if wrong:
            self.wrong.append(text)

    def _request(self, request: Request) -> None:
        self._note(not request.url.startswith(('http://127.0.0.1:', 'data:', 'blob:http://127.0.0.1:')), request.url)

    def _response(self, response: Response) -> None:
        self._note(response.status >= 400, f'{response.url} {response.status}')


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that fails its test when anything goes wrong in it, whatever else the test looks at."""
    context = browser.new_context(viewport={'width': 960, 'height': 720})
    page = context.new_page()
    watch = Watch(page)
    yield page
    context.close()
    assert watch.wrong == []


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that does not write about every request."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base has that name
        pass


@pytest.fixture(scope='session')
def documentation(site: Path) -> Iterator[str]:
    """The address of the built documentation."""
    with ThreadingHTTPServer(('127.0.0.1', 0), partial(Quiet, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f'http://127.0.0.1:{server.server_port}'
        server.shutdown()
        thread.join()

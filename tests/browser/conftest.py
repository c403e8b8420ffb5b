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
from playwright.sync_api import Browser, Page, Request, Response, expect, sync_playwright

CHROMIUM = ('chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome')

PATIENCE = 120_000
"""Milliseconds to wait for what must come. A busy machine takes its time; what never comes fails all the same."""


# For this package only: as long as it is there, an event loop runs in the background, and async tests cannot.
@pytest.fixture(scope='package')
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        pytest.fail('Chromium is not installed. `make browser` installs it where that needs no password.')
    with sync_playwright() as playwright:
        # Only pages of this repository are opened, so it may run as root in a container.
        browser = playwright.chromium.launch(executable_path=program, chromium_sandbox=False, timeout=PATIENCE)
        expect.set_options(timeout=PATIENCE)
        yield browser
        browser.close()


class Watch:
    """Collects what goes wrong in a page: errors it logs, requests that fail, requests to other machines."""

    def __init__(self, page: Page) -> None:
        self.wrong: list[str] = []
        page.on('console', lambda message: self._note(message.type in ('error', 'warning'), message.text))
        page.on('pageerror', lambda error: self.wrong.append(str(error)))
        page.on('request', self._request)
        page.on('response', self._response)
        page.on('requestfailed', self._failed)

    def _note(self, wrong: bool, text: str) -> None:
        if wrong:
            self.wrong.append(text)

    def _request(self, request: Request) -> None:
        self._note(not request.url.startswith(('http://127.0.0.1:', 'data:', 'blob:http://127.0.0.1:')), request.url)

    def _failed(self, request: Request) -> None:
        # A page that is left aborts what it still loads, such as its icon, which no test waits for.
        self._note(request.failure != 'net::ERR_ABORTED', f'{request.url} {request.failure}')

    def _response(self, response: Response) -> None:
        self._note(response.status >= 400, f'{response.url} {response.status}')


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that fails its test when anything goes wrong in it, whatever else the test checks."""
    context = browser.new_context(viewport={'width': 960, 'height': 720})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    watch = Watch(page)
    yield page
    context.close()
    assert watch.wrong == []


class Quiet(SimpleHTTPRequestHandler):
    """A file server that logs nothing."""

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

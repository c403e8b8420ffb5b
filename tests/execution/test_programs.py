"""The programs in `examples/` run as they are, offline, and are short enough to read at once."""

from __future__ import annotations

import io
import json
import re
import runpy
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from starlette.testclient import TestClient

from tests.servers import EXAMPLES, serving

PROGRAMS = sorted(path for path in EXAMPLES.rglob('*.py') if EXAMPLES / 'skills' not in path.parents)
MAX_LINES = 70


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], loop_of_run_sync: None
) -> Callable[..., str]:
    """What a program prints when it is started in some other folder, without paths and hashes."""
    monkeypatch.setattr(sys, 'path', [str(EXAMPLES), *sys.path])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('MODEL', '')
    monkeypatch.setenv('API_KEY', 'one that an example sets is gone after the test')

    def run(name: str, stdin: str = '') -> str:
        monkeypatch.setattr(sys, 'argv', [str(EXAMPLES / name)])
        monkeypatch.setattr(sys, 'stdin', io.StringIO(stdin))
        runpy.run_path(str(EXAMPLES / name), run_name='__main__')
        printed = capsys.readouterr()
        assert printed.err == ''
        return re.sub(r'sha256:\w+', 'sha256:…', re.sub(r'(/[\w.-]+)+/', '…/', printed.out))

    return run


@pytest.mark.parametrize('path', PROGRAMS, ids=lambda path: path.name)
def test_an_example_is_short(path: Path) -> None:
    assert len(path.read_text('utf-8').splitlines()) <= MAX_LINES


def test_quick_start(run: Callable[..., str]) -> None:
    assert run('quick_start.py') == snapshot("""\
Skills: csv-report, release-notes, unit-converter
Called: load_skill {"skill_name":"unit-converter"}
Called: read_skill_resource {"skill_name":"unit-converter","resource_name":"references/units.md"}
Called: run_skill_script {"skill_name":"unit-converter","script_name":"scripts/convert.py","args":{"_":["26.2","mi","km"]}}
The converter says: 26.2 mi = 42.1648 km
""")


def test_decorators_with_dependencies(run: Callable[..., str]) -> None:
    assert run('decorators.py') == snapshot("""\
Done. Of the lamps there are 10 left.
{'lamp': 10, 'desk': 3}
""")


def test_git_registry(run: Callable[..., str]) -> None:
    assert run('git_registry.py') == snapshot("""\
team-csv-report: skills/csv-report, sha256:…
team-release-notes: skills/release-notes, sha256:…
team-unit-converter: skills/unit-converter, sha256:…
10 yd = 9.1440 m
""")


def test_approvals(run: Callable[..., str]) -> None:
    assert run('approvals.py', stdin='y\n') == snapshot("""\
csv-report wants to run:
  …/python …/summarize.py assets/sales.csv --value revenue --group-by region
Run it? [y/N] region,count,sum,mean
north,3,1468.10,489.367
west,2,1168.10,584.050
south,2,709.10,354.550

1 rows have no number in 'revenue'
""")


@pytest.mark.parametrize('stdin', ['n\n', ''])
def test_what_is_not_approved_does_not_run(run: Callable[..., str], stdin: str) -> None:
    assert run('approvals.py', stdin=stdin) == snapshot("""\
csv-report wants to run:
  …/python …/summarize.py assets/sales.csv --value revenue --group-by region
Run it? [y/N] The tool call was denied.
""")


def test_typed_tools(run: Callable[..., str]) -> None:
    assert run('typed_tools.py') == snapshot("""\
load_skill {"skill_name":"currency"}
currency__convert {"amount":100,"source":"USD","target":"GBP"}
currency__convert {"amount":100,"source":"USD","target":"CHF"}
80.37 CHF
""")


def test_sandbox(run: Callable[..., str]) -> None:
    assert run('sandbox.py') == snapshot("""\
As a process:
key in the environment: no
file of the user: yes
network: yes

In the sandbox:
key in the environment: no
file of the user: no
network: no
""")


def test_a_service_with_several_tenants(tmp_path: Path) -> None:
    def ask(tenant: str) -> Any:
        headers = {'X-Tenant': tenant, 'Content-Type': 'application/json'}
        request = urllib.request.Request(f'{address}/ask', b'{"question": "What does a lamp cost?"}', headers)
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    with serving('-m', 'uvicorn', '--app-dir', EXAMPLES, '--port', '0', 'tenants:app', home=tmp_path) as address:
        assert {tenant: ask(tenant) for tenant in ('acme', 'blum')} == snapshot(
            {'acme': 'I can use: {"acme-prices":"For offers."}', 'blum': 'I can use: {"blum-prices":"For offers."}'}
        )
        with pytest.raises(urllib.error.HTTPError, match='403'):
            ask('nobody')


def test_a_link_that_a_script_left_in_place_of_a_file_is_not_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, 'path', [str(EXAMPLES), *sys.path])
    chat = runpy.run_path(str(EXAMPLES / 'web_chat.py'))
    with chat['skills'] as skills, TestClient(chat['app'], base_url='http://127.0.0.1') as client:
        folder = skills.work_dir_of('mine')
        (folder / 'real.txt').write_text('made by a script')
        (tmp_path / 'private.txt').write_text('secret')
        (folder / 'link.txt').symlink_to(tmp_path / 'private.txt')
        chat['made'].update({('mine', 'real.txt'), ('mine', 'link.txt'), ('mine', 'gone.txt')})
        names = ('real.txt', 'link.txt', 'gone.txt')
        answers = [client.get('/page/files', params={'conversation': 'mine', 'name': name}) for name in names]
    assert [(answer.status_code, answer.text) for answer in answers] == [
        (200, 'made by a script'),
        (404, 'There is no such file.'),
        (404, 'There is no such file.'),
    ]

"""Every kind of source, from `add` to `remove`, through the command line."""

from __future__ import annotations

import shlex
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.folders import write, write_skill
from tests.registries.repositories import Repository
from tests.registries.web_server import WebServer

BEFORE, AFTER = 'Fills in forms. Use for PDF files.', 'Fills in forms, quickly. Use for PDF files.'


@dataclass(frozen=True)
class Source:
    """A source with one skill, `pdf`, as a person at the terminal names it."""

    args: list[str]
    """The address, and the options it needs."""

    publish: Callable[[str], object]
    """Publishes the skill with this description, in place of what was there."""

    withdraw: Callable[[], object]
    """Makes the source unreachable."""


def write_pdf(folder: Path, description: str) -> None:
    write_skill(folder / 'pdf', description, 'Fill them in.', files={'scripts/fill.py': f'print({description!r})'})


@pytest.fixture
def git_source(tmp_path: Path) -> Source:
    repository = Repository.create(tmp_path / 'source')

    def publish(description: str) -> None:
        write_pdf(repository.path / 'skills', description)
        repository.commit(description)

    return Source(['../source'], publish, lambda: repository.path.rename(tmp_path / 'gone'))


@pytest.fixture
def folder_source(tmp_path: Path) -> Source:
    folder = tmp_path / 'source'
    return Source(['../source'], lambda text: write_pdf(folder, text), lambda: folder.rename(tmp_path / 'gone'))


@pytest.fixture
def archive_source(tmp_path: Path) -> Source:
    file = tmp_path / 'skills.zip'

    def publish(description: str) -> None:
        write_pdf(tmp_path / 'unpacked', description)
        with zipfile.ZipFile(file, 'w') as archive:
            for path in sorted((tmp_path / 'unpacked').rglob('*.*')):
                archive.write(path, path.relative_to(tmp_path / 'unpacked'))

    return Source(['../skills.zip'], publish, file.unlink)


@pytest.fixture
def objects_source(tmp_path: Path) -> Source:
    folder = tmp_path / 'bucket'
    args = [f'objects+{folder.as_uri()}', '--allow', 'file']
    return Source(args, lambda text: write_pdf(folder, text), lambda: folder.rename(tmp_path / 'gone'))


@pytest.fixture
def marketplace_source(tmp_path: Path) -> Source:
    repository = Repository.create(tmp_path / 'plugins')
    market = '{"name": "acme", "owner": {"name": "Acme"}, "plugins": [{"name": "office", "source": "./office"}]}'
    write(repository.path, {'.claude-plugin/marketplace.json': market})

    def publish(description: str) -> None:
        write_pdf(repository.path / 'office/skills', description)
        repository.commit(description)

    return Source(['marketplace+../plugins'], publish, lambda: repository.path.rename(tmp_path / 'gone'))


@pytest.fixture
def mcp_source(tmp_path: Path) -> Source:
    folder, program = tmp_path / 'served', tmp_path / 'server.py'
    program.write_text(
        'from pydantic_ai_skills import SkillsToolset, serve_skills\n'
        f'serve_skills(SkillsToolset({str(folder)!r})).run()\n'
    )
    command = shlex.join([sys.executable, str(program)])
    return Source([f'mcp+{command}'], lambda text: write_pdf(folder, text), program.unlink)


@pytest.fixture
def web() -> Iterator[WebServer]:
    server = WebServer()
    yield server
    server.stop()


@pytest.fixture
def well_known_source(web: WebServer, tmp_path: Path) -> Source:
    def publish(description: str) -> None:
        write_pdf(tmp_path, description)
        web.publish({'pdf': (tmp_path / 'pdf/SKILL.md').read_text()})

    return Source([web.url, '--allow', 'http', '--allow', 'local'], publish, web.stop)


@pytest.fixture
def downloaded_source(archive_source: Source, web: WebServer, tmp_path: Path) -> Source:
    def publish(description: str) -> None:
        archive_source.publish(description)
        web.files['/skills.zip'] = (tmp_path / 'skills.zip').read_bytes()

    return Source([f'{web.url}/skills.zip', '--allow', 'http', '--allow', 'local'], publish, web.stop)


SOURCES = ['git', 'folder', 'archive', 'downloaded', 'well_known', 'objects', 'marketplace', 'mcp']


@pytest.fixture
def source(request: pytest.FixtureRequest) -> Source:
    return request.getfixturevalue(f'{request.param}_source')


@pytest.mark.parametrize('source', SOURCES, indirect=True)
def test_a_source_is_added_locked_synced_used_offline_and_removed(cli: Cli, here: Path, source: Source):
    def descriptions() -> list[str]:
        return [skill['description'] for skill in cli('list', '--json').data['skills']]

    source.publish(BEFORE)
    added = cli('add', *source.args)
    assert (added.status, added.err) == (0, '')
    assert added.out.startswith('added pdf\n')
    assert descriptions() == [BEFORE]
    assert cli('outdated').status == 0
    assert cli('lock').out.endswith(': no changes\n')

    source.publish(AFTER)
    changed = cli('outdated')
    assert (changed.status, 'outdated: pydantic-ai-skills lock' in changed.out) == (1, True)
    assert cli('sync', '--frozen').status == 0
    assert descriptions() == [BEFORE]  # what is locked
    assert 'changed ' in cli('lock').out
    assert descriptions() == [AFTER]
    assert cli('outdated').status == 0

    source.withdraw()
    assert cli('sync', '--frozen').status == 0
    assert descriptions() == [AFTER]  # without the source
    assert cli('outdated').status == 3
    assert cli('lock').status == 3
    assert descriptions() == [AFTER]
    assert cli('remove', 'pdf').status == 0
    assert descriptions() == []

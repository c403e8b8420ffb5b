from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.registries.marketplaces import Market
from tests.registries.repositories import GitServer, Registries, Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with the skill `pdf`, in a folder `repos` with nothing else in it."""
    repository = Repository.create(tmp_path / 'repos' / 'acme')
    repository.skill('pdf', files={'references/forms.md': '# Forms\n', 'scripts/fill.py': 'print("filled")\n'})
    (repository.path / 'README.md').write_text('Not a skill.\n')
    repository.commit('first')
    return repository


@pytest.fixture
def server(repository: Repository) -> Iterator[GitServer]:
    """A server for the repository, at `/acme`."""
    server = GitServer(repository.path.parent)
    yield server
    server.stop()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / 'cache'


@pytest.fixture
def registry(server: GitServer, cache: Path) -> Registries:
    """Makes registries of the repository, over HTTP, with the cache of the test."""
    return Registries(server, cache)


@pytest.fixture
def market(tmp_path: Path, cache: Path) -> Iterator[Market]:
    """A marketplace, over HTTP, with the cache of the test."""
    server = GitServer(tmp_path / 'repos')
    yield Market(server, cache)
    server.stop()

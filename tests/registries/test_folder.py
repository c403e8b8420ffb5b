from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import (
    FetchSession,
    FolderSkillsRegistry,
    SkillRegistryError,
    SkillValidationError,
)
from pydantic_ai_skills.registries.fetch_options import FetchSettings
from pydantic_ai_skills.registries.folder import FolderUpstream
from pydantic_ai_skills.registries.manifest import FileSink
from pydantic_ai_skills.registries.store import SourceStore
from pydantic_ai_skills.registries.upstream import Deadline
from tests.folders import write_skill
from tests.registries.asked import messages, names


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_skill(tmp_path / 'acme' / 'office/pdf', files={'scripts/fill.py': 'print("filled")\n'})
    write_skill(tmp_path / 'acme' / '.curated/xlsx')
    write_skill(tmp_path / 'acme' / 'node_modules/vendored')
    (tmp_path / 'acme' / 'README.md').write_text('Not a skill.')
    (tmp_path / 'acme' / 'office' / 'pdf' / 'scripts' / 'fill.py').chmod(0o755)
    return tmp_path / 'acme'


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return {'cache_dir': tmp_path / 'cache'}


def test_the_files_of_skills_are_copied_with_their_modes(folder: Path, options: dict[str, Any], tmp_path: Path):
    registry = FolderSkillsRegistry(folder, **options)
    assert (sorted(names(registry)), registry.find().problems) == (['pdf', 'xlsx'], ())
    copies = {path.name for path in (tmp_path / 'cache').rglob('*.*') if path.is_file()}
    assert {'SKILL.md', 'fill.py'} <= copies
    assert not {'README.md', 'vendored'} & copies
    (script,) = (tmp_path / 'cache').rglob('fill.py')
    assert script.stat().st_mode & 0o777 == 0o755


def test_the_copy_stays_as_it_is_until_the_folder_is_asked_again(folder: Path, options: dict[str, Any]):
    registry = FolderSkillsRegistry(folder, **options)
    assert sorted(names(registry)) == ['pdf', 'xlsx']
    write_skill(folder / 'docx')
    assert sorted(names(registry)) == ['pdf', 'xlsx']
    registry.refresh()
    assert sorted(names(registry)) == ['docx', 'pdf', 'xlsx']


def test_the_revision_is_that_of_the_content_wherever_the_folder_is(
    folder: Path, options: dict[str, Any], tmp_path: Path
):
    registry = FolderSkillsRegistry(folder, **options)
    (folder / 'README.md').write_text('Another text.')
    moved = FolderSkillsRegistry(folder.rename(tmp_path / 'moved'), **options)
    assert registry.url != moved.url
    with pytest.raises(SkillRegistryError, match='cannot be read: no such file or directory'):
        registry.remote_commit()
    before = moved.remote_commit()
    (tmp_path / 'moved/office/pdf/scripts/fill.py').chmod(0o644)
    assert moved.remote_commit() != before


@pytest.mark.parametrize(
    ('path', 'found'), [('', ['pdf', 'xlsx']), ('office', ['pdf']), ('office/pdf', ['pdf']), ('office/', ['pdf'])]
)
def test_a_path_is_a_folder_in_it(folder: Path, options: dict[str, Any], path: str, found: list[str]):
    registry = FolderSkillsRegistry(folder, path=path, **options)
    assert sorted(names(registry)) == found
    assert registry.url == (folder / path).as_uri()


def test_a_path_that_is_a_link_is_not_followed(folder: Path, options: dict[str, Any], tmp_path: Path):
    (folder / 'out').symlink_to(write_skill(tmp_path / 'outside/secret').parent)
    assert messages(FolderSkillsRegistry(folder, path='out', **options)) == (
        f'{(folder / "out").as_uri()} cannot be read: not a directory.'
    )


def test_a_string_needs_the_protocol(folder: Path, options: dict[str, Any]):
    with pytest.raises(
        SkillValidationError, match="say so: allowed_protocols=.'file',.; at the terminal: --allow file"
    ):
        FolderSkillsRegistry(str(folder), **options)
    for address in (str(folder), folder.as_uri()):
        registry = FolderSkillsRegistry(address, allowed_protocols=('file',), **options)
        assert (registry.url, sorted(names(registry))) == (folder.as_uri(), ['pdf', 'xlsx'])


def test_a_folder_without_skills_has_none(tmp_path: Path, options: dict[str, Any]):
    (tmp_path / 'empty').mkdir()
    assert FolderSkillsRegistry(tmp_path / 'empty', **options).find().skills == ()


def test_too_many_bytes_are_not_copied(folder: Path, options: dict[str, Any]):
    registry = FolderSkillsRegistry(folder, max_bytes=60, **options)
    assert messages(registry) == (
        f'{folder.as_uri()} has too many bytes of skills: at most 60 are copied; see max_bytes=.'
    )


@pytest.mark.parametrize(
    ('limit', 'seconds', 'message'),
    [
        ({'max_files': 2}, 60, 'takes too long to read: at most 2 files within 60 s; name a path='),
        ({}, -1, 'takes too long to read: at most 50,000 files within -1 s; name a path='),
        ({'max_paths': 3}, 60, 'has more than 3 files; name a path='),
    ],
)
def test_too_much_is_not_read(folder: Path, tmp_path: Path, limit: Any, seconds: float, message: str):
    about: dict[str, Any] = {'url': folder.as_uri(), 'root': str(folder), 'steps': (), 'max_bytes': 10**6}
    upstream = FolderUpstream(**about, max_depth=None, **limit)
    with pytest.raises(SkillRegistryError) as raised:
        upstream.ask(session(tmp_path, seconds))
    assert str(raised.value) == f'{folder.as_uri()} {message}'


def test_files_that_change_while_they_are_copied_are_not_used(folder: Path, tmp_path: Path):
    upstream = FolderUpstream.of(str(folder), '', FetchSettings())
    revision = upstream.ask(session(tmp_path))
    write_skill(folder / 'office/pdf', 'Does other things.')
    with pytest.raises(SkillRegistryError, match=f'has changed, and no longer has the revision {revision[:12]}'):
        upstream.fetch(revision, FileSink(tmp_path / 'sink'), session(tmp_path))


def session(tmp_path: Path, seconds: float = 60) -> FetchSession:
    store = SourceStore(tmp_path / 'cache', kind='folder', url='file:///x', selection='', name='folder')
    return FetchSession(deadline=Deadline(seconds), store=store)

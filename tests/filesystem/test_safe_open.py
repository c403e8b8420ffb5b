"""Reading what is inside a skill, and nothing else."""

from __future__ import annotations

import os
import re
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import BinaryContent

from pydantic_ai_skills import SkillResource, SkillsDirectory
from pydantic_ai_skills.exceptions import SkillResourceLoadError
from pydantic_ai_skills.filesystem.safe_open import OpenFolder, SkillFolder, local_path, read_regular
from tests.folders import at_first_wait, settle, skill_md, write, write_skill

SECRET = 'the secret outside'


@pytest.fixture(params=[True, False], ids=['descriptors', 'paths'])
def walks_descriptors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both ways to open a file: from descriptor to descriptor, and by path where a system cannot do that."""
    monkeypatch.setattr('pydantic_ai_skills.filesystem.safe_open.WALKS_DESCRIPTORS', request.param)
    return request.param


@pytest.fixture
def skill(tmp_path: Path) -> SkillFolder:
    """A skill's folder with a file in it and a secret beside it."""
    write(tmp_path, {'secret.txt': SECRET, 'outside/secret.txt': SECRET})
    folder = write_skill(tmp_path / 'skill', files={'a.txt': 'inside', 'deep/er/b.txt': 'deep inside'})
    return SkillFolder(str(folder))


def refusal(folder: SkillFolder, name: str) -> str:
    with pytest.raises(SkillResourceLoadError) as caught:
        folder.read(name)
    return str(caught.value)


# --- Containment --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures('walks_descriptors')
@pytest.mark.parametrize(('name', 'text'), [('a.txt', 'inside'), ('deep/er/b.txt', 'deep inside')])
def test_a_file_in_the_folder_is_read(skill: SkillFolder, name: str, text: str) -> None:
    assert skill.read(name) == text


@pytest.mark.usefixtures('walks_descriptors')
@pytest.mark.parametrize(
    'name',
    [
        '',
        '.',
        '..',
        '/',
        '../secret.txt',
        'deep/../../secret.txt',
        'deep/../a.txt',
        './a.txt',
        'deep//er/b.txt',
        'deep/er/',
        '/etc/passwd',
        '//etc/passwd',
    ],
)
def test_a_name_that_is_no_plain_path_below_the_folder_is_refused(skill: SkillFolder, name: str) -> None:
    assert refusal(skill, name) == f'{name!r} is not a path below this folder.'


def test_where_a_backslash_separates_folders_it_is_refused(skill: SkillFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, 'sep', '\\')
    assert refusal(skill, '..\\secret.txt') == "'..\\\\secret.txt' is not a path below this folder."


@pytest.mark.usefixtures('walks_descriptors')
@pytest.mark.parametrize(
    ('name', 'why'),
    [
        ('b.txt', "'b.txt' does not exist."),
        ('no/b.txt', "'no/b.txt' does not exist."),
        ('A.TXT', "'A.TXT' does not exist."),
        ('..\\secret.txt', "'..\\\\secret.txt' does not exist."),
        ('a.txt/b.txt', "'a.txt/b.txt' cannot be opened: not a directory."),
        ('deep', "'deep' is not a regular file."),
        ('a\0.txt', "'a\\x00.txt' cannot be opened: embedded null byte."),
        ('x' * 300, f"'{'x' * 300}' cannot be opened: file name too long."),
    ],
)
def test_what_cannot_be_opened_is_said_without_a_path(skill: SkillFolder, name: str, why: str) -> None:
    said = re.sub(
        r'(?:(?:open|lstat): )?embedded null (?:character|byte)(?: in path)?',
        'embedded null byte',
        refusal(skill, name),
    )
    assert said == why  # each Python says it in its own words


def test_a_name_that_the_system_cannot_spell_is_refused(skill: SkillFolder) -> None:
    assert 'surrogates not allowed' in refusal(skill, '\ud800')


def make_link(link: Path, target: str | Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)


LINKS: dict[str, tuple[str, Callable[[Path], None]]] = {
    'to a file': ('l', lambda skill: make_link(skill / 'l', skill.parent / 'secret.txt')),
    'relative': ('l', lambda skill: make_link(skill / 'l', '../secret.txt')),
    'to a file inside': ('l', lambda skill: make_link(skill / 'l', 'a.txt')),
    'to a folder': ('l/secret.txt', lambda skill: make_link(skill / 'l', skill.parent / 'outside')),
    'to the folder above': ('l/secret.txt', lambda skill: make_link(skill / 'l', '..')),
    'below a folder': ('deep/l', lambda skill: make_link(skill / 'deep/l', '../../secret.txt')),
    'to a link': (
        'l',
        lambda skill: (make_link(skill / 'l', 'm'), make_link(skill / 'm', '../secret.txt'))[0],
    ),
    'to itself': ('l', lambda skill: make_link(skill / 'l', 'l')),
    'to nothing': ('l', lambda skill: make_link(skill / 'l', 'nothing')),
}


@pytest.mark.usefixtures('walks_descriptors')
@pytest.mark.parametrize('kind', LINKS)
def test_no_link_is_followed(skill: SkillFolder, kind: str) -> None:
    name, make = LINKS[kind]
    make(Path(skill.path))
    assert refusal(skill, name) in (
        f'{name!r} cannot be opened: it is a link.',
        f'{name!r} cannot be opened: not a directory.',
    )


@pytest.mark.usefixtures('walks_descriptors')
def test_no_step_to_the_skill_may_become_a_link(tmp_path: Path) -> None:
    write(tmp_path, {'outside/skill/a.txt': SECRET})
    write_skill(tmp_path / 'root/group/skill', files={'a.txt': 'inside'})
    folder = SkillFolder(str(tmp_path / 'root'), str(tmp_path / 'root/group/skill'))
    assert folder.read('a.txt') == 'inside'
    (tmp_path / 'root/group').rename(tmp_path / 'moved')
    (tmp_path / 'root/group').symlink_to(tmp_path / 'outside')
    assert refusal(folder, 'a.txt') == "'a.txt' cannot be opened: not a directory."


def test_without_descriptors_a_file_that_is_replaced_while_it_is_opened_is_refused(
    skill: SkillFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('pydantic_ai_skills.filesystem.safe_open.WALKS_DESCRIPTORS', False)
    really_open = os.open

    def replace_and_open(path: str, flags: int) -> int:
        os.replace(Path(skill.path, 'deep/er/b.txt'), path)
        return really_open(path, flags)

    monkeypatch.setattr(os, 'open', replace_and_open)
    assert refusal(skill, 'a.txt') == "'a.txt' cannot be opened: it was replaced just now."


# --- Kinds and limits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('name', 'data', 'value'),
    [
        ('a.md', '# Ä\r\n'.encode(), '# Ä\r\n'),
        ('empty.txt', b'', ''),
        ('latin.txt', b'caf\xe9', 'caf\ufffd'),
        ('late.txt', b'x' * 1024 + b'\0', 'x' * 1024 + '\0'),
        ('a.yaml', b'a: 1.10 # text', 'a: 1.10 # text'),
        ('a.PNG', b'\x89PNG', BinaryContent(data=b'\x89PNG', media_type='image/png')),
        ('a.pdf', b'%PDF', BinaryContent(data=b'%PDF', media_type='application/pdf')),
    ],
)
def test_a_file_is_read_as_the_model_takes_it(tmp_path: Path, name: str, data: bytes, value: Any) -> None:
    write(tmp_path, {name: data})
    settle()
    assert SkillFolder(str(tmp_path)).read(name) == value


def test_binary_of_a_kind_models_do_not_take_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {'a.bin': b'a\0b'})
    message = "'a.bin' is binary. Models take text and the types .gif, .jpeg, .jpg, .pdf, .png, .webp."
    assert refusal(SkillFolder(str(tmp_path)), 'a.bin') == message


@pytest.fixture
def special(tmp_path: Path) -> Iterator[Path]:
    """A folder with files that are none."""
    os.mkfifo(tmp_path / 'fifo')
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / 'socket'))
        yield tmp_path


@pytest.mark.usefixtures('walks_descriptors')
@pytest.mark.parametrize(
    ('name', 'why'),
    [('fifo', 'is not a regular file.'), ('socket', 'cannot be opened: no such device or address.')],
)
def test_special_files_are_refused_at_once(special: Path, name: str, why: str) -> None:
    start = time.perf_counter()
    assert refusal(SkillFolder(str(special)), name) == f'{name!r} {why}'
    assert time.perf_counter() - start < 5


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    write(tmp_path, {'a.txt': 'x' * 100_000, 'b.txt': 'x' * 100_001})
    folder = SkillFolder(str(tmp_path))
    assert len(folder.read_bytes('a.txt', 100_000)) == 100_000
    with pytest.raises(SkillResourceLoadError, match=r"'b\.txt' is larger than 100,000 bytes\."):
        folder.read_bytes('b.txt', 100_000)


# --- While somebody writes ----------------------------------------------------------------------------------------


def at_first_read(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    """Do something while the first file is being read."""
    really_read, waiting = os.read, [work]

    def read(descriptor: int, count: int) -> bytes:
        if waiting:
            waiting.pop()()
        return really_read(descriptor, count)

    monkeypatch.setattr(os, 'read', read)


def test_the_beginning_of_a_file_is_read_on_file_systems_that_report_no_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {'a.txt': 'content'})
    really_fstat = os.fstat
    monkeypatch.setattr(os, 'fstat', lambda descriptor: without_size(really_fstat(descriptor)))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with OpenFolder.beneath(str(tmp_path)) as opened:
        assert opened.head('a.txt', 4)[1] == b'cont'


def without_size(status: os.stat_result) -> os.stat_result:
    return os.stat_result([0 if index == stat.ST_SIZE else value for index, value in enumerate(status)])


def test_a_file_that_grows_over_the_limit_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {'a.txt': 'x' * 100})
    at_first_read(monkeypatch, lambda: write(tmp_path, {'a.txt': 'x' * 101}))
    with pytest.raises(SkillResourceLoadError, match='larger than 100 bytes'):
        SkillFolder(str(tmp_path)).read_bytes('a.txt', 100)


@pytest.mark.parametrize('text', ['new and longer', 'new', 'old but new'])
def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    write(tmp_path, {'a.txt': 'old and old'})
    settle()
    at_first_read(monkeypatch, lambda: write(tmp_path, {'a.txt': text}))
    assert SkillFolder(str(tmp_path)).read('a.txt') == text


def test_a_file_that_is_still_empty_is_waited_for(tmp_path: Path) -> None:
    write(tmp_path, {'a.txt': ''})
    with at_first_wait(lambda: write(tmp_path, {'a.txt': 'written'})):
        assert SkillFolder(str(tmp_path)).read('a.txt') == 'written'


def test_a_file_that_never_rests_is_read_as_it_is_after_a_while(tmp_path: Path) -> None:
    stop = threading.Event()

    def grow() -> None:
        with (tmp_path / 'a.log').open('a', buffering=1) as log:
            while not stop.wait(0.001):
                log.write('line\n')

    writer = threading.Thread(target=grow)
    writer.start()
    while not (tmp_path / 'a.log').exists() or (tmp_path / 'a.log').stat().st_size < 10:
        time.sleep(0.001)
    start = time.perf_counter()
    data = SkillFolder(str(tmp_path)).read_bytes('a.log', quiet=True)
    stop.set()
    writer.join()
    assert data.startswith(b'line\nline\n')
    assert 0.2 < time.perf_counter() - start < 20


@pytest.mark.parametrize('half', ['', '---\nname: s', skill_md('s', 'New.', 'Half')], ids=['empty', 'head', 'body'])
def test_instructions_are_never_half_written(tmp_path: Path, half: str) -> None:
    write_skill(tmp_path / 's', 'Old.', 'Old body.')
    directory = SkillsDirectory(tmp_path)
    skill = directory.get_skills()['s']
    write(tmp_path / 's', {'SKILL.md': half})
    with at_first_wait(lambda: write_skill(tmp_path / 's', 'New.', 'Half and half.')):
        assert skill.content == 'Half and half.'
    # Reading the instructions leaves the header alone; the next look reads both.
    assert skill.description == 'Old.'
    assert directory.get_skills()['s'].description == 'New.'


def test_instructions_are_waited_for_while_an_editor_replaces_the_file(tmp_path: Path) -> None:
    path = write_skill(tmp_path / 's') / 'SKILL.md'
    skill = SkillsDirectory(tmp_path).get_skills()['s']
    path.rename(tmp_path / 's/backup.md')
    with at_first_wait(lambda: write_skill(tmp_path / 's', body='New body.')):
        assert skill.content == 'New body.'


def test_instructions_that_are_gone_are_reported(tmp_path: Path) -> None:
    path = write_skill(tmp_path / 's') / 'SKILL.md'
    skill = SkillsDirectory(tmp_path).get_skills()['s']
    path.unlink()
    with pytest.raises(SkillResourceLoadError, match=r"'SKILL\.md' does not exist\."):
        _ = skill.content


# --- Files that a developer names ---------------------------------------------------------------------------------


async def test_a_resource_can_be_any_local_file(tmp_path: Path) -> None:
    path = write(tmp_path, {'a file.txt': 'text'}) / 'a file.txt'
    for uri in (str(path), path.as_uri(), path.as_uri().replace('file', 'FILE', 1)):
        assert await SkillResource('a', uri=uri).read(None) == 'text'


async def test_a_resource_that_is_missing_is_named_without_its_folder(tmp_path: Path) -> None:
    with pytest.raises(SkillResourceLoadError, match=r"^'a\.txt' does not exist\.$"):
        await SkillResource('a', uri=str(tmp_path / 'a.txt')).read(None)


@pytest.mark.parametrize('uri', ['https://example.com/a.txt', 's3://bucket/a.txt'])
def test_only_local_files_are_read(uri: str) -> None:
    with pytest.raises(SkillResourceLoadError, match='is not a local file'):
        local_path(uri)


def test_an_error_of_the_system_without_words_is_named(skill: SkillFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> int:
        raise OSError

    monkeypatch.setattr(os, 'open', fail)
    assert refusal(skill, 'a.txt') == "'a.txt' cannot be opened: oserror."


@pytest.mark.parametrize('kind', ['device', 'FIFO', 'large', 'link'])
def test_what_is_not_a_regular_file_of_the_right_size_is_not_read(tmp_path: Path, kind: str):
    file = tmp_path / 'file'
    if kind == 'FIFO':
        os.mkfifo(file)
    elif kind == 'large':
        file.write_bytes(b'x' * 11)
    else:
        file.symlink_to('/dev/zero' if kind == 'device' else write(tmp_path, {'small': 'x'}) / 'small')
    with pytest.raises(OSError, match='not a regular file|larger than 10 bytes|symbolic links'):
        read_regular(file, 10, follow_links=kind == 'device')
    (tmp_path / 'small').write_text('1234567890')
    assert read_regular(tmp_path / 'small', 10) == b'1234567890'


@pytest.mark.usefixtures('walks_descriptors')
def test_where_a_link_leads_is_told_without_going_there(tmp_path: Path) -> None:
    (tmp_path / 'link').symlink_to('nowhere')
    with OpenFolder.beneath(str(tmp_path)) as folder:
        assert folder.link_target('link') == 'nowhere'

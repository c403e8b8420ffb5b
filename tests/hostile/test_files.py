"""Files of strangers: HOSTILE cases 9 to 14."""

from __future__ import annotations

import json
import os
import random
import socket
import stat
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from pydantic_ai_skills import SkillResource, SkillScript, SkillsDirectory, SkillsToolset
from pydantic_ai_skills.execution import CallableSkillScriptExecutor
from tests.folders import call_tool, write, write_skill

from .conftest import Scoreboard, Stopwatch

SECRET = 'the-secret-outside'


def as_text(result: Any) -> str:
    return repr(getattr(result, 'return_value', result))


# --- 9: names -----------------------------------------------------------------------------------------------------


def fuzzed_names(outside: Path, count: int) -> Iterator[str]:
    """Names that a model could be talked into: paths out of the skill in many spellings."""
    rng = random.Random(9)
    pieces = [
        *('..', '.', '/', '//', '\\', '../', '..\\', '%2e%2e/', '%2e%2e%2f', '..%c0%af', '..;/', '.../', '~', '~root'),
        *(
            'secret',
            'secret.txt',
            'secret.py',
            'a',
            'a.md',
            'references',
            'scripts',
            'run.py',
            'run',
            'SKILL.md',
            'skill',
        ),
        *('linked', 'link.md', 'link.py', str(outside), str(outside / 'secret.txt'), f'file://{outside}/secret.txt'),
        *(
            '/etc/passwd',
            '/proc/self/environ',
            '/dev/stdin',
            'C:\\',
            '\\\\server\\share',
            'file:',
            'skill://s/',
            '$HOME',
        ),
        *(
            '\0',
            '\n',
            '\r',
            ' ',
            '\t',
            '*',
            '?',
            '[a-z]',
            '{a,b}',
            '\ud800',
            '\udcff',
            '\u202e',
            '\u2215',
            '\uff0e',
            'é',
        ),
        *('x' * 5_000, '-', '--help', ';cat secret', '$(cat secret)', '`cat secret`', '|', '&', '"', "'"),
    ]
    for _ in range(count):
        yield ''.join(rng.choice(pieces) for _ in range(rng.randint(1, 6)))


async def test_09_no_name_leads_out_of_the_skill(tmp_path: Path, scoreboard: Scoreboard) -> None:
    outside = write(tmp_path / 'outside', {'secret.txt': SECRET, 'secret.py': f'print({SECRET!r})', 'secret': SECRET})
    root = tmp_path / 'skills'
    files = {'a.md': 'a', 'references/a.md': 'b', 'run.py': 'pass', 'scripts/run.py': 'pass'}
    folder = write_skill(root / 's', files=files)
    (folder / 'link.md').symlink_to(outside / 'secret.txt')
    (folder / 'link.py').symlink_to(outside / 'secret.py')
    (folder / 'linked').symlink_to(outside)
    write(root, {'secret.txt': SECRET})
    ran: list[str] = []

    def run(script: SkillScript, args: object) -> str:
        assert script.path is not None
        ran.append(script.path.read_text())
        return ran[-1]

    directory = SkillsDirectory(root, script_executor=CallableSkillScriptExecutor(run))
    toolset = SkillsToolset[None](directories=[directory])
    await toolset.load()
    read = 0
    for name in fuzzed_names(outside, 3_000):
        for tool, key in (('read_skill_resource', 'resource_name'), ('run_skill_script', 'script_name')):
            ok, result = await call_tool(toolset, tool, skill_name='s', **{key: name})
            # A failure may say the name that was asked for, which names the secret's file but is not what it holds.
            assert SECRET not in as_text(result).replace(str(outside), '')
            read += ok
    assert set(ran) == {'pass'}
    assert read > 10
    scoreboard.record(9, 'names fuzzed, bytes from outside', '6,000 calls, 0', '3,000, 0')


# --- 10: links ----------------------------------------------------------------------------------------------------


def make_links(root: Path, outside: Path) -> None:
    """Every kind of link out of a skill, and out of the directory."""
    skill = write_skill(root / 's', files={'a.md': 'a', 'deep/b.md': 'b'})
    targets: dict[str, str | Path] = {
        'absolute.md': outside / 'secret.txt',
        'relative.md': '../../outside/secret.txt',
        'through.md': 'deep/../../../outside/secret.txt',
        'through-self.md': f'../../{root.name}/s/../../outside/secret.txt',
        'chain-1.md': 'chain-2.md',
        'chain-2.md': 'chain-3.md',
        'chain-3.md': outside / 'secret.txt',
        'folder': outside,
        'folder-up': '..',
        'root': '/',
        'deep/link.md': outside / 'secret.txt',
        'deep/folder': outside,
        'through-folder.md': 'folder/secret.txt',
        'scripts': outside,
        'run.py': outside / 'secret.py',
        'proc': '/proc/self/cwd',
        'loop': 'loop',
    }
    for name, target in targets.items():
        (skill / name).symlink_to(target)
    (root / 'linked-file').mkdir()
    (root / 'linked-file/SKILL.md').symlink_to(outside / 'skill/SKILL.md')
    (root / 'chained-file').mkdir()
    (root / 'chained-file/SKILL.md').symlink_to('../linked-file/SKILL.md')
    (root / 'linked-folder').symlink_to(outside / 'skill')
    (root / 'linked-link').symlink_to('linked-folder')


async def everything_sent(toolset: SkillsToolset[None], names: list[str]) -> str:
    """All that a model can get out of a toolset by these names of files."""
    await toolset.load()
    sent = [str(problem) for problem in toolset.problems]
    for name in toolset.skills:
        calls: list[tuple[str, dict[str, str]]] = [('load_skill', {})]
        calls += [('read_skill_resource', {'resource_name': item}) for item in names]
        calls += [('run_skill_script', {'script_name': item}) for item in names]
        for tool, args in calls:
            sent.append(as_text(await call_tool(toolset, tool, skill_name=name, **args)))
    return '\n'.join(sent)


@pytest.mark.parametrize('walks_descriptors', [True, False])
async def test_10_links_lead_nowhere(
    tmp_path: Path, scoreboard: Scoreboard, monkeypatch: pytest.MonkeyPatch, walks_descriptors: bool
) -> None:
    monkeypatch.setattr('pydantic_ai_skills.filesystem.safe_open.WALKS_DESCRIPTORS', walks_descriptors)
    outside = write(tmp_path / 'outside', {'secret.txt': SECRET, 'secret.py': f'print("{SECRET}")'})
    write_skill(outside / 'skill', f'Description {SECRET}.', f'Body {SECRET}.', {'a.md': SECRET})
    root = tmp_path / 'skills'
    make_links(root, outside)
    names = [os.path.relpath(path, root / 's') for path in (root / 's').rglob('*')]
    names += ['folder/secret.txt', 'folder-up/s/a.md', 'root/etc/passwd', 'deep/folder/secret.txt', 'scripts/secret.py']
    toolset = SkillsToolset[None](directories=[root], auto_reload=True)
    sent = await everything_sent(toolset, names)
    assert list(toolset.skills) == ['s']
    assert SECRET not in sent
    assert 'root:x:' not in sent
    followed = SkillsToolset[None](directories=[SkillsDirectory(root, follow_links=True)], auto_reload=True)
    await followed.load()
    assert sorted(followed.skills) == ['s', 'skill']
    resources = await to_thread.run_sync(lambda: followed.get_skill('s').resources)
    assert [resource.name for resource in resources] == ['a.md', 'deep/b.md']
    how = 'descriptors' if walks_descriptors else 'paths'
    scoreboard.record(10, f'links out of a skill, by {how}', '0 bytes from outside', '0')


# --- 11: a race ---------------------------------------------------------------------------------------------------

SWAPPER = """
import os, sys
folder, outside = sys.argv[1:]
os.chdir(folder)
os.symlink(outside + '/f', 'f.link')
os.symlink(outside, 'd.link')
while True:
    os.rename('f', 'f.file'); os.rename('f.link', 'f')
    os.rename('f', 'f.link'); os.rename('f.file', 'f')
    os.rename('d', 'd.folder'); os.rename('d.link', 'd')
    os.rename('d', 'd.link'); os.rename('d.folder', 'd')
    os.replace('g.file', 'g'); os.symlink(outside + '/f', 'g.link'); os.replace('g.link', 'g')
    open('g.file', 'w').write('inside')
"""


READER = """
import json, sys, time
from pydantic_ai_skills.exceptions import SkillResourceLoadError
from pydantic_ai_skills.filesystem.safe_open import SkillFolder
root, secret, seconds = sys.argv[1:]
skill = SkillFolder(root, f'{root}/skills/s')
seen = {'inside': 0, 'refused': 0, 'escaped': 0}
start = time.monotonic()
# On a machine with much else to do, for as long as it takes to have seen enough of both states.
def enough():
    return sum(seen.values()) >= 25_000 and min(seen['inside'], seen['refused']) > 1_000

while (took := time.monotonic() - start) < float(seconds) or (not enough() and took < 300):
    for name in ('f', 'd/f', 'g'):
        try:
            text = skill.read(name)
        except SkillResourceLoadError:
            seen['refused'] += 1
        else:
            seen['escaped' if secret in text else 'inside'] += 1
print(json.dumps(seen | {'seconds': took}))
"""


def test_11_a_file_that_is_swapped_for_a_link_never_escapes(tmp_path: Path, scoreboard: Scoreboard) -> None:
    outside = write(tmp_path / 'outside', {'f': SECRET})
    inside = ('f', 'g', 'g.file', 'd/f')
    skill = write_skill(tmp_path / 'skills/s', files=dict.fromkeys(inside, 'inside'))
    swapper = subprocess.Popen([sys.executable, '-c', SWAPPER, skill, outside])
    try:
        # Processes of their own, so that they read while the other one swaps and nothing slows them down.
        command = [sys.executable, '-c', READER, tmp_path, SECRET, '4']
        readers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
        seen = [json.loads(reader.communicate()[0]) for reader in readers]
        assert swapper.poll() is None, 'the swapping process failed'
    finally:
        swapper.kill()
        swapper.wait()
    inside_count, refused, escaped, seconds = (
        sum(each[key] for each in seen) for key in ('inside', 'refused', 'escaped', 'seconds')
    )
    reads = inside_count + refused + escaped
    scoreboard.record(11, f'reads in {seconds / 2:.0f} s, escapes', f'{reads:,}, {escaped}', '≥ 50,000, 0')
    assert escaped == 0
    assert reads >= 50_000
    assert inside_count > 1_000
    assert refused > 1_000


# --- 12: files that are none --------------------------------------------------------------------------------------


def make_device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        path.symlink_to('/dev/zero')


def make_sparse(path: Path) -> None:
    with path.open('wb') as file:
        file.truncate(1 << 30)


def make_socket(path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.relpath(path))
    listener.close()


SPECIAL: dict[str, Callable[[Path], None]] = {
    'FIFO': os.mkfifo,
    'device': make_device,
    'link to a device': lambda path: path.symlink_to('/dev/zero'),
    'socket': make_socket,
    '1 GB sparse': make_sparse,
    'folder': Path.mkdir,
}


@pytest.mark.alone
@pytest.mark.parametrize('kind', SPECIAL)
async def test_12_special_files_are_refused_at_once(tmp_path: Path, scoreboard: Scoreboard, kind: str) -> None:
    folder = write_skill(tmp_path / 's', files={'swapped.txt': 'text', 'good.md': 'good', 'scripts/run.py': 'print()'})
    SPECIAL[kind](folder / 'special.txt')
    toolset = SkillsToolset[None](directories=[tmp_path])
    await toolset.load()
    assert [resource.name for resource in toolset.get_skill('s').resources] == ['good.md', 'swapped.txt']
    (folder / 'swapped.txt').unlink()
    SPECIAL[kind](folder / 'swapped.txt')
    watches = {name: Stopwatch(limit=0.010) for name in ('special.txt', 'swapped.txt')}
    for name, watch in watches.items():
        for _ in watch:
            with watch:
                ok, result = await call_tool(toolset, 'read_skill_resource', skill_name='s', resource_name=name)
            assert not ok
            assert name in result
    tracemalloc.start()
    await call_tool(toolset, 'read_skill_resource', skill_name='s', resource_name='swapped.txt')
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    took = max(watch.best for watch in watches.values())
    scoreboard.record(12, f'{kind}, also swapped in', f'{took * 1000:.1f} ms, {peak / 1e6:.1f} MB', '10 ms, 20 MB')
    assert took <= 0.010
    assert peak <= 20e6


# --- 13: bombs ----------------------------------------------------------------------------------------------------

ALIASES = '\n'.join(['a0: &a0 [x, x]', *(f'a{i}: &a{i} [*a{i - 1}, *a{i - 1}]' for i in range(1, 40))])
MERGES = '\n'.join(['a0: &a0 {x: y}', *(f'a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}' for i in range(1, 40))])
SIZE = 8 * 1024 * 1024 - 1024

BOMBS: dict[str, str] = {
    'aliases.yaml': ALIASES,
    'merge keys.yaml': MERGES,
    'anchors.yaml': ''.join(f'- &a{i} x\n' for i in range(4_000)),
    'one anchor.yaml': '- &a x\n' * 8_000,
    'deep lists.yaml': '[' * 65_000,
    'deep closed lists.yaml': '[' * 32_000 + ']' * 32_000,
    'deep mappings.yaml': '{a: ' * 16_000,
    'deep block.yaml': '- ' * 32_000,
    'deep keys.yaml': '? ' * 32_000,
    'deep indents.yaml': ''.join(f'{" " * i}a:\n' for i in range(350)),
    'many items.yaml': '- a\n' * 16_000,
    'many empty lists.yaml': f'[{"[]," * 21_000}]',
    'many keys.yaml': ''.join(f'{i}: \n' for i in range(8_000)),
    'keys that collide.yaml': ''.join(f'{i * (2**61 - 1)}: \n' for i in range(1, 2_700)),
    'many documents.yaml': '---\n' * 16_000,
    'number in base 60.yaml': f'a: {":".join(["59"] * 20_000)}',
    'fraction in base 60.yaml': f'a: {":".join(["59"] * 20_000)}.0',
    'long number.yaml': '9' * 65_000,
    'tags.yaml': '- !!python/object/apply:os.getcwd []\n' * 1_000,
    'large.yaml': 'a: b\n' * (SIZE // 5),
    'one long line.yaml': 'x' * SIZE,
    'deep lists.json': '[' * 100_000 + ']' * 100_000,
    'deep mappings.json': '{"a":' * 100_000 + '1' + '}' * 100_000,
    'long number.json': '9' * 1_000_000,
    'many long numbers.json': f'[{",".join(["9" * 4_400] * 50)}]',
    'large.json': f'[{"{}," * (SIZE // 3)}0]',
    'surrogates.json': f'"{chr(92)}ud800"',
}
COSTLY: dict[str, str] = {
    'just small enough.json': f'[{"{}," * 87_000}0]',
    'many keys, small enough.json': '{' + ','.join(f'"{i}":[]' for i in range(22_000)) + '}',
    'many numbers.json': f'[{"1e9," * 65_000}0]',
    'just small enough.yaml': '- 2001-01-01\n' * 1_490,
    'keys that collide, small enough.yaml': ''.join(f'{i * (2**61 - 1)}: \n' for i in range(1, 740)),
    'one scalar.yaml': f'a: "{chr(92) + "x41"}{chr(92) * 60_000}"',
    'one block.yaml': 'a: |\n' + ' b\n' * 20_000,
    'comments.yaml': '#\n' * 32_000 + 'a: b',
}


async def timed_load(resource: SkillResource) -> tuple[float, Any]:
    watch, value = Stopwatch(limit=0.050, clock=time.process_time), None
    for _ in watch:
        with watch:
            value = await resource.load(None)
    return watch.best, value


async def test_13_bombs_are_read_as_text(tmp_path: Path, scoreboard: Scoreboard) -> None:
    write_skill(tmp_path / 's', files={**BOMBS, **COSTLY})
    toolset = SkillsToolset[None](directories=[tmp_path])
    await toolset.load()
    resources = {resource.name: resource for resource in toolset.get_skill('s').resources}
    assert resources.keys() == {*BOMBS, *COSTLY}
    times: dict[str, float] = {}
    for name, resource in resources.items():
        times[name], value = await timed_load(resource)
        assert name in COSTLY or value == BOMBS[name], name
    slowest = max(times, key=times.__getitem__)
    what = f'{len(BOMBS)} bombs as text, slowest: {slowest}'
    scoreboard.record(13, what, f'{times[slowest] * 1000:.0f} ms', '50 ms')
    assert {name: took for name, took in times.items() if took > 0.050} == {}


# --- 14: large folders --------------------------------------------------------------------------------------------


@pytest.fixture
def deep_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that is 1,500 deep, taken away again because pytest cannot."""
    paths = [str(tmp_path / 'skills/s')]
    write_skill(Path(paths[0]), files={'a.md': 'a'})
    for _ in range(1_500):
        paths.append(f'{paths[-1]}/d')
        os.mkdir(paths[-1])
    yield tmp_path / 'skills'
    for path in reversed(paths[1:]):
        os.rmdir(path)


async def test_14_a_folder_1500_deep_is_bounded_and_reported(deep_folder: Path, scoreboard: Scoreboard) -> None:
    skill_found, none_found = (Stopwatch(limit=1, clock=time.process_time) for _ in range(2))
    for _ in skill_found:
        with skill_found:
            toolset = SkillsToolset[None](directories=[deep_folder], max_depth=None)
            await toolset.load()
            skill = toolset.get_skill('s')
        assert [resource.name for resource in skill.resources] == ['a.md']
        assert [problem.code for problem in toolset.problems] == ['folder-too-deep']
    (deep_folder / 's/SKILL.md').unlink()
    for _ in none_found:
        with none_found:
            directory = SkillsDirectory(deep_folder, max_depth=None)
            found = await to_thread.run_sync(directory.find)
        assert found.skills == ()
        assert [problem.code for problem in found.problems] == ['too-many-folders']
    took = max(skill_found.best, none_found.best)
    scoreboard.record(14, 'folder 1,500 deep, reported', f'{took * 1000:.0f} ms', 'bounded')
    assert took < 1


async def test_14_a_folder_of_100000_files_is_bounded_and_reported(tmp_path: Path, scoreboard: Scoreboard) -> None:
    folder = write_skill(tmp_path / 's', files={'a.md': 'a'})
    for number in range(100_000):
        os.mknod(f'{folder}/f{number}')
    toolset = SkillsToolset[None](directories=[tmp_path])
    skill_found, none_found = (Stopwatch(limit=2, clock=time.process_time) for _ in range(2))
    for _ in skill_found:
        with skill_found:
            toolset = SkillsToolset[None](directories=[tmp_path])
            await toolset.load()
            skill = toolset.get_skill('s')
        assert len(skill.resources) == 1_000
        assert [problem.code for problem in toolset.problems] == ['too-many-files']
    ok, text = await call_tool(toolset, 'load_skill', skill_name='s')
    assert ok
    assert len(text) < 20_000
    assert '1000 files, such as a.md' in text
    (folder / 'SKILL.md').unlink()
    write_skill(tmp_path / 't')
    for _ in none_found:
        with none_found:
            directory = SkillsDirectory(tmp_path)
            assert list(await to_thread.run_sync(directory.get_skills)) == ['t']
    took = max(skill_found.best, none_found.best)
    scoreboard.record(14, '100,000 files, 1,000 offered and reported', f'{took * 1000:.0f} ms', 'bounded')
    assert took < 2

"""Which program runs a script."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution import interpreters
from pydantic_ai_skills.execution.interpreters import INTERPRETERS, SCRIPT_NAME, read_script_head
from pydantic_ai_skills.types import SkillScript


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A `PATH` with one program of each name, and nothing else."""
    folder = tmp_path / 'bin'
    folder.mkdir()
    for name in {candidate[0] for candidates in INTERPRETERS.values() for candidate in candidates} | {'uv'}:
        (folder / name).write_text('')
        (folder / name).chmod(0o755)
    return folder


def script(tmp_path: Path, name: str, first_line: str = '', *, mode: int = 0o644) -> Path:
    path = tmp_path / name
    path.write_text(f'{first_line}\nrest')
    path.chmod(mode)
    return path


def find_interpreter(path: Path, *, python: str | None, search_path: str | None, anywhere: bool = True) -> list[str]:
    head = read_script_head(SkillScript(path.name, uri=str(path)))
    return interpreters.find_interpreter(head, python=python, search_path=search_path, anywhere=anywhere)


@pytest.mark.parametrize(
    ('name', 'first_line', 'command'),
    [
        ('a.sh', '', ['bash']),
        ('a.SH', '', ['bash']),
        ('a.bash', '', ['bash']),
        ('a.zsh', '', ['zsh']),
        ('a.js', '', ['node']),
        ('a.mjs', '', ['node']),
        ('a.cjs', '', ['node']),
        ('a.ts', '', ['tsx']),
        ('a.rb', '', ['ruby']),
        ('a.pl', '', ['perl']),
        ('a.ps1', '', ['pwsh', '-NoLogo', '-NoProfile', '-NonInteractive', '-File']),
        ('a.R', '', ['Rscript']),
        ('a', '#!/usr/bin/env node', ['node']),
        ('a', '#! /usr/bin/env  ruby -w', ['ruby', '-w']),
        ('a', '#!/usr/bin/env -S uv run --script', ['uv', 'run', '--script']),
        ('a', '#!/usr/bin/env --split-string deno run', ['deno', 'run']),
        ('a', '#!/nowhere/perl -T\r', ['perl', '-T']),
        ('a', '#!/not/here/zsh', ['zsh']),
        ('a', "#!/nowhere/ruby -e it's", ['ruby', '-e', "it's"]),
        ('a.sh', '#!/usr/bin/env node', ['node']),
        ('a.js', '#', ['node']),
        ('a.js', '#!', ['node']),
        ('a.py', '#!/nowhere/bash', ['bash']),
    ],
)
def test_the_shebang_decides_then_the_suffix(
    tmp_path: Path, programs: Path, name: str, first_line: str, command: list[str]
) -> None:
    path = script(tmp_path, name, first_line)
    found = find_interpreter(path, python=None, search_path=str(programs))
    assert found == [str(programs / command[0]), *command[1:]]


@pytest.mark.parametrize(
    ('name', 'first_line', 'arguments'),
    [
        ('a.py', '', []),
        ('a', '#!/usr/bin/env python', []),
        ('a', '#!/usr/bin/env python3.12 -u', ['-u']),
        ('a', '#!/usr/bin/python3', []),
    ],
)
def test_python_scripts_run_on_the_python_of_the_application_or_the_one_that_was_set(
    tmp_path: Path, programs: Path, name: str, first_line: str, arguments: list[str]
) -> None:
    path = script(tmp_path, name, first_line)
    assert find_interpreter(path, python=None, search_path=str(programs)) == [sys.executable, *arguments]
    chosen = str(programs / 'python3')
    assert find_interpreter(path, python='python3', search_path=str(programs)) == [chosen, *arguments]


def test_a_python_at_a_place_of_its_own_is_that_python(tmp_path: Path, programs: Path) -> None:
    path = script(tmp_path, 'a.py', f'#!{programs}/python3')
    assert find_interpreter(path, python=None, search_path='') == [str(programs / 'python3')]


def test_a_program_may_have_to_be_the_one_on_the_path(tmp_path: Path, programs: Path) -> None:
    own = tmp_path / 'own' / 'node'
    own.parent.mkdir()
    own.touch(0o755)
    path = script(tmp_path, 'a', f'#!{own}')
    search = str(programs)
    assert find_interpreter(path, python=None, search_path=search) == [str(own)]
    assert find_interpreter(path, python=None, search_path=search, anywhere=False) == [str(programs / 'node')]
    system = script(tmp_path, 'b', '#!/bin/sh')
    assert find_interpreter(system, python=None, search_path=search, anywhere=False) == ['/bin/sh']


def test_an_executable_file_is_its_own_program(tmp_path: Path) -> None:
    path = tmp_path / 'tool'
    path.write_bytes(b'\x7fELF\0')
    path.chmod(0o755)
    assert find_interpreter(path, python=None, search_path='') == []
    path.write_bytes(b'echo no shebang')
    assert find_interpreter(path, python=None, search_path='/bin') == ['/bin/sh']
    path.write_bytes(b'neither text\0nor a program')
    with pytest.raises(SkillScriptExecutionError, match="There is no way to run 'tool'"):
        find_interpreter(path, python=None, search_path='/bin')


@pytest.mark.parametrize(
    ('name', 'first_line', 'message'),
    [
        ('a.rb', '', "'a.rb' needs 'ruby', which is not installed here or not on the PATH."),
        ('a.sh', '', "'a.sh' needs 'bash' or 'sh', which is not"),
        ('a.ts', '', "'a.ts' needs 'tsx' or 'bun' or 'deno' or 'node', which is not"),
        ('a', '#!/usr/bin/env julia', "'a' needs 'julia', which is not"),
        ('a', '#!/opt/no/such', "'a' needs 'such', which is not"),
        ('a', '#!/usr/bin/env', "calls env with '', which is not supported"),
        ('a', '#!/usr/bin/env -i sh', "calls env with '-i sh', which is not supported"),
        ('a', '#!/usr/bin/env A=1 sh', "calls env with 'A=1 sh', which is not supported"),
        (
            'a.txt',
            '',
            "There is no way to run 'a.txt': it has no shebang line and no known suffix, and is not a program.",
        ),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, name: str, first_line: str, message: str) -> None:
    with pytest.raises(SkillScriptExecutionError) as caught:
        find_interpreter(script(tmp_path, name, first_line), python=None, search_path='/none')
    assert message in str(caught.value)


def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        SkillScriptExecutionError, match="The Python '/no/python' does not exist. Set `python_executable`"
    ):
        find_interpreter(script(tmp_path, 'a.py'), python='/no/python', search_path='')


def test_a_script_that_is_gone_or_not_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SkillScriptExecutionError, match=r"'gone.py' cannot be read: no such file"):
        find_interpreter(tmp_path / 'gone.py', python=None, search_path='')
    os.mkfifo(tmp_path / 'pipe.py')
    with pytest.raises(SkillScriptExecutionError, match=r"'pipe.py' is not a regular file"):
        find_interpreter(tmp_path / 'pipe.py', python=None, search_path='')


def test_every_suffix_is_lower_case() -> None:
    assert all(suffix == suffix.lower() and suffix.startswith('.') for suffix in INTERPRETERS)


@pytest.mark.parametrize(
    ('name', 'can_be_started'),
    [
        *((f'scripts/a{suffix}', True) for suffix in INTERPRETERS),
        ('A.PY', True),
        ('a.d.py', True),
        ('d.ts', True),
        ('a\n.sh', True),
        ('types.d.ts', False),
        ('src/Types.D.mts', False),
        ('a.py.txt', False),
        ('a.py\n', False),
        ('a.ſh', False),
        ('scripts/.py', False),
        ('.py', False),
        ('py', False),
        ('a.pyc', False),
    ],
)
def test_a_name_tells_that_a_file_can_be_started_by_its_suffix(name: str, can_be_started: bool) -> None:
    assert bool(SCRIPT_NAME.match(name)) is can_be_started


INLINE = """
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "requests>=2",
#   "rich",
# ]
# ///
import rich
"""


@pytest.mark.parametrize('first_line', ['', '#!/usr/bin/env python3'])
def test_a_python_script_with_inline_dependencies_is_run_by_uv(tmp_path: Path, programs: Path, first_line: str) -> None:
    path = script(tmp_path, 'a.py', first_line + INLINE)
    uv = str(programs / 'uv')
    search = str(programs)
    assert find_interpreter(path, python=None, search_path=search) == [uv, 'run', '--quiet', '--script']
    assert find_interpreter(path, python='/my/python', search_path=search) == [
        *(uv, 'run', '--quiet'),
        *('--python', '/my/python', '--script'),
    ]


def test_uv_is_found_beside_the_python_too(tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, 'executable', str(programs / 'python3'))
    path = script(tmp_path, 'a.py', INLINE)
    assert find_interpreter(path, python=None, search_path='/none')[0] == str(programs / 'uv')
    asking = script(tmp_path, 'b.py', '#!/usr/bin/env -S uv run --script')
    assert find_interpreter(asking, python=None, search_path='/none') == [str(programs / 'uv'), 'run', '--script']


@pytest.mark.parametrize(
    ('first_line', 'arguments'),
    [('', []), ('#!/usr/bin/env -S python3 -u', ['-u']), ('#!/usr/bin/env -S uv run --script', [])],
)
def test_without_uv_python_runs_what_declares_dependencies(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch, first_line: str, arguments: list[str]
) -> None:
    monkeypatch.setattr(sys, 'executable', str(programs / 'python3'))
    (programs / 'uv').unlink()
    path = script(tmp_path, 'a.py', first_line + INLINE)
    assert find_interpreter(path, python=None, search_path='/none') == [str(programs / 'python3'), *arguments]
    with pytest.raises(
        SkillScriptExecutionError,
        match=r"'a.py' depends on requests>=2, rich and needs 'uv' to provide it, which is not installed here",
    ):
        find_interpreter(path, python='/no/python', search_path='/none')


@pytest.mark.parametrize(
    'block',
    [
        '# /// script\n# dependencies = []\n# ///',
        '# /// script\n# requires-python = ">=3.11"\n# ///',
        '# /// script\n# dependencies = "rich"\n# ///',
        '# /// script\n# dependencies = [oops\n# ///',
        f'# /// script\n# {"a." * 1000}a = 1\n# dependencies = ["rich"]\n# ///',
        '# /// script\n# a = ' + '[' * 20_000 + '\n# ///',
        '# /// other\n# dependencies = ["rich"]\n# ///',
        'text = "# /// script"',
    ],
)
def test_a_block_that_asks_for_nothing_is_left_to_python(tmp_path: Path, programs: Path, block: str) -> None:
    path = script(tmp_path, 'a.py', block)
    assert find_interpreter(path, python=None, search_path=str(programs)) == [sys.executable]


def test_a_block_may_be_all_there_is(tmp_path: Path, programs: Path) -> None:
    path = tmp_path / 'a.py'
    path.write_text('# /// script\n# dependencies = ["rich"]')
    assert find_interpreter(path, python=None, search_path=str(programs))[0] == str(programs / 'uv')


def test_a_block_ends_where_the_comment_does(tmp_path: Path, programs: Path) -> None:
    path = script(tmp_path, 'a.py', '# /// script\n# dependencies = ["rich"]\nimport rich')
    assert find_interpreter(path, python=None, search_path=str(programs))[0] == str(programs / 'uv')


@pytest.mark.parametrize('first_line', ['#!/usr/bin/env tool', '#!/usr/bin/env -S tool -x', '#!{}/tool'])
def test_a_script_in_a_sandbox_does_not_choose_from_all_programs(
    tmp_path: Path, programs: Path, first_line: str
) -> None:
    (programs / 'tool').touch(mode=0o755)
    path = script(tmp_path, 'a', first_line.format(programs))
    assert find_interpreter(path, python=None, search_path=str(programs))[0] == str(programs / 'tool')
    with pytest.raises(SkillScriptExecutionError, match="'a' needs 'tool', which is not installed here"):
        find_interpreter(path, python=None, search_path=str(programs), anywhere=False)
    other = script(tmp_path, 'b', f'#!{programs}/python3')
    assert find_interpreter(other, python=None, search_path=str(programs), anywhere=False) == [sys.executable]

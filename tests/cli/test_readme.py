"""What the README and the home page show at the terminal is what a new user sees who types it in, in this order."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.registries.repositories import Repository

README = Path(__file__).parent.parent.parent / 'README.md'
BLOCK = re.compile(r'^```console\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def matches(expected: str, shown: str) -> bool:
    """Whether a text is what was expected; `…` stands for anything, and blanks at the end of a line for nothing."""
    pattern = '.*?'.join(map(re.escape, expected.strip().split('…')))
    return re.fullmatch(pattern, '\n'.join(map(str.rstrip, shown.strip().splitlines())), re.DOTALL) is not None


def steps(block: str) -> Iterator[tuple[str, str, str]]:
    """The commands in a block, with what is typed into each and what it prints."""
    for step in re.split(r'^\$ ', block, flags=re.MULTILINE)[1:]:
        line, _, expected = step.partition('\n')
        typed = re.findall(r'^> (.*\n)', expected, re.MULTILINE)
        # Nothing shows what is typed here.
        yield line, ''.join(typed), re.sub(r'^> .*\n', '', expected, flags=re.MULTILINE)


def type_in(block: str, cli: Cli, *, status: int = 0) -> None:
    """Do what a block shows: its commands, and what is said to them."""
    for line, typed, expected in steps(block):
        program, *args = shlex.split(line)
        assert program == 'pydantic-ai-skills'
        done = cli(*args, stdin=typed)
        # A terminal shows both streams in one order, which two pipes do not tell.
        said, wrote = done.err.splitlines(keepends=True), done.out
        orders = [''.join([*said[:place], wrote, *said[place:]]) for place in range(len(said) + 1)]
        assert any(matches(expected, shown) for shown in orders), done.err + done.out
        assert done.status == status


@pytest.mark.usefixtures('untrusted')
def test_the_home_page_of_the_documentation_can_be_followed(cli: Cli):
    (block,) = BLOCK.findall((README.parent / 'docs/index.md').read_text('utf-8'))
    type_in(block, cli)


def test_the_readme_can_be_followed(tmp_path: Path):
    """In a shell, with nothing but the command line on the path, an empty home and a repository beside the folder."""
    repository = Repository.create(tmp_path / 'pydantic-ai-skills')
    shutil.copytree(README.parent / 'examples/skills', repository.path / 'examples/skills')
    repository.commit('first')
    (tmp_path / 'app').mkdir()
    path = f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}'
    env = {'PATH': path, 'HOME': str(tmp_path / 'home'), 'LANG': 'C.UTF-8'}
    commands = 0
    for block in BLOCK.findall(README.read_text('utf-8')):
        for line, typed, expected in steps(block):
            done = subprocess.run(
                ['bash', '-c', line],
                cwd=tmp_path / 'app',
                env=env,
                input=typed,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            assert matches(expected, done.stdout), f'{line}\n{done.stdout}'
            assert done.returncode == (1 if 'error [' in expected else 0)
            commands += line.startswith('pydantic-ai-skills ')
    assert commands == 8


def test_the_readme_is_short():
    assert len(README.read_text('utf-8').splitlines()) <= 150

"""What the README and the home page show at the terminal is what a new user sees who types it in, in this order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.folders import skill_md, write
from tests.registries.repositories import Repository

README = Path(__file__).parent.parent.parent / 'README.md'
BLOCK = re.compile(r'^```console\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def matches(expected: str, shown: str) -> bool:
    """Whether a text is what was expected; `…` stands for anything, and blanks at the end of a line for nothing."""
    pattern = '.*?'.join(map(re.escape, expected.strip().split('…')))
    return re.fullmatch(pattern, '\n'.join(map(str.rstrip, shown.strip().splitlines())), re.DOTALL) is not None


def type_in(block: str, cli: Cli, *, status: int = 0) -> None:
    """Do what a block shows: its commands, and what is said to them."""
    for step in re.split(r'^\$ ', block, flags=re.MULTILINE)[1:]:
        line, _, expected = step.partition('\n')
        program, *args = shlex.split(line)
        assert program == 'pydantic-ai-skills'
        typed = re.findall(r'^> (.*\n)', expected, re.MULTILINE)
        expected = re.sub(r'^> .*\n', '', expected, flags=re.MULTILINE)  # nothing shows what is typed here
        done = cli(*args, stdin=''.join(typed))
        # A terminal shows both streams in one order, which two pipes do not tell.
        said, wrote = done.err.splitlines(keepends=True), done.out
        orders = [''.join([*said[:place], wrote, *said[place:]]) for place in range(len(said) + 1)]
        assert any(matches(expected, shown) for shown in orders), done.err + done.out
        assert done.status == status


@pytest.mark.usefixtures('untrusted')
def test_the_home_page_of_the_documentation_can_be_followed(cli: Cli):
    (block,) = BLOCK.findall((README.parent / 'docs/index.md').read_text('utf-8'))
    type_in(block, cli)


def test_the_readme_can_be_followed(cli: Cli, untrusted: Path, site: Path, repository: Repository):
    for name in ('pydantic-ai-skills', 'pydantic-ai-slim', 'typer'):
        skill = f'{name.replace("-", "_")}/.agents/skills/{name}/SKILL.md'
        write(
            site,
            {
                skill: skill_md(name),
                f'{name}-1.dist-info/METADATA': f'Metadata-Version: 2.1\nName: {name}\nVersion: 1\n',
                f'{name}-1.dist-info/RECORD': f'{skill},,\n',
            },
        )
    fill = "import sys\nopen('filled.pdf', 'w').write('%' * 48213)\nprint('filled', sys.argv[-1])\n"
    (repository.path / 'skills/pdf/scripts/fill.py').write_text(fill)
    repository.commit('second')
    repository.git('tag', 'v1.2')
    made, broken, *rest = BLOCK.findall(README.read_text('utf-8'))
    assert len(rest) == 3

    def follow(block: str, *, status: int = 0) -> None:
        type_in(block.replace('https://github.com/acme/skills', str(repository.path)), cli, status=status)

    follow(made)
    file = untrusted / 'skills/greeter/SKILL.md'
    whole = file.read_text()
    file.write_text(re.sub(r'^description: .*\n', '', whole, flags=re.MULTILINE))
    follow(broken, status=1)
    file.write_text(whole)
    for block in rest:
        follow(block)

"""Pages of the documentation can be followed: files are written as they are shown, and commands print what is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_readme import BLOCK, type_in
from tests.folders import skill_md, write
from tests.registries.repositories import Repository

DOCS = Path(__file__).parent.parent.parent / 'docs'
STEP = re.compile(r'^```(?:console|\w+ title="(?P<path>[^"]+)")\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize('page', ['files.md', 'troubleshooting.md', 'tutorial.md'])
def test_a_page_can_be_followed(cli: Cli, untrusted: Path, page: str):
    text = (DOCS / page).read_text('utf-8')
    if '$ pydantic-ai-skills trust\n' not in text:
        cli('trust')
    commands = 0
    for step in STEP.finditer(text):
        if step['path']:
            file = untrusted / step['path']
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(step['text'], 'utf-8')
        else:
            commands += step['text'].count('$ pydantic-ai-skills')
            type_in(step['text'], cli, status=1 if re.search(r'(^|: )error', step['text'], re.MULTILINE) else 0)
    assert commands > 1


@pytest.mark.usefixtures('here')
def test_a_published_skill_can_be_added(cli: Cli, repository: Repository):
    (block,) = BLOCK.findall((DOCS / 'published-skills.md').read_text('utf-8'))
    type_in(block.replace('acme/skills', str(repository.path)), cli)


def test_what_a_skill_needs_is_shown(cli: Cli, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (block,) = BLOCK.findall((DOCS / 'needs.md').read_text('utf-8'))
    write(
        here / 'skills/invoices',
        {
            'SKILL.md': skill_md('invoices'),
            'requirements.txt': 'pypdf>=5\n',
            'scripts/fill.py': 'import pypdf, yaml\nprint(pypdf, yaml)\n',
            'scripts/preview.sh': 'pdftoppm -png "$1" page\n',
            'scripts/send.py': "import os\nprint(os.environ['INVOICES_API_KEY'])\n",
        },
    )
    monkeypatch.setenv('PATH', str(tmp_path))
    (tmp_path / 'bash').symlink_to('/bin/bash')
    monkeypatch.delenv('INVOICES_API_KEY', raising=False)
    type_in(block, cli)

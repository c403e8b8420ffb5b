"""The command line, called in this process for its details; `test_process.py` runs it as people do."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import PackageSkillsRegistry, UserTrust
from pydantic_ai_skills.cli import main
from tests.registries.repositories import Repository


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


class Keyboard(io.StringIO):
    """Standard input as somebody types it."""

    def isatty(self) -> bool:
        return True


Cli = Callable[..., Done]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, which the user trusts, and a home and a cache that are empty too."""
    folder = tmp_path / 'app'
    folder.mkdir()
    (folder / '.git').mkdir()  # nothing above it is looked at
    monkeypatch.chdir(folder)
    monkeypatch.setenv('HOME', str(tmp_path / 'home'))
    monkeypatch.setenv('PYDANTIC_AI_SKILLS_CACHE_DIR', str(tmp_path / 'cache'))
    for name in ('COLUMNS', 'FORCE_COLOR', 'NO_COLOR', 'PYDANTIC_AI_SKILLS_CONFIG_DIR', 'XDG_CONFIG_HOME'):
        monkeypatch.delenv(name, raising=False)
    UserTrust().trust(folder)
    return folder


@pytest.fixture
def untrusted(here: Path) -> Path:
    """The same folder before the user has trusted it."""
    UserTrust().revoke(here)
    return here


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where packages are installed for the command line: nothing is, at first."""
    folder = tmp_path / 'site'
    folder.mkdir()
    monkeypatch.setattr('pydantic_ai_skills.PackageSkillsRegistry', partial(PackageSkillsRegistry, path=[folder]))
    return folder


@pytest.fixture
def cli(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """Calls the command line as its entry point does."""
    logger = logging.getLogger('pydantic_ai_skills')
    handlers, propagate = list(logger.handlers), logger.propagate

    def call(*args: str | Path, stdin: str = '', typed: bool = False) -> Done:
        monkeypatch.setattr(sys, 'argv', ['pydantic-ai-skills', *map(str, args)])
        monkeypatch.setattr(sys, 'stdin', Keyboard(stdin) if typed else io.StringIO(stdin))
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        written = capsys.readouterr()
        return Done(int(stopped.value.code or 0), written.out, written.err)

    yield call
    logger.handlers[:], logger.propagate = handlers, propagate


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository of somebody else, with the skill `pdf`."""
    repository = Repository.create(tmp_path / 'theirs')
    repository.skill(
        'pdf',
        'Fills in forms. Use for PDF files.',
        files={'references/forms.md': '# Forms\n', 'scripts/fill.py': 'import sys\nprint("filled", *sys.argv[1:])\n'},
    )
    repository.commit('first')
    return repository

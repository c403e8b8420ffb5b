"""Real script files for the executors to run."""

from __future__ import annotations

import os
import shutil
import textwrap
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills.types import SkillScript

MakeScript = Callable[..., SkillScript]


def write_script(skill_dir: Path, name: str, source: str, *, mode: int = 0o644) -> SkillScript:
    """A script file in a skill's folder, and the value that describes it."""
    path = skill_dir / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source))
    path.chmod(mode)
    return SkillScript(name, uri=str(path), skill_name=skill_dir.name, skill_dir=skill_dir)


def if_installed(program: str, *values: Any) -> list[tuple[Any, ...]]:
    """A case that can only be tried where a program is installed that this package does not bring, or none."""
    return [values] if shutil.which(program) else []


def zombies() -> int:
    """How many children of this process have ended and were not waited for."""
    count = 0
    for status in Path('/proc').glob('[0-9]*/stat'):
        with suppress(OSError):
            state, parent = status.read_text().rpartition(')')[2].split()[:2]
            count += state == 'Z' and int(parent) == os.getpid()
    return count


def write_wheel(folder: Path, files: Mapping[str, str] | None = None) -> Path:
    """A package, as small as one can be, with more files if they are given."""
    path = folder / 'tinyhelper-1.0-py3-none-any.whl'
    with zipfile.ZipFile(path, 'w') as wheel:
        for name, text in {'tinyhelper.py': 'VALUE = 42', **(files or {})}.items():
            wheel.writestr(name, text)
        info = 'tinyhelper-1.0.dist-info'
        wheel.writestr(f'{info}/METADATA', 'Metadata-Version: 2.1\nName: tinyhelper\nVersion: 1.0\n')
        wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
        wheel.writestr(f'{info}/RECORD', '')
    return path


@pytest.fixture
def skill_dir(tmp_path: Path) -> Path:
    folder = tmp_path / 'skill'
    folder.mkdir()
    return folder


@pytest.fixture
def make_script(skill_dir: Path) -> MakeScript:
    """Call it with a name and a source."""

    def make(name: str, source: str, *, mode: int = 0o644) -> SkillScript:
        return write_script(skill_dir, name, source, mode=mode)

    return make

"""The example package, built and installed as any other."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pydantic_ai_skills import PackageSkillsRegistry, SkillsToolset
from tests.folders import call_tool

EXAMPLE = Path(__file__).parent.parent.parent / 'examples/acme-notes'


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place with the example package in it, where Python imports from."""
    site = tmp_path / 'site-packages'
    build = [sys.executable, '-m', 'hatchling', 'build', '--target', 'wheel', '--directory', str(tmp_path)]
    subprocess.run(build, cwd=EXAMPLE, check=True, capture_output=True)
    (wheel,) = tmp_path.glob('acme_notes-*.whl')
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'path', [str(site), *sys.path])
    yield site
    for name in [name for name in sys.modules if name.partition('.')[0] == 'acme_notes']:
        del sys.modules[name]


def test_an_agent_finds_and_uses_all_its_skills(site: Path, tmp_path: Path) -> None:
    registry = PackageSkillsRegistry(
        packages=['acme-notes'], trusted=['acme-notes'], read_from=['notes'], write_to=['notes'], path=[site]
    )
    toolset = SkillsToolset[None](registries=[registry])
    assert {name: skill.description.partition('.')[0] for name, skill in toolset.skills.items()} == {
        'acme-notes': 'Save, list and count notes',
        'acme-notes-letters': 'Turn notes into letters',
        'acme-notes-style': 'How notes of Acme are worded',
    }
    assert {skill.source.version for skill in toolset.skills.values() if skill.source} == {'1.2.0'}
    assert 'acme_notes' not in sys.modules

    async def use() -> None:
        run = {'skill_name': 'acme-notes', 'script_name': 'save_note'}
        outside = {'target': 'elsewhere/plants.txt', 'text': 'Water them.'}
        succeeded, message = await call_tool(toolset, 'run_skill_script', **run, args=outside)
        assert (succeeded, 'is not one that may be written' in message) == (False, True)
        inside = {'target': 'notes/plants.txt', 'text': 'Water them.'}
        assert await call_tool(toolset, 'run_skill_script', **run, args=inside) == (True, 'Saved plants.txt, 2 words.')
        listed = {'skill_name': 'acme-notes', 'script_name': 'list_notes', 'args': {'folder': 'notes'}}
        assert await call_tool(toolset, 'run_skill_script', **listed) == (True, ['plants.txt'])
        letter = {'skill_name': 'acme-notes-letters', 'script_name': 'greeting', 'args': {'name': 'Ada'}}
        assert await call_tool(toolset, 'run_skill_script', **letter) == (True, 'Dear Ada,')
        words = {'skill_name': 'acme-notes-style', 'resource_name': 'references/words.md'}
        _, text = await call_tool(toolset, 'read_skill_resource', **words)
        assert 'never a factory' in text

    asyncio.run(use())
    assert not (tmp_path / 'elsewhere').exists()
    assert toolset.problems == []

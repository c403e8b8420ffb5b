"""An agent with ten thousand skills."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from inline_snapshot import snapshot

from pydantic_ai_skills import Skill, SkillsToolset
from tests.conversations import Call, converse
from tests.folders import settle, write_skill

pytestmark = pytest.mark.anyio

COUNT = 10_000
AREAS = ('invoices', 'contracts', 'photos', 'servers', 'recipes', 'travel', 'music', 'lessons', 'gardens', 'budgets')
DEEDS = ('archive', 'compare', 'convert', 'draft', 'explain', 'inspect', 'plan', 'publish', 'repair', 'summarize')


@pytest.fixture(scope='module')
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp('library')
    for number in range(COUNT - 1):
        deed, area = DEEDS[number % 10], AREAS[number // 10 % 10]
        folder = root / f'{deed}-{area}-{number:04}'
        folder.mkdir()
        description = (
            f'{deed.capitalize()} {area} for client {number:04}. Use when client {number:04} asks about {area}.'
        )
        (folder / 'SKILL.md').write_text(f'---\nname: {folder.name}\ndescription: {description}\n---\n\nDo it.\n')
    write_skill(
        root / 'tide-tables',
        'Work out high and low water for a harbour. Use for sailing and fishing trips.',
        'Read `references/harbours.md`, then run `scripts/tide.py HARBOUR`.',
        {
            'references/harbours.md': 'Brest, Cork, Dover\n',
            'scripts/tide.py': 'import sys\nprint(f"High water in {sys.argv[1]} at 14:05.")\n',
        },
    )
    settle()
    return root


async def test_a_whole_conversation(library: Path):
    calls: list[Call] = [
        ('search_skills', {'query': 'when is hihg water in the harbor for fishing?', 'limit': 3}),
        ('load_skill', {'skill_name': 'tide-table'}),
        ('load_skill', {'skill_name': 'tide-tables'}),
        ('read_skill_resource', {'skill_name': 'tide-tables', 'resource_name': 'references/harbours.md'}),
        ('run_skill_script', {'skill_name': 'tide-tables', 'script_name': 'scripts/tide.py', 'args': ['Dover']}),
        ('list_skills', {}),
        ('list_skills', {'page': 26}),
    ]
    toolset = SkillsToolset[Any](directories=[library], pinned=['tide-tables'])
    script = await converse(toolset, *calls, prompt='When is high water in Dover?')
    assert len(await to_thread.run_sync(lambda: toolset.skills)) == COUNT
    assert len(set(script.instructions)) == 1
    text = str(script.instructions[0])
    assert len(text) <= 10_000
    assert text.count('<skill name=') + int(text.partition('<not_listed count="')[2].partition('"')[0]) == COUNT
    assert '>Work out high and low water for a harbour.' in text
    assert 'search_skills' in script.tools[0]
    assert script.tools == [script.tools[0]] * 8
    found, wrong, loaded, read, ran, first, last = (content for _, _, content in script.results)
    assert next(iter(found)) == 'tide-tables'
    assert wrong.startswith("There is no skill 'tide-table'. The skills are: 'tide-tables', ")
    assert loaded.replace(str(library), '…') == snapshot("""\
<skill name="tide-tables" location="…/tide-tables">
<resources>
references/: harbours.md
</resources>
<scripts>
scripts/: tide.py
</scripts>
<skill_instructions>
Read `references/harbours.md`, then run `scripts/tide.py HARBOUR`.
</skill_instructions>
</skill>\
""")
    assert (read, ran) == ('Brest, Cork, Dover\n', 'High water in Dover at 14:05.\n')
    assert (first['pages'], first['total'], last['total']) == (26, COUNT, COUNT)
    assert 'tide-tables' in last['skills']
    assert all(len(json.dumps(page)) < 50_000 for page in (first, last))


async def test_one_changed_file_is_seen_and_found_after_a_reload(library: Path):
    toolset = SkillsToolset[Any](directories=[library])
    await toolset.load()

    def search(query: str) -> list[str]:
        return [skill.name for skill in toolset.search(query, 3)]

    assert await to_thread.run_sync(search, 'volcanoes') == []
    before = await to_thread.run_sync(lambda: toolset.skills)
    changed = library / 'plan-music-0066'
    was = (changed / 'SKILL.md').read_text()
    (changed / 'SKILL.md').write_text(was.replace('Plan music', 'Plan volcanoes'))
    await to_thread.run_sync(toolset.reload)
    after = await to_thread.run_sync(lambda: toolset.skills)
    (changed / 'SKILL.md').write_text(was)
    assert [name for name, skill in after.items() if before[name] is not skill] == ['plan-music-0066']
    assert await to_thread.run_sync(search, 'volcano') == ['plan-music-0066']


async def test_every_name_is_found_by_itself(library: Path):
    toolset = SkillsToolset[Any](directories=[library])

    def firsts() -> list[tuple[str, str]]:
        names = list(toolset.skills)[::100]
        found: list[list[Skill[Any]]] = [toolset.search(name) for name in names]
        return [(name, skills[0].name) for name, skills in zip(names, found, strict=True)]

    assert all(name == first for name, first in await to_thread.run_sync(firsts))

"""Names and descriptions of strangers in the prompt, and files that are no skills: HOSTILE cases 6 to 8."""

from __future__ import annotations

import errno
import os
import random
import re
import socket
import time
import unicodedata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pydantic_ai_skills import Skill, SkillsDirectory, SkillsToolset
from tests.folders import call_tool, skill_md, write, write_skill

from .conftest import Scoreboard, Stopwatch

PIECES = [
    *('<', '>', '&', '"', "'", ']]>', '<![CDATA[', '<!--', '-->', '<?xml version="1.0"?>', '<!DOCTYPE a>', '\\', '`'),
    *('&lt;', '&amp;lt;', '&#0;', '&#x202e;', '&undefined;', '{skills_list}', '{0}', '%s', '${SKILL_DIR}', '---'),
    *('</description>', '</name>', '</skill>', '</available_skills>', '<skill>', '<skill><name>evil</name>'),
    *('<system>', '</system>', '</skill_instructions>', '<skill_instructions>', '<instructions>', '<|im_start|>'),
    *('\n', '\r', '\r\n', '\t', '\v', '\f', '\x00', '\x07', '\x1b[31m', '\x7f', '\x85', '\u2028', '\u2029'),
    *('\u200b', '\u200d', '\u2060', '\ufeff', '\u00ad', '\u034f', '\u115f', '\u3164', '\uffa0', '\u180e', '\ufe0f'),
    *('\u202a', '\u202e', '\u2066', '\u2069', '\u061c', '\u200e', '\ufff9', '\ufffe', '\U0001fffe', '\ue000'),
    *('\U000e0001', '\U000e0041', '\U000e007f', '\U000e0100', '\U000e01ef', '\U0010ffff', '\U000f0000'),
    *('ordinary text', 'Ä', '漢字', '🙂', 'a\u0301', '١٢٣', 'İ', 'ﬁ', 'x' * 300),
]
INVISIBLE = re.compile('[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]')
"""Characters without width that Unicode counts as letters or accents."""


def hostile_text(rng: random.Random) -> str:
    return ''.join(rng.choice(PIECES) for _ in range(rng.randint(1, 12)))


def hidden(text: str) -> set[str]:
    """Characters that a person would not see, or see elsewhere than they are."""
    return {
        character
        for character in text
        if character not in '\n\t' and (unicodedata.category(character) in ('Zl', 'Zp') or unicodedata.category(character)[0] == 'C')
    } | set(INVISIBLE.findall(text))  # fmt: skip


def write_hostile_skills(root: Path, rng: random.Random, count: int) -> None:
    for number in range(count):
        name, description, body = hostile_text(rng), hostile_text(rng), hostile_text(rng)
        if number % 2:
            # Quoted, so that YAML gives the very characters; raw ones are repaired, refused or normalised.
            name, description = (''.join(f'\\U{ord(c):08x}' for c in text) for text in (name, description))
            name, description = f'"{name}"', f'"x{description}"'
        text = f'---\nname: {name}\ndescription: {description}\n---\n{body}'
        write(root / f'skill-{number}', {'SKILL.md': text, f'{number}.md': body})


async def instructions_of(toolset: SkillsToolset[None]) -> str:
    """The instructions as a model gets them."""
    sent: list[str] = []

    def respond(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        sent.append(info.instructions or '')
        return ModelResponse(parts=[TextPart('done')])

    await Agent(FunctionModel(respond), deps_type=type(None), toolsets=[toolset]).run('Hello')
    return sent[0]


async def test_06_hostile_names_and_descriptions_stay_in_their_elements(tmp_path: Path, scoreboard: Scoreboard) -> None:
    rng = random.Random(6)
    write_hostile_skills(tmp_path, rng, 1_400)
    written = [Skill[None](f'written-{i}', f'x{hostile_text(rng)}\ud800', hostile_text(rng)) for i in range(1_000)]
    toolset = SkillsToolset[None](skills=written, directories=[tmp_path], catalog_budget=None)
    text = await instructions_of(toolset)
    count = len(toolset.skills)
    assert count >= 2_000
    assert hidden(text) == set()
    assert (text.count('<skill name="'), text.count('</skill>')) == (count, count)
    assert (text.count('<available_skills>'), text.count('</available_skills>')) == (1, 1)
    xml = text[text.index('<available_skills>') : text.index('</available_skills>') + len('</available_skills>')]
    assert not re.findall(r'<(?!/?(?:skill|available_skills)>|skill name=")', xml)
    root = ElementTree.fromstring(xml)
    assert [skill.attrib for skill in root] == [{'name': name} for name in toolset.skills]
    assert [len(skill) for skill in root] == [0] * count
    scoreboard.record(6, 'hostile skills, each in its element', f'{count:,}', '2,000')


async def test_06_hostile_skills_stay_in_their_elements_when_loaded(tmp_path: Path, scoreboard: Scoreboard) -> None:
    rng = random.Random(66)
    write_hostile_skills(tmp_path, rng, 300)
    written = [Skill[None](f'written-{i}', f'x{hostile_text(rng)}', hostile_text(rng)) for i in range(150)]
    toolset = SkillsToolset[None](skills=written, directories=[tmp_path])
    await toolset.load()
    for name in toolset.skills:
        ok, text = await call_tool(toolset, 'load_skill', skill_name=name)
        assert ok
        assert hidden(text) == set()
        head, body = text.split('<skill_instructions>')
        body, tail = body.split('</skill_instructions>')
        assert tail == '\n</skill>'
        root = ElementTree.fromstring(f'{head}</skill>')
        assert [child.tag for child in root if child.tag != 'resources'] == []
        assert root.attrib['name'] == name
        assert root.attrib.keys() <= {'name', 'location'}
    scoreboard.record(6, 'hostile skills loaded', f'{len(toolset.skills)}', '300')
    assert len(toolset.skills) >= 300


@pytest.mark.parametrize('source', ['directory', 'Python'])
async def test_07_a_huge_description_costs_neither_the_budget_nor_time(
    tmp_path: Path, scoreboard: Scoreboard, source: str
) -> None:
    huge = 'Huge. ' + 'x<&' * 700_000
    skills = [Skill[None](f'skill-{i}', f'Does task {i}.', 'Do it.') for i in range(999)]
    if source == 'Python':
        skills.append(Skill('huge', huge, 'Do it.'))
    else:
        write_skill(tmp_path / 'huge', huge)
    toolset, text = SkillsToolset[None](skills=[]), ''
    watch = Stopwatch(limit=1, clock=time.process_time)
    for _ in watch:
        with watch:
            toolset = SkillsToolset[None](skills=skills, directories=[tmp_path])
            text = await instructions_of(toolset)
    scoreboard.record(7, f'2 MB description, {source}', f'{watch}, {len(text):,} characters', '1 s, 10,000')
    assert len(text) <= 10_000
    assert watch.best <= 1
    assert 'list_skills' in text
    assert {problem.code for problem in toolset.problems} == ({'too-large'} if source == 'directory' else set())
    _, everything = await call_tool(toolset, 'list_skills')
    assert len(everything) == 999 + (source == 'Python')


def make_odd_skill_files(root: Path) -> dict[str, str]:
    """Files that are called `SKILL.md` and are none: folder to the code of its problem."""
    good = skill_md('x')
    contents: dict[str, tuple[bytes, str]] = {
        'empty': (b'', 'empty-file'),
        'blank': (b' \n\n', 'empty-file'),
        'binary': (bytes(range(256)) * 100, 'binary-file'),
        'utf-16': (good.encode('utf-16'), 'not-utf8'),
        'utf-16-be': (good.encode('utf-16-be'), 'binary-file'),
        'utf-32': (good.encode('utf-32'), 'not-utf8'),
        'latin-1': ('---\nname: x\ndescription: é\n---\n'.encode('latin-1'), 'not-utf8'),
        'unclosed': (b'---\nname: x\ndescription: x\n', 'unclosed-frontmatter'),
        'unclosed-and-long': (b'---\n' + b'a: b\n' * 100_000, 'frontmatter-too-large'),
        'no-description': (b'---\nname: no-description\n---\n', 'description-missing'),
    }
    for name, (content, _) in contents.items():
        write(root / name, {'SKILL.md': content})
    expected = {f'{name}/SKILL.md': code for name, (_, code) in contents.items()}
    for name in ('folder', 'fifo', 'socket', 'device-link', 'dangling-link', 'loop', 'sparse', 'unreadable'):
        (root / name).mkdir()
    (root / 'folder/SKILL.md').mkdir()
    os.mkfifo(root / 'fifo/SKILL.md')
    (root / 'device-link/SKILL.md').symlink_to('/dev/zero')
    (root / 'dangling-link/SKILL.md').symlink_to('nothing')
    (root / 'loop/SKILL.md').symlink_to('SKILL.md')
    with (root / 'sparse/SKILL.md').open('wb') as file:
        file.write(good.encode())
        file.truncate(1 << 30)
    (root / 'unreadable/SKILL.md').write_text(good)
    (root / 'unreadable/SKILL.md').chmod(0)
    return expected | {
        'folder/SKILL.md': 'special-file',
        'fifo/SKILL.md': 'special-file',
        'socket/SKILL.md': 'unreadable',
        'device-link/SKILL.md': 'unreadable',
        'dangling-link/SKILL.md': 'unreadable',
        'loop/SKILL.md': 'unreadable',
        'sparse/SKILL.md': 'too-large',
        'unreadable/SKILL.md': 'unreadable',
    }


def keep_root_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse files without permissions to root too, who may read all."""
    really_open = os.open

    def open_permitted(path: Any, flags: int, *, dir_fd: int | None = None) -> int:
        descriptor = really_open(path, flags, dir_fd=dir_fd)
        if os.fstat(descriptor).st_mode & 0o777 == 0:
            os.close(descriptor)
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return descriptor

    monkeypatch.setattr(os, 'open', open_permitted)


def test_08_files_that_are_no_skills_are_isolated(
    tmp_path: Path, scoreboard: Scoreboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = make_odd_skill_files(tmp_path)
    write_skill(tmp_path / 'good')
    write(tmp_path / 'bom', {'SKILL.md': b'\xef\xbb\xbf' + skill_md('bom').encode()})
    write(tmp_path / 'crlf', {'SKILL.md': skill_md('crlf', body='a\nb').replace('\n', '\r\n')})
    keep_root_out(monkeypatch)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / 'socket/SKILL.md'))
        found, watch = SkillsDirectory(tmp_path).find(), Stopwatch(limit=1)
        for _ in watch:
            with watch:
                found = SkillsDirectory(tmp_path).find()
    scoreboard.record(8, f'{len(expected)} files that are no skills', str(watch), '1 s')
    assert {os.path.relpath(problem.path, tmp_path): problem.code for problem in found.problems} == expected
    assert len(found.problems) == len(expected)
    assert {skill.name: skill.content for skill in found.skills} == {'good': 'Do it.', 'bom': 'Do it.', 'crlf': 'a\nb'}
    assert watch.best <= 1

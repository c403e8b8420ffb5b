"""Work in several steps, as published skills expect it: each script goes on with the files of the one before.

The same conversations run in the local executor, in the sandbox and in a workspace, with skills from a folder and from the
cache of a git registry. None of them leaves a trace in either.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage
from pydantic_ai.workspaces import LocalWorkspaceBackend

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    GitSkillsRegistry,
    LocalSkillScriptExecutor,
    ScriptFinished,
    SkillScriptExecutor,
    SkillsToolset,
    WorkspaceSkillScriptExecutor,
)
from tests.conversations import Call, ScriptedModel
from tests.registries.repositories import Repository

from .skills import write_skills

EXECUTORS: dict[str, Callable[[], SkillScriptExecutor]] = {
    'local': LocalSkillScriptExecutor,
    'sandbox': BubblewrapSkillScriptExecutor,
    'workspace': WorkspaceSkillScriptExecutor,
    'local in a workspace': LocalSkillScriptExecutor,
    'sandbox in a workspace': BubblewrapSkillScriptExecutor,
}


def run(skill: str, script: str, *args: str) -> Call:
    return 'run_skill_script', {'skill_name': skill, 'script_name': script, 'args': list(args)}


def read(skill: str, name: str) -> Call:
    return 'read_skill_resource', {'skill_name': skill, 'resource_name': name}


@dataclass
class Talk:
    """A conversation in one place, with the files that each script made or changed."""

    toolset: SkillsToolset[Any]
    workspace: LocalWorkspaceBackend | None
    made: list[list[str]]
    history: list[ModelMessage]

    async def say(self, *calls: Call) -> list[Any]:
        """Have the model make the calls in one run; return what it is told about each."""
        model = ScriptedModel(calls=calls)
        agent = Agent[object, str](model.model, toolsets=[self.toolset])
        result = await agent.run(
            'Go on.', message_history=self.history, conversation_id='talk', workspace=self.workspace
        )
        self.history = result.all_messages()
        told = model.results[-len(calls) :]
        assert [outcome for _, outcome, _ in told] == ['success'] * len(calls), told
        return [content for *_, content in told]

    async def put(self, **files: bytes | str) -> None:
        named = {name.replace('_', '.'): content for name, content in files.items()}
        if self.workspace is None:
            await to_thread.run_sync(self.toolset.put_files, 'talk', named)
        else:
            folder = Path(self.workspace.ref.id)
            for name, content in named.items():
                data = content.encode() if isinstance(content, str) else content
                await to_thread.run_sync((folder / name).write_bytes, data)

    async def get(self, name: str) -> bytes:
        if self.workspace is None:
            return await to_thread.run_sync(self.toolset.read_file, 'talk', name)
        return await to_thread.run_sync((Path(self.workspace.ref.id) / name).read_bytes)


@contextmanager
def unchanged(repository: Repository, cache: Path) -> Generator[None]:
    """Check that git sees no change in a repository, ignored files included, and that its cache has the same hash."""
    before = tree_hash(cache)
    yield
    assert repository.git('status', '--porcelain', '--ignored') == ''
    assert tree_hash(cache) == before


def tree_hash(folder: Path) -> str:
    """A hash of the names, the modes and the content of everything in a folder."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob('*')):
        content = path.read_bytes() if path.is_file() else b''
        found.update(repr((path.relative_to(folder), path.lstat().st_mode, content)).encode())
    return found.hexdigest()


def from_folder(repository: Repository, cache: Path, executor: SkillScriptExecutor) -> SkillsToolset[Any]:
    return SkillsToolset(directories=[repository.path], script_executor=executor)


def from_git(repository: Repository, cache: Path, executor: SkillScriptExecutor) -> SkillsToolset[Any]:
    registry = GitSkillsRegistry(
        repository.path.as_uri(),
        allowed_protocols=['file'],
        cache_dir=cache,
        script_executor=executor,
        trusted=not isinstance(executor, BubblewrapSkillScriptExecutor),
    )
    return SkillsToolset(registries=[registry])


@pytest.fixture(params=[from_folder, from_git])
def make_toolset(request: pytest.FixtureRequest) -> Callable[..., SkillsToolset[Any]]:
    return request.param


@pytest.fixture(params=EXECUTORS)
def talk(
    request: pytest.FixtureRequest,
    make_toolset: Callable[..., SkillsToolset[Any]],
    tmp_path: Path,
    private_dirs: Callable[[], list[Path]],
) -> Iterator[Talk]:
    workspace = None
    if 'workspace' in request.param:
        (tmp_path / 'project').mkdir()
        workspace = LocalWorkspaceBackend(tmp_path / 'project')
    repository, cache = Repository.create(tmp_path / 'skills'), tmp_path / 'cache'
    write_skills(repository.path)
    repository.commit()
    made: list[list[str]] = []
    toolset = make_toolset(repository, cache, EXECUTORS[request.param]())
    assert len(toolset.skills) == 4
    assert cache.exists() == (make_toolset is from_git)
    with unchanged(repository, cache), toolset:
        toolset.on(ScriptFinished)(lambda ctx, event: made.append([file.name for file in event.result.files]))
        yield Talk(toolset, workspace, made, [])
    assert private_dirs() == []


async def test_unpack_edit_pack(talk: Talk):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w') as archive:
        archive.writestr('word/document.xml', '<p>Hello</p>')
        archive.writestr('meta.txt', 'about')
    await talk.put(letter_zip=packed.getvalue())
    await talk.say(run('office', 'unpack', 'letter.zip', 'unpacked'))
    await talk.say(
        read('office', 'unpacked/word/document.xml'),
        run('text', 'replace', 'unpacked/word/document.xml', 'Hello', 'Goodbye'),
    )
    await talk.say(run('office', 'pack', 'unpacked', 'new.zip'))
    with zipfile.ZipFile(io.BytesIO(await talk.get('new.zip'))) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            'word/document.xml': b'<p>Goodbye</p>',
            'meta.txt': b'about',
        }
    assert talk.made == [
        ['unpacked/meta.txt', 'unpacked/word/document.xml'],
        ['unpacked/word/document.xml'],
        ['new.zip'],
    ]


async def test_a_form_is_filled_in_and_read_back(talk: Talk):
    await talk.put(values_json='{"name": "Ada", "city": "London"}')
    told = await talk.say(run('forms', 'fill', 'values.json', 'filled.txt'), read('forms', 'filled.txt'))
    assert told[1] == 'Name: Ada\nCity: London\n'
    assert await talk.get('filled.txt') == told[1].encode()


async def test_a_shell_script_makes_a_project_in_the_current_folder(talk: Talk):
    await talk.say(run('builder', 'init', 'shop'))
    told = await talk.say(run('builder', 'build', 'shop'), read('builder', 'shop/README.md'))
    assert told[0].startswith('<script_stdout>hello')
    assert told[1] == 'Read me.\n'
    assert talk.made == [['shop/README.md', 'shop/src/app/main.py'], ['shop/build.log']]


async def test_two_skills_work_on_the_same_file(talk: Talk):
    await talk.put(values_json='{"name": "Ada", "city": "London"}')
    told = await talk.say(
        run('forms', 'fill', 'values.json', 'note.txt'),
        run('text', 'replace', 'note.txt', 'London', 'Paris'),
        run('text', 'count', 'note.txt', 'values.json'),
        read('text', 'note.txt'),
    )
    assert told[2:] == ['note.txt 4\nvalues.json 4\n', 'Name: Ada\nCity: Paris\n']

"""What a person approves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from dirty_equals import IsStr

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution import snapshot as digest_module
from pydantic_ai_skills.execution.approval import describe_call
from pydantic_ai_skills.execution.local import LocalSkillScriptExecutor
from pydantic_ai_skills.execution.snapshot import read_file, take_snapshot
from pydantic_ai_skills.types import SkillScript

from .conftest import MakeScript


async def test_a_call_names_the_exact_command(make_script: MakeScript) -> None:
    script = make_script('scripts/a.sh', '#!/bin/sh\necho')
    call = await describe_call(script, {'_': 'my file', '_stdin': 'text'}, executor=LocalSkillScriptExecutor())
    assert call.metadata() == {
        'skill': 'skill',
        'script': 'scripts/a.sh',
        'command': f"/bin/sh {script.path} 'my file'",
        'stdin': 'text',
        'digest': IsStr(regex='[0-9a-f]{64}'),
    }
    assert (await describe_call(script, ['x'])).command == 'scripts/a.sh x'


async def test_the_digest_changes_with_the_command_and_with_every_file_of_the_skill(
    make_script: MakeScript, skill_dir: Path
) -> None:
    script = make_script('scripts/a.sh', 'echo')
    helper = make_script('scripts/helper.sh', 'echo')
    seen = {(await describe_call(script, None)).digest}
    assert (await describe_call(script, None)).digest in seen

    async def differs() -> None:
        digest = (await describe_call(script, None)).digest
        assert digest not in seen
        seen.add(digest)

    for args in (['x'], {'_stdin': ''}, {'_stdin': 'x'}):
        digest = (await describe_call(script, args)).digest
        assert digest not in seen
        seen.add(digest)
    assert helper.path is not None
    helper.path.write_text('rm -rf /')
    await differs()
    helper.path.chmod(0o755)
    await differs()
    helper.path.rename(skill_dir / 'moved.sh')
    await differs()
    (skill_dir / 'reference.md').write_text('x')
    await differs()


async def test_a_script_without_a_skill_is_judged_by_its_file(make_script: MakeScript) -> None:
    script = make_script('a.sh', 'echo')
    script.skill_dir = None
    before = await describe_call(script, None)
    assert script.path is not None
    script.path.with_name('other').touch()
    assert await describe_call(script, None) == before
    script.path.write_text('changed')
    assert await describe_call(script, None) != before


def greet(name: str) -> str:
    return f'Hello {name}'


def welcome(name: str) -> str:
    return f'Welcome {name}'


async def test_a_function_is_judged_by_its_source() -> None:
    call = await describe_call(SkillScript('greet', function=greet), {'name': 'you'})
    assert (call.command, call.stdin) == ('greet({"name": "you"})', None)
    other = SkillScript('greet', function=welcome)
    assert (await describe_call(other, {'name': 'you'})).digest != call.digest
    assert (await describe_call(SkillScript('greet', function=greet), None)).command == 'greet()'
    namespace: dict[str, object] = {}
    exec('def made(): return 1', namespace)
    made = SkillScript('made', function=namespace['made'])  # pyright: ignore[reportArgumentType]
    exec('def made(): return 1 + print()', namespace)
    remade = SkillScript('made', function=namespace['made'])  # pyright: ignore[reportArgumentType]
    assert (await describe_call(made, None)).digest != (await describe_call(remade, None)).digest


async def test_arguments_that_cannot_be_passed_cannot_be_approved(make_script: MakeScript) -> None:
    with pytest.raises(SkillScriptExecutionError, match='without its dashes'):
        await describe_call(make_script('a.sh', ''), {'--x': 1})


def test_a_snapshot_follows_no_links_and_has_limits(skill_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (skill_dir / 'a').write_text('a')
    (skill_dir / 'deep' / 'er').mkdir(parents=True)
    (skill_dir / 'deep' / 'er' / 'b').write_text('b')
    (skill_dir / 'link').symlink_to('/etc/passwd')
    (skill_dir / 'folder').symlink_to('/etc')
    os.mkfifo(skill_dir / 'pipe')
    snapshot = take_snapshot(skill_dir)
    assert [(file.name, file.content) for file in snapshot.files] == [('a', b'a'), ('deep/er/b', b'b')]
    monkeypatch.setattr(digest_module, 'MAX_DEPTH', 1)
    with pytest.raises(SkillScriptExecutionError, match='The folder deep/er is nested more than 1 deep'):
        take_snapshot(skill_dir)
    monkeypatch.undo()
    monkeypatch.setattr(digest_module, 'MAX_FILES', 1)
    with pytest.raises(
        SkillScriptExecutionError, match="The folder 'skill' holds more than 1 files or 67,108,864 bytes"
    ):
        take_snapshot(skill_dir)
    monkeypatch.undo()
    monkeypatch.setattr(digest_module, 'MAX_BYTES', 1)
    with pytest.raises(SkillScriptExecutionError, match='or 1 bytes'):
        take_snapshot(skill_dir)


def test_what_is_gone_or_changes_its_kind_is_refused(skill_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SkillScriptExecutionError, match="The folder 'none' cannot be read: No such file"):
        take_snapshot(skill_dir / 'none')
    with pytest.raises(SkillScriptExecutionError, match="The file 'none' cannot be read: No such file"):
        read_file(skill_dir / 'none')
    os.mkfifo(skill_dir / 'pipe')
    with pytest.raises(SkillScriptExecutionError, match='The file pipe is not a regular file'):
        read_file(skill_dir / 'pipe')
    (skill_dir / 'link').symlink_to('pipe')
    with pytest.raises(SkillScriptExecutionError, match="'link' cannot be read: Too many levels of symbolic links"):
        read_file(skill_dir / 'link')


def test_two_folders_with_the_same_bytes_in_other_files_differ(tmp_path: Path) -> None:
    for folder, files in (('one', {'ab': 'c'}), ('two', {'a': 'bc'}), ('three', {'a': 'b', 'c': ''})):
        (tmp_path / folder).mkdir()
        for name, content in files.items():
            (tmp_path / folder / name).write_text(content)
    assert len({take_snapshot(tmp_path / folder).digest for folder in ('one', 'two', 'three')}) == 3

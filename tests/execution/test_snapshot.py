"""A skill's folder read whole, with its digest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution.snapshot import script_digest, snapshot_file, snapshot_folder


def test_a_snapshot_follows_no_links_and_has_limits(skill_dir: Path) -> None:
    (skill_dir / 'a').write_text('a')
    (skill_dir / 'deep' / 'er').mkdir(parents=True)
    (skill_dir / 'deep' / 'er' / 'b').write_text('b')
    (skill_dir / 'link').symlink_to('/etc/passwd')
    (skill_dir / 'folder').symlink_to('/etc')
    os.mkfifo(skill_dir / 'pipe')
    snapshot = snapshot_folder(skill_dir)
    assert [(file.name, file.content) for file in snapshot.files] == [('a', b'a'), ('deep/er/b', b'b')]
    with pytest.raises(SkillScriptExecutionError, match='The folder deep/er is nested more than 1 deep'):
        snapshot_folder(skill_dir, max_depth=1)
    with pytest.raises(
        SkillScriptExecutionError, match="The folder 'skill' holds more than 1 files or 67,108,864 bytes"
    ):
        snapshot_folder(skill_dir, max_files=1)
    with pytest.raises(SkillScriptExecutionError, match='or 1 bytes'):
        snapshot_folder(skill_dir, max_bytes=1)


def test_what_is_gone_or_changes_its_kind_is_refused(skill_dir: Path) -> None:
    with pytest.raises(SkillScriptExecutionError, match="The folder 'none' cannot be read: No such file"):
        snapshot_folder(skill_dir / 'none')
    with pytest.raises(SkillScriptExecutionError, match="The file 'none' cannot be read: No such file"):
        snapshot_file(skill_dir / 'none')
    os.mkfifo(skill_dir / 'pipe')
    with pytest.raises(SkillScriptExecutionError, match='The file pipe is not a regular file'):
        snapshot_file(skill_dir / 'pipe')
    (skill_dir / 'link').symlink_to('pipe')
    with pytest.raises(SkillScriptExecutionError, match="'link' cannot be read: Too many levels of symbolic links"):
        snapshot_file(skill_dir / 'link')


def test_two_folders_with_the_same_bytes_in_other_files_differ(tmp_path: Path) -> None:
    for folder, files in (('one', {'ab': 'c'}), ('two', {'a': 'bc'}), ('three', {'a': 'b', 'c': ''})):
        (tmp_path / folder).mkdir()
        for name, content in files.items():
            (tmp_path / folder / name).write_text(content)
    assert len({snapshot_folder(tmp_path / folder).digest for folder in ('one', 'two', 'three')}) == 3


def test_the_digest_changes_with_everything_in_the_folder_and_the_script_outside_it(tmp_path: Path) -> None:
    skill, shared = tmp_path / 'skill', tmp_path / 'shared.sh'
    (skill / 'scripts').mkdir(parents=True)
    (skill / 'scripts' / 'a.sh').touch()
    shared.touch()
    assert script_digest(skill / 'scripts' / 'a.sh', skill) == snapshot_folder(skill).digest
    seen = {script_digest(shared, None), script_digest(shared, skill)}
    (skill / 'link').symlink_to('scripts')
    seen.add(script_digest(shared, skill))
    (skill / 'scripts').chmod(0o700)
    seen.add(script_digest(shared, skill))
    shared.write_text('x')
    seen.add(script_digest(shared, skill))
    assert len(seen) == 5

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pydantic_ai_skills import SkillRegistryError
from pydantic_ai_skills.registries import GitSkillsRegistry
from tests.folders import write_skill
from tests.registries.asked import given
from tests.registries.repositories import GitServer, Registries, Repository


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / 'checkout'


def files(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder)) for path in folder.rglob('*') if path.is_file() and '.pydantic' not in str(path)
    }


def test_the_files_are_at_the_place_that_was_asked_for(registry: Registries, target: Path):
    fetched = registry(target_dir=target, path='skills')
    (skill,) = fetched.get_skills()
    assert skill.path == str(target / 'skills/pdf')
    assert skill.source is not None
    assert skill.source.path == 'skills/pdf'
    assert files(target) == {'skills/pdf/SKILL.md', 'skills/pdf/references/forms.md', 'skills/pdf/scripts/fill.py'}


def test_a_refresh_brings_changes_and_removes_only_what_it_put_there(
    registry: Registries, repository: Repository, target: Path
):
    repository.skill('old', files={'a/b.md': 'b', 'c.md': 'c'})
    write_skill(repository.path / 'solo')
    repository.commit()
    fetched = registry(target_dir=target)
    assert given(fetched) == ['old', 'pdf', 'solo']
    (target / 'mine.txt').write_text('mine')
    (target / 'skills/old/mine.txt').write_text('mine')
    (target / 'skills/old/c.md').write_text('edited')
    shutil.rmtree(repository.path / 'skills/old')
    shutil.rmtree(repository.path / 'solo')
    repository.skill('pdf', body='Do it better.')
    repository.commit()
    fetched.refresh()
    assert [skill.content for skill in fetched.get_skills()] == ['Do it better.']
    assert files(target) >= {'mine.txt', 'skills/old/mine.txt', 'skills/old/c.md', 'skills/pdf/SKILL.md'}
    assert not (target / 'skills/old/a').exists()
    assert not (target / 'solo').exists()


def test_other_files_of_the_same_commit_take_the_place_of_those_that_were_asked_for_before(
    registry: Registries, repository: Repository, target: Path
):
    repository.skill('xlsx')
    repository.commit()
    assert given(registry(target_dir=target, path='skills/pdf')) == ['pdf']
    assert given(registry(target_dir=target, path='skills')) == ['pdf', 'xlsx']
    assert given(registry(target_dir=target, path='skills/xlsx')) == ['xlsx']
    assert files(target) == {'skills/xlsx/SKILL.md'}


def test_what_was_edited_there_is_left_and_told(registry: Registries, repository: Repository, target: Path):
    fetched = registry(target_dir=target)
    fetched.find()
    skill_file = target / 'skills/pdf/SKILL.md'
    skill_file.write_text(skill_file.read_text().replace('Do it.', 'Do it my way.'))
    (target / 'skills/pdf/scripts/fill.py').unlink()
    (target / 'skills/pdf/references/forms.md').unlink()
    (target / 'skills/pdf/references/forms.md').symlink_to('/etc/hostname')
    repository.skill('new')
    repository.commit()
    again = registry(target_dir=target)
    assert {skill.name: skill.content for skill in again.get_skills()} == {'new': 'Do it.', 'pdf': 'Do it my way.'}
    assert (target / 'skills/pdf/scripts/fill.py').is_file()
    assert [problem.path for problem in again.problems if problem.code == 'file-edited'] == [
        str(target / 'skills/pdf/SKILL.md'),
        str(target / 'skills/pdf/references/forms.md'),
    ]


def test_edits_show_without_a_refresh(registry: Registries, target: Path):
    fetched = registry(target_dir=target)
    fetched.find()
    file = target / 'skills/pdf/SKILL.md'
    file.write_text(file.read_text().replace('Does things.', 'Does other things.'))
    assert [skill.description for skill in fetched.find().skills] == ['Does other things.']


def test_a_folder_of_somebody_else_is_never_touched(registry: Registries, target: Path):
    target.mkdir()
    (target / 'thesis.tex').write_text('x')
    with pytest.raises(
        SkillRegistryError, match='is not empty and was not written by a registry; choose another target_dir'
    ):
        registry(target_dir=target).get_skills()
    assert files(target) == {'thesis.tex'}


def test_a_checkout_of_another_repository_is_not_overwritten(
    registry: Registries, repository: Repository, target: Path, cache: Path
):
    given(registry(target_dir=target))
    other = GitSkillsRegistry(repository.path, target_dir=target, allowed_protocols=('file',), cache_dir=cache)
    with pytest.raises(SkillRegistryError, match='is a checkout of http'):
        other.get_skills()


def test_with_a_checkout_neither_cache_nor_server_is_needed(
    registry: Registries, repository: Repository, server: GitServer, target: Path, cache: Path
):
    given(registry(target_dir=target))
    shutil.rmtree(cache)
    server.stop()
    pinned = registry(target_dir=target, ref=repository.head)
    assert given(pinned) == ['pdf']
    assert pinned.problems == []
    assert given(registry(target_dir=target, offline=True)) == ['pdf']
    branch = registry(target_dir=target)
    assert given(branch) == ['pdf']
    assert [problem.code for problem in branch.problems] == ['source-failed']


def test_a_failed_write_leaves_no_half_file(
    registry: Registries, repository: Repository, target: Path, monkeypatch: pytest.MonkeyPatch
):
    fetched = registry(target_dir=target)
    given(fetched)
    repository.skill('pdf', body='New.')
    repository.commit()

    def fail(*args: object) -> None:
        raise OSError(28, 'No space left on device', str(target))

    with monkeypatch.context() as patch:
        patch.setattr(shutil, 'copy2', fail)
        fetched.refresh()
    assert 'No space left on device' in fetched.problems[0].message
    assert [skill.content for skill in fetched.get_skills()] == ['Do it.']
    fetched.refresh()
    assert [skill.content for skill in fetched.get_skills()] == ['New.']

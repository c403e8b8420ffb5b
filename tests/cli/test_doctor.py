from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from pydantic_ai_skills import BubblewrapSkillScriptExecutor, user_skills_folder
from tests.cli.conftest import Cli
from tests.folders import skill_md, write, write_skill
from tests.registries.repositories import Repository


def findings(cli: Cli) -> dict[str, tuple[str, str, str]]:
    done = cli('doctor', '--json')
    assert (done.status, done.err) == (0, '')
    return {each['what']: (each['state'], each['found'], each['advice']) for each in done.data['findings']}


def test_what_is_there_is_told(cli: Cli, here: Path, tmp_path: Path, repository: Repository):
    write_skill(tmp_path / 'home/.agents/skills/mine')
    write_skill(here / 'skills/a')
    cli('add', '../theirs')
    found = findings(cli)
    assert {what: state for what, (state, _, _) in found.items() if what not in ('uv', 'node', 'limit')} == {
        'Python': 'ok',
        'system': 'ok',
        'pydantic-ai-skills': 'ok',
        'pydantic-ai-slim': 'ok',
        'pydantic': 'ok',
        'extra cli': 'ok',
        'extra git': 'ok',
        'extra mcp': 'ok',
        'extra objects': 'ok',
        'extra watch': 'ok',
        'git': 'ok',
        'bubblewrap': 'ok',
        'cache': 'ok',
        'project': 'ok',
        'trust': 'ok',
        'skills': 'ok',
        '../theirs': 'ok',
        'extra packages': 'ok',
        str(tmp_path / 'home/.claude/skills'): 'note',
        '../home/.agents/skills': 'ok',
        str(user_skills_folder()): 'note',
    }
    assert found['skills'][1] == '1 skill, 0 problems'
    assert found['../theirs'][1] == 'locked'


def test_what_is_missing_is_told_with_what_to_do(cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch):
    def version(name: str) -> str:
        if name == 'watchfiles':
            raise importlib.metadata.PackageNotFoundError(name)
        return '1'

    def cannot(path: Path, mode: int) -> bool:
        return False

    write(
        here,
        {
            'pyproject.toml': '[tool.pydantic-ai-skills]\ndirectories = ["nowhere", "skills"]\n'
            '[[tool.pydantic-ai-skills.git]]\nurl = "https://nobody.invalid/x"\n',
            'skills/broken/SKILL.md': 'x',
        },
    )
    monkeypatch.setattr('pydantic_ai_skills.cli.doctor.version', version)
    monkeypatch.setenv('PATH', os.devnull)
    monkeypatch.setenv('PYDANTIC_AI_SKILLS_CACHE_DIR', '/proc/nothing')
    monkeypatch.setattr(os, 'access', cannot)  # root may write anywhere
    found = findings(cli)
    assert found['extra watch'][0] == 'missing'
    assert "pip install 'pydantic-ai-skills[watch]'" in found['extra watch'][2]
    assert found['git'] == ('missing', 'not on the PATH', 'Needed for skills from git repositories; 2.31 or newer.')
    assert found['bubblewrap'][0] == 'missing'
    assert found['cache'][2] == 'It is not writable. Set PYDANTIC_AI_SKILLS_CACHE_DIR to another folder.'
    assert found['nowhere'][0] == 'missing'
    assert found['skills'] == ('note', '0 skills, 1 problem', 'See them with: pydantic-ai-skills validate skills')
    assert found['https://nobody.invalid/x'][2] == 'Lock it with: pydantic-ai-skills sync'


def test_an_empty_folder_is_told_what_to_do(cli: Cli):
    assert findings(cli)['skills'] == (
        'missing',
        'no directory of skills',
        'Create a skill with: pydantic-ai-skills new NAME',
    )


def test_a_broken_file_is_a_finding(cli: Cli, here: Path):
    write(here, {'pyproject.toml': 'x'})
    state, found, advice = findings(cli)['project']
    assert (state, 'is not valid TOML' in found, advice) == ('note', True, 'Correct the file.')


def test_whatever_it_stumbles_over_is_reported(cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch):
    write(
        here,
        {'pyproject.toml': '[[tool.pydantic-ai-skills.git]]\nurl = "https://nobody.invalid/x"\n', 'skills.lock': 'x'},
    )
    monkeypatch.setattr('platform.python_version', lambda: 1 / 0)
    found = findings(cli)
    assert 'cannot be read as a lock file' in found['error'][1]


def test_a_program_that_does_not_say_its_version_is_there_all_the_same(
    cli: Cli, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (write(tmp_path / 'bin', {'git': 'not a program'}) / 'git').chmod(0o755)
    monkeypatch.setenv('PATH', str(tmp_path / 'bin'))
    assert findings(cli)['git'] == ('ok', str(tmp_path / 'bin/git'), '')


def test_limits_that_cannot_be_enforced_are_told(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    class Weak(BubblewrapSkillScriptExecutor):
        @property
        def unenforced(self) -> tuple[str, ...]:
            return ('memory',)

        def __init__(self) -> None:
            super().__init__()
            self.seccomp = False

    monkeypatch.setattr('pydantic_ai_skills.BubblewrapSkillScriptExecutor', Weak)
    found = findings(cli)
    assert found['limit'][1] == 'memory cannot be enforced here'
    assert found['bubblewrap'][1] == 'a sandbox was made, without a filter for system calls'


def test_only_packages_that_are_not_named_need_advice(cli: Cli, here: Path, site: Path):
    for name in ('acme', 'other'):
        skill = f'{name}/.agents/skills/{name}/SKILL.md'
        metadata = f'Metadata-Version: 2.1\nName: {name}\nVersion: 1\n'
        files = {f'{name}-1.dist-info/METADATA': metadata, f'{name}-1.dist-info/RECORD': f'{skill},,\n'}
        write(site, {skill: skill_md(name), **files})
    write(here, {'pyproject.toml': '[tool.pydantic-ai-skills]\npackages = ["acme"]\n'})
    found = findings(cli)
    assert found['package acme'] == ('ok', '1, 1 skill', '')
    assert found['package other'][0] == 'note'
    assert 'add the package' in found['package other'][2]


def test_it_looks_once(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    made: list[BubblewrapSkillScriptExecutor] = []

    class Counted(BubblewrapSkillScriptExecutor):
        def __init__(self) -> None:
            made.append(self)
            super().__init__()

    monkeypatch.setattr('pydantic_ai_skills.BubblewrapSkillScriptExecutor', Counted)
    assert cli('doctor').status == 0
    assert len(made) == 1


def test_people_read_it_in_sections(cli: Cli):
    done = cli('doctor')
    assert (done.status, done.err) == (0, '')
    assert [line for line in done.out.splitlines() if not line.startswith(' ')] == [
        'Versions',
        'Extras',
        'Programs',
        'Sandbox',
        'Cache',
        'Places',
    ]
    assert '          Create a skill with: pydantic-ai-skills new NAME' in done.out


NEEDY: dict[str, str | bytes] = {
    'scripts/a.py': 'import yaml, absent_module, os\nos.environ["ACME_API_KEY"]\nos.environ.get("OTHER_TOKEN", "")',
    'scripts/b.js': "require('absent-package')",
    'scripts/c.sh': 'pdftoppm -r 100 "$1"',
    'agents/openai.yaml': (
        'interface: {display_name: Acme}\npolicy: {allow_implicit_invocation: false}\n'
        'dependencies: {tools: [{type: mcp, value: acme, description: Acme tools}]}'
    ),
}


def test_what_a_skill_needs_is_told(cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv('PATH', str(here))
    monkeypatch.setenv('ACME_API_KEY', 'very-secret')
    write_skill(here / 'skills/needy', files=NEEDY)
    text = (here / 'skills/needy/SKILL.md').read_text()
    (here / 'skills/needy/SKILL.md').write_text(text.replace('\n---\nDo', '\ncompatibility: Needs Acme\n---\nDo'))
    done = cli('doctor', 'needy')
    assert (done.status, done.err) == (0, '')
    assert done.out == snapshot("""\
Python packages
  missing absent-module: not installed (scripts/a.py)
  ok      pyyaml: scripts/a.py
          Install: pip install absent-module. Or let scripts have them with dependencies='uv'.
npm packages
  missing absent-package: not installed (scripts/b.js)
          Install in a folder above the skill: npm install absent-package
Programs
  missing node: not installed (scripts/b.js)
  missing pdftoppm: not installed (scripts/c.sh)
          Install: Node.js, poppler-utils.
Keys
  ok      ACME_API_KEY: scripts/a.py
  note    OTHER_TOKEN: not set, optional (scripts/a.py)
          Scripts get none of them unless you pass them on: skill_env={'needy': ['ACME_API_KEY', 'OTHER_TOKEN']}
Tools
  note    acme: cannot be checked (agents/openai.yaml; mcp, Acme tools)
The skill says
  note    compatibility: Needs Acme
  note    display name: Acme
  note    invocation: agents/openai.yaml asks that a model loads it only when a person asks for it
          Nothing here acts on that. To have the same, add `disable-model-invocation: true` to its SKILL.md.
""")
    assert 'very-secret' not in done.out + cli('doctor', 'needy', '--json').out


def test_what_a_skill_needs_is_told_to_programs(cli: Cli, here: Path):
    write_skill(here / 'skills/needy', files=NEEDY)
    data = cli('doctor', 'needy', '--json').data
    assert data['skill'] == 'needy'
    assert [need['name'] for need in data['needs']['keys']] == ['ACME_API_KEY', 'OTHER_TOKEN']
    assert cli('show', 'needy', '--json').data['needs'] == data['needs']


def test_a_skill_that_needs_nothing_is_told(cli: Cli, here: Path):
    write_skill(here / 'skills/plain')
    assert cli('doctor', 'plain').out == 'plain needs no packages, programs or keys, as far as its files show.\n'


def test_needs_are_looked_for_in_a_directory(cli: Cli, here: Path):
    write_skill(here / 'other/needy', files={f'scripts/{name}.py': 'import absent_module' for name in 'abc'})
    assert 'not installed (scripts/a.py, scripts/b.py and 1 more)' in cli('doctor', 'needy', '-d', 'other').out
    done = cli('doctor', '-d', 'other')
    assert (done.status, done.err) == (2, 'error: Options that choose skills need the name of a skill.\n')


def test_show_tells_in_short_what_is_needed(cli: Cli, here: Path):
    write_skill(here / 'skills/needy', files={'scripts/a.py': 'import yaml, absent_module'})
    assert 'needs  absent-module (missing), pyyaml\n' in ' '.join(cli('show', 'needy').out.split(' ')).replace(
        '   ', ' '
    )


def test_missing_needs_are_problems_on_request(cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv('PATH', str(here))
    write_skill(here / 'skills/needy', files=NEEDY)
    assert cli('validate').status == 0
    done = cli('validate', '--needs', '--json')
    assert done.status == 1
    assert [(Path(each['path']).name, each['code']) for each in done.data['problems']] == [
        ('a.py', 'dependency-missing'),
        ('a.py', 'key-missing'),
        ('b.js', 'dependency-missing'),
        ('b.js', 'program-missing'),
        ('c.sh', 'program-missing'),
    ]
    assert cli('validate', '--needs', '--lenient').status == 0

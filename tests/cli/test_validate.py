from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import fastjsonschema
import pytest
import yaml
from inline_snapshot import snapshot

from tests.cli.conftest import Cli
from tests.folders import skill_md, write, write_skill
from tests.registries.repositories import Repository

SCHEMA = Path(__file__).with_name('sarif-2.1.0.json')
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def broken(here: Path) -> Path:
    write_skill(here / 'skills/good')
    write(
        here / 'skills',
        {
            'other/SKILL.md': skill_md('another'),
            'none/SKILL.md': '---\nname: none\n---\n',
            'Größe 100%, x:y/SKILL.md': 'Nothing.\n',
        },
    )
    return here / 'skills'


def test_each_problem_has_place_code_message_and_fix(cli: Cli, broken: Path):
    done = cli('validate')
    assert done.status == 1
    assert done.out == snapshot("""\
skills/Größe 100%, x:y/SKILL.md:1: error [no-frontmatter] The file does not begin with a '---' line. Add frontmatter with a description.
  fix: Begin the file with a `---` line, `name:` and `description:` lines, and another `---` line.
skills/none/SKILL.md:1: error [description-missing] There is no description. Say what the skill does and when to use it.
  fix: Add `description:` and say what the skill does and when to use it.
skills/other/SKILL.md:2: warning [name-mismatch] The name 'another' is not the name of the folder, 'other'. Rename one of them.
  fix: Give `name:` and the folder the same name.
2 skills, 3 problems, 2 files or folders left out.
What each code means: https://pydantic-ai-skills.readthedocs.io/en/latest/problems/
""")


def test_good_skills_are_fine(cli: Cli, here: Path):
    write_skill(here / 'skills/good')
    done = cli('validate', 'skills/good')
    assert (done.status, done.out, done.err) == (0, '1 skill, no problems.\n', '')


def test_lenient_is_about_what_loads(cli: Cli, broken: Path):
    assert cli('validate', '--lenient', 'skills/other').status == 0
    assert cli('validate', 'skills/other').status == 1
    assert cli('validate', '--lenient', 'skills/none').status == 1


@pytest.mark.parametrize(
    ('args', 'message'),
    [
        (['nowhere'], 'nowhere does not exist, and no skill has this name.'),
        (['empty'], 'No skills found in empty.'),
        ([], 'No skills found in this folder. Name a directory of skills, or a skill.'),
    ],
)
def test_nothing_to_check_is_a_mistake(cli: Cli, here: Path, args: list[str], message: str):
    (here / 'empty').mkdir()
    done = cli('validate', *args)
    assert (done.status, done.err) == (2, f'error: {message}\n')


def test_a_format_there_is_not_is_a_mistake(cli: Cli, broken: Path):
    done = cli('validate', '--format', 'xml')
    assert done.status == 2
    assert "'xml' is not one of 'text', 'json', 'github', 'sarif'" in done.err


def test_json(cli: Cli, broken: Path):
    for args in (['--json'], ['--format', 'json']):
        done = cli('validate', 'skills/other', *args)
        assert done.status == 1
        (problem,) = done.data['problems']
        assert {**problem, 'path': Path(problem['path']).name} == snapshot(
            {
                'path': 'SKILL.md',
                'code': 'name-mismatch',
                'severity': 'warning',
                'message': "The name 'another' is not the name of the folder, 'other'. Rename one of them.",
                'line': 2,
                'fix': 'Give `name:` and the folder the same name.',
                'source': None,
                'url': 'https://pydantic-ai-skills.readthedocs.io/en/latest/problems/#name-mismatch',
            }
        )


def test_github_annotations(cli: Cli, broken: Path):
    done = cli('validate', '--format', 'github')
    assert done.status == 1
    assert done.out == snapshot("""\
::error file=skills/Größe 100%25%2C x%3Ay/SKILL.md,line=1,title=no-frontmatter::The file does not begin with a '---' line. Add frontmatter with a description. Begin the file with a `---` line, `name:` and `description:` lines, and another `---` line.
::error file=skills/none/SKILL.md,line=1,title=description-missing::There is no description. Say what the skill does and when to use it. Add `description:` and say what the skill does and when to use it.
::warning file=skills/other/SKILL.md,line=2,title=name-mismatch::The name 'another' is not the name of the folder, 'other'. Rename one of them. Give `name:` and the folder the same name.
""")


def test_github_annotations_do_nothing_on_a_terminal(cli: Cli, here: Path):
    write(here / 'skills', {'a\x1b[31m/SKILL.md': 'x'})
    out = cli('validate', '--format', 'github').out
    assert 'file=skills/a\\x1b[31m/SKILL.md' in out
    assert '\x1b' not in out


def test_a_skill_can_be_named(cli: Cli, broken: Path):
    assert cli('validate', 'good').out == '1 skill, no problems.\n'
    assert cli('validate', 'godo').err == (
        "error: godo does not exist, and no skill has this name. Did you mean 'good'?\n"
    )


def test_directories_are_named_as_everywhere(cli: Cli, here: Path, broken: Path):
    write_skill(here / 'more/fine')
    assert cli('validate', '-d', 'more').out == '1 skill, no problems.\n'
    write_skill(here / '.agents/skills/standard')
    assert cli('validate', '--standard').out == '1 skill, no problems.\n'


def test_a_file_is_a_file(cli: Cli, here: Path, broken: Path):
    write(here, {'skills/README.md': 'About them.', 'skills/good/references/a.md': 'More.', 'skills/low/skill.md': 'x'})
    assert cli('validate', 'skills/README.md').out == '0 skills, no problems.\n'
    assert cli('validate', 'skills/good/references/a.md').out == '1 skill, no problems.\n'
    assert '[no-frontmatter]' in cli('validate', 'skills/low/skill.md').out


class TestFetched:
    @pytest.fixture(autouse=True)
    def added(self, cli: Cli, repository: Repository) -> None:
        write(repository.path, {'skills/odd/SKILL.md': f'\n{skill_md("odd")}'})
        repository.commit('second')
        assert cli('add', repository.path).status == 0

    def test_skills_of_others_are_checked_and_never_changed(self, cli: Cli, tmp_path: Path):
        def files() -> dict[Path, bytes]:
            return {path: path.read_bytes() for path in (tmp_path / 'cache').rglob('SKILL.md')}

        before = files()
        done = cli('validate', '--fix')
        assert done.status == 1
        assert re.search(
            r'^/.*/theirs@\w+: .*/odd/SKILL.md:\d: warning \[frontmatter-not-first\]', done.out, re.MULTILINE
        )
        assert '2 skills, 1 problem.' in done.out
        assert files() == before

    def test_one_can_be_named(self, cli: Cli):
        assert cli('validate', 'pdf').out == '1 skill, no problems.\n'

    def test_what_a_source_could_not_give_is_a_problem(
        self, cli: Cli, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        write_skill(here / 'skills/good')
        monkeypatch.setenv('PYDANTIC_AI_SKILLS_CACHE_DIR', str(tmp_path / 'other-cache'))
        done = cli('validate')
        assert (done.status, '[source-failed]' in done.out) == (1, True)


def test_functions_of_packages_are_skills_too(cli: Cli, site: Path):
    write(
        site,
        {
            'acme.py': '"""Greets people. Use for names."""\n\ndef greet(name: str) -> str:\n    """Greet."""\n',
            'acme-1.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n',
            'acme-1.0.dist-info/RECORD': 'acme.py,,\nacme-1.0.dist-info/entry_points.txt,,\n',
            'acme-1.0.dist-info/entry_points.txt': '[pydantic_ai_skills]\nacme = acme\n',
        },
    )
    assert cli('validate', '--packages').out == '1 skill, no problems.\n'


class TestSarif:
    def check(self, data: Any) -> list[Any]:
        validate = cast(Any, fastjsonschema).compile(json.loads(SCHEMA.read_text('utf-8')), use_default=False)
        validate(data)
        (run,) = data['runs']
        rules = run['tool']['driver']['rules']
        for result in run['results']:
            assert rules[result['ruleIndex']]['id'] == result['ruleId']
        return run['results']

    def test_it_is_accepted_by_the_schema(self, cli: Cli, broken: Path):
        (broken / 'good' / 'link').symlink_to('x')
        done = cli('validate', '--format', 'sarif')
        assert done.status == 1
        results = self.check(done.data)
        assert [
            (result['ruleId'], result['level'], result['locations'][0]['physicalLocation']) for result in results
        ] == snapshot(
            [
                (
                    'no-frontmatter',
                    'error',
                    {
                        'artifactLocation': {
                            'uri': 'skills/Gr%C3%B6%C3%9Fe%20100%25%2C%20x%3Ay/SKILL.md',
                            'uriBaseId': 'SRCROOT',
                        },
                        'region': {'startLine': 1},
                    },
                ),
                (
                    'file-link',
                    'warning',
                    {'artifactLocation': {'uri': 'skills/good/link', 'uriBaseId': 'SRCROOT'}},
                ),
                (
                    'description-missing',
                    'error',
                    {
                        'artifactLocation': {'uri': 'skills/none/SKILL.md', 'uriBaseId': 'SRCROOT'},
                        'region': {'startLine': 1},
                    },
                ),
                (
                    'name-mismatch',
                    'warning',
                    {
                        'artifactLocation': {'uri': 'skills/other/SKILL.md', 'uriBaseId': 'SRCROOT'},
                        'region': {'startLine': 2},
                    },
                ),
            ]
        )

    def test_without_problems_too(self, cli: Cli, here: Path):
        write_skill(here / 'skills/good')
        assert self.check(cli('validate', '--format', 'sarif').data) == []

    def test_files_elsewhere_have_their_whole_place(self, cli: Cli, tmp_path: Path):
        write(tmp_path / 'elsewhere/x', {'SKILL.md': ''})
        (result,) = self.check(cli('validate', tmp_path / 'elsewhere', '--format', 'sarif').data)
        assert result['locations'][0]['physicalLocation']['artifactLocation'] == {
            'uri': (tmp_path / 'elsewhere/x/SKILL.md').as_uri()
        }

    def test_the_schema_refuses_what_is_wrong(self):
        with pytest.raises(cast(Any, fastjsonschema).JsonSchemaException):
            self.check({'version': '2.1.0', 'runs': [{'tool': {}}]})


class TestFix:
    def test_what_can_be_is_fixed(self, cli: Cli, here: Path):
        write(here / 'skills', {'a/SKILL.md': f'\n{skill_md("A")}', 'b/SKILL.md': skill_md('other')})
        done = cli('validate')
        assert '2 skills, 3 problems. 2 can be fixed with --fix.' in done.out
        done = cli('validate', '--fix')
        assert done.status == 1
        assert 'fixed: skills/a/SKILL.md [name-invalid]' in done.out
        assert '2 skills, 1 problem.\n' in done.out
        assert (here / 'skills/a/SKILL.md').read_text() == skill_md('a')
        assert cli('validate', '--fix', 'skills/a').out == '1 skill, no problems.\n'

    def test_json_says_what_was_fixed(self, cli: Cli, here: Path):
        write(here / 'skills', {'a/skill.md': skill_md('a')})
        data = cli('validate', '--fix', '--json').data
        assert ([each['code'] for each in data['fixed']], data['problems']) == (['file-name'], [])


class TestPreCommit:
    def test_the_hook_checks_the_skills_of_the_files_it_is_given(self, cli: Cli, broken: Path):
        (hook,) = cast(list[dict[str, Any]], yaml.safe_load((ROOT / '.pre-commit-hooks.yaml').read_text('utf-8')))
        program, *args = hook['entry'].split()
        assert (program, hook['language'], hook['pass_filenames']) == ('pydantic-ai-skills', 'python', True)
        assert cli(*args, 'skills/good/SKILL.md').status == 0
        done = cli(*args, 'skills/good/SKILL.md', 'skills/none/SKILL.md')
        assert (done.status, 'description-missing' in done.out) == (1, True)

    def test_files_that_belong_to_no_skill_are_let_pass(self, cli: Cli, here: Path):
        write(here, {'src/skills/code.py': '', 'README.md': ''})
        done = cli('validate', 'src/skills/code.py', 'README.md')
        assert (done.status, done.out) == (0, '0 skills, no problems.\n')

    def test_the_hook_brings_what_the_command_line_needs(self):
        import tomllib

        project = tomllib.loads((ROOT / 'pyproject.toml').read_text('utf-8'))['project']
        (hook,) = cast(list[dict[str, Any]], yaml.safe_load((ROOT / '.pre-commit-hooks.yaml').read_text('utf-8')))
        assert hook['additional_dependencies'] == project['optional-dependencies']['cli']


TOOLS = 'import pydantic_ai_skills\nraise ValueError("broken")\n'


def test_tools_are_imported_only_if_asked(cli: Cli, tmp_path: Path):
    write_skill(tmp_path / 'skills/alpha', files={'tools.py': TOOLS})
    write_skill(tmp_path / 'skills/beta')

    assert cli('validate', str(tmp_path / 'skills')).status == 0
    for path in ('skills', 'skills/alpha', 'skills/alpha/SKILL.md'):
        done = cli('validate', '--tools', str(tmp_path / path))
        assert done.status == 1
        assert '[import-failed]' in done.out
        assert 'ValueError: broken' in done.out


def test_tools_of_a_checkout_are_imported_only_if_it_is_trusted(cli: Cli, untrusted: Path):
    write_skill(untrusted / 'skills/alpha', files={'tools.py': TOOLS})

    done = cli('validate', '--tools')

    assert done.status == 2
    assert 'is not imported' in done.err
    assert cli('trust').status == 0
    assert '[import-failed]' in cli('validate', '--tools').out

from __future__ import annotations

import json
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from pydantic_ai_skills import SkillsDirectory
from pydantic_ai_skills.cli.formats import skill_data
from pydantic_ai_skills.directory.scan import HEAD_BYTES
from tests.cli.conftest import Cli
from tests.folders import skill_md, write, write_skill
from tests.registries.repositories import Repository

EVIL = '\x1b[2J\x1b]0;title\x07 [bold red]not markup[/] \u202ereversed\u200b \x9b31m'


@pytest.fixture
def skills(here: Path) -> Path:
    write_skill(
        here / 'skills/units',
        'Converts units. Use for miles.',
        '# Units\n\nRun `convert.py`.\n\n- [a link](https://example.com)',
        files={'scripts/convert.py': '"""Converts."""\nprint(1)\n', 'references/units.md': 'mi\n'},
    )
    write_skill(here / 'skills/greeting', 'Greets people.')
    return here / 'skills'


class TestList:
    def test_each_skill_has_a_line(self, cli: Cli, skills: Path):
        done = cli('list')
        assert done.status == 0
        assert done.out == snapshot("""\
greeting  Greets people.
units     Converts units. Use for miles.
2 skills. Show one with: pydantic-ai-skills show NAME
""")

    @pytest.mark.parametrize('columns', [20, 30, 80, 200])
    def test_a_line_at_any_width(self, cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch, columns: int):
        names = ['a', 'b' * 30, 'c' * 64]
        for name in names:
            write_skill(here / 'skills' / name, 'Long. ' * 100)
        monkeypatch.setenv('COLUMNS', str(columns))
        *lines, _ = cli('list').out.splitlines()
        assert [line.split()[0][:10] for line in lines] == [name[:10] for name in names]
        assert max(map(len, lines)) <= columns

    def test_the_long_list_has_sources_and_sizes(self, cli: Cli, skills: Path):
        done = cli('list', '--long')
        assert [line.split()[0] for line in done.out.splitlines()] == ['name', 'greeting', 'units', '2']
        assert 'skills/units' in done.out
        assert done.out.endswith('2 skills with instructions of about 17 tokens.\n')

    def test_warnings_are_counted_and_shown_in_the_long_list(self, cli: Cli, skills: Path):
        (skills / 'units' / 'link').symlink_to('x')
        assert cli('list').out.endswith('1 warning. See them with --long.\n')
        assert '[file-link]' in cli('list', '--long').out

    def test_a_skill_that_another_hides_is_explained(self, cli: Cli, here: Path, skills: Path):
        write_skill(here / 'more/units')
        assert '[shadowed]' in cli('list', 'skills', 'more').out

    def test_a_skill_that_is_missing_is_explained(self, cli: Cli, skills: Path):
        write(skills, {'broken/SKILL.md': '---\nname: broken\n---\n'})
        done = cli('list')
        assert done.status == 0
        assert 'skills/broken/SKILL.md: error [description-missing] There is no description.' in done.out
        assert '  fix: Add `description:`' in done.out

    def test_json_has_everything(self, cli: Cli, skills: Path):
        (skills / 'units' / 'link').symlink_to('x')
        data = cli('list', '--json').data
        assert data['problems'] == data['skills'][1]['problems']
        units = data['skills'][1]
        assert {**units, 'path': '', 'problems': len(units['problems'])} == snapshot(
            {
                'name': 'units',
                'description': 'Converts units. Use for miles.',
                'from': 'skills/units',
                'path': '',
                'size': 87,
                'tokens': 15,
                'files': 2,
                'problems': 1,
                'source': None,
                'trust': {
                    'locked': False,
                    'signed_by': None,
                    'scanned': False,
                    'scans': [],
                    'evaluated': False,
                    'score': None,
                },
            }
        )

    def test_directories_can_be_named(self, cli: Cli, here: Path, skills: Path):
        write_skill(here / 'other/x')
        assert [skill['name'] for skill in cli('list', 'other', '--json').data['skills']] == ['x']
        assert len(cli('list', '-d', 'other', '-d', 'skills', '--json').data['skills']) == 3

    def test_a_directory_that_is_not_there_is_a_mistake(self, cli: Cli):
        done = cli('list', 'nowhere')
        assert (done.status, done.out, done.err) == (2, '', "error: There is no directory 'nowhere'.\n")

    def test_a_mistake_is_json_too(self, cli: Cli):
        done = cli('list', 'nowhere', '--json')
        assert (done.status, done.data, done.err) == (2, {'error': "There is no directory 'nowhere'."}, '')

    def test_nothing_says_what_to_do(self, cli: Cli, here: Path):
        done = cli('list')
        assert done.out == 'No skills found in this folder. Create one with: pydantic-ai-skills new NAME\n'
        assert cli('list', '--json').data == {'skills': [], 'problems': [], 'packages': []}
        (here / 'empty').mkdir()
        assert cli('list', 'empty').out.startswith('No skills found in empty/. ')

    def test_the_standard_places_can_be_asked_for(self, cli: Cli, here: Path, skills: Path, tmp_path: Path):
        write_skill(here / '.agents/skills/ours')
        write_skill(tmp_path / 'home/.agents/skills/mine')
        assert [skill['name'] for skill in cli('list', '--standard', '--json').data['skills']] == ['mine', 'ours']
        assert cli('list', '--standard', 'skills').err == 'error: Give either directories or --standard.\n'

    def test_without_any_in_the_standard_places(self, cli: Cli):
        assert cli('list', '--standard').out.startswith('No skills found in the standard folders.')

    def test_skills_of_installed_packages(self, cli: Cli, skills: Path, site: Path):
        write(
            site,
            {
                'acme/__init__.py': 'raise SystemExit',
                'acme/.agents/skills/acme-help/SKILL.md': skill_md('acme-help'),
                'acme/.agents/skills/acme-help/run.py': 'print("ran")',
                'acme-1.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n',
                'acme-1.0.dist-info/RECORD': 'acme/__init__.py,,\nacme/.agents/skills/acme-help/SKILL.md,,\n',
            },
        )
        assert 'Installed packages have skills too: acme. See them with --packages.' in cli('list', '--long').out
        done = cli('list', '--packages')
        assert 'acme-help' in done.out
        assert 'Installed packages' not in done.out
        done = cli('run', 'acme-help', 'run.py', '--packages', '--json')
        assert (done.status, done.data['stdout'], done.data['sandbox']) == (0, 'ran\n', True)
        assert 'acme-help' in cli('chat', 'list', '--packages').out
        assert 'package acme: 1.0, 1 skill' in cli('doctor').out

    def test_without_a_sandbox_those_of_packages_are_listed_all_the_same(
        self, cli: Cli, skills: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv('PATH', '/nowhere')
        assert 'units' in cli('chat', 'list', '--packages').out

    def test_text_of_strangers_does_nothing(self, cli: Cli, here: Path):
        write(here / 'skills', {'evil/SKILL.md': skill_md('evil', f'"{EVIL}"'.replace('\x1b', '\\e'))})
        for args in (['list'], ['list', '--json'], ['show', 'evil'], ['prompt'], ['search', 'markup']):
            done = cli(*args)
            assert done.status == 0, done
            assert not set('\x1b\x07\x9b\u202e\u200b') & set(done.out + done.err), args
        assert '[bold red]not markup[/]' in cli('list').out

    def test_instructions_that_are_not_utf8_do_not_hide_the_skill(self, cli: Cli, here: Path):
        write(here / 'skills', {'x/SKILL.md': skill_md('x', body='x' * HEAD_BYTES).encode() + b'\xff'})
        (skill,) = cli('list', '--json').data['skills']
        assert (skill['name'], skill['tokens']) == ('x', 0)

    def test_what_was_not_fetched_is_explained(self, cli: Cli, here: Path):
        write(here, {'pyproject.toml': '[[tool.pydantic-ai-skills.git]]\nurl = "https://nobody.invalid/x"\n'})
        done = cli('list')
        assert done.status == 0
        assert 'source-failed' in done.out
        assert done.out.endswith('To fetch what is missing, run: pydantic-ai-skills sync\n')

    def test_a_mistake_in_the_projects_file_is_told(self, cli: Cli, here: Path):
        write(here, {'pyproject.toml': '[tool.pydantic-ai-skills]\nskils = 1\n'})
        done = cli('list')
        assert done.status == 2
        assert "'skils': is not a setting" in done.err


class TestShow:
    def test_everything_about_a_skill(self, cli: Cli, skills: Path):
        assert cli('show', 'units').out == snapshot("""\
units
Converts units. Use for miles.

from  skills/units
size  87 bytes, instructions of about 15 tokens

Files
  references/units.md
  scripts/convert.py  script  Converts.

Instructions
# Units

Run `convert.py`.

- [a link](https://example.com)
""")

    def test_the_name_may_be_in_other_letters(self, cli: Cli, skills: Path):
        assert cli('show', 'Units', '--json').data['name'] == 'units'

    def test_json(self, cli: Cli, skills: Path):
        data = cli('show', 'units', '--json').data
        assert data['instructions'].startswith('# Units')
        assert data['scripts'] == [{'name': 'scripts/convert.py', 'description': 'Converts.'}]
        assert data['resources'] == [{'name': 'references/units.md', 'description': None}]

    def test_raw_is_the_instructions(self, cli: Cli, skills: Path):
        assert cli('show', 'greeting', '--raw').out == 'Do it.\n'

    def test_its_problems_are_shown(self, cli: Cli, skills: Path):
        (skills / 'greeting' / 'link').symlink_to('x')
        done = cli('show', 'greeting')
        assert 'skills/greeting/link: warning [file-link]' in done.out

    def test_an_unknown_one_is_a_mistake_that_tells_the_closest(self, cli: Cli, skills: Path):
        done = cli('show', 'unit')
        told = "There is no skill 'unit'. Did you mean 'units'? To see all, run: pydantic-ai-skills list"
        assert (done.status, done.err) == (2, f'error: {told}\n')
        assert 'Did you mean' not in cli('show', 'unit' * 100).err
        assert cli('show', 'zebra').err == "error: There is no skill 'zebra'. The skills are: 'greeting', 'units'.\n"

    @pytest.mark.parametrize('name', ['skills/units', './skills/units/', 'skills/units/SKILL.md', 'units'])
    @pytest.mark.parametrize('command', [['show'], ['prompt'], ['doctor']])
    def test_a_skill_is_named_by_name_or_path(self, cli: Cli, skills: Path, command: list[str], name: str):
        by_name, by_path = cli(*command, 'units', '--json'), cli(*command, name, '--json')
        assert (by_path.status, by_path.err) == (0, '')
        assert len(by_path.data) == len(by_name.data)
        assert 'units' in json.dumps(by_path.data)

    def test_a_folder_outside_the_project_is_a_skill_too(
        self, cli: Cli, here: Path, skills: Path, monkeypatch: pytest.MonkeyPatch
    ):
        write_skill(here / 'drafts/letter')
        assert cli('show', 'drafts/letter', '--json').data['name'] == 'letter'
        monkeypatch.chdir(here / 'drafts')
        assert cli('show', 'letter', '--json').data['name'] == 'letter'

    def test_a_name_comes_before_a_folder_beside_us(self, cli: Cli, here: Path, skills: Path):
        write_skill(here / 'units', 'Another.')
        assert cli('show', 'units', '--json').data['description'] == 'Converts units. Use for miles.'
        assert cli('show', './units', '--json').data['description'] == 'Another.'

    def test_a_folder_whose_skill_is_broken_says_why(self, cli: Cli, here: Path, skills: Path):
        write(here, {'drafts/broken/SKILL.md': '---\nname: broken\n---\n'})
        assert 'drafts/broken/SKILL.md: There is no description.' in cli('show', 'drafts/broken').err

    def test_one_that_was_left_out_says_why(self, cli: Cli, skills: Path):
        write(skills, {'broken/SKILL.md': '---\nname: broken\n---\n'})
        assert 'skills/broken/SKILL.md: There is no description.' in cli('show', 'broken').err

    @pytest.mark.parametrize('command', [['show', 'pdf'], ['run', 'pdf', 'fill'], ['prompt', 'pdf']])
    def test_one_that_was_not_fetched_yet_says_how_to_fetch_it(
        self, cli: Cli, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
    ):
        assert cli('add', repository.path).status == 0
        monkeypatch.setenv('PYDANTIC_AI_SKILLS_CACHE_DIR', str(tmp_path / 'other-cache'))
        done = cli(*command)
        assert done.status == 2
        assert 'is not in the cache' in done.err
        assert done.err.endswith('To fetch what is missing, run: pydantic-ai-skills sync\n')

    def test_one_that_is_not_what_was_locked_says_so(self, cli: Cli, here: Path, repository: Repository):
        assert cli('add', repository.path).status == 0
        lock = here / 'skills.lock'
        lock.write_text(lock.read_text().replace('"sha256:', '"sha256:0'))
        assert "The skill 'pdf' in 'skills/pdf' has changed since it was locked" in cli('show', 'pdf').err

    def test_where_a_fetched_one_comes_from(self, cli: Cli, repository: Repository):
        assert cli('add', repository.path).status == 0
        done = cli('show', 'pdf')
        assert f'commit   {repository.head}' in done.out
        assert 'trusted  no: its scripts run in a sandbox only' in done.out
        assert cli('show', 'pdf', '--json').data['source']['commit'] == repository.head


class TestSearch:
    def test_the_best_is_first(self, cli: Cli, skills: Path):
        done = cli('search', 'convert miles')
        assert done.status == 0
        assert done.out.splitlines() == ['units  Converts units. Use for miles.']

    def test_nothing_found_is_bad_news(self, cli: Cli, skills: Path):
        done = cli('search', 'zebra')
        assert (done.status, done.out) == (1, "No skill matches 'zebra'.\n")
        assert cli('search', 'zebra', '--json').data == {'query': 'zebra', 'skills': []}

    @pytest.mark.parametrize('args', [[''], ['x', '--limit', '0'], []])
    def test_nothing_to_look_for_is_a_mistake(self, cli: Cli, skills: Path, args: list[str]):
        assert cli('search', *args).status == 2


def test_a_labelled_directory_is_shown_by_its_label(tmp_path: Path):
    write_skill(tmp_path / 'alpha')
    (skill,) = SkillsDirectory(tmp_path, label='Team').get_skills().values()
    assert skill_data(skill)['from'] == 'Team'

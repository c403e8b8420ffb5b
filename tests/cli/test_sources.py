from __future__ import annotations

from pathlib import Path

import pytest

from pydantic_ai_skills import ProjectSource, SkillsProject
from tests.cli.conftest import Cli
from tests.folders import write, write_skill
from tests.registries.repositories import Repository


@pytest.mark.parametrize(
    ('text', 'parsed'),
    [
        ('https://github.com/acme/skills', ('https://github.com/acme/skills', None, '')),
        ('https://github.com/acme/skills@v1.2', ('https://github.com/acme/skills', 'v1.2', '')),
        ('https://github.com/acme/skills.git@feature/x', ('https://github.com/acme/skills.git', 'feature/x', '')),
        ('git@github.com:acme/skills', ('git@github.com:acme/skills', None, '')),
        ('git@github.com:acme/skills.git@main', ('git@github.com:acme/skills.git', 'main', '')),
        ('ssh://git@host:22/acme/skills@main', ('ssh://git@host:22/acme/skills', 'main', '')),
        ('../theirs@v1', ('../theirs', 'v1', '')),
        ('https://github.com/acme/skills/tree/main', ('https://github.com/acme/skills', 'main', '')),
        ('https://github.com/acme/skills/tree/v1/a/pdf/', ('https://github.com/acme/skills', 'v1', 'a/pdf')),
        ('https://gitlab.com/a/b/c/-/tree/main/x', ('https://gitlab.com/a/b/c', 'main', 'x')),
        ('https://github.com/acme/skills/blob/v1/a/pdf/SKILL.md', ('https://github.com/acme/skills', 'v1', 'a/pdf')),
        ('https://github.com/acme/pdf/blob/main/SKILL.md', ('https://github.com/acme/pdf', 'main', '')),
        ('acme/skills', ('https://github.com/acme/skills', None, '')),
        ('acme/skills@v1', ('https://github.com/acme/skills', 'v1', '')),
        ('acme/skills#feature/x', ('https://github.com/acme/skills', 'feature/x', '')),
        ('acme/.skills//office/pdf@v1', ('https://github.com/acme/.skills', 'v1', 'office/pdf')),
        ('github.com/acme/skills.git', ('https://github.com/acme/skills', None, '')),
        ('https://host/acme/skills.git//a/pdf', ('https://host/acme/skills.git', None, 'a/pdf')),
        ('https://host/acme/skills.git//a/pdf#v1', ('https://host/acme/skills.git', 'v1', 'a/pdf')),
        ('git@host:acme/skills.git//pdf@v1', ('git@host:acme/skills.git', 'v1', 'pdf')),
        ('file:///srv/skills//pdf', ('file:///srv/skills', None, 'pdf')),
        ('./acme/skills', ('./acme/skills', None, '')),
        ('acme/../skills', ('acme/../skills', None, '')),
        ('acme/..', ('acme/..', None, '')),
        ('tests/cli', ('tests/cli', None, '')),
        ('tests/cli@v1', ('tests/cli', 'v1', '')),
        ('https://user:secret@host/x', ('https://user:secret@host/x', None, '')),
    ],
)
def test_what_a_person_writes_for_a_repository(text: str, parsed: tuple[str, str | None, str]):
    source = ProjectSource.parse(text)
    assert (source.url, source.ref, source.path) == parsed


class TestAdd:
    def test_it_is_fetched_written_down_and_locked(self, cli: Cli, here: Path, repository: Repository):
        done = cli('add', '../theirs@main', '--path', 'skills/pdf')
        assert (done.status, done.err) == (0, '')
        assert done.out == ('added pdf\nWritten to pyproject.toml and skills.lock.\n')
        assert (here / 'pyproject.toml').read_text() == (
            '[[tool.pydantic-ai-skills.git]]\nurl = "../theirs"\nref = "main"\npath = "skills/pdf"\nallow = ["file"]\n'
        )
        assert repository.head in (here / 'skills.lock').read_text()
        (skill,) = cli('list', '--json').data['skills']
        assert (skill['name'], skill['problems']) == ('pdf', [])

    def test_from_a_folder_below_the_path_is_still_right(
        self, cli: Cli, here: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
    ):
        write(here, {'pyproject.toml': '[tool.pydantic-ai-skills]\n', 'deep/x': ''})
        monkeypatch.chdir(here / 'deep')
        assert cli('add', '../../theirs').status == 0
        assert 'url = "../theirs"' in (here / 'pyproject.toml').read_text()

    def test_json(self, cli: Cli, repository: Repository):
        data = cli('add', repository.path, '--prefix', 'acme-', '--trust', '--json').data
        assert data == {
            'source': {'url': str(repository.path), 'prefix': 'acme-', 'trusted': True, 'allow': ['file']},
            'skills': ['acme-pdf'],
            'problems': [],
        }

    @pytest.mark.parametrize(
        ('args', 'status', 'message'),
        [
            (['../nowhere'], 3, 'nowhere'),
            (['../theirs@nothing'], 3, 'nothing'),
            (['../theirs', '--path', 'nothing'], 3, "has no skills in 'nothing'"),
            (['http://nobody.invalid/x'], 2, "'http' is not among the allowed protocols"),
            (['http://nobody.invalid/x'], 2, 'at the terminal: --allow http'),
            (['https://user:secret@nobody.invalid/x'], 2, 'has a user, a password'),
            (['https://user:secret@nobody.invalid/x'], 2, 'at the terminal: --token-env'),
            (['ext::sh -c x'], 2, 'would make git run a program'),
            (['@'], 2, "'@' is not the URL of a repository."),
            ([''], 2, "'' is not an address of skills. Known forms: ./folder;"),
            (['~nobody-at-all/x'], 2, "'~nobody-at-all/x'"),
            (['../theirs', '--ssh-key', '~nobody-at-all/x'], 2, "'~nobody-at-all/x'"),
            (['../theirs', '--into', '\udcff'], 2, "'\\udcff' is not UTF-8 text."),
            (['https://nobody.invalid/a/tree/main/x', '--path', 'y'], 2, 'leave --path out'),
            (['../theirs', '--into', '..'], 2, 'into = '),
            (['../theirs', '--plugin', 'x'], 2, "'plugins' is not a setting of 'git' sources"),
            (['../theirs', '--token-env', 'ghp_secret'], 2, '--token-env takes the name of an environment variable'),
            (['../theirs', '--into', 'skills'], 2, "into = 'skills' overlaps"),
            (['../theirs', '--into', '.claude'], 2, "into = '.claude' overlaps"),
            (['../theirs', '--allow', 'ftp'], 2, "'ftp' is not one of 'file', 'http'"),
            ([], 2, 'ADDRESS'),
        ],
    )  # fmt: skip
    def test_what_goes_wrong_is_told_and_nothing_is_written(
        self, cli: Cli, here: Path, repository: Repository, args: list[str], status: int, message: str
    ):
        done = cli('add', *args)
        assert (done.status, done.out) == (status, '')
        assert message in done.err
        assert 'secret' not in done.err
        assert 'Traceback' not in done.err
        assert sorted(path.name for path in here.iterdir()) == ['.git']

    def test_the_name_of_a_variable_is_written_and_not_what_it_holds(
        self, cli: Cli, here: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv('ACME_TOKEN', 'hush')
        done = cli('add', '../theirs', '--token-env', 'ACME_TOKEN')
        assert done.status == 0
        assert 'token-env = "ACME_TOKEN"' in (here / 'pyproject.toml').read_text()
        assert 'hush' not in ''.join(
            (done.out, done.err, *(path.read_text() for path in here.iterdir() if path.is_file()))
        )

    def test_a_file_that_cannot_be_edited_is_left(self, cli: Cli, here: Path, repository: Repository):
        text = '[tool]\npydantic-ai-skills = {git = []}\n'
        write(here, {'pyproject.toml': text})
        done = cli('add', '../theirs')
        assert done.status == 2
        assert 'url = "../theirs"' in done.err
        assert (here / 'pyproject.toml').read_text() == text


@pytest.fixture
def added(cli: Cli, here: Path, repository: Repository) -> Repository:
    assert cli('add', '../theirs').status == 0
    return repository


@pytest.fixture
def three(repository: Repository) -> Repository:
    """The repository with two more skills, in folders where repositories have them."""
    write_skill(repository.path / 'plugins/office/skills/docx', 'Writes letters.')
    write_skill(repository.path / 'skills/.curated/xlsx', 'Reads tables.')
    repository.commit('second')
    return repository


class TestChoosing:
    def test_all_are_taken_where_nobody_can_be_asked(self, cli: Cli, here: Path, three: Repository):
        done = cli('add', '../theirs')
        assert done.out == (
            'added docx, xlsx, pdf\n'
            'These are all of its skills. To take only some, use --skill NAME.\n'
            'Written to pyproject.toml and skills.lock.\n'
        )
        assert 'skills = ' not in (here / 'pyproject.toml').read_text()
        assert 'To take only some' not in cli('add', '../theirs', '--all').out

    def test_some_are_taken_by_name(self, cli: Cli, here: Path, three: Repository):
        assert cli('add', '../theirs', '--skill', 'xlsx', '--skill', 'docx').out.startswith('added docx')
        assert 'skills = ["xlsx", "docx"]' in (here / 'pyproject.toml').read_text()
        assert 'skills/pdf' not in (here / 'skills.lock').read_text()
        assert [skill['name'] for skill in cli('list', '--json').data['skills']] == ['docx', 'xlsx']
        assert cli('sync', '--frozen', '--json').data['sources']['../theirs'] == {
            'skills': ['docx', 'xlsx'],
            'problems': [],
        }
        three.skill('pdf', 'Newer.')
        three.commit('third')
        assert cli('outdated').status == 1
        assert cli('lock').out == '../theirs: no changes\n'
        assert cli('outdated').status == 0

    @pytest.mark.parametrize(
        ('typed', 'skills'),
        [
            ('2\n', ['xlsx']),
            ('1-2\n', ['docx', 'xlsx']),
            ('pdf, 1 pdf\n', ['docx', 'pdf']),
            ('9\n3-1\n0\nnobody\n3\n', ['pdf']),
            ('\n', ['docx', 'pdf', 'xlsx']),
        ],
    )
    def test_a_person_at_a_terminal_is_asked(
        self, cli: Cli, here: Path, three: Repository, typed: str, skills: list[str]
    ):
        done = cli('add', '../theirs', stdin=typed, typed=True)
        assert '3 skills:\n  1  docx  Writes letters.\n  2  xlsx  Reads tables.\n' in done.err
        assert done.err.count('Not in the list') == typed.count('\n') - 1
        assert sorted(skill['name'] for skill in cli('list', '--json').data['skills']) == skills
        (source,) = SkillsProject(here).sources
        assert sorted(source.skills) == ([] if typed == '\n' else skills)

    def test_without_an_answer_nothing_is_added(self, cli: Cli, here: Path, three: Repository):
        done = cli('add', '../theirs', typed=True)
        assert (done.status, 'nothing was added' in done.err) == (2, True)
        assert not (here / 'pyproject.toml').exists()

    @pytest.mark.parametrize('args', [['--skill', 'pdf'], ['--all'], ['--json'], ['--path', 'skills/pdf']])
    def test_nobody_is_asked_where_the_answer_is_known(self, cli: Cli, three: Repository, args: list[str]):
        done = cli('add', '../theirs', *args, typed=True)
        assert (done.status, done.err) == (0, '')

    @pytest.mark.parametrize(
        ('args', 'status', 'message'),
        [
            (['--skill', 'nobody'], 3, "No skill 'nobody' in "),
            (['--skill', 'nobody', '--skill', 'pdf'], 3, 'It has: docx, xlsx, pdf.'),
            (['--skill', 'pdf', '--all'], 2, 'Give either --skill or --all.'),
        ],
    )
    def test_a_wrong_choice_writes_nothing(
        self, cli: Cli, here: Path, three: Repository, args: list[str], status: int, message: str
    ):
        done = cli('add', '../theirs', *args)
        assert (done.status, done.out, message in done.err) == (status, '', True)
        assert not (here / 'pyproject.toml').exists()

    def test_what_was_looked_at_is_told_when_nothing_is_found(self, cli: Cli, here: Path, tmp_path: Path):
        empty = Repository.create(tmp_path / 'empty')
        empty.commit('first')
        done = cli('add', '../empty')
        assert done.status == 3
        assert f'empty at {empty.head[:12]}. Looked in all folders, hidden ones too, down to depth 32' in done.err
        assert 'found 0 SKILL.md.' in done.err

    def test_adding_again_keeps_the_place_and_what_was_chosen(self, cli: Cli, here: Path, three: Repository):
        text = (
            '[project]\nname = "app"\n\n# Theirs.\n[[tool.pydantic-ai-skills.git]]\nurl = "../theirs"  # reviewed\n'
            '# only this one\nskills = ["pdf"]\nallow = ["file"]\n\n# The rest.\n[tool.other]\nx = 1\n'
        )
        write(here, {'pyproject.toml': text})
        three.git('tag', 'v1')
        assert cli('add', '../theirs@v1', '--skill', 'docx').status == 0
        assert (here / 'pyproject.toml').read_text() == text.replace('["pdf"]', '["pdf", "docx"]').replace(
            'allow = ["file"]\n', 'allow = ["file"]\nref = "v1"\n'
        )
        assert cli('add', '../theirs').status == 0
        assert (here / 'pyproject.toml').read_text() == text.replace('["pdf"]', '["pdf", "docx"]')
        assert cli('add', '../theirs', '--all').status == 0
        assert (here / 'pyproject.toml').read_text() == text.replace('skills = ["pdf"]\n', '')

    def test_a_source_that_stands_there_twice_is_left_once(self, cli: Cli, here: Path, three: Repository):
        block = '[[tool.pydantic-ai-skills.git]]\nurl = "../theirs"\nallow = ["file"]\n'
        write(here, {'pyproject.toml': f'{block}\n[tool.x]\n\n{block}'})
        assert cli('add', '../theirs', '--skill', 'pdf').status == 0
        assert (here / 'pyproject.toml').read_text() == f'{block}skills = ["pdf"]\n\n[tool.x]\n'

    def test_what_is_no_longer_chosen_leaves_the_lock_file(self, cli: Cli, here: Path, three: Repository):
        cli('add', '../theirs')
        cli('add', '../theirs', '--skill', 'pdf')
        assert '"skills/pdf" = ' in (here / 'skills.lock').read_text()
        assert (here / 'skills.lock').read_text().count('sha256') == 1

    def test_chosen_skills_are_removed_one_by_one(self, cli: Cli, here: Path, three: Repository):
        cli('add', '../theirs', '--skill', 'pdf', '--skill', 'docx', '--prefix', 'acme-')
        assert cli('remove', 'acme-pdf').out == 'removed ../theirs  acme-pdf\n'
        assert 'skills = ["docx"]' in (here / 'pyproject.toml').read_text()
        assert 'skills/pdf' not in (here / 'skills.lock').read_text()
        assert cli('remove', 'acme-docx', '--json').data['skills'] == ['acme-docx']
        assert SkillsProject(here).sources == ()
        assert not (here / 'skills.lock').exists()

    def test_a_path_in_the_file_never_becomes_a_repository_on_github(self, cli: Cli, here: Path, three: Repository):
        text = '[[tool.pydantic-ai-skills.git]]\nurl = "acme/skills"\nallow = ["file"]\n'
        write(here, {'pyproject.toml': text})
        done = cli('sync')
        assert (done.status, 'write url = "https://github.com/acme/skills".' in done.err) == (2, True)
        (here / 'acme').mkdir()
        three.path.rename(here / 'acme/skills')
        assert cli('sync').out == 'acme/skills: docx, xlsx, pdf\n'
        assert cli('remove', 'acme/skills').status == 0

    def test_a_repository_on_github_is_named_as_it_was_added(self, cli: Cli, here: Path):
        write(
            here, {'pyproject.toml': '[[tool.pydantic-ai-skills.git]]\nurl = "https://github.com/acme/x"\nref = "v1"\n'}
        )
        assert cli('remove', 'acme/x@v2').status == 2
        assert cli('remove', 'acme/x@v1').status == 0
        write(here, {'pyproject.toml': '[[tool.pydantic-ai-skills.git]]\nurl = "https://github.com/acme/x.git"\n'})
        assert cli('remove', 'acme/x').status == 0
        text = '[[tool.pydantic-ai-skills.git]]\nurl = "https://github.com/acme/x"\nref = "v1"\npath = "pdf"\n'
        write(here, {'pyproject.toml': text})
        assert cli('remove', 'https://github.com/acme/x/tree/v1/pdf').status == 0


class TestSync:
    def test_a_clone_gets_what_was_locked(
        self, cli: Cli, added: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        added.skill('pdf', 'Newer.')
        added.commit('second')
        monkeypatch.setenv('PYDANTIC_AI_SKILLS_CACHE_DIR', str(tmp_path / 'other-cache'))
        assert 'source-failed' in cli('list').out
        done = cli('sync')
        assert done.status == 0
        assert done.out.splitlines()[0] == '../theirs: pdf'
        assert cli('list', '--json').data['skills'][0]['description'] == 'Fills in forms. Use for PDF files.'

    def test_what_is_here_needs_no_server(self, cli: Cli, added: Repository):
        added.path.rename(added.path.with_name('gone'))
        done = cli('sync', '--json')
        assert (done.status, done.data) == (0, {'sources': {'../theirs': {'skills': ['pdf'], 'problems': []}}})

    def test_skills_have_the_names_that_they_have_here(
        self, cli: Cli, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        cli('add', '../theirs', '--prefix', 'acme-')
        for cache in ('cache', 'other-cache'):
            monkeypatch.setenv('PYDANTIC_AI_SKILLS_CACHE_DIR', str(tmp_path / cache))
            assert cli('sync', '--json').data['sources']['../theirs']['skills'] == ['acme-pdf']

    def test_what_cannot_be_fetched_fails(
        self, cli: Cli, added: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        added.path.rename(added.path.with_name('gone'))
        monkeypatch.setenv('PYDANTIC_AI_SKILLS_CACHE_DIR', str(tmp_path / 'other-cache'))
        done = cli('sync')
        assert done.status == 3
        assert 'no skills' in done.out

    def test_what_is_not_locked_is_locked_unless_frozen(self, cli: Cli, added: Repository, here: Path):
        lock = (here / 'skills.lock').read_text()
        (here / 'skills.lock').unlink()
        done = cli('sync', '--frozen')
        assert done.status == 3
        assert not (here / 'skills.lock').exists()
        assert cli('sync').status == 0
        assert (here / 'skills.lock').read_text() == lock

    def test_a_lock_file_that_is_none_is_told(self, cli: Cli, added: Repository, here: Path):
        write(here, {'skills.lock': 'nonsense'})
        done = cli('sync')
        assert (done.status, 'cannot be read as a lock file' in done.err) == (3, True)

    def test_nothing_to_fetch_is_fine(self, cli: Cli):
        done = cli('sync')
        assert (done.status, done.out[:31]) == (0, 'This project has no sources. Ad')
        assert cli('sync', '--json').data == {'sources': {}}

    def test_an_unknown_source_is_a_mistake(self, cli: Cli, added: Repository):
        done = cli('sync', 'https://nobody.invalid/x')
        assert (done.status, 'Its sources: ../theirs.' in done.err) == (2, True)


class TestLockAndOutdated:
    def test_what_has_changed_is_shown(self, cli: Cli, added: Repository, here: Path):
        assert cli('outdated').status == 0
        added.skill('pdf', 'Newer.')
        added.skill('xlsx')
        added.commit('second')
        done = cli('outdated')
        assert done.status == 1
        assert 'outdated: pydantic-ai-skills lock' in done.out
        done = cli('lock')
        assert (done.status, done.out) == (0, '../theirs: 2 locked\n  changed skills/pdf\n  added   skills/xlsx\n')
        assert cli('lock').out == '../theirs: no changes\n'
        assert cli('outdated', '--json').data['sources'] == [
            {'source': '../theirs', 'locked': added.head, 'now': added.head, 'error': None}
        ]

    def test_a_lost_lock_file_is_written_again(self, cli: Cli, added: Repository, here: Path):
        (here / 'skills.lock').unlink()
        assert cli('lock').out == '../theirs: 1 locked\n  added   skills/pdf\n'
        (here / 'skills.lock').unlink()
        assert cli('outdated').status == 3

    def test_what_was_removed_there_is_removed_here(self, cli: Cli, added: Repository):
        added.git('rm', '-rq', 'skills/pdf')
        added.skill('xlsx')
        added.commit('second')
        assert cli('lock', 'pdf', '--json').data['sources']['../theirs']['changes'] == {
            'skills/pdf': 'removed',
            'skills/xlsx': 'added',
        }

    def test_a_server_that_is_away_is_told(self, cli: Cli, added: Repository):
        added.path.rename(added.path.with_name('gone'))
        done = cli('outdated')
        assert (done.status, 'theirs' in done.out) == (3, True)
        assert cli('outdated', '--json').data['sources'][0]['error']
        assert cli('lock').status == 3

    def test_files_that_were_edited_here_are_noticed(
        self, cli: Cli, here: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
    ):
        assert cli('add', '../theirs', '--into', 'vendored').status == 0
        (here / 'vendored/skills/pdf/.hidden').write_text('added')
        done = cli('outdated', '--json')
        assert done.status == 3
        assert "'.hidden' was added" in done.data['sources'][0]['error']
        done = cli('sync', '--frozen')
        assert done.status == 3
        assert "'.hidden' was added" in done.out

    def test_a_commit_is_never_outdated(self, cli: Cli, repository: Repository):
        cli('add', f'{repository.path}@{repository.head}')
        repository.commit('second')
        assert cli('outdated').status == 0

    def test_nothing_is_up_to_date(self, cli: Cli):
        assert cli('outdated').out == 'This project has no sources. Add one with: pydantic-ai-skills add ADDRESS\n'


class TestRemove:
    @pytest.mark.parametrize(('name', 'meant'), [('pfd', 'pdf'), ('../thiers', '../theirs')])
    def test_one_that_is_mistyped_is_told_the_closest(self, cli: Cli, repository: Repository, name: str, meant: str):
        cli('add', '../theirs')
        done = cli('remove', name)
        told = f'is not a source of this project, nor a skill of one. Did you mean {meant!r}? Its sources: ../theirs.'
        assert (done.status, done.err) == (2, f'error: {name!r} {told}\n')

    @pytest.mark.parametrize('name', ['../theirs', '../theirs/', 'pdf'])
    def test_it_leaves_no_trace(self, cli: Cli, here: Path, repository: Repository, name: str):
        write(here, {'pyproject.toml': '[project]\nname = "x"\n'})
        cli('add', '../theirs')
        done = cli('remove', name)
        assert (done.status, done.out) == (0, 'removed ../theirs  pdf\n')
        assert (here / 'pyproject.toml').read_text() == '[project]\nname = "x"\n'
        assert not (here / 'skills.lock').exists()
        assert SkillsProject(here).sources == ()

    def test_a_ref_tells_two_apart(self, cli: Cli, here: Path, repository: Repository):
        repository.git('tag', 'v1')
        cli('add', '../theirs@main', '--path', 'skills')
        cli('add', '../theirs@v1')
        done = cli('remove', '../theirs')
        assert (done.status, 'is ambiguous' in done.err) == (2, True)
        assert cli('remove', '../theirs@v1', '--json').data['removed']['ref'] == 'v1'

    def test_one_of_several_skills_is_not_removed_alone(self, cli: Cli, repository: Repository):
        repository.skill('xlsx')
        repository.commit('second')
        cli('add', '../theirs')
        done = cli('remove', 'pdf')
        assert (done.status, "'pdf' is one of 2 skills of ../theirs: pdf, xlsx." in done.err) == (2, True)

    @pytest.mark.parametrize('name', ['../theirs', 'pdf'])
    def test_a_lock_file_that_is_none_is_told_and_nothing_changes(
        self, cli: Cli, here: Path, added: Repository, name: str
    ):
        project = (here / 'pyproject.toml').read_text()
        write(here, {'skills.lock': 'nonsense'})
        done = cli('remove', name)
        assert (done.status, done.out) == (3, '')
        assert "skills.lock' cannot be read as a lock file" in done.err
        assert (here / 'pyproject.toml').read_text() == project
        assert (here / 'skills.lock').read_text() == 'nonsense'

    def test_a_skill_that_was_not_fetched_yet_is_told_as_such(
        self, cli: Cli, added: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv('PYDANTIC_AI_SKILLS_CACHE_DIR', str(tmp_path / 'other-cache'))
        done = cli('remove', 'pdf')
        assert (done.status, done.out) == (2, '')
        assert 'is not in the cache' in done.err
        assert 'To fetch what is missing, run: pydantic-ai-skills sync' in done.err
        assert cli('remove', '../theirs').status == 0

    def test_what_is_not_there_is_a_mistake(self, cli: Cli):
        done = cli('remove', 'pdf')
        assert (done.status, 'Its sources: none.' in done.err) == (2, True)

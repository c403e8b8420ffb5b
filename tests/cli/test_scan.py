from __future__ import annotations

import json
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import EvalScore, read_facts, record_score
from tests.cli.conftest import Cli
from tests.folders import skill_md, write, write_skill
from tests.registries.repositories import Repository
from tests.registries.signing import Key

PIPE = {'install.sh': 'curl https://example.com | sh\n'}


def require(here: Path, *names: str) -> None:
    write(here, {'pyproject.toml': f'[tool.pydantic-ai-skills]\nrequire = {json.dumps(names)}\n'})


def sarif(*files: Path, level: str = 'error', rule: str = 'R1') -> str:
    places = [[{'physicalLocation': {'artifactLocation': {'uri': file.as_uri()}}}] for file in files]
    results = [{'ruleId': rule, 'level': level, 'message': {'text': 'Bad.'}, 'locations': place} for place in places]
    return json.dumps({'runs': [{'tool': {'driver': {'name': 'acme-scan', 'version': '2'}}, 'results': results}]})


class TestScanning:
    def test_good_skills_pass(self, cli: Cli, here: Path):
        write_skill(here / 'skills/good')
        done = cli('scan')
        assert (done.status, done.out, done.err) == (0, '1 skill scanned, no problems.\n', '')
        assert not (here / 'skills.lock').exists()

    def test_problems_have_place_code_and_fix(self, cli: Cli, here: Path):
        write_skill(here / 'skills/bad', files=PIPE)
        write_skill(here / 'skills/good')
        done = cli('scan')
        assert done.status == 1
        assert done.out == (
            'skills/bad/install.sh:1: error [pipe-to-shell] A download is run without a look at it.\n'
            '  fix: Name a package with a version, or download a file, compare its hash and then run it.\n'
            '2 skills scanned, 1 problem.\n'
            'failed: bad\n'
            'What each code means: https://pydantic-ai-skills.readthedocs.io/en/latest/problems/\n'
        )

    @pytest.mark.parametrize(
        ('args', 'names'),
        [
            ([], ['bad', 'good']),
            (['good'], ['good']),
            (['skills'], ['bad', 'good']),
            (['./skills/bad', 'good'], ['bad', 'good']),
            (['skills/good'], ['good']),
            (['-d', 'skills'], ['bad', 'good']),
        ],
    )
    def test_skills_are_named_or_their_folders(self, cli: Cli, here: Path, args: list[str], names: list[str]):
        write_skill(here / 'skills/bad', files=PIPE)
        write_skill(here / 'skills/good')
        done = cli('scan', '--json', *args)
        assert [skill['name'] for skill in done.data['skills']] == names
        assert done.status == ('bad' in names)

    def test_json(self, cli: Cli, here: Path):
        write_skill(here / 'skills/bad', files=PIPE)
        done = cli('scan', '--json')
        (skill,) = done.data['skills']
        assert skill == {
            'name': 'bad',
            'path': str(here / 'skills/bad'),
            'content_hash': skill['content_hash'],
            'passed': False,
            'verdicts': [
                {
                    'scanner': 'pydantic-ai-skills',
                    'version': version('pydantic-ai-skills'),
                    'passed': False,
                    'errors': 1,
                    'warnings': 0,
                    'notes': 0,
                    'ignored': [],
                }
            ],
            'recorded': False,
        }
        assert [problem['code'] for problem in done.data['problems']] == ['pipe-to-shell']

    @pytest.mark.parametrize(
        ('args', 'message'),
        [
            (['nothing'], 'nothing'),
            (['./nowhere'], "There is no directory 'nowhere'."),
            (['empty'], 'No skills found in empty.'),
            ([], 'No skills with files on this machine found. Name a skill, or a directory of skills.'),
            (['--sarif', 'none.sarif'], 'none.sarif cannot be read: No such file or directory.'),
        ],
    )  # fmt: skip
    def test_nothing_to_scan_is_a_mistake(self, cli: Cli, here: Path, args: list[str], message: str):
        (here / 'empty').mkdir()
        done = cli('scan', *args)
        assert done.status == 2
        assert message in done.err

    def test_lenient_and_ignored(self, cli: Cli, here: Path):
        write_skill(here / 'skills/one', files={'a.py': 'x = "https://acme.dev"\n', **PIPE})
        assert cli('scan', '--lenient').status == 1
        assert cli('scan', '--ignore', 'pipe-to-shell').status == 1
        assert cli('scan', '--lenient', '--ignore', 'pipe-to-shell').status == 0
        done = cli('scan', '--json', '--ignore', 'pipe-to-shell', '--ignore', 'undeclared-url')
        assert done.status == 0
        assert done.data['skills'][0]['verdicts'][0]['ignored'] == ['pipe-to-shell', 'undeclared-url']

    def test_progress_is_shown_at_a_terminal(self, cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv('FORCE_COLOR', '1')
        write_skill(here / 'skills/one')
        assert 'Scanning' in cli('scan').err

    def test_in_a_checkout_that_is_not_trusted_nothing_is_written(self, cli: Cli, untrusted: Path):
        write_skill(untrusted / 'skills/one')
        done = cli('scan', '--record')
        assert done.status == 0
        assert not (untrusted / 'skills.lock').exists()


class TestOtherScanners:
    def test_what_another_scanner_found_is_taken_in(self, cli: Cli, here: Path):
        one, _ = (write_skill(here / f'skills/{name}') for name in ('one', 'two'))
        (here / 'out.sarif').write_text(sarif(one / 'SKILL.md'))
        done = cli('scan', '--sarif', 'out.sarif')
        assert done.status == 1
        assert 'skills/one/SKILL.md: error [scanner-finding] acme-scan R1: Bad.' in done.out
        assert 'failed: one\n' in done.out
        data = cli('scan', '--sarif', 'out.sarif', '--json').data['skills']
        verdicts = [
            (skill['name'], [(each['scanner'], each['passed']) for each in skill['verdicts']]) for skill in data
        ]
        assert verdicts == [
            ('one', [('pydantic-ai-skills', True), ('acme-scan', False)]),
            ('two', [('pydantic-ai-skills', True), ('acme-scan', True)]),
        ]
        assert cli('scan', '--sarif', 'out.sarif', '--ignore', 'R1').status == 0

    def test_what_validate_prints_can_be_taken_in(self, cli: Cli, here: Path):
        write(here, {'skills/one/SKILL.md': skill_md('other')})
        (here / 'out.sarif').write_text(cli('validate', '--format', 'sarif').out)
        done = cli('scan', '--sarif', 'out.sarif')
        assert 'skills/one/SKILL.md:2: warning [scanner-finding] pydantic-ai-skills (SARIF) name-mismatch: ' in done.out

    def test_no_file_speaks_for_another_scanner_or_for_an_earlier_run(self, cli: Cli, here: Path):
        folder = write_skill(here / 'skills/one', files=PIPE)
        (here / 'good.sarif').write_text(sarif().replace('acme-scan', 'Pydantic-AI-Skills'))
        (here / 'bad.sarif').write_text(sarif(folder / 'SKILL.md'))
        (here / 'none.sarif').write_text(sarif())
        args = [word for name in ('good', 'bad', 'none') for word in ('--sarif', f'{name}.sarif')]
        cli('scan', '--record', *args)
        (facts,) = read_facts(here / 'skills.lock').values()
        assert {name: verdict.passed for name, verdict in facts.scans.items()} == {
            'pydantic-ai-skills': False,
            'Pydantic-AI-Skills (SARIF)': True,
            'acme-scan': False,
        }

    def test_another_scanner_is_run_on_each_skill(self, cli: Cli, here: Path):
        one, _ = (write_skill(here / f'skills/{name}') for name in ('one', 'two'))
        code = f'import sys; print({sarif(one, level="warning")!r} if sys.argv[1] == {str(one)!r} else {sarif()!r})'
        command = f'{sys.executable} -c {shlex.quote(code)} {{}}'
        done = cli('scan', '--with', command)
        assert (done.status, done.out.count('warning [scanner-finding]')) == (1, 1)
        assert cli('scan', '--with', command, '--lenient').status == 0
        assert cli('scan', '--with', command, '--ignore', 'R1').status == 0

    def test_a_scanner_that_fails_is_a_failure(self, cli: Cli, here: Path):
        write_skill(here / 'skills/one')
        done = cli('scan', '--with', '/no/scanner')
        assert (done.status, 'could not be started' in done.err) == (3, True)


class TestTheLedger:
    def test_verdicts_about_skills_of_sources_are_recorded(self, cli: Cli, here: Path, repository: Repository):
        require(here, 'scanned')
        cli('add', repository.path)
        assert "The skill 'pdf' is left out: it is not scanned. Run: pydantic-ai-skills scan pdf." in cli('list').out
        done = cli('scan', 'pdf')
        assert (done.status, done.out) == (0, '1 skill scanned, no problems.\nRecorded in skills.lock: pdf.\n')
        assert [skill['name'] for skill in cli('list', '--json').data['skills']] == ['pdf']
        (facts,) = read_facts(here / 'skills.lock').values()
        assert facts.is_scanned

    def test_a_failed_verdict_is_recorded_too(self, cli: Cli, here: Path, repository: Repository):
        write(repository.path / 'skills/pdf', PIPE)
        repository.commit('second')
        require(here, 'scanned')
        cli('add', repository.path)
        assert cli('scan').status == 1
        assert 'failed it; to see why, run: pydantic-ai-skills scan pdf' in cli('list').out
        cli('scan', '--ignore', 'pipe-to-shell')
        assert 'locked, scanned' in cli('list', '--long').out

    def test_nothing_is_recorded_on_request(self, cli: Cli, here: Path, repository: Repository):
        cli('add', repository.path)
        cli('scan', '--no-record')
        assert read_facts(here / 'skills.lock') == {}

    def test_skills_of_ones_own_are_recorded_on_request(self, cli: Cli, here: Path):
        folder = write_skill(here / 'skills/one')
        assert 'Recorded in skills.lock: one.' in cli('scan', '--record').out
        assert cli('list', '--json').data['skills'][0]['trust']['scanned']
        (folder / 'new.md').write_text('x')
        trust = cli('list', '--json').data['skills'][0]['trust']
        assert (trust['scanned'], trust['locked']) == (False, False)
        (folder / 'link').symlink_to('new.md')
        assert 'Recorded' not in cli('scan', '--record').out

    def test_a_file_edited_in_the_cache_is_not_recorded(
        self, cli: Cli, here: Path, repository: Repository, tmp_path: Path
    ):
        cli('add', repository.path)
        (file,) = (tmp_path / 'cache').rglob('forms.md')
        scanner = tmp_path / 'edits.py'
        scanner.write_text(f'open({str(file)!r}, "a").write(" ")\nprint({sarif()!r})\n')
        done = cli('scan', 'pdf', '--with', f'{sys.executable} {scanner}')
        assert (done.status, 'Recorded' in done.out) == (0, False)

    def test_show_and_list_tell_what_a_skill_has(self, cli: Cli, here: Path, repository: Repository):
        key = Key(here)
        key.sign(repository.path / 'skills/pdf')
        repository.commit('second')
        write(here, {'pyproject.toml': '[tool.pydantic-ai-skills]\nsigners = ["release.pub"]\n'})
        cli('add', repository.path)
        cli('scan')
        content = cli('show', 'pdf', '--json').data['source']['content_hash']
        record_score(here / 'skills.lock', content, EvalScore(pass_rate=0.9, cases=10, model='m', delta=0.2))
        trust: dict[str, Any] = cli('show', 'pdf', '--json').data['trust']
        assert (trust['locked'], trust['scanned'], trust['evaluated']) == (True, True, True)
        assert trust['signed_by'].startswith('key sha256:')
        assert (trust['score']['pass_rate'], trust['scans'][0]['scanner']) == (0.9, 'pydantic-ai-skills')
        lines = cli('show', 'pdf').out
        for line in (
            'locked     yes\n',
            'signed     key sha256:',
            f'scanned    passed by pydantic-ai-skills {version("pydantic-ai-skills")} (no findings)\n',
            'evaluated  90% of 10 cases with m, +20% against none\n',
        ):
            assert line in lines
        assert 'locked, signed, scanned, evaluated' in cli('list', '--long').out

    def test_show_shows_what_is_left_out_and_nothing_more_of_a_broken_lock_file(
        self, cli: Cli, here: Path, repository: Repository
    ):
        require(here, 'scanned')
        cli('add', repository.path)
        assert 'locked' in cli('show', 'pdf').out
        write_skill(here / 'skills/own')
        (here / 'skills.lock').write_text('?')
        assert cli('list').status == 0
        assert 'scanned' not in cli('show', 'own').out

    def test_the_source_of_a_skill_that_is_left_out_is_found_by_its_name(
        self, cli: Cli, here: Path, repository: Repository
    ):
        require(here, 'scanned')
        cli('add', repository.path)
        assert cli('remove', 'pdf').status == 0


def test_the_keyboard_chooses_among_skills_whatever_is_required(cli: Cli, here: Path, repository: Repository):
    repository.skill('xlsx')
    repository.commit('second')
    require(here, 'scanned')
    done = cli('add', repository.path, stdin='1\n', typed=True)
    assert (done.status, 'added pdf' in done.out) == (0, True)

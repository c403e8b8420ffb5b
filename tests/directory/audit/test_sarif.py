from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import SkillScriptExecutionError, SkillValidationError
from pydantic_ai_skills.directory.audit import read_sarif, run_scanner, sarif
from pydantic_ai_skills.directory.audit.other_scanner import command_line
from tests.folders import write_skill


def result(uri: str | None = 'one/SKILL.md', **more: Any) -> dict[str, Any]:
    place = {} if uri is None else {'artifactLocation': {'uri': uri}, 'region': {'startLine': 3}}
    return {'ruleId': 'R1', 'message': {'text': 'Bad.'}, 'locations': [{'physicalLocation': place}], **more}


def document(*results: dict[str, Any], **run: Any) -> dict[str, Any]:
    driver = {'name': 'acme-scan', 'version': '2.3', 'rules': [{'id': 'R0', 'defaultConfiguration': {'level': 'note'}}]}
    return {'version': '2.1.0', 'runs': [{'tool': {'driver': driver}, 'results': [*results], **run}]}


def read(tmp_path: Path, content: object) -> sarif.SarifRun:
    file = tmp_path / 'out.sarif'
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_sarif(file, root=tmp_path)[0]


class TestReading:
    def test_results_become_problems_and_a_verdict(self, tmp_path: Path):
        given = [result(level='error'), result(), result(level='note'), result(level='none'), result(level='odd')]
        run = read(tmp_path, document(*given))
        assert [(each.code, each.severity, each.path, each.line, each.message) for each in run.problems] == [
            ('scanner-finding', severity, str(tmp_path / 'one/SKILL.md'), 3, 'acme-scan R1: Bad.')
            for severity in ('error', 'warning', 'error')
        ]
        verdict = run.verdict
        assert (verdict.scanner, verdict.version, verdict.passed) == ('acme-scan', '2.3', False)
        assert (verdict.errors, verdict.warnings, verdict.notes) == (2, 1, 2)

    @pytest.mark.parametrize(
        ('given', 'rule', 'level'),
        [
            ({'ruleId': None, 'ruleIndex': 0}, 'R0', 'note'),
            ({'ruleId': 'R0'}, 'R0', 'note'),
            ({'ruleId': 'R0', 'level': 'error'}, 'R0', 'error'),
            ({'ruleId': None, 'ruleIndex': 7}, 'unnamed', 'warning'),
            ({'ruleId': None, 'ruleIndex': -1}, 'unnamed', 'warning'),
        ],
    )
    def test_the_rule_says_how_bad_it_is_unless_the_result_does(
        self, tmp_path: Path, given: dict[str, Any], rule: str, level: str
    ):
        (found,) = read(tmp_path, document(result(**given))).results
        assert (found.rule, found.level) == (rule, level)

    @pytest.mark.parametrize(
        ('uri', 'base', 'path'),
        [
            ('one/a%20b.md', None, 'one/a b.md'),
            ('a.md', 'one/', 'one/a.md'),
            ('one/../../../out', None, None),
            ('https://acme.dev/a.md', None, None),
            ('//server/a.md', None, None),
            ('a.md', 'https://acme.dev/', None),
            ('a%00.md', None, None),
            ('http://[', None, None),
            (None, None, None),
        ],
    )
    def test_results_belong_to_the_skill_whose_folder_has_the_file(
        self, tmp_path: Path, uri: str | None, base: str | None, path: str | None
    ):
        given = result(uri)
        bases = {'B': {'uri': base}} if base else {}
        if base:
            given['locations'][0]['physicalLocation']['artifactLocation']['uriBaseId'] = 'B'
        run = read(tmp_path, document(given, originalUriBaseIds=bases))
        found = [each.path for each in run.about(str(tmp_path / 'one')).results]
        assert found == ([] if path is None else [str(tmp_path / path)])
        assert run.about(str(tmp_path / 'on')).results == ()

    def test_file_urls_are_paths(self, tmp_path: Path):
        folder = write_skill(tmp_path / 'one')
        run = read(tmp_path, document(result((folder / 'SKILL.md').as_uri())))
        assert len(run.about(str(folder)).results) == 1

    def test_text_is_cleaned_and_cut(self, tmp_path: Path):
        given = result(level='error', ruleId='R\u202e1\n', message={'text': f'Bad\x1b[31m\n {"x" * 5000}'})
        given['locations'][0]['physicalLocation']['region'] = {'startLine': -4}
        content = document(given)
        content['runs'][0]['tool']['driver']['name'] = '\u200b'
        (found,) = read(tmp_path, content).problems
        assert found.message == f'unnamed R1: Bad[31m {"x" * 492}…'
        assert found.line is None

    @pytest.mark.parametrize(
        ('content', 'message'),
        [
            ('', 'is not SARIF: document: Invalid JSON'),
            ('[' * 100_000, 'is not SARIF: document: Invalid JSON'),
            ('[]', 'is not SARIF: document: Input should be an object'),
            ('{"runs": []}', 'is not SARIF: runs: List should have at least 1 item'),
            ('{"runs": [{"tool": {}}]}', 'is not SARIF: runs.0.tool.driver: Field required'),
            (json.dumps(document(*[result()] * 10_001)), 'is not SARIF: runs.0.results: List should have at most 10000'),
        ],
    )  # fmt: skip
    def test_what_is_not_sarif_is_refused(self, tmp_path: Path, content: str, message: str):
        with pytest.raises(SkillValidationError) as refused:
            read(tmp_path, content)
        assert message in str(refused.value)

    def test_a_file_that_is_missing_or_too_large_is_refused(self, tmp_path: Path):
        with pytest.raises(SkillValidationError, match='none.sarif cannot be read: No such file'):
            read_sarif(tmp_path / 'none.sarif')
        with open(tmp_path / 'big.sarif', 'wb') as file:
            file.truncate(1 << 40)
        with pytest.raises(SkillValidationError, match='it is larger than 16,777,216 bytes'):
            read_sarif(tmp_path / 'big.sarif')

    def test_results_of_some_rules_can_be_left_out(self, tmp_path: Path):
        run = read(tmp_path, document(result(), result(ruleId='R2')))
        assert [each.rule for each in run.without(['R1']).results] == ['R2']


def scanner(tmp_path: Path, code: str) -> str:
    file = tmp_path / 'scanner.py'
    file.write_text(f'import json, sys, time\n{code}\n')
    return f'{sys.executable} {file}'


class TestOtherScanners:
    def test_a_scanner_gets_the_folder_and_its_results_are_about_it(self, tmp_path: Path):
        folder = write_skill(tmp_path / 'one')
        given = json.dumps(document(result('SKILL.md'), result('/elsewhere/x'), result(None)))
        command = scanner(tmp_path, f'assert sys.argv[1:] == [{str(folder)!r}]; print({given!r}); sys.exit(1)')
        (run,) = run_scanner(command, folder)
        assert [each.path for each in run.results] == [str(folder / 'SKILL.md'), str(folder), str(folder)]

    @pytest.mark.parametrize(
        ('command', 'argv'),
        [
            ('scan', ('scan', '/s')),
            ("scan {} --format 'a b'", ('scan', '/s', '--format', 'a b')),
            ('scan --in={}/x; rm', ('scan', '--in=/s/x;', 'rm')),
        ],
    )
    def test_no_shell_reads_the_command(self, command: str, argv: tuple[str, ...]):
        assert command_line(command, '/s') == argv

    @pytest.mark.parametrize(
        ('command', 'message'), [('scan "', 'cannot be read: No closing quotation'), (' ', 'is empty')]
    )
    def test_a_command_that_cannot_be_read_is_refused(self, tmp_path: Path, command: str, message: str):
        with pytest.raises(SkillValidationError, match=message):
            run_scanner(command, tmp_path)

    @pytest.mark.parametrize(
        ('code', 'message'),
        [
            ('time.sleep(60)', 'did not end within 1 s, so nothing of it counts'),
            ('print("x" * 40_000_000)', 'printed too much, so nothing of it counts'),
            (
                'print("No."); sys.exit("Broken.")',
                'ended with exit code 1. What it printed is not SARIF: document: Invalid JSON.* Broken.',
            ),
        ],
    )
    def test_it_is_held_to_limits(self, tmp_path: Path, code: str, message: str):
        with pytest.raises(SkillScriptExecutionError, match=message):
            run_scanner(scanner(tmp_path, code), tmp_path, timeout=1 if 'sleep' in code else 60)

    def test_a_scanner_that_is_not_there_is_an_error(self, tmp_path: Path):
        with pytest.raises(SkillScriptExecutionError, match="'/no/scanner' could not be started: No such file"):
            run_scanner('/no/scanner', tmp_path)

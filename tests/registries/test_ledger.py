from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pydantic_ai_skills import (
    EvalScore,
    ScanVerdict,
    Skill,
    SkillFacts,
    SkillRegistryError,
    read_facts,
    record_scan,
    record_score,
)
from pydantic_ai_skills.registries.lockfile import prune_lock, read_lock, write_lock
from pydantic_ai_skills.types import SkillProvenance

PASSED = ScanVerdict(scanner='pydantic-ai-skills', version='0.1.0', passed=True, warnings=2)
FAILED = ScanVerdict(scanner='acme "scan"', passed=False, errors=1, notes=3, ignored=('R1', 'R2'))
SCORE = EvalScore(pass_rate=0.95, cases=20, model='openai:gpt-5.2', baseline='none', delta=1 / 3)


@pytest.fixture
def lock_file(tmp_path: Path) -> Path:
    return tmp_path / 'skills.lock'


def skill(name: str, content: str, *, commit: str = 'c' * 40, signed_by: str | None = None) -> Skill:
    source = SkillProvenance(
        kind='git', url='https://a', commit=commit, path=name, content_hash=content, signed_by=signed_by
    )
    return Skill(name, 'x', '', source=source)


def test_the_file_is_sorted_with_a_line_for_each_fact(lock_file: Path):
    write_lock(lock_file, [skill('pdf', 'sha256:2', signed_by='key sha256:77')])
    record_score(lock_file, 'sha256:2', SCORE, name='pdf')
    record_scan(lock_file, 'sha256:2', PASSED, name='pdf')
    record_scan(lock_file, 'sha256:2', FAILED, name='pdf')
    record_scan(lock_file, 'sha256:9', PASSED, name='docx')
    assert lock_file.read_text().partition('\n')[2] == (
        'version = 2\n'
        '\n'
        '[[source]]\n'
        'kind = "git"\n'
        'url = "https://a"\n'
        f'commit = "{"c" * 40}"\n'
        '\n'
        '[source.skills]\n'
        '"pdf" = "sha256:2"\n'
        '\n'
        '[[content]]\n'
        'hash = "sha256:9"\n'
        'name = "docx"\n'
        '\n'
        '[content.scans]\n'
        '"pydantic-ai-skills" = { version = "0.1.0", passed = true, errors = 0, warnings = 2, notes = 0 }\n'
        '\n'
        '[[content]]\n'
        'hash = "sha256:2"\n'
        'name = "pdf"\n'
        'signed-by = "key sha256:77"\n'
        'score = { pass-rate = 0.95, cases = 20, model = "openai:gpt-5.2", baseline = "none", delta = 0.3333 }\n'
        '\n'
        '[content.scans]\n'
        '"acme \\"scan\\"" = { passed = false, errors = 1, warnings = 0, notes = 3, ignored = ["R1", "R2"] }\n'
        '"pydantic-ai-skills" = { version = "0.1.0", passed = true, errors = 0, warnings = 2, notes = 0 }\n'
    )


def test_what_is_read_is_what_was_recorded(lock_file: Path):
    assert read_facts(lock_file) == {}
    record_scan(lock_file, 'sha256:1', FAILED)
    record_score(lock_file, 'sha256:1', SCORE, name='pdf')
    assert read_facts(lock_file) == {
        'sha256:1': SkillFacts(name='pdf', scans={FAILED.scanner: FAILED}, score=replace(SCORE, delta=0.3333))
    }


def test_the_latest_verdict_of_each_scanner_counts(lock_file: Path):
    record_scan(lock_file, 'sha256:1', FAILED)
    record_scan(lock_file, 'sha256:1', PASSED)
    assert not read_facts(lock_file)['sha256:1'].is_scanned
    record_scan(lock_file, 'sha256:1', replace(FAILED, passed=True))
    assert read_facts(lock_file)['sha256:1'].is_scanned
    assert not SkillFacts().is_scanned


def test_another_content_of_a_skill_drops_its_facts(lock_file: Path):
    record_scan(lock_file, 'sha256:1', PASSED, name='pdf')
    record_scan(lock_file, 'sha256:x', PASSED, name='docx')
    record_score(lock_file, 'sha256:2', SCORE, name='pdf')
    assert sorted(read_facts(lock_file)) == ['sha256:2', 'sha256:x']


def test_a_content_that_is_locked_keeps_its_facts(lock_file: Path):
    """Two sources may have skills of one name."""
    write_lock(lock_file, [skill('pdf', 'sha256:1')])
    record_scan(lock_file, 'sha256:1', PASSED, name='pdf')
    record_scan(lock_file, 'sha256:2', PASSED, name='pdf')
    assert sorted(read_facts(lock_file)) == ['sha256:1', 'sha256:2']


def test_to_lock_another_content_drops_the_facts_of_the_old_one(lock_file: Path):
    write_lock(lock_file, [skill('pdf', 'sha256:1', signed_by='key 1'), skill('docx', 'sha256:d')])
    for content in ('sha256:1', 'sha256:d', 'sha256:local'):
        record_scan(lock_file, content, PASSED)
    write_lock(lock_file, [skill('pdf', 'sha256:2', commit='d' * 40), skill('docx', 'sha256:d', commit='d' * 40)])
    assert sorted(read_facts(lock_file)) == ['sha256:d', 'sha256:local']


def test_to_lock_again_keeps_facts_and_renews_who_signed(lock_file: Path):
    write_lock(lock_file, [skill('pdf', 'sha256:1', signed_by='key 1')])
    record_scan(lock_file, 'sha256:1', PASSED)
    for signer in ('key 2', None):
        write_lock(lock_file, [skill('pdf', 'sha256:1', signed_by=signer)])
        facts = read_facts(lock_file)['sha256:1']
        assert (facts.signed_by, facts.is_scanned) == (signer, True)


def test_to_remove_a_source_drops_its_facts_and_keeps_others(lock_file: Path):
    write_lock(lock_file, [skill('pdf', 'sha256:1')])
    record_scan(lock_file, 'sha256:1', PASSED)
    record_scan(lock_file, 'sha256:local', PASSED)
    prune_lock(lock_file, lambda _source, _path: False)
    assert (read_lock(lock_file), list(read_facts(lock_file))) == ([], ['sha256:local'])
    lock_file.unlink()
    write_lock(lock_file, [skill('pdf', 'sha256:1')])
    record_scan(lock_file, 'sha256:1', PASSED)
    prune_lock(lock_file, lambda _source, _path: False)
    assert not lock_file.exists()


def test_a_file_of_version_1_is_read_and_stays_one_without_facts(lock_file: Path):
    text = write_lock(lock_file, [skill('pdf', 'sha256:1')]).read_text()
    assert '\nversion = 1\n' in text
    assert [source.skills for source in read_lock(lock_file)] == [{'pdf': 'sha256:1'}]
    assert write_lock(lock_file, [skill('pdf', 'sha256:1')]).read_text() == text
    record_scan(lock_file, 'sha256:1', PASSED)
    assert '\nversion = 2\n' in lock_file.read_text()


@pytest.mark.parametrize(
    ('content', 'reason'),
    [
        ('content = 3', 'is not iterable'),
        ('content = [3]', 'content: Input should be a valid dictionary'),
        ('[[content]]\nname = "x"', 'content.hash: Field required'),
        ('[[content]]\nhash = "x"\nsigned_by = "me"', 'content.signed_by: Extra inputs are not permitted'),
        ('[[content]]\nhash = "x"\nscans = { a = { passed = "yes" } }', 'content.scans.a.passed: Input should be a valid boolean'),
        ('[[content]]\nhash = "x"\nscore = { pass-rate = 2.0, cases = 1, model = "m" }', 'content.score.pass-rate: Input should be less'),
        ('[[content]]\nhash = "x"\nscore = { pass-rate = nan, cases = 1, model = "m" }', 'content.score.pass-rate: Input should be'),
        ('[[content]]\nhash = "x"\nscore = { pass-rate = 1, cases = -1, model = "m" }', 'content.score.cases: Input should be greater'),
    ],
)  # fmt: skip
def test_facts_that_do_not_fit_make_the_file_unreadable(lock_file: Path, content: str, reason: str):
    lock_file.write_text(f'version = 2\n{content}\n')
    with pytest.raises(SkillRegistryError, match='cannot be read as a lock file') as refused:
        record_scan(lock_file, 'sha256:1', PASSED)
    assert reason in str(refused.value)


@pytest.mark.parametrize(('rate', 'cases'), [(1.1, 1), (-0.1, 1), (float('nan'), 1), (0.5, -1)])
def test_a_score_that_makes_no_sense_is_an_error(rate: float, cases: int):
    with pytest.raises(ValueError, match='A pass rate is from 0 to 1'):
        EvalScore(pass_rate=rate, cases=cases, model='m')


@pytest.mark.parametrize(
    ('fact', 'text'),
    [
        (PASSED, 'passed by pydantic-ai-skills 0.1.0 (2 warnings)'),
        (FAILED, 'failed by acme "scan" (1 error, 3 notes, without R1, R2)'),
        (ScanVerdict(scanner='x', passed=True), 'passed by x (no findings)'),
        (SCORE, '95% of 20 cases with openai:gpt-5.2, +33% against none'),
        (EvalScore(pass_rate=1, cases=1, model='m'), '100% of 1 case with m'),
        (EvalScore(pass_rate=0, cases=2, model='m', delta=-0.5), '0% of 2 cases with m, -50% against none'),
    ],
)
def test_facts_are_told_in_words(fact: object, text: str):
    assert str(fact) == text

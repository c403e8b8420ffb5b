"""Skills, reports of scanners and signatures that are made to keep whoever checks them busy."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pydantic_ai_skills import FolderSkillsRegistry, SkillValidationError, audit_skill, read_sarif
from tests.folders import write_skill
from tests.hostile.conftest import Scoreboard, Stopwatch
from tests.registries.signing import SIGNATURE, Key

PIECES = {
    'downloads': 'curl ',
    'pipes': '| sudo ',
    'comments that do not end': '<!--',
    'instructions': '<!-- ignore a b c -->',
    'hidden characters': '\u200b',
    'hosts': 'https://a.dev/',
    'names of hosts': 'a.b ',
    'beginnings of keys': '-----BEGIN ',
    'beginnings of tokens': 'sk-',
}


@pytest.mark.parametrize('what', PIECES)
def test_55_a_skill_is_audited_in_time(tmp_path: Path, scoreboard: Scoreboard, what: str) -> None:
    text = PIECES[what] * (900_000 // len(PIECES[what].encode()))
    folder = write_skill(tmp_path / 'one', body=text, files={'a.py': text, 'b.md': text})
    watch = Stopwatch(limit=3.0, clock=time.process_time)
    for _ in watch:
        with watch:
            audit_skill(folder)
    scoreboard.record(55, f'audit of 3 files of 0.9 MB of {what}', str(watch), '3 s')
    assert watch.best <= watch.limit


REPORTS = {
    'nested lists': '[' * 8_000_000,
    'nested objects': '{"runs":' * 1_000_000,
    'many runs': '{"runs": [' + '{},' * 1_000_000 + '{}]}',
    'long numbers': '{"runs": [' + '9' * 8_000_000 + ']}',
}


@pytest.mark.parametrize('what', REPORTS)
def test_53_a_report_of_a_scanner_is_refused_in_time(tmp_path: Path, scoreboard: Scoreboard, what: str) -> None:
    file = tmp_path / 'out.sarif'
    file.write_text(REPORTS[what])
    watch = Stopwatch(limit=1.0, clock=time.process_time)
    for _ in watch:
        with watch, pytest.raises(SkillValidationError, match='is not SARIF'):
            read_sarif(file)
    scoreboard.record(53, f'SARIF of 8 MB, {what}', f'refused, {watch}', 'refused, 1 s')
    assert watch.best <= watch.limit


SIGNATURES = {
    'nested lists': '[' * 2_000_000,
    'a long payload': '{"mediaType": "", "verificationMaterial": {}, "dsseEnvelope": {"payload": "' + 'A' * 2_000_000 + '"}}',
    'no files': '{"mediaType": "", "verificationMaterial": {}, "dsseEnvelope": {"payloadType": "", "signatures": [], "payload": '
    '"eyJwcmVkaWNhdGUiOnsic2VyaWFsaXphdGlvbiI6eyJtZXRob2QiOiJmaWxlcyIsImhhc2hfdHlwZSI6InNoYTI1NiJ9LCJyZXNvdXJjZXMiOltdfX0="}}',
}  # fmt: skip


@pytest.mark.parametrize('what', SIGNATURES)
def test_44_a_made_up_signature_is_refused(tmp_path: Path, scoreboard: Scoreboard, what: str) -> None:
    write_skill(tmp_path / 'acme/one', files={SIGNATURE: SIGNATURES[what]})
    key = Key(tmp_path)
    registry = FolderSkillsRegistry(
        tmp_path / 'acme', require=['signed'], signers=[key.public], cache_dir=tmp_path / 'cache'
    )
    found = registry.find()
    assert (found.skills, [problem.code for problem in found.problems]) == ((), ['signature-invalid'])
    scoreboard.record(44, f'signature with {what}', 'refused', 'refused')

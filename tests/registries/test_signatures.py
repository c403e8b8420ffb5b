"""Signatures are made for real, with keys of the tests' own, and nothing is asked over the network."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import FolderSkillsRegistry, SkillProblem, SkillValidationError, read_facts
from pydantic_ai_skills.registries import signatures
from tests.folders import write_skill
from tests.registries.signing import SIGNATURE, Authority, Key


@pytest.fixture
def key(tmp_path: Path) -> Key:
    return Key(tmp_path)


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    return write_skill(tmp_path / 'acme/pdf', files={'scripts/fill.py': 'print("filled")\n'})


class Look:
    """What a registry has that requires signatures, in a cache of its own."""

    def __init__(self, skill: Path, *signers: Any, require: Any = 'signed') -> None:
        cache = skill.parents[1] / 'cache'
        shutil.rmtree(cache, ignore_errors=True)
        lock = skill.parents[1] / 'skills.lock'
        self.registry = FolderSkillsRegistry(
            skill.parent, cache_dir=cache, lock_file=lock, require=require, signers=signers
        )
        found = self.registry.find()
        self.signers = [skill.source.signed_by for skill in found.skills if skill.source]
        self.problems: list[SkillProblem] = list(found.problems)

    @property
    def refusal(self) -> str:
        assert self.signers == []
        (problem,) = self.problems
        assert problem.code == 'signature-invalid'
        return problem.message.partition('because ')[2]


def test_a_signature_by_a_key_is_verified(skill: Path, key: Key):
    key.sign(skill)
    (signer,) = Look(skill, key.public).signers
    assert signer is not None
    assert signer.startswith('key sha256:')
    assert Look(skill, str(key.public)).signers == [signer]


def test_a_signature_by_a_certificate_is_verified(skill: Path, tmp_path: Path):
    authority = Authority(tmp_path)
    authority.sign(skill)
    assert Look(skill, authority.certificate).signers == ['certificate CN=Release Team']


def test_one_of_several_signers_is_enough(skill: Path, key: Key, tmp_path: Path):
    key.sign(skill)
    assert len(Look(skill, Key(tmp_path, 'other').public, key.public).signers) == 1


def test_the_signer_is_written_to_the_lock_file(skill: Path, key: Key):
    key.sign(skill)
    look = Look(skill, key.public)
    (facts,) = read_facts(look.registry.lock()).values()
    assert ([facts.signed_by], facts.name) == (look.signers, 'pdf')


def test_a_skill_without_a_signature_lacks_one(skill: Path, key: Key):
    (problem,) = Look(skill, key.public).problems
    assert (problem.code, problem.message) == (
        'requirement-unmet',
        "The skill 'pdf' is left out: it is not signed. Whoever publishes it has to sign it, as skill.oms.sig in its folder.",
    )


def test_where_none_is_required_unsigned_skills_are_used_and_bad_signatures_refused(skill: Path, key: Key):
    assert Look(skill, key.public, require=()).signers == [None]
    key.sign(skill)
    (skill / 'SKILL.md').write_text((skill / 'SKILL.md').read_text() + ' ')
    assert Look(skill, key.public, require=()).refusal == "'SKILL.md' was changed after it was signed."


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    'a byte': (lambda folder: (folder / 'scripts/fill.py').write_text('print("Filled")\n'), "'scripts/fill.py' was changed"),
    'a new file': (lambda folder: (folder / 'new.md').write_text('x'), "it leaves out 'new.md'"),
    'a hidden file': (lambda folder: (folder / '.gitignore').write_text('x'), "it leaves out '.gitignore'"),
    'a missing file': (lambda folder: (folder / 'scripts/fill.py').unlink(), "'scripts/fill.py' is signed and missing"),
}  # fmt: skip


@pytest.mark.parametrize('change', CHANGES)
def test_what_was_changed_after_it_was_signed_is_refused(skill: Path, key: Key, change: str):
    key.sign(skill)
    make, message = CHANGES[change]
    make(skill)
    assert message in Look(skill, key.public).refusal


def test_a_signature_by_another_key_is_refused(skill: Path, key: Key, tmp_path: Path):
    Key(tmp_path, 'other').sign(skill)
    assert 'none of the signers made it: Key mismatch' in Look(skill, key.public).refusal


def test_a_signature_by_another_authority_is_refused(skill: Path, key: Key, tmp_path: Path):
    Authority(tmp_path, name='mallory').sign(skill)
    assert 'none of the signers made it' in Look(skill, Authority(tmp_path).certificate).refusal
    key.sign(skill)
    assert Look(skill, Authority(tmp_path).certificate).refusal.endswith('it has no certificate.')


def test_a_signature_that_leaves_out_files_is_refused(skill: Path, key: Key):
    key.sign(skill, ignored=['scripts'])
    assert Look(skill, key.public).refusal == "it leaves out 'scripts/fill.py'."


def test_a_signature_without_a_sha_256_for_each_file_is_refused(skill: Path, key: Key):
    key.sign(skill, algorithm='blake2')
    assert Look(skill, key.public).refusal == 'it does not have one SHA-256 for each file.'


def forged(skill: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Write a signature with another content, which is signed for what it was before."""
    bundle = json.loads((skill / SIGNATURE).read_text())
    payload = json.loads(base64.b64decode(bundle['dsseEnvelope']['payload']))
    change(bundle, payload)
    bundle['dsseEnvelope']['payload'] = base64.b64encode(json.dumps(payload).encode()).decode()
    (skill / SIGNATURE).write_text(json.dumps(bundle))


def test_a_forged_signature_is_refused(skill: Path, key: Key):
    key.sign(skill, ignored=['scripts'])
    digest = '2c1b7ff5b6e0c1d0f7a9b4a2c5f3c1c7fbd6f9f4f2a6b5c8f4e3d2c1b0a99887'
    script = skill / 'scripts/fill.py'

    def add_file(bundle: dict[str, Any], payload: dict[str, Any]) -> None:
        resource = {'name': 'scripts/fill.py', 'algorithm': 'sha256', 'digest': digest}
        payload['predicate']['resources'].append(resource)

    forged(skill, add_file)
    assert "'scripts/fill.py' was changed" in Look(skill, key.public).refusal
    digest = signatures.hashlib.sha256(script.read_bytes()).hexdigest()
    key.sign(skill, ignored=['scripts'])
    forged(skill, add_file)
    assert Look(skill, key.public).refusal == 'none of the signers made it: InvalidSignature.'


def test_a_second_envelope_in_the_file_does_not_count(skill: Path, key: Key):
    """One that is shown, and a genuine one that leaves out files."""
    key.sign(skill, ignored=['scripts'])
    genuine = json.loads((skill / SIGNATURE).read_text())['dsseEnvelope']

    def hide(bundle: dict[str, Any], payload: dict[str, Any]) -> None:
        bundle['dsse_envelope'] = genuine
        digest = signatures.hashlib.sha256((skill / 'scripts/fill.py').read_bytes()).hexdigest()
        payload['predicate']['resources'].append({'name': 'scripts/fill.py', 'algorithm': 'sha256', 'digest': digest})

    forged(skill, hide)
    assert Look(skill, key.public).refusal == 'none of the signers made it: InvalidSignature.'


def test_a_signature_that_does_not_name_its_key_is_refused(skill: Path, key: Key, capsys: pytest.CaptureFixture[str]):
    key.sign(skill)
    forged(skill, lambda bundle, _: bundle['verificationMaterial']['publicKey'].clear())
    assert Look(skill, key.public).refusal == 'none of the signers made it: it does not say by which key it is.'
    assert capsys.readouterr().out == ''


@pytest.mark.parametrize(
    'content',
    [
        '',
        '[]',
        '{}',
        '[' * 100_000,
        '{"mediaType": "x", "verificationMaterial": {}, "dsseEnvelope": {}}',
        '{"mediaType": "x", "verificationMaterial": 3, "dsseEnvelope": {"payload": "", "payloadType": "", "signatures": []}}',
        '{"mediaType": "x", "verificationMaterial": {}, "dsseEnvelope": {"payload": "?", "payloadType": "", "signatures": []}}',
        '{"mediaType": "x", "verificationMaterial": {}, "dsseEnvelope": {"payload": "e30=", "payloadType": "", "signatures": []}}',
        ' ' * (signatures.MAX_SIGNATURE_BYTES + 1),
    ],
)
def test_what_is_not_a_signature_is_refused(skill: Path, key: Key, content: str):
    (skill / SIGNATURE).write_text(content)
    assert Look(skill, key.public).refusal.startswith('skill.oms.sig cannot be read: ')


@pytest.mark.parametrize('content', ['', 'no key', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'])
def test_a_signer_that_cannot_be_read_verifies_nothing(skill: Path, key: Key, content: str):
    key.sign(skill)
    key.public.write_text(content)
    assert Look(skill, key.public).refusal.startswith('none of the signers made it: ')
    key.public.unlink()
    assert Look(skill, key.public).refusal == 'none of the signers made it: no such file or directory.'


def test_an_identity_of_sigstore_verifies_no_signature_by_a_key(skill: Path, key: Key, tmp_path: Path):
    key.sign(skill)
    known = files('sigstore') / '_store' / 'https%3A%2F%2Ftuf-repo-cdn.sigstore.dev'
    config = {
        'mediaType': 'application/vnd.dev.sigstore.clienttrustconfig.v0.1+json',
        'trustedRoot': json.loads((known / 'trusted_root.json').read_bytes()),
        'signingConfig': json.loads((known / 'signing_config.v0.2.json').read_bytes()),
    }
    (tmp_path / 'trust.json').write_text(json.dumps(config))
    who = {'identity': 'me@acme.dev', 'issuer': 'https://acme.dev', 'trust_config': str(tmp_path / 'trust.json')}
    assert Look(skill, who).refusal.startswith('none of the signers made it: ')
    (signer,) = Look(skill, key.public, who).signers
    assert signer is not None
    assert signer.startswith('key ')


@pytest.mark.parametrize('signer', [3, {}, {'identity': 'me'}, {'identity': 'me', 'issuer': 'x', 'key': 'y'}])
def test_a_signer_is_a_path_or_an_identity_with_its_issuer(skill: Path, signer: Any):
    with pytest.raises(
        SkillValidationError, match="signers takes paths of public keys or certificates, and mappings with 'iden"
    ):
        Look(skill, signer)


def test_to_require_signatures_needs_signers(skill: Path):
    with pytest.raises(SkillValidationError, match=r"require=\['signed'\] needs signers="):
        Look(skill)


def test_without_the_extra_the_command_that_installs_it_is_named(
    skill: Path, key: Key, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(signatures, 'find_spec', dict[str, object]().get)
    with pytest.raises(ImportError, match=r"pip install 'pydantic-ai-skills\[signing\]'"):
        Look(skill, key.public)

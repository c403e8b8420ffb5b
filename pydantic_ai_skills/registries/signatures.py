"""Verifies `skill.oms.sig`, the signature of a skill's files, against signers that the developer named.

The signature is a sigstore bundle, made by `model-signing`. What a repository says about whom to trust never counts.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NotRequired, cast

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillValidationError
from pydantic_ai_skills.filesystem.pinned import PinnedFolder
from pydantic_ai_skills.filesystem.safe_open import OpenFolder, read_regular, reason
from pydantic_ai_skills.filesystem.user_dirs import expand_home

SIGNATURE_FILE = 'skill.oms.sig'
"""The file in a skill's folder that signs all others."""

MAX_SIGNATURE_BYTES = 4 * 1024 * 1024
"""A larger signature is not read."""

MAX_PEM_BYTES = 1024 * 1024
"""A larger file of keys or certificates is not read."""

_MATERIAL = ('tlogEntries', 'publicKey', 'certificate', 'x509CertificateChain', 'timestampVerificationData')
_CERTIFICATE = b'-----BEGIN CERTIFICATE-----'


@with_config(ConfigDict(extra='forbid'))
class SigstoreIdentity(TypedDict):
    """Somebody who signs with Sigstore: without a key, by an identity that a provider confirms."""

    identity: str
    """Who signs, such as an email address, or the URL of a workflow."""

    issuer: str
    """Who confirms it, such as `https://token.actions.githubusercontent.com`."""

    trust_config: NotRequired[str]
    """A file with the trust configuration of a private Sigstore; that of the public one is fetched when needed."""


class SignatureError(ValueError):
    """Why a signature does not count, in words."""


@dataclass(frozen=True, kw_only=True)
class SkillSigner:
    """Somebody whose signatures count."""

    pem: Path | None = None
    """A file with a public key, or with certificates of authorities."""

    sigstore: SigstoreIdentity | None = None

    @classmethod
    def of(cls, given: object) -> SkillSigner:
        """The signer that a developer named.

        Raises:
            ImportError: model-signing is not installed.
            SkillValidationError: It is neither a path nor the identity and the issuer of a Sigstore signer.
        """
        if find_spec('model_signing') is None:
            raise ImportError("signers= needs model-signing: pip install 'pydantic-ai-skills[signing]'.")
        if isinstance(given, str | os.PathLike):
            return cls(pem=expand_home(cast('str | Path', given)).absolute())
        keys: set[object] = set(cast('Mapping[object, object]', given)) if isinstance(given, Mapping) else set()
        if not {'identity', 'issuer'} <= keys <= SigstoreIdentity.__annotations__.keys():
            takes = "paths of public keys or certificates, and mappings with 'identity' and 'issuer'"
            raise SkillValidationError(f'signers takes {takes}, not {given!r}.')
        return cls(sigstore=cast('SigstoreIdentity', given))

    def verifier(self, material: Mapping[str, Any]) -> tuple[Any, str]:
        """The verifier of its signatures, and its name. `material` is what the signature says about its key."""
        from model_signing.verifying import Config  # takes long to import

        config: Any = Config()
        if self.sigstore is not None:
            trust_config = self.sigstore.get('trust_config')
            config.use_sigstore_verifier(
                identity=self.sigstore['identity'],
                oidc_issuer=self.sigstore['issuer'],
                trust_config=Path(trust_config) if trust_config else None,
            )
            return config, f'{self.sigstore["identity"]} ({self.sigstore["issuer"]})'
        assert self.pem is not None
        data = read_regular(self.pem, MAX_PEM_BYTES, follow_links=True)
        if _CERTIFICATE in data:
            config.use_certificate_verifier(certificate_chain=[self.pem])
            return config, f'certificate {_subject(material)}'
        key: Any = material.get('publicKey')
        if not isinstance(key, dict) or not cast('dict[str, Any]', key).get('hint'):
            raise SignatureError('it does not say by which key it is')
        config.use_elliptic_key_verifier(public_key=self.pem)
        return config, f'key {_fingerprint(data)}'


def read_signers(given: object) -> tuple[SkillSigner, ...]:
    """The signers that a developer named: one of them, or a list."""
    named = cast('list[object]', given) if isinstance(given, list | tuple) else [given]
    return tuple(map(SkillSigner.of, named))


def verify_signature(folder: PinnedFolder, signers: tuple[SkillSigner, ...]) -> str | None:
    """The name of the signer who signed the files of a skill; `None` if there is no signature.

    A signature must cover all files of the folder except itself, as they are now.

    Raises:
        SignatureError: There is a signature, and it does not count.
    """
    if SIGNATURE_FILE not in folder.files:
        return None
    bundle = _read_bundle(folder)
    _compare(_signed_files(bundle), {path: file.digest for path, file in folder.files.items()})
    reasons: list[str] = []
    with tempfile.TemporaryDirectory(prefix='pydantic-ai-skills-') as work:
        # Only what was compared is verified, whatever else is in the file.
        copy = Path(work) / SIGNATURE_FILE
        copy.write_text(json.dumps(bundle))
        for signer in signers:
            try:
                return _verify(signer, folder, copy, bundle)
            except Exception as error:  # noqa: BLE001 - the libraries raise whatever a stranger's file makes them
                reasons.append(_why(error))
    raise SignatureError(f'none of the signers made it: {"; ".join(dict.fromkeys(reasons))}')


def _verify(signer: SkillSigner, folder: PinnedFolder, signature: Path, bundle: dict[str, Any]) -> str:
    from model_signing.hashing import Config as Hashing

    config, name = signer.verifier(bundle['verificationMaterial'])
    path = Path(folder.root, *folder.steps)
    hashing: Any = Hashing().use_file_serialization(hashing_algorithm='sha256', allow_symlinks=False)
    hashing.set_ignored_paths(paths=[path / SIGNATURE_FILE], ignore_git_paths=False)
    config.set_hashing_config(hashing).verify(path, signature)
    return name


def _read_bundle(folder: PinnedFolder) -> dict[str, Any]:
    """The parts of a bundle that count."""
    try:
        with OpenFolder.beneath(folder.root, folder.steps) as opened:
            bundle = json.loads(opened.read(SIGNATURE_FILE, MAX_SIGNATURE_BYTES).data)
        material, envelope = bundle['verificationMaterial'], bundle['dsseEnvelope']
        return {
            'mediaType': bundle['mediaType'],
            'verificationMaterial': {name: material[name] for name in _MATERIAL if name in material},
            'dsseEnvelope': {name: envelope[name] for name in ('payload', 'payloadType', 'signatures')},
        }
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SkillResourceLoadError) as error:
        raise SignatureError(f'{SIGNATURE_FILE} cannot be read: {_why(error)}') from None


def _signed_files(bundle: dict[str, Any]) -> dict[str, str]:
    """The SHA-256 of each file that a bundle is for. Whether the bundle is genuine is not known yet."""
    try:
        payload = json.loads(base64.b64decode(bundle['dsseEnvelope']['payload'], validate=True))
        predicate = payload['predicate']
        method = predicate['serialization']['method'], predicate['serialization']['hash_type']
        resources: list[dict[str, str]] = predicate['resources']
        signed = {each['name']: each['digest'] for each in resources if each['algorithm'] == 'sha256'}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SignatureError(f'{SIGNATURE_FILE} cannot be read: {_why(error)}') from None
    if method != ('files', 'sha256') or len(signed) != len(resources):
        raise SignatureError('it does not have one SHA-256 for each file')
    return signed


def _compare(signed: Mapping[str, str], there: Mapping[str, str]) -> None:
    """Check that exactly these files are signed, except for the signature itself."""
    for path in sorted(there.keys() - signed.keys() - {SIGNATURE_FILE}):
        raise SignatureError(f'it leaves out {path!r}')
    for path, digest in sorted(signed.items()):
        if path not in there:
            raise SignatureError(f'{path!r} is signed and missing')
        if there[path] != digest:
            raise SignatureError(f'{path!r} was changed after it was signed')


def _fingerprint(pem: bytes) -> str:
    """The first 32 digits of the SHA-256 of a public key, as `openssl pkey -pubin -outform DER` writes the key."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

    key = load_pem_public_key(pem).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f'sha256:{hashlib.sha256(key).hexdigest()[:32]}'


def _subject(material: Mapping[str, Any]) -> str:
    """Whom a certificate is for."""
    from cryptography.x509 import load_der_x509_certificate

    try:
        first = material['x509CertificateChain']['certificates'][0]['rawBytes']
    except (KeyError, IndexError, TypeError):
        raise SignatureError('it has no certificate') from None
    return load_der_x509_certificate(base64.b64decode(first)).subject.rfc4514_string()


def _why(error: Exception) -> str:
    """Why it failed, on one line and without paths of this machine."""
    said = reason(error) if isinstance(error, OSError) else str(error)
    return ' '.join(f'{said or type(error).__name__}'.split())[:200].rstrip('.')

"""Keys of one's own, and real signatures made with them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID
from model_signing import hashing, signing

SIGNATURE = 'skill.oms.sig'


class Key:
    """A new private key, whose public part is in a file beside it."""

    def __init__(self, folder: Path, name: str = 'release') -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.private, self.public = folder / f'{name}.key', folder / f'{name}.pub'
        self.private.write_bytes(self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self.public.write_bytes(self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))

    def sign(self, skill: Path, *, ignored: Iterable[str] = (), algorithm: str = 'sha256') -> Path:
        """Sign all files of a skill but the ignored ones."""
        config: Any = signing.Config()
        return _sign(config.use_elliptic_key_signer(private_key=self.private), skill, ignored, algorithm)


class Authority:
    """A new authority, and a certificate of it for a signer."""

    def __init__(self, folder: Path, signer: str = 'Release Team', *, name: str = 'authority') -> None:
        self._own = ec.generate_private_key(ec.SECP256R1())
        self.certificate = folder / f'{name}.pem'
        root = self._issue(name, self._own.public_key(), name, is_authority=True)
        self.certificate.write_bytes(root.public_bytes(Encoding.PEM))
        self._signer = Key(folder, f'{name}-signer')
        issued = self._issue(signer, self._signer.key.public_key(), name, is_authority=False)
        self._leaf = folder / f'{name}-signer.pem'
        self._leaf.write_bytes(issued.public_bytes(Encoding.PEM))

    def _issue(self, name: str, key: Any, issuer: str, *, is_authority: bool) -> x509.Certificate:
        now = datetime.now(UTC)
        usage = dict.fromkeys(
            ('content_commitment', 'key_encipherment', 'data_encipherment', 'key_agreement', 'encipher_only'), False
        )
        return (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(_name(issuer))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True,
                    key_cert_sign=is_authority,
                    crl_sign=is_authority,
                    decipher_only=False,
                    **usage,
                ),
                critical=True,
            )
            .sign(self._own, hashes.SHA256())
        )

    def sign(self, skill: Path) -> Path:
        """Sign all files of a skill."""
        config: Any = signing.Config()
        config.use_certificate_signer(
            private_key=self._signer.private, signing_certificate=self._leaf, certificate_chain=[self.certificate]
        )
        return _sign(config, skill, (), 'sha256')


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _sign(config: Any, skill: Path, ignored: Iterable[str], algorithm: str) -> Path:
    signature = skill / SIGNATURE
    signature.unlink(missing_ok=True)
    how: Any = hashing.Config().use_file_serialization(hashing_algorithm=algorithm)  # pyright: ignore[reportArgumentType]
    how.set_ignored_paths(paths=[signature, *(skill / each for each in ignored)], ignore_git_paths=False)
    config.set_hashing_config(how).sign(skill, signature)
    return signature

"""Tokens and private keys that somebody left in a file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .files import AuditedFile, AuditedFolder
from .findings import Finding

_TOKENS = re.compile(
    r'(?P<private_key>-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[\s\\nr"\',+]{0,12}[A-Za-z0-9+/=]{24})'
    r'|\b(?:'
    r'(?P<AWS>(?:AKIA|ASIA)[0-9A-Z]{16})\b'
    r'|(?P<GitHub>gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60})'
    r'|(?P<GitLab>glpat-[\w-]{20})'
    r'|(?P<Slack>xox[abeprs]-[0-9]{6}[\w-]{10})'
    r'|(?P<OpenAI>sk-[\w-]{12,60}T3BlbkFJ)'
    r'|(?P<Anthropic>sk-ant-[a-z0-9]{5,8}-[\w-]{60})'
    r'|(?P<Google>AIza[\w-]{35})\b'
    r'|(?P<Stripe>[rs]k_live_[0-9A-Za-z]{20})'
    r'|(?P<npm>npm_[A-Za-z0-9]{36})\b'
    r'|(?P<PyPI>pypi-AgE[\w-]{50})'
    r'|(?P<Hugging_Face>hf_[A-Za-z]{34})\b'
    r')'
)
_FEWEST_CHARACTERS = 10
"""How many different characters a real token has at least."""


def secrets(file: AuditedFile, _folder: AuditedFolder) -> Iterator[Finding]:
    """Tokens and private keys. The findings repeat nothing of them."""
    for match in _TOKENS.finditer(file.text):
        if not _is_placeholder(match[0]):
            kind = (match.lastgroup or '').replace('_', ' ')
            what = 'A private key' if kind == 'private key' else f'What looks like a token of {kind}'
            yield Finding('secret-in-file', f'{what} is in the file.', match.start())


def _is_placeholder(token: str) -> bool:
    """Whether a token was made up: it says so, or is one character again and again."""
    said = token.upper()
    return 'EXAMPLE' in said or 'XXXX' in said or len(set(token[-30:])) < _FEWEST_CHARACTERS

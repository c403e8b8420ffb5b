"""What a person writes for a git repository."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import StrEnum

from .output import Failure

__all__ = ('Address', 'Protocol', 'parse_source')

_SCP_OR_URL = re.compile(r'(?P<url>(?:[A-Za-z][\w+.-]*://(?:[^/@]*@)?|[^/@:]+@(?=[^/@:]+:))?[^@]+)(?:@(?P<ref>.+))?')
_BROWSED = re.compile(r'(?P<url>https://[^/]+/.+?)/(?:-/)?tree/(?P<ref>[^/]+)(?:/(?P<path>.+?))?/?')
"""The address of a folder as a browser shows it."""


class Protocol(StrEnum):
    """A way to reach a repository that is not allowed by default."""

    file = 'file'
    http = 'http'


@dataclass(frozen=True)
class Address:
    """What a person writes for a repository."""

    url: str
    ref: str | None
    path: str


def parse_source(text: str) -> Address:
    """Read `URL`, `URL@ref`, or the address of a folder on a code host as a browser shows it."""
    browsed = _BROWSED.fullmatch(text)
    if browsed:
        return Address(browsed['url'], browsed['ref'], browsed['path'] or '')
    if text and os.path.isdir(os.path.expanduser(text)):
        return Address(text, None, '')
    match = _SCP_OR_URL.fullmatch(text)
    if match is None:
        raise Failure(f'{text!r} is not the URL of a repository.')
    return Address(match['url'], match['ref'], '')

"""Reads TOML that comes with a checkout, in time that grows with its length only."""

from __future__ import annotations

import re
import tomllib
from typing import Any

MAX_KEY_PARTS = 16
"""`tomllib` takes time quadratic in the parts of a dotted key: one line of 64 KB keeps it busy for minutes."""

# From the start of a document, each match is a whole string or comment: nothing else in TOML has a quote or a `#`.
_TEXT = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"""|\Z)'
    r"|'''.*?(?:'''|\Z)"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r'|#[^\n]*+',
    re.DOTALL,
)
_LONG_KEY = re.compile(rf'(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS}}}')


def load_toml(text: str) -> dict[str, Any]:
    """The document in a text; `ValueError` if it is not TOML, `RecursionError` if it is nested too deeply."""
    if _LONG_KEY.search(_TEXT.sub('x', text)):
        raise ValueError(f'a key has more than {MAX_KEY_PARTS} parts')
    return tomllib.loads(text)

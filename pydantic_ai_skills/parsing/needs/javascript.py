"""Finds npm packages, programs and keys in JavaScript and TypeScript, and in `package.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from .found import MAX_NAME, Found, key
from .programs import PROGRAMS

_BUILT_IN = frozenset(
    (
        *('assert', 'async_hooks', 'buffer', 'child_process', 'cluster', 'console', 'constants', 'crypto', 'dgram'),
        *(
            'diagnostics_channel',
            'dns',
            'domain',
            'events',
            'fs',
            'http',
            'http2',
            'https',
            'inspector',
            'module',
            'net',
        ),
        *('os', 'path', 'perf_hooks', 'process', 'punycode', 'querystring', 'readline', 'repl', 'stream'),
        *('string_decoder', 'sys', 'timers', 'tls', 'tty', 'url', 'util', 'v8', 'vm', 'wasi', 'worker_threads', 'zlib'),
    )
)
_PACKAGE = re.compile(r'(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*')
_TEXT = r"""['"]([^'"\n]{1,200}+)['"]"""
_IMPORTS = re.compile(
    rf'\b(?:require|import)\([ \t]*+{_TEXT}'
    rf"|^[ \t]*+(?:import|export)\b(?![ \t]+type\b)[^'\"\n;(]{{0,500}}?\bfrom[ \t]*+{_TEXT}"
    rf'|^[ \t]*+\}}[ \t]*+from[ \t]*+{_TEXT}'
    rf'|^[ \t]*+import[ \t]*+{_TEXT}',
    re.MULTILINE,
)
_COMMAND = re.compile(r'\b(?:spawn|spawnSync|execFile|execFileSync|exec|execSync)\([ \t]*+[`\'"]([\w.+-]{1,40}+)')
_VARIABLE = re.compile(
    r"""\bprocess\.env(?:\.([A-Z][A-Z0-9_]*+)|\[['"]([A-Z][A-Z0-9_]*+)['"]\])([ \t]*+(?:\?\?|\|\|))?"""
)

_DEMANDED = re.compile(r'!process\.env\.([A-Z][A-Z0-9_]*+)')
_ASSIGNED = re.compile(r'\b(?:const|let|var)[ \t]++(\w++)[ \t]*+=[ \t]*+process\.env\.([A-Z][A-Z0-9_]*+)')
_NEGATED = re.compile(r'!(\w++)')


def javascript_needs(text: str) -> Iterator[Found]:
    """What a script needs, as far as its imports, commands and variables show."""
    for match in _IMPORTS.finditer(text):
        name = package_of(next(filter(None, match.groups())))
        if name is not None:
            yield Found('npm', name)
    for match in _COMMAND.finditer(text):
        if match[1] in PROGRAMS:
            yield Found('program', match[1])
    negated = set(_NEGATED.findall(text))
    # A script that asks whether a variable is not set cannot do without it.
    demanded = {*_DEMANDED.findall(text), *(name for local, name in _ASSIGNED.findall(text) if local in negated)}
    for match in _VARIABLE.finditer(text):
        name = match[1] or match[2]
        if found := key(name, optional=match[3] is not None or name not in demanded):
            yield found


def package_of(imported: str) -> str | None:
    """The npm package behind an import; `None` for the modules of Node itself, files and aliases."""
    parts = imported.split('/')
    name = '/'.join(parts[: 2 if imported.startswith('@') else 1])
    is_package = len(name) <= MAX_NAME and _PACKAGE.fullmatch(name) and name not in _BUILT_IN
    return name if is_package else None


def package_json_needs(text: str) -> Iterator[Found]:
    """The packages that a `package.json` declares, without those for development."""
    try:
        declared: Any = json.loads(text)
    except (ValueError, RecursionError):
        return
    for field, optional in (('dependencies', False), ('optionalDependencies', True)):
        packages = cast('dict[str, Any]', declared).get(field) if isinstance(declared, dict) else None
        for name in cast('dict[str, Any]', packages) if isinstance(packages, dict) else ():
            if package_of(name) == name:
                yield Found('npm', name, optional)

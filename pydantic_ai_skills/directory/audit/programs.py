"""What programs bring along that nobody has read: downloads that are run, hosts that are not named, compiled code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import ascii_lowercase, ascii_uppercase

from .files import AuditedFile, AuditedFolder
from .findings import Finding

_SHELL = r'(?:sudo\s++(?:-\S++\s++)*+)?(?:/(?:usr/)?bin/)?(?:env\s++)?'
# Each part begins with a character of its own kind, so that most of a text is passed over at once.
_COMMANDS = re.compile(
    r'(?P<goes_on>\\\r?\n)'
    r'|(?P<end>[\n;][\s;]*+)'
    r'|(?P<inserted>[$<]\(\s*+(?:curl|wget)\b)'
    r'|(?P<download>(?:curl|wget|iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring)\b)'
    rf'|(?P<piped>\|\s*+(?=[/a-z]){_SHELL}(?:(?:(?:ba|da|fi|k|z)?sh|iex|invoke-expression)(?![\w./-])'
    # With an argument, these read their input as data.
    r'|(?:python[\d.]*+|perl|ruby|node)(?=\s*+(?:-\s|-?\Z|[\n;|&)"\'`]))))'
    r'|(?P<runs>eval\s++(?=["\'$])|(?:bash|dash|ksh|zsh|sh)\s++(?:-c\b|(?=<\())|source\s++(?=<\())'
    r'|(?P<expression>(?:iex|invoke-expression)\b)'
    r'|(?P<reply>eval\s++["\']?`\s*+(?:curl|wget)\b|(?:exec|eval)\s*+\(\s*+(?:await\s++)?(?:requests\.get|httpx\.get'
    r'|(?:urllib\.request\.)?urlopen|fetch)\b)'
)
"""The parts of commands that show whether a download is run."""

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
"""Unlike `lower()`, it leaves every character where it is."""

_RUN_AFTER = {'piped': {'download', 'inserted'}, 'inserted': {'runs'}, 'download': {'expression'}, 'reply': set[str]()}
"""What shows that a download is run, and what has to come before it in the same command."""

_URL = re.compile(r'https?://(?P<host>[a-z0-9.-]++)', re.IGNORECASE)
_COMMENT = re.compile(r'\s*+(?:#(?!!)|//|\*|/\*|--|rem\b)', re.IGNORECASE)
_ADDRESS = re.compile(r'(?:127\.|10\.|192\.168\.|0\.0\.0\.0)[\d.]*+')
_KNOWN_HOSTS = frozenset(
    {
        # Names that stand for others, and this machine.
        *('example.com', 'example.org', 'example.net', 'example', 'invalid', 'test', 'localhost', 'local', 'internal'),
        # Names of schemas and licences, which nobody connects to.
        *('w3.org', 'json-schema.org', 'json.schemastore.org', 'schemas.microsoft.com', 'schemas.openxmlformats.org'),
        *('openxmlformats.org', 'purl.org', 'schema.org', 'ns.adobe.com', 'apache.org', 'opensource.org', 'spdx.org'),
    }
)
_COMPILED = frozenset(
    {
        *('.a', '.class', '.com', '.dll', '.dylib', '.exe', '.jar', '.ko', '.lib', '.luac', '.msi', '.node', '.o'),
        *('.obj', '.pyc', '.pyd', '.pyo', '.scr', '.so', '.wasm', '.whl'),
    }
)
_COMPILED_SIGNS = (
    b'\x7fELF', b'MZ\x90\0', b'\0asm', b'\xca\xfe\xba\xbe', b'\xcf\xfa\xed\xfe', b'\xce\xfa\xed\xfe', b'!<arch>\n'
)  # fmt: skip


def downloads_that_run(file: AuditedFile, _folder: AuditedFolder) -> Iterator[Finding]:
    """A download that goes straight into a shell: nobody can review it, and it may be another one each time."""
    before: set[str | None] = set()
    for match in _COMMANDS.finditer(file.text.translate(_LOWER)):
        kind = match.lastgroup or ''
        needed = _RUN_AFTER.get(kind)
        if needed is not None and (before & needed or not needed):
            yield Finding('pipe-to-shell', 'A download is run without a look at it.', match.start())
        before = set() if kind == 'end' else before | {kind}


def hosts_not_named(file: AuditedFile, folder: AuditedFolder) -> Iterator[Finding]:
    """Hosts in programs that the `SKILL.md` does not name, nor a domain that they belong to."""
    if not file.is_program or not _URL.search(file.text):
        return
    told: set[str] = set()
    offset = 0
    for line in file.text.splitlines(keepends=True):
        for match in () if _COMMENT.match(line) else _URL.finditer(line):
            host = match['host'].lower().strip('.')
            if (
                host not in told
                and not _is_namespace(line, match.start())
                and not _is_declared(host, folder.named_hosts)
            ):
                told.add(host)
                message = f'The program names the host {host}, which the SKILL.md does not.'
                yield Finding('undeclared-url', message, offset + match.start())
        offset += len(line)


def _is_namespace(line: str, start: int) -> bool:
    """Whether a URL is the name of a namespace of XML, which nobody connects to."""
    before = line[max(0, start - 60) : start]
    return before.endswith(('="', "='", '=\\"')) and 'xmlns' in before[before.rfind(' ') + 1 :]


def _is_declared(host: str, named: frozenset[str]) -> bool:
    labels = host.split('.')[-8:]
    domains = {'.'.join(labels[n:]) for n in range(len(labels))}
    is_named = not domains.isdisjoint(named) or not domains.isdisjoint(_KNOWN_HOSTS)
    return is_named or '.' not in host or _ADDRESS.fullmatch(host) is not None


def compiled_code(file: AuditedFile, _folder: AuditedFolder) -> Iterator[Finding]:
    """Code that nobody can read."""
    if file.suffix in _COMPILED or file.data.startswith(_COMPILED_SIGNS):
        yield Finding('compiled-code', 'It is compiled code, which cannot be read.')


def oversized(file: AuditedFile, _folder: AuditedFolder) -> Iterator[Finding]:
    """A file that is too large to be searched."""
    if file.is_oversized:
        yield Finding('oversized-file', f'It has {file.pinned.size:,} bytes, too many to be searched.')

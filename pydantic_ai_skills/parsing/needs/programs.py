"""Finds programs and keys in shell scripts and in the shell commands of instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .found import Found, key

PROGRAMS: dict[str, str] = {
    **dict.fromkeys(('soffice', 'libreoffice'), 'LibreOffice'),
    **dict.fromkeys(('pdftoppm', 'pdftotext', 'pdfimages', 'pdfinfo', 'pdfunite', 'pdfseparate'), 'poppler-utils'),
    **dict.fromkeys(('node', 'npm', 'npx'), 'Node.js'),
    **dict.fromkeys(('ffmpeg', 'ffprobe'), 'ffmpeg'),
    **dict.fromkeys(('magick', 'identify'), 'ImageMagick'),
    **dict.fromkeys(('uv', 'uvx'), 'uv'),
    **dict.fromkeys(('psql', 'pg_dump'), 'the PostgreSQL client'),
    **dict.fromkeys(('java', 'javac'), 'a JDK'),
    **dict.fromkeys(('cargo', 'rustc'), 'Rust'),
    **dict.fromkeys(('pdflatex', 'xelatex', 'lualatex', 'latexmk'), 'TeX Live'),
    **dict.fromkeys(('dot', 'neato'), 'Graphviz'),
    **dict.fromkeys(('chromium', 'google-chrome'), 'Chromium'),
    **{
        name: name
        for name in (
            *(
                'ast-grep',
                'aws',
                'az',
                'bun',
                'bunx',
                'curl',
                'deno',
                'docker',
                'exiftool',
                'fly',
                'gcloud',
                'gh',
                'git',
            ),
            *('glab', 'go', 'gs', 'helm', 'hugo', 'inkscape', 'jq', 'kubectl', 'make', 'mmdc', 'mongosh', 'mysql'),
            *('ollama', 'pandoc', 'php', 'playwright', 'pnpm', 'podman', 'pwsh', 'qpdf', 'rclone', 'redis-cli', 'rg'),
            *(
                'rsync',
                'ruby',
                'shellcheck',
                'sips',
                'sox',
                'sqlite3',
                'ssh',
                'stripe',
                'supabase',
                'swift',
                'terraform',
            ),
            *('tesseract', 'tmux', 'tsx', 'typst', 'vercel', 'wget', 'wkhtmltopdf', 'wrangler', 'xcodebuild', 'yarn'),
            *('yq', 'yt-dlp', 'zip', 'unzip', '7z'),
        )
    },
}
"""Programs that are reported if they are missing, and what provides them. All others are ignored."""

_OF_PROJECTS = frozenset({'bun', 'bunx', 'cargo', 'deno', 'go', 'java', 'make', 'npm', 'npx', 'pnpm', 'swift', 'yarn'})
"""Programs that instructions mostly name as examples, for the user's own project."""

MAX_LINE = 1_000
"""How many characters of a line are searched."""

_COMMANDS = re.compile(
    r'(?:^|[|;&(`{])[ \t]*+'
    r'(?:(?:!|then|do|else|if|elif|while|sudo|exec|time|env|nohup|xargs|which|command|type)[ \t]++(?:-\w++[ \t]++)?+)*+'
    r'(?:[A-Za-z_]\w*+=\S*+[ \t]++)*+([A-Za-z0-9][\w.+-]*+)(?![\w./=(])'
)
_FENCE = re.compile(r'^[ \t]*(`{3,}|~{3,})[ \t]*(\w*)')
_SHELLS = frozenset({'bash', 'sh', 'shell', 'zsh', 'console', 'terminal'})
_VARIABLE = re.compile(r'\$(?:\{([A-Z][A-Z0-9_]*+)(:?[-=+?])?|([A-Z][A-Z0-9_]*+))')
_ASSIGNED = re.compile(r'^[ \t]*(?:export[ \t]+|local[ \t]+|readonly[ \t]+)?([A-Z][A-Z0-9_]*+)=', re.MULTILINE)
_QUOTED = re.compile(r'"[^"$`]*+"' + r"|'[^']*+'")
_HEREDOC = re.compile(r'<<-?[ \t]*([\'"]?)(\w+)\1')


def shell_needs(text: str) -> Iterator[Found]:
    """What a shell script needs: well-known programs at the start of commands, and keys it does not set itself."""
    assigned = set(_ASSIGNED.findall(text))
    for line in _code_lines(text.split('\n')):
        yield from _programs(line)
        for match in _VARIABLE.finditer(line):
            name = match[1] or match[3]
            if name not in assigned and (found := key(name, optional=(match[2] or '').endswith(('-', '=', '+')))):
                yield found


def instruction_needs(text: str) -> Iterator[Found]:
    """What the shell commands in fenced blocks of instructions need. Their keys are optional: they may be examples."""
    for line in _fenced(text.split('\n')):
        command = line.lstrip().removeprefix('$ ')
        for found in _programs(command):
            yield found._replace(optional=found.optional or found.name in _OF_PROJECTS)
        for match in _VARIABLE.finditer(command):
            if found := key(match[1] or match[3], optional=True):
                yield found


def _programs(line: str) -> Iterator[Found]:
    for match in _COMMANDS.finditer(_QUOTED.sub('""', line[:MAX_LINE])):
        if match[1] in PROGRAMS:
            # After `then` it is only called on a condition, such as the kind of the project.
            yield Found('program', match[1], optional='then' in match[0].split()[:-1])


def _code_lines(lines: list[str]) -> Iterator[str]:
    """The lines of a shell script without comments and without the here-documents in it."""
    end: str | None = None
    for line in lines:
        if end is not None:
            end = None if line.strip() == end else end
        elif not line.lstrip().startswith('#'):
            yield line[:MAX_LINE]
            if match := _HEREDOC.search(line[:MAX_LINE]):
                end = match[2]


def _fenced(lines: list[str]) -> Iterator[str]:
    """The lines of fenced blocks that hold shell commands."""
    fence, is_shell = '', False
    for line in lines:
        match = _FENCE.match(line[:MAX_LINE])
        if match and not fence:
            fence, is_shell = match[1], match[2].lower() in _SHELLS
        elif match and match[1].startswith(fence) and not match[2]:
            fence, is_shell = '', False
        elif is_shell and not line.lstrip().startswith('#'):
            yield line[:MAX_LINE]

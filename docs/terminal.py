"""Record the command line and draw the recording: `python docs/terminal.py docs/images`. Needs no network.

The commands really run, in a new folder. Each variant of the picture plays what was typed and printed, line by line.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path

COMMANDS: list[tuple[list[str], str]] = [
    (['trust'], ''),
    (['new', 'greeter', '--script'], ''),
    (['validate'], ''),
    (['chat'], 'load greeter\nrun scripts/hello.py Ada\n'),
]
"""The arguments of each command, and what is typed into it."""

SHOWN = {'trust': 1, 'new': 1}
"""How many lines of the output of a command are shown, where that is not all."""

FOLD = 3
"""How many lines of a tool's result are shown in full; of a longer one only the first is."""

COLUMNS, ROW, CHARACTER, LEFT, TOP = 88, 21, 8.43, 20, 52
STEP, PAUSE = 0.12, 0.9
"""Seconds from one line to the next, and before each command."""


@dataclass(frozen=True)
class Palette:
    """The colours of a picture."""

    paper: str
    bar: str
    text: str
    prompt: str
    quiet: str


PALETTES = {
    'terminal.svg': Palette('#f8f9fb', '#e3e6ec', '#24292f', '#0a7d4f', '#5f6b7a'),
    'terminal-dark.svg': Palette('#161b22', '#2d333b', '#e6edf3', '#56d364', '#9aa6b2'),
}

Line = tuple[str, str]
"""`prompt` for what is typed, `output` or `quiet` for what is printed; and the text."""


def record() -> list[Line]:
    """Run the commands one after another in a folder of their own."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, 'app')
        (folder / '.git').mkdir(parents=True)
        env = {name: value for name, value in os.environ.items() if not name.startswith(('PYDANTIC', 'XDG'))}
        env |= {'HOME': place, 'COLUMNS': str(COLUMNS), 'NO_COLOR': '1'}
        return [line for args, typed in COMMANDS for line in _run(args, typed, folder, env)]


def _run(args: Sequence[str], typed: str, folder: Path, env: dict[str, str]) -> Iterator[Line]:
    program = [sys.executable, '-m', 'pydantic_ai_skills', *args]
    done = subprocess.run(program, input=typed, cwd=folder, env=env, capture_output=True, text=True, check=True)
    yield 'prompt', f'$ pydantic-ai-skills {" ".join(args)}'
    said = iter(typed.splitlines())
    for line in _folded(done.stdout.replace(str(folder), '~/app').splitlines())[: SHOWN.get(args[0])]:
        if line.startswith('→'):
            yield 'prompt', f'> {next(said)}'
        yield 'quiet' if line.startswith(('→', '  ')) else 'output', line[:COLUMNS]


def _folded(lines: Sequence[str]) -> list[str]:
    """The lines, without empty ones; results of tools, which are indented, are cut."""
    folded: list[str] = []
    for indented, group in groupby(filter(str.strip, lines), lambda line: line.startswith('  ')):
        text = list(group)
        folded += [text[0], '  …'] if indented and len(text) > FOLD else text
    return folded


def draw(lines: Sequence[Line], palette: Palette) -> str:
    """The picture: a window whose lines appear one after another, or are all there for who wants no motion."""
    width, height = round(LEFT * 2 + COLUMNS * CHARACTER), TOP + ROW * len(lines) + 6
    rows = '\n'.join(_rows(lines, palette))
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>A terminal: pydantic-ai-skills makes a skill, checks it, and chats with a stand-in that runs its script</title>
<style>
text {{ font: 14px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; white-space: pre }}
@media (prefers-reduced-motion: no-preference) {{
  .line {{ animation: appear 0.01s both }}
  @keyframes appear {{ from {{ opacity: 0 }} to {{ opacity: 1 }} }}
}}
</style>
<rect width="{width}" height="{height}" rx="8" fill="{palette.paper}"/>
<path d="M0 8a8 8 0 0 1 8-8h{width - 16}a8 8 0 0 1 8 8v24H0z" fill="{palette.bar}"/>
<circle cx="20" cy="16" r="5" fill="#ec6a5e"/><circle cx="38" cy="16" r="5" fill="#f4bf4f"/>
<circle cx="56" cy="16" r="5" fill="#61c554"/>
{rows}
</svg>
"""


def _rows(lines: Sequence[Line], palette: Palette) -> Iterator[str]:
    colours = {'prompt': palette.prompt, 'output': palette.text, 'quiet': palette.quiet}
    seconds = 0.0
    for number, (kind, text) in enumerate(lines):
        seconds += PAUSE if kind == 'prompt' else STEP
        place = f'x="{LEFT}" y="{TOP + ROW * number + 6}" fill="{colours[kind]}"'
        yield f'<text class="line" {place} style="animation-delay: {seconds:.2f}s">{escape(text)}</text>'


def write(folder: Path) -> None:
    """Record once, and draw every variant."""
    lines = record()
    for name, palette in PALETTES.items():
        (folder / name).write_text(draw(lines, palette), 'utf-8')


if __name__ == '__main__':
    write(Path(sys.argv[1]))

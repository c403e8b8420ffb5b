"""The source in the guide to writing one passes the conformance suite, run as the guide says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / 'docs/writing-a-source.md'
TITLED = re.compile(r'^```python title="(?P<path>[^"]+)"\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)


def test_the_source_of_the_guide_passes_the_conformance_suite(tmp_path: Path):
    for file in TITLED.finditer(PAGE.read_text('utf-8')):
        (tmp_path / file['path']).write_text(file['text'], 'utf-8')
    command = [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '--rootdir', tmp_path, tmp_path]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert re.search(r'^(2[3-9]|[3-9]\d) passed', done.stdout, re.MULTILINE), done.stdout


def test_the_source_of_the_guide_has_about_forty_lines():
    (source,) = (file['text'] for file in TITLED.finditer(PAGE.read_text('utf-8')) if file['path'] == 'table_source.py')
    _, _, code = source.partition('FileSink\n')
    assert len([line for line in code.splitlines() if line.strip()]) <= 45

"""Folders of skills to measure with, and the bare loops to measure against."""

from __future__ import annotations

import os
from pathlib import Path

import yaml

SKILL = """\
---
name: {name}
description: Does task {number} of a long list of tasks, step by step. Use when somebody asks for task {number}.
license: MIT
metadata:
  version: "1.0"
---

# Task {number}

"""
LINE = 'Do this step with care, look at the result, and write down what you saw before you go on.\n'
SKILL_BYTES = 6_000


def write_skills(root: Path, count: int) -> None:
    """Write skills of 6 KB each, with one reference and one script."""
    for number in range(count):
        folder = root / f'task-{number:04}'
        (folder / 'references').mkdir(parents=True)
        (folder / 'scripts').mkdir()
        head = SKILL.format(name=folder.name, number=number)
        body = LINE * ((SKILL_BYTES - len(head)) // len(LINE) + 1)
        (folder / 'SKILL.md').write_text((head + body)[:SKILL_BYTES], 'utf-8')
        (folder / 'references/notes.md').write_text('# Notes\n', 'utf-8')
        (folder / 'scripts/run.py').write_text("print('done')\n", 'utf-8')


def scan_and_parse(root: Path) -> dict[str, object]:
    """The least that discovery can be: scan, read each file, parse its frontmatter."""
    found: dict[str, object] = {}
    with os.scandir(root) as entries:
        for entry in entries:
            with open(f'{entry.path}/SKILL.md', encoding='utf-8') as file:
                text = file.read()
            found[entry.name] = yaml.load(text[4 : text.index('\n---', 4)], yaml.CBaseLoader)
    return found


def stat_all(root: Path) -> int:
    """The least that noticing a change can be: the times of each folder and its `SKILL.md`."""
    latest = 0
    with os.scandir(root) as entries:
        for entry in entries:
            latest = max(latest, os.stat(entry.path).st_mtime_ns, os.stat(f'{entry.path}/SKILL.md').st_mtime_ns)
    return latest

"""`make published` on a small collection of our own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.published.__main__ import main
from benchmarks.published.collection import content_hash, skills_in
from benchmarks.published.starts import Start
from tests.folders import skill_md, write

USAGE = 'import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument("file")\n'
MAIN = 'if __name__ == "__main__":\n    parser.parse_args()\n'


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    return write(
        tmp_path / 'collection',
        {
            'README.md': '# Skills\n',
            'skills/pdf/SKILL.md': skill_md('pdf'),
            'skills/pdf/scripts/fill.py': USAGE + MAIN,
            'skills/pdf/scripts/old.py': (
                'import sys\nif __name__ == "__main__":\n    print("Usage: old.py FILE")\n    sys.exit(1)\n'
            ),
            'skills/pdf/scripts/charts.py': 'import no_such_package\n' + USAGE + MAIN,
            'skills/pdf/scripts/helper.py': '#!/usr/bin/env python3\n"""Widths."""\nW = {}\nW.update(a=80)\n',
            'skills/pdf/scripts/plain.py': '#!/usr/bin/env python3\nprint("done")\n',
            'skills/pdf/scripts/python2.py': '#!/usr/bin/env python3\nprint "done"\n',
            'skills/pdf/scripts/test_fill.py': MAIN,
            'skills/pdf/scripts/bare.py': (
                'import sys\nif __name__ == "__main__":\n    sys.exit("no file --help" if sys.argv[1:] else "usage: bare.py FILE")\n'
            ),
            'skills/pdf/scripts/build.sh': 'echo "usage: build.sh"\n',
            'plugins/office/skills/.hidden/docx/SKILL.md': skill_md('docx'),
            'plugins/office/skills/.hidden/docx/scripts/convert.sh': '#!/bin/bash\nno-such-program "$@"\n',
            'broken/SKILL.md': 'Nothing.',
            'broken/scripts/x.py': USAGE + MAIN,
        },
    )


def test_skills_and_programs_are_found_wherever_they_are(collection: Path):
    found = {
        skill.folder.relative_to(collection).as_posix(): [program.name for program in skill.programs]
        for skill in skills_in(collection)
    }
    assert found == {
        'broken': ['scripts/x.py'],
        'plugins/office/skills/.hidden/docx': ['scripts/convert.sh'],
        'skills/pdf': [
            f'scripts/{name}'
            for name in ('bare.py', 'build.sh', 'charts.py', 'fill.py', 'old.py', 'plain.py', 'python2.py')
        ],
    }


def test_a_table_says_what_starts_and_what_the_others_lack(collection: Path, capsys: pytest.CaptureFixture[str]):
    before = content_hash(collection)
    status = main([str(collection), '--python', sys.executable])
    out = capsys.readouterr().out
    assert '2 of 3 skills load' in out
    assert 'no-frontmatter 1' in out
    assert '| sandbox | python | 7 | 5 | 4 |' in out
    assert '| sandbox | bash | 2 | 1 | 1 |' in out
    assert '1 · start plainly and not by the tool (sandbox)\n- broken: scripts/x.py: not started' in out
    assert '- Python package no_such_package: scripts/charts.py' in out
    assert '- program no-such-program: scripts/convert.sh' in out
    assert '0 · files left in folders of skills (sandbox)' in out
    assert out.endswith('| collection | 2 of 3 | 5 → 4 · – · 1 → 1 | 0 |\n')
    assert (status, content_hash(collection)) == (1, before)


def test_strangers_code_runs_without_a_sandbox_only_if_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script = f'import pathlib\nif __name__ == "__main__":\n    pathlib.Path({str(tmp_path / "ran")!r}).touch()\n'
    write(tmp_path / 'one', {'SKILL.md': skill_md('one'), 'scripts/run.py': script})
    main([str(tmp_path / 'one')])
    assert not (tmp_path / 'ran').exists()
    assert main([str(tmp_path / 'one'), '--local']) == 0
    printed = capsys.readouterr()
    assert (tmp_path / 'ran').exists()
    assert 'Without a sandbox' in printed.err
    assert '| local | python | 1 | 1 | 1 |' in printed.out


def test_a_collection_that_is_not_there_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main([str(tmp_path / 'nowhere')])
    assert 'is not a folder' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('exit_code', 'output', 'is_good', 'reason'),
    [
        (0, '', True, None),
        (2, 'usage: x [-h] file\nx: error: no file', True, None),
        (1, 'Usage: x FILE', True, None),
        (1, 'Traceback\nKeyError: "x"', False, 'exit code 1: KeyError: "x"'),
        (2, 'usage: x\nPlease run: pip install "lxml"', False, 'Python package lxml'),
        (1, "ModuleNotFoundError: No module named 'lxml.etree'", False, 'Python package lxml'),
        (1, "Error: Cannot find module 'playwright'", False, 'npm package playwright'),
        (127, 'x.sh: line 3: soffice: command not found', False, 'program soffice'),
        (1, '\x1b[31mHelm is not there\x1b[0m', False, 'exit code 1: Helm is not there'),
        (None, 'It was stopped.', False, 'not started or stopped: It was stopped.'),
        (None, '', False, 'not started or stopped: '),
    ],
)
def test_what_counts_as_a_start(exit_code: int | None, output: str, is_good: bool, reason: str | None):
    start = Start(exit_code, output)
    assert start.is_good is is_good
    assert reason is None or start.reason == reason

"""Which files of a skill are offered to be run, which to be read, and which are not listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pydantic_ai_skills import SkillsDirectory, SkillsToolset
from pydantic_ai_skills.directory import programs
from pydantic_ai_skills.directory.programs import MAX_EXAMINED_BYTES, MAX_EXAMINED_TOTAL, Examiner
from tests.folders import call_tool, write_skill

GUARD = 'if __name__ == "__main__":\n    main()\n'
ONLY = 'import os\n\nX = 1\n\ndef f():\n    print(os.getcwd())\n\nclass C: ...\n'


@pytest.mark.parametrize(
    ('name', 'text', 'offered_for'),
    [
        ('scripts/a.py', GUARD, 'script'),
        ('eval-viewer/generate.py', GUARD, 'script'),
        ('scripts/a.py', f'{ONLY}if __name__ == "__main__":\n    raise SystemExit(main())', 'script'),
        ('deep/er/x.py', 'if __name__ == "__main__": main()', 'script'),
        ('tools/x.py', 'import sys\nprint(sys.argv)', 'script'),
        ('tools/x.py', 'import sys\nsys.exit(0) if 1 else print(2)', 'script'),
        ('tools/x.py', 'for x in y:\n    x.save()', 'script'),
        ('tools/x.py', 'await go()', 'script'),
        ('scripts/x.py', 'this is not python', 'script'),
        ('scripts/x.py', '', 'script'),
        ('lib/x.py', '', 'resource'),
        ('scripts/helper.py', ONLY, 'resource'),
        ('scripts/helper.py', f'#!/usr/bin/env python3\n"""Helps."""\n{ONLY}', 'resource'),
        ('scripts/helper.py', 'try:\n    import x\nexcept ImportError:\n    print("install x")', 'resource'),
        ('scripts/helper.py', 'import sys, logging\nsys.path.insert(0, ".")\nlogging.basicConfig()\nX\n', 'resource'),
        ('scripts/helper.py', f'{ONLY}if __name__ == "__main__":\n    raise RuntimeError("not this")\n', 'resource'),
        ('scripts/__init__.py', GUARD, 'hidden'),
        ('scripts/test_a.py', GUARD, 'hidden'),
        ('scripts/a_test.py', GUARD, 'hidden'),
        ('conftest.py', 'print()', 'hidden'),
        ('tests/run.sh', '#!/bin/sh\necho', 'hidden'),
        ('scripts/tests/a.py', GUARD, 'hidden'),
        ('scripts/a.test.ts', 'x()', 'hidden'),
        ('tests/cases.md', 'text', 'resource'),
        ('templates/a.py', GUARD, 'resource'),
        ('assets/a.sh', '#!/bin/sh\necho', 'resource'),
        ('scripts/a.js', 'console.log(1)', 'script'),
        ('scripts/a.js', 'export const x = 1', 'resource'),
        ('scripts/a.js', 'function f() {}\nmodule.exports = f', 'resource'),
        ('scripts/a.js', 'module.exports = f\nif (require.main === module) f()', 'script'),
        ('lib/a.mjs', 'console.log(process.argv)', 'script'),
        ('lib/a.mjs', 'console.log(1)', 'resource'),
        ('lib/a.js', '#!/usr/bin/env node\nf()', 'script'),
        ('scripts/types.d.ts', 'declare const x: number', 'resource'),
        ('scripts/a.sh', 'set -e\necho hi', 'script'),
        ('lib/a.sh', '#!/bin/bash\nmain() {\n  echo\n}\nmain "$@"', 'script'),
        ('lib/a.sh', 'echo hi', 'resource'),
        ('scripts/lib.sh', '#!/bin/bash\n# Helps.\nset -e\nX=1\n\nhelp() {\n  echo\n}\nfunction more {\n  echo\n}', 'resource'),
        ('scripts/a.rb', 'puts 1', 'script'),
        ('lib/a.rb', 'puts 1', 'resource'),
        ('bin/tool', '#!/usr/bin/env ruby\nputs 1', 'script'),
        ('bin/notes', 'text', 'resource'),
        ('scripts/big.py', '#' * MAX_EXAMINED_BYTES, 'script'),
        ('lib/big.py', '#' * MAX_EXAMINED_BYTES, 'resource'),
    ],
)  # fmt: skip
def test_a_program_is_told_from_a_helper_by_its_text(tmp_path: Path, name: str, text: str, offered_for: str) -> None:
    write_skill(tmp_path / 's', files={name: text})
    (skill,) = SkillsDirectory(tmp_path).get_skills().values()
    listed = {'script': skill.scripts, 'resource': skill.resources}
    assert [kind for kind, items in listed.items() if name in [item.name for item in items]] == (
        [] if offered_for == 'hidden' else [offered_for]
    )


def test_the_right_to_execute_alone_makes_no_document_a_script(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / 's', files={'NOTES.md': 'text', 'bin/tool': 'echo hi'})
    for name in ('NOTES.md', 'bin/tool'):
        (folder / name).chmod(0o755)
    (skill,) = SkillsDirectory(tmp_path).get_skills().values()
    assert [script.name for script in skill.scripts] == ['bin/tool']


def test_only_so_much_of_a_skill_is_examined() -> None:
    size = MAX_EXAMINED_BYTES - 1
    examiner = Examiner(lambda name, count: b'#' * size)
    judged = [examiner.judge(f'lib/{i}.py', b'', can_run=True) for i in range(MAX_EXAMINED_TOTAL // size + 2)]
    assert judged == ['resource'] * len(judged)
    assert examiner.judge('scripts/a.py', b'', can_run=True) == 'script'
    assert examiner.judge('lib/a.py', b'#!', can_run=True) == 'script'
    assert programs.MAX_EXAMINED_TOTAL < 10 * 1024 * 1024


def test_a_file_that_vanishes_while_it_is_listed_does_no_harm(tmp_path: Path) -> None:
    from pydantic_ai_skills.directory.folder_skill import Listing
    from pydantic_ai_skills.directory.settings import ScanLimits
    from pydantic_ai_skills.filesystem.safe_open import SkillFolder

    write_skill(tmp_path / 's', files={'lib/a.py': ''})
    listing = Listing(SkillFolder(str(tmp_path / 's')), ScanLimits())
    assert listing.read_head('lib/gone.py', 10) == b''


async def test_what_is_not_offered_can_be_read_and_run_by_its_name(tmp_path: Path) -> None:
    files = {'scripts/fill.py': 'print(1)', 'scripts/helper.py': 'X = 1\n', 'tests/check.py': 'print(2)', 'a.md': 'x'}
    write_skill(tmp_path / 's', files=files)
    toolset = SkillsToolset[None](directories=[tmp_path])
    for name, text in files.items():
        assert await call_tool(toolset, 'read_skill_resource', skill_name='s', resource_name=name) == (True, text)
    succeeded, result = await call_tool(toolset, 'run_skill_script', skill_name='s', script_name='tests/check.py')
    assert (succeeded, result.return_value) == (True, '2\n')
    succeeded, _ = await call_tool(toolset, 'run_skill_script', skill_name='s', script_name='scripts/helper.py')
    assert succeeded
    assert await call_tool(toolset, 'run_skill_script', skill_name='s', script_name='check') == (
        False,
        "'check' in skill 's' is a resource: use read_skill_resource.",
    )
    assert await call_tool(toolset, 'run_skill_script', skill_name='s', script_name='a.md') == (
        False,
        "'a.md' in skill 's' is a resource: use read_skill_resource.",
    )
    _, loaded = await call_tool(toolset, 'load_skill', skill_name='s')
    assert loaded.count('fill.py') == 1
    assert 'tests/check.py' not in loaded

"""What a skill needs, found in its files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pydantic_ai_skills import Skill, SkillNeeds, SkillsDirectory, skill_needs
from pydantic_ai_skills.filesystem.safe_open import SkillFolder
from pydantic_ai_skills.types.needs import MAX_DEPTH, MAX_FILES, required_packages
from tests.folders import write, write_skill

KINDS = ('python', 'npm', 'programs', 'keys', 'tools')
Row = tuple[str, dict[str, list[str]]]


def needs_of(folder: Path, files: dict[str, str | bytes] | None = None, body: str = 'Do it.') -> SkillNeeds:
    write_skill(folder, body=body, files=files)
    return skill_needs(SkillsDirectory(folder.parent).get_skills()[folder.name], environ={})


def shown(needs: SkillNeeds) -> dict[str, list[str]]:
    """The needs of each kind by name; optional ones with a question mark."""
    kinds = {kind: [f'{need.name}{"?" * need.optional}' for need in getattr(needs, kind)] for kind in KINDS}
    return {kind: names for kind, names in kinds.items() if names}


PYTHON: list[Row] = [
    ('import numpy', {'python': ['numpy']}),
    ('import os, json.decoder\nfrom pathlib import Path', {}),
    (
        'from PIL import Image\nimport yaml.nodes, cv2, docx',
        {'python': ['opencv-python', 'pillow', 'python-docx', 'pyyaml']},
    ),
    ('from google import genai', {'python': ['google-genai']}),
    ('import google.cloud.storage.blob', {'python': ['google-cloud-storage']}),
    ('import psycopg2', {'python': ['psycopg2-binary']}),
    ('import odd_module.part', {'python': ['odd-module']}),
    ('from . import x\nfrom .y import z\nimport helper, lib.inner', {}),
    ('try:\n    import lxml\nexcept ImportError:\n    lxml = None', {'python': ['lxml?']}),
    ('try:\n    import lxml\nexcept:\n    lxml = None', {'python': ['lxml?']}),
    ('try:\n    import lxml\nexcept ImportError:\n    raise SystemExit("pip install lxml")', {'python': ['lxml']}),
    ('try:\n    import lxml\nexcept ModuleNotFoundError:\n    sys.exit(1)', {'python': ['lxml']}),
    ('try:\n    import lxml\nexcept ValueError:\n    pass', {'python': ['lxml']}),
    ('try:\n    import lxml\nexcept ImportError:\n    lxml = None\nimport lxml', {'python': ['lxml']}),
    ('if TYPE_CHECKING:\n    import pandas\nelse:\n    import numpy', {'python': ['numpy']}),
    ('if typing.TYPE_CHECKING:\n    import pandas', {}),
    ('import numpy as (', {}),
    ("'\\d'; import numpy", {'python': ['numpy']}),
    (f'import {"x" * 200}', {}),
    ('subprocess.run(["soffice", "--headless"])', {'programs': ['soffice']}),
    ('subprocess.check_output("pdftoppm -r 100 a.pdf", shell=True)', {'programs': ['pdftoppm']}),
    ('shutil.which("ffmpeg"); subprocess.run(("git", "log"))', {'programs': ['ffmpeg', 'git']}),
    ('run(); run([]); run(command); run(["ls"]); run(1); (lambda: 1)()', {}),
    ('os.environ["ACME_TENANT"]', {'keys': ['ACME_TENANT']}),
    ('os.environ["HOME"]; os.environ["PYTHONPATH"]; os.environ[name]; os.environ["lower"]', {}),
    ('os.environ["ACME_TENANT"] = "x"', {}),
    ('os.getenv("OPENAI_API_KEY")', {'keys': ['OPENAI_API_KEY?']}),
    ('if not os.getenv("OPENAI_API_KEY"): fail()', {'keys': ['OPENAI_API_KEY']}),
    ('key = os.environ.get("OPENAI_API_KEY")\nif not key: fail()', {'keys': ['OPENAI_API_KEY']}),
    ('key = os.environ.get("OPENAI_API_KEY")\nif key is None: fail()', {'keys': ['OPENAI_API_KEY']}),
    ('a = os.getenv("A_TOKEN") or os.getenv("B_TOKEN")\nif not a: fail()', {'keys': ['A_TOKEN?', 'B_TOKEN?']}),
    ('os.getenv(name); os.getenv(1); a.b = os.getenv("A_TOKEN"); not x', {'keys': ['A_TOKEN?']}),
    ('os.environ.get("OPENAI_API_KEY", "")', {'keys': ['OPENAI_API_KEY?']}),
    ('os.environ.get("ACME_TENANT"); settings.get("API_KEY")', {}),
]
SHELL: list[Row] = [
    ('#!/bin/bash\ngit log | jq .', {'programs': ['git', 'jq']}),
    ('X=1 ffmpeg -i a; cat b && unzip c', {'programs': ['ffmpeg', 'unzip']}),
    ('if ! command -v pandoc >/dev/null; then exit 1; fi', {'programs': ['pandoc']}),
    ('V=$(node --version)', {'programs': ['node']}),
    ('if [ -f Cargo.toml ]; then cargo build; fi', {'programs': ['cargo?']}),
    ('npm test', {'programs': ['npm']}),
    ('echo "run git now"; # git log\necho git docker', {}),
    ('git=1\n./node x\nnode_modules/.bin/x', {}),
    ("cat <<'EOF'\ngit push\nEOF\ncurl x", {'programs': ['curl']}),
    (
        'curl -H "Authorization: $ACME_TOKEN" "${OTHER_API_KEY}"',
        {'programs': ['curl'], 'keys': ['ACME_TOKEN', 'OTHER_API_KEY']},
    ),
    ('echo "${ACME_TOKEN:-none}" "$NAME"', {'keys': ['ACME_TOKEN?']}),
    ('export ACME_TOKEN=1\necho $ACME_TOKEN', {}),
]
JAVASCRIPT: list[Row] = [
    ("const x = require('docx');", {'npm': ['docx']}),
    ("import fs from 'fs';\nimport {a} from 'node:path';\nimport './b.js';\nimport '../c';", {}),
    ("import {\n  a,\n} from '@acme/tools/deep';\nimport 'sharp';", {'npm': ['@acme/tools', 'sharp']}),
    ("import x from 'left-pad/y'; await import('pptxgenjs'); export * from 'zod'", {'npm': ['left-pad', 'pptxgenjs']}),
    ("import type { X } from 'types-only';\nimport y from '@/alias';\n// from 'prose'", {}),
    ("execSync('pdftoppm -r'); spawn('ls')", {'programs': ['pdftoppm']}),
    (
        "process.env.ACME_API_KEY; process.env['B_TOKEN'] ?? ''; process.env.NODE_ENV",
        {'keys': ['ACME_API_KEY?', 'B_TOKEN?']},
    ),
    ('if (!process.env.ACME_API_KEY) throw 1', {'keys': ['ACME_API_KEY']}),
    ('const k = process.env.ACME_API_KEY;\nif (!k) throw 1', {'keys': ['ACME_API_KEY']}),
    ('if (process.env.ACME_API_KEY) use(process.env.ACME_API_KEY)', {'keys': ['ACME_API_KEY?']}),
]


@pytest.mark.parametrize(('source', 'expected'), PYTHON)
def test_a_python_script_needs(source: str, expected: dict[str, list[str]], tmp_path: Path):
    files: dict[str, str | bytes] = {'scripts/run.py': source, 'scripts/helper.py': '', 'lib/inner.py': ''}
    assert shown(needs_of(tmp_path / 'one', files)) == expected


@pytest.mark.parametrize(('source', 'expected'), SHELL)
def test_a_shell_script_needs(source: str, expected: dict[str, list[str]], tmp_path: Path):
    assert shown(needs_of(tmp_path / 'one', {'scripts/run.sh': source})) == expected


@pytest.mark.parametrize(('source', 'expected'), JAVASCRIPT)
def test_a_javascript_needs(source: str, expected: dict[str, list[str]], tmp_path: Path):
    needs = shown(needs_of(tmp_path / 'one', {'scripts/run.js': source}))
    programs = [name for name in needs.pop('programs') if name not in ('node', 'bun')]
    assert needs | ({'programs': programs} if programs else {}) == expected


@pytest.mark.parametrize(
    ('name', 'text', 'expected'),
    [
        ('requirements.txt', 'pypdf>=5  # reads\n# no\n-r other.txt\n--index-url https://x.invalid\n', ['pypdf>=5']),
        (
            'requirements.txt',
            'a @ https://x.invalid/a.whl\ngit+https://x.invalid/b\n./c\nd[e]~=1.0,!=1.5\n',
            ['d[e]~=1.0,!=1.5'],
        ),
        ('requirements.txt', 'tomli; python_version < "3.11"', ['tomli; python_version < "3.11"']),
        ('scripts/requirements.txt', 'Foo_Bar', ['Foo_Bar']),
        ('pyproject.toml', '[project]\ndependencies = ["httpx", 1]', ['httpx']),
        ('pyproject.toml', 'project = 1', []),
        ('pyproject.toml', '[project', []),
        ('scripts/run.py', '# /// script\n# dependencies = ["rich"]\n# ///\nimport rich, other', ['rich']),
        ('scripts/run.py', '# /// script\n# dependencies = [\nimport other', []),
        ('scripts/run.py', '# /// script\n# dependencies = ["rich"]', ['rich']),
        ('examples/requirements.txt', 'numpy', []),
        ('scripts/test_x.py', 'import pytest', []),
    ],
)
def test_declared_packages_are_read_by_name_only(name: str, text: str, expected: list[str], tmp_path: Path):
    assert [need.requirement for need in needs_of(tmp_path / 'one', {name: text}).python] == expected


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('{"dependencies": {"docx": "^9", "Bad Name": "1"}, "devDependencies": {"x": "1"}}', ['docx']),
        ('{"optionalDependencies": {"sharp": "1"}}', ['sharp?']),
        ('{"dependencies": []}', []),
        ('[]', []),
        ('{', []),
        ('[' * 100_000, []),
    ],
)
def test_a_package_json_declares_npm_packages(text: str, expected: list[str], tmp_path: Path):
    assert shown(needs_of(tmp_path / 'one', {'package.json': text})).get('npm', []) == expected


def test_shell_commands_of_the_instructions_count(tmp_path: Path):
    body = 'Run `git x`.\n```bash\n# docker\n$ gh pr list\nnpm test\n```\n```python\nffmpeg\n```\n~~~sh\ncurl -u $ACME_TOKEN $NAME\n```\nqpdf x\n~~~\ntmux'
    needs = needs_of(tmp_path / 'one', body=body)
    assert shown(needs) == {'programs': ['curl', 'gh', 'npm?', 'qpdf'], 'keys': ['ACME_TOKEN?']}
    assert needs.programs[0].files == ('SKILL.md',)


@pytest.mark.parametrize(
    ('text', 'tools', 'implicit'),
    [
        ('interface: {display_name: Acme}\npolicy: {allow_implicit_invocation: false}', [], False),
        ('interface: {display_name: Acme}\ndependencies: {tools: [{type: mcp, value: acme, url: https://a.invalid}, {}, x]}', [('acme', 'mcp, https://a.invalid')], True),
        ('interface: {display_name: Acme}\ndependencies: {tools: x}\npolicy: [1]', [], True),
    ],
)  # fmt: skip
def test_agents_openai_yaml_names_tools(text: str, tools: list[tuple[str, str]], implicit: bool, tmp_path: Path):
    needs = needs_of(tmp_path / 'one', {'agents/openai.yaml': text})
    assert [(need.name, need.detail) for need in needs.tools] == tools
    assert needs.implicit_invocation is implicit
    assert needs.interface == {'display_name': 'Acme'}
    assert all(need.state == 'unknown' for need in needs.tools)


@pytest.mark.parametrize('text', ['a: [', 'x: &a {}\ny: *a', '- x'])
def test_an_agents_openai_yaml_that_cannot_be_read_says_nothing(text: str, tmp_path: Path):
    assert needs_of(tmp_path / 'one', {'agents/openai.yaml': text}) == SkillNeeds()


def test_a_need_says_where_it_was_seen_and_whether_it_is_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    programs = write(tmp_path / 'bin', {'soffice': '#!/bin/sh\n'})
    (programs / 'soffice').chmod(0o755)
    monkeypatch.setenv('PATH', str(programs))
    monkeypatch.setenv('NODE_PATH', str(write(tmp_path / 'modules', {'here/index.js': ''})))
    write_skill(
        tmp_path / 'skills/one',
        files={
            'scripts/a.py': 'import yaml, absent_module\nos.environ["ACME_KEY"], os.environ["OTHER_KEY"]',
            'scripts/b.py': 'import yaml\nsubprocess.run(["soffice"]); subprocess.run(["pandoc"])',
            'package.json': '{"dependencies": {"here": "1", "inside": "1", "gone": "1"}}',
            'node_modules/inside/index.js': '',
        },
    )
    skill = SkillsDirectory(tmp_path / 'skills').get_skills()['one']
    needs = skill_needs(skill, environ={'ACME_KEY': 'x'})
    assert {need.name: need.state for need in needs} == {
        'absent-module': 'missing',
        'pyyaml': 'met',
        'gone': 'missing',
        'here': 'met',
        'inside': 'met',
        'pandoc': 'missing',
        'soffice': 'met',
        'ACME_KEY': 'met',
        'OTHER_KEY': 'missing',
    }
    assert [need.name for need in needs.missing] == ['absent-module', 'gone', 'pandoc', 'OTHER_KEY']
    yaml = needs.python[1]
    assert (yaml.files, yaml.requirement) == (('scripts/a.py', 'scripts/b.py'), 'pyyaml')
    assert needs.python[0].requirement is None  # nobody installs a guess


def test_a_declared_version_says_more_than_an_import(tmp_path: Path):
    files: dict[str, str | bytes] = {'a.py': 'import yaml', 'requirements.txt': 'PyYAML>=6\n'}
    (need,) = needs_of(tmp_path / 'one', files).python
    assert (need.name, need.requirement, need.files) == ('pyyaml', 'PyYAML>=6', ('a.py', 'requirements.txt'))


def test_packages_are_looked_up_beside_the_python_that_runs_the_scripts(tmp_path: Path):
    site = 'venv/lib/python3.11/site-packages'
    write(
        tmp_path,
        {
            f'{site}/other/__init__.py': '',
            f'{site}/shared/part/__init__.py': '',
            f'{site}/Declared-1.dist-info/METADATA': 'Name: Declared\nVersion: 1\n',
            'venv/bin/python': '',
        },
    )
    source = 'import other, shared.part, shared.gone, yaml\nimport shared'
    write_skill(tmp_path / 'skills/one', files={'a.py': source, 'requirements.txt': 'declared'})
    skill = SkillsDirectory(tmp_path / 'skills').get_skills()['one']
    needs = skill_needs(skill, python_executable=tmp_path / 'venv/bin/python')
    assert {need.name: need.state for need in needs.python} == {
        'declared': 'met',
        'other': 'met',
        'pyyaml': 'missing',
        'shared': 'missing',
    }


def test_a_module_of_an_installed_package_is_named_by_its_package(tmp_path: Path):
    (need,) = needs_of(tmp_path / 'one', {'a.py': 'import _pytest'}).python
    assert (need.name, need.state, need.requirement) == ('pytest', 'met', 'pytest')


@pytest.mark.parametrize(
    ('name', 'program'), [('a.py', None), ('a.ts', 'tsx'), ('a.zsh', 'zsh'), ('inline.py', 'uv'), ('odd.py', None)]
)
def test_the_program_that_runs_a_script_is_a_need(
    name: str, program: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv('PATH', '')
    monkeypatch.setattr(sys, 'executable', str(tmp_path / 'python'))
    sources = {'inline.py': '# /// script\n# dependencies = ["x"]\n# ///\n', 'odd.py': '#!/usr/bin/env -i python\n'}
    needs = needs_of(tmp_path / 'one', {name: sources.get(name, '')})
    assert [(need.name, need.state) for need in needs.programs] == ([(program, 'missing')] if program else [])


def test_a_skill_in_python_needs_what_it_says():
    skill = Skill('one', 'Does it.', '```sh\nqpdf x\n```', compatibility='Needs the internet')
    needs = skill_needs(skill)
    assert (shown(needs), needs.compatibility) == ({'programs': ['qpdf']}, 'Needs the internet')


def test_what_is_read_is_bounded(tmp_path: Path):
    many: dict[str, str | bytes] = {f'scripts/s{number:03}.py': f'import m{number}' for number in range(MAX_FILES + 5)}
    assert len(needs_of(tmp_path / 'many', many).python) == MAX_FILES
    deep = '/'.join(['d'] * (MAX_DEPTH + 1))
    large = 'import numpy\n' + '#' * 300_000
    files: dict[str, str | bytes] = {f'{deep}/a.py': 'import numpy', 'large.py': large, '.hidden/a.py': 'import numpy'}
    assert shown(needs_of(tmp_path / 'deep', files)) == {}


def test_links_and_folders_that_cannot_be_read_are_left_out(tmp_path: Path):
    (tmp_path / 'outside.py').write_text('import numpy')
    folder = write_skill(tmp_path / 'skills/one', files={'scripts/a.py': 'import lxml'})
    (folder / 'scripts/b.py').symlink_to(tmp_path / 'outside.py')
    skill = SkillsDirectory(tmp_path / 'skills').get_skills()['one']
    assert shown(skill_needs(skill)) == {'python': ['lxml']}
    os.unlink(folder / 'SKILL.md')
    assert shown(skill_needs(skill)) == {'python': ['lxml']}


@pytest.mark.parametrize(
    ('script', 'expected'),
    [
        ('scripts/a.py', ('pypdf>=5', 'pyyaml')),
        ('scripts/inline.py', ('rich',)),
        ('scripts/run.sh', ('pypdf>=5', 'pyyaml')),
    ],
)
def test_a_script_needs_its_own_packages_or_those_of_the_skill(script: str, expected: tuple[str, ...], tmp_path: Path):
    write(
        tmp_path,
        {
            'scripts/a.py': 'import yaml, unknown_module\ntry:\n    import lxml\nexcept ImportError:\n    pass',
            'scripts/inline.py': '# /// script\n# dependencies = ["rich"]\n# ///\n',
            'scripts/run.sh': 'python a.py',
            'requirements.txt': 'pypdf>=5\n',
        },
    )
    assert required_packages(SkillFolder(str(tmp_path)), script) == expected

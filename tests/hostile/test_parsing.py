"""`SKILL.md` files that strangers wrote: HOSTILE cases 1 to 5, and what 8 says about the content of a file."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings

from pydantic_ai_skills import SkillsToolset
from pydantic_ai_skills.parsing import MAX_FRONTMATTER_BYTES, parse_head
from tests.parsing.strategies import WILD

from .conftest import Scoreboard, Stopwatch

GOOD = b'---\nname: good\ndescription: A good skill.\n---\nDo good.\n'

# In a process of its own a crash is a failure and not the end of the tests, and the memory is all there is.
DISCOVER = """
import json, resource, sys, time
from pathlib import Path
from pydantic_ai_skills import SkillsToolset

def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

def discover(folder):
    # It only computes, so that the time of this process is all it takes, whatever others do meanwhile.
    before, started = memory(), time.process_time()
    toolset = SkillsToolset(directories=[folder])
    skills = sorted(toolset.skills)
    took = time.process_time() - started
    return skills, [problem.code for problem in toolset.problems], took * 1000, memory() - before

folders = sorted(Path(sys.argv[1]).iterdir())
discover(folders[0])
for folder in folders:
    skills, problems, took, more = discover(folder)
    # A second look counts where the first was disturbed.
    print(json.dumps([folder.name, [skills, problems, min(took, discover(folder)[2]), more]]), flush=True)
"""

READ_DEEP = """
import json, sys, time, yaml
from pydantic_ai_skills.parsing.findings import RefusedYaml
from pydantic_ai_skills.parsing.yaml_reader import read_yaml

for loader in (yaml.CBaseLoader, yaml.BaseLoader):
    for opening in sys.argv[1:]:
        started = time.process_time()
        try:
            read_yaml(opening * 200_000, loader=loader)
        except RefusedYaml as error:
            took = time.process_time() - started
            print(json.dumps([loader.__name__, opening, error.finding.code, took * 1000]), flush=True)
"""


class Discovery(NamedTuple):
    """What a process saw of a folder with a good skill and a bad one."""

    skills: list[str]
    problems: list[str]
    milliseconds: float
    megabytes: float


def write_skills(folder: Path, **skills: bytes) -> Path:
    for name, data in {'good': GOOD, **skills}.items():
        (folder / name).mkdir(parents=True)
        (folder / name / 'SKILL.md').write_bytes(data)
    return folder


def discover_beside_good(folder: Path, bad: dict[str, str]) -> dict[str, Discovery]:
    """Look at each frontmatter in a folder of its own, with a good skill beside it."""
    for number, frontmatter in enumerate(bad.values()):
        write_skills(folder / f'{number:02}', bad=f'---\n{frontmatter}\n---\nInstructions.\n'.encode())
    found = dict(run(DISCOVER, str(folder)))
    assert sorted(found) == [f'{number:02}' for number in range(len(bad))]
    return {what: Discovery(*found[f'{number:02}']) for number, what in enumerate(bad)}


def run(source: str, *args: str) -> list[Any]:
    process = subprocess.run([sys.executable, '-c', source, *args], stdout=subprocess.PIPE, text=True)
    assert process.returncode == 0, f'The process died with {process.returncode} after:\n{process.stdout}'
    return [json.loads(line) for line in process.stdout.splitlines()]


def merge_bomb(reference: str, indent: str = '') -> str:
    levels = [f'l{i}: &l{i} {{{reference.format(f"*l{i - 1}")}}}' for i in range(1, 25)]
    return '\n'.join(indent + line for line in ('l0: &l0 {a: b}', *levels))


def test_1_a_merge_key_bomb_is_one_error(tmp_path: Path, scoreboard: Scoreboard):
    bombs = {
        'in metadata': 'name: bad\ndescription: x\nmetadata:\n' + merge_bomb('<<: [{0}, {0}]', '  '),
        'at the top': 'name: bad\n' + merge_bomb('<<: [{0}, {0}]') + '\ndescription: x\n<<: *l24',
        'as keys and values': 'name: bad\n' + merge_bomb('a: {0}, b: {0}') + '\ndescription: *l24',
        'in broken YAML': 'name: bad\n' + merge_bomb('<<: [{0}, {0}]') + '\ndescription: x: y\nz: [',
    }
    for what, found in discover_beside_good(tmp_path, bombs).items():
        scoreboard.record(1, f'merge-key bomb {what}', f'{found.milliseconds:.1f} ms', '50 ms')
        assert (found.skills, found.problems) == (['good'], ['yaml-alias'])
        assert found.milliseconds <= 50


def alias_bomb(levels: int, width: int) -> str:
    lines = [f'a{i}: &a{i} [{", ".join([f"*a{i - 1}"] * width)}]' for i in range(1, levels)]
    return '\n'.join([f'a0: &a0 [{", ".join(["lol"] * width)}]', *lines])


def test_2_an_alias_bomb_is_one_error(tmp_path: Path, scoreboard: Scoreboard):
    bombs = {
        'of lists': alias_bomb(10, 9) + '\nname: bad\ndescription: *a9',
        'as key': alias_bomb(10, 9) + '\nname: bad\ndescription: x\n*a9 : y',
        'of one long text': f'name: bad\na: &a {"x" * 30_000}\ndescription: [' + '*a, ' * 5_000 + ']',
        'that holds itself': 'name: bad\ndescription: &a [*a, *a]',
        'in a block': 'name: bad\ndescription: &a\n  - x\n  - *a',
    }
    for what, found in discover_beside_good(tmp_path, bombs).items():
        scoreboard.record(2, f'alias bomb {what}', f'{found.milliseconds:.1f} ms', '50 ms')
        scoreboard.record(2, f'alias bomb {what}', f'{found.megabytes:.1f} MB', '10 MB')
        assert (found.skills, found.problems) == (['good'], ['yaml-alias'])
        assert found.milliseconds <= 50
        assert found.megabytes <= 10


def test_3_deep_nesting_is_one_error(tmp_path: Path, scoreboard: Scoreboard):
    towers = {
        f'{levels:,} × {opening!r}': f'name: bad\ndescription: {opening * levels}'
        for levels in (1_000, 20_000, 200_000)
        for opening in ('[', '{', '{a: ', '[{a: ', '&a [', '!a [')
    }
    towers |= {
        f'{levels:,} × {opening!r}': f'name: bad\ndescription: x\nmetadata:\n  a:\n    {opening * levels}'
        for levels in (1_000, 20_000, 200_000)
        for opening in ('- ', '? ')
    }
    towers['300 levels of indentation'] = 'description: x\nmetadata:\n' + '\n'.join(
        ' ' * level + 'a:' for level in range(1, 300)
    )
    for what, found in discover_beside_good(tmp_path, towers).items():
        scoreboard.record(3, what, f'{found.milliseconds:.1f} ms', '500 ms')
        too_much = (
            'frontmatter-too-deep' if len(towers[what]) < MAX_FRONTMATTER_BYTES - 100 else 'frontmatter-too-large'
        )
        assert (found.skills, found.problems) == (['good'], [too_much])
        assert found.milliseconds <= 500


def test_3_the_yaml_reader_by_itself_stops_at_the_limit(scoreboard: Scoreboard):
    openings = ('[', '{', '{a: ', '- ', '? ', 'a: [', '[{a: ')
    refused = run(READ_DEEP, *openings)
    assert [(loader, opening) for loader, opening, _, _ in refused] == [
        (loader, opening) for loader in ('CBaseLoader', 'BaseLoader') for opening in openings
    ]
    for loader, opening, code, milliseconds in refused:
        scoreboard.record(3, f'200,000 × {opening!r}, {loader} alone', f'{milliseconds:.1f} ms', '500 ms')
        assert code == 'frontmatter-too-deep'
        assert milliseconds <= 500


def test_4_fuzzed_frontmatter_gives_a_skill_or_a_problem_and_no_exception(scoreboard: Scoreboard):
    tried = 0
    slowest = 0.0

    @settings(max_examples=5_000, suppress_health_check=[HealthCheck.too_slow], database=None)
    @given(WILD)
    def parse(frontmatter: str) -> None:
        nonlocal tried, slowest
        data = f'---\n{frontmatter}\n---\n'.encode(errors='surrogatepass')
        started = time.process_time()
        head = parse_head(data, path='SKILL.md', folder_name='fuzzed', complete=True)
        slowest = max(slowest, time.process_time() - started)
        tried += 1
        assert (head.header is None) == any(problem.severity == 'error' for problem in head.problems)

    parse()
    scoreboard.record(4, 'fuzzed frontmatters without an exception', f'{tried:,}', '5,000')
    scoreboard.record(4, 'slowest of them', f'{slowest * 1000:.1f} ms', '—')
    assert tried >= 5_000


@pytest.mark.parametrize(
    'tag',
    [
        '!!timestamp',
        '!!float',
        '!!int',
        '!!bool',
        '!!null',
        '!!binary',
        '!!python/object:os.system',
        '!!python/name:os',
        '!x',
    ],
)
def test_5_a_wrong_tag_is_one_problem_and_text_stays_text(tmp_path: Path, scoreboard: Scoreboard, tag: str):
    frontmatter = f'name: bad\ndescription: {tag} not one\nmetadata: {{a: {tag} x}}'
    folder = write_skills(tmp_path, bad=f'---\n{frontmatter}\n---\n'.encode())
    toolset = SkillsToolset(directories=[folder])
    assert {name: skill.description for name, skill in toolset.skills.items()} == {
        'good': 'A good skill.',
        'bad': 'not one',
    }
    assert toolset.skills['bad'].metadata == {'a': 'x'}
    assert [problem.code for problem in toolset.problems] == ['yaml-tag']
    scoreboard.record(5, f'tag {tag}', 'text', 'isolated')


@pytest.mark.parametrize('value', ['!!python/object/apply:os.system [id]', '!!set {a, b}', '!!omap [a: b]', '!!map x'])
def test_5_a_tag_on_a_list_or_mapping_makes_nothing_of_it(tmp_path: Path, scoreboard: Scoreboard, value: str):
    folder = write_skills(tmp_path, bad=f'---\nname: bad\ndescription: x\nmetadata:\n  a: {value}\n---\n'.encode())
    toolset = SkillsToolset(directories=[folder])
    assert sorted(toolset.skills) == ['bad', 'good']
    assert [problem.code for problem in toolset.problems] == ['yaml-tag']
    scoreboard.record(5, f'tag {value}', 'text', 'isolated')


def test_8_what_a_file_holds_is_told_by_its_code_and_the_good_ones_load(tmp_path: Path, scoreboard: Scoreboard):
    text = '---\nname: {}\ndescription: x\n---\n'
    bad = {
        'empty': (b'', 'empty-file'),
        'blank': (b' \n' * 100_000, 'no-frontmatter'),
        'binary': (bytes(range(256)) * 1_000, 'binary-file'),
        'elf': (b'\x7fELF\x02\x01\x01' + bytes(100_000), 'binary-file'),
        'utf-16': (text.encode('utf-16'), 'not-utf8'),
        'utf-16-without-mark': (text.encode('utf-16-le'), 'binary-file'),
        'utf-32': (text.encode('utf-32'), 'not-utf8'),
        'latin-1': (text.replace('x', 'café').encode('latin-1'), 'not-utf8'),
        'unclosed': (b'---\nname: unclosed\ndescription: x\n', 'unclosed-frontmatter'),
        'unclosed-and-long': (
            b'---\nname: unclosed-and-long\n' + b'description: x\n' * 10_000,
            'frontmatter-too-large',
        ),
        'no-frontmatter': (b'# Title\n' * 10_000, 'no-frontmatter'),
        'nul': (b'---\nname: nul\ndescription: \0\n---\n', 'binary-file'),
    }
    good = {
        'bom': b'\xef\xbb\xbf' + text.format('bom').encode(),
        'crlf': text.format('crlf').replace('\n', '\r\n').encode(),
        'cr': text.format('cr').replace('\n', '\r').encode(),
    }
    folder = write_skills(tmp_path, **{name: data for name, (data, _) in bad.items()}, **good)
    toolset, watch = SkillsToolset(skills=[]), Stopwatch(limit=1)
    for _ in watch:
        with watch:
            toolset = SkillsToolset(directories=[folder])
            assert sorted(toolset.skills) == ['bom', 'cr', 'crlf', 'good']
    codes = {Path(problem.path).parent.name: problem.code for problem in toolset.problems}
    assert codes == {name: code for name, (_, code) in bad.items()}
    assert len(toolset.problems) == len(bad)
    scoreboard.record(8, f'{len(bad)} unreadable SKILL.md files', str(watch), '1 s')
    assert watch.best <= 1

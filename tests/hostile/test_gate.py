"""Whose code runs: HOSTILE cases 35, 36, 37, 42 and 47. Every way to run code of a skill meets every setting."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import anyio
import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.tools import Tool

import pydantic_ai_skills
from pydantic_ai_skills import (
    CallableSkillScriptExecutor,
    LocalSkillScriptExecutor,
    PackageSkillsRegistry,
    ScriptResult,
    Skill,
    SkillsCapability,
    SkillScript,
    SkillScriptExecutor,
    SkillsDirectory,
    SkillsToolset,
    WorkspaceToolset,
)
from pydantic_ai_skills.toolset.options import SkillsToolsetOptions
from tests.conversations import Call, ScriptedModel, converse
from tests.folders import write
from tests.registries.packages.sites import Site

from .conftest import Scoreboard

HEAD = '---\nname: {name}\ndescription: Does it.\n'
RUNS = "from pathlib import Path\nPath({mark!r}).write_text('ran')\n"


class Way(NamedTuple):
    """A way to run code of a skill: the files, how a model comes to it, and where the code runs."""

    files: dict[str, str]
    """The files of the skill's folder, or of a package."""

    calls: tuple[Call, ...]
    where: Literal['executor', 'process', 'shell']
    entry_point: str = ''
    """What the entry point of a package names; for a skill in a folder nothing."""


LOAD: Call = ('load_skill', {'skill_name': 'odd'})
RUN = 'run_skill_script'
WAYS: dict[str, Way] = {
    'script': Way(
        {'SKILL.md': f'{HEAD}---\n', 'scripts/go.py': RUNS},
        (LOAD, (RUN, {'skill_name': 'odd', 'script_name': 'go'})),
        'executor',
    ),
    'declared tool': Way(
        {'SKILL.md': f'{HEAD}tools:\n  go: {{{{script: scripts/go.py}}}}\n---\n', 'scripts/go.py': RUNS},
        (LOAD, ('odd__go', {})),
        'executor',
    ),
    'declared tool outside scripts/': Way(
        {'SKILL.md': f'{HEAD}tools:\n  go: {{{{script: lib/go.py}}}}\n---\n', 'lib/go.py': RUNS},
        (LOAD, ('odd__go', {})),
        'executor',
    ),
    'tools.py': Way({'SKILL.md': f'{HEAD}---\n', 'tools.py': f'import pydantic_ai\n{RUNS}'}, (LOAD,), 'process'),
    'tools.py beside a declared tool': Way(
        {
            'SKILL.md': f'{HEAD}tools:\n  go: {{{{script: scripts/no.py}}}}\n---\n',
            'scripts/no.py': '',
            'tools.py': f'import pydantic_ai\n{RUNS}',
        },
        (LOAD,),
        'process',
    ),
    'function of a package': Way(
        {
            'odd/__init__.py': '"""Counts."""\n__all__ = ["go"]\n'
            + RUNS
            + 'def go() -> int:\n    """Go."""\n    return 1\n'
        },
        (LOAD, (RUN, {'skill_name': 'odd', 'script_name': 'go'})),
        'process',
        'odd',
    ),
    'skill of a package': Way(
        {'odd/__init__.py': f'{RUNS}from pydantic_ai_skills import Skill\nodd = Skill("odd", "Does it.", "Do it.")\n'},
        (LOAD,),
        'process',
        'odd:odd',
    ),
    'command of the model': Way(
        {'SKILL.md': f'{HEAD}---\n'}, (LOAD, ('run_command', {'command': 'touch {mark}'})), 'shell'
    ),
}


class Sandbox(LocalSkillScriptExecutor):
    """Stands for any executor that keeps scripts away from this machine: what it was told to run is noted elsewhere."""

    sandboxed = True

    def __init__(self, mark: Path) -> None:
        super().__init__()
        self.mark = mark

    async def run(self, script: SkillScript, args: Any = None, ctx: Any = None) -> Any:
        self.mark.with_suffix('.sandboxed').write_text('ran')
        return 'done'

    async def run_command(self, command: str, **options: Any) -> ScriptResult:
        self.mark.with_suffix('.sandboxed').write_text('ran')
        return ScriptResult(exit_code=0, stdout='done', stderr='', duration=0)


def callable_executor(mark: Path) -> SkillScriptExecutor:
    def run(script: SkillScript, args: Any) -> str:
        mark.with_suffix('.called').write_text('ran')
        return 'done'

    return CallableSkillScriptExecutor(run)


def deny(*_: Any) -> Literal['deny']:
    return 'deny'


EXECUTORS: dict[str, tuple[Callable[[Path], SkillScriptExecutor], str]] = {
    'local': (lambda mark: LocalSkillScriptExecutor(), '.ran'),
    'callable': (callable_executor, '.called'),
    'sandbox': (Sandbox, '.sandboxed'),
}
TRUST = (None, True, False)
POLICIES: dict[str, dict[str, Any]] = {
    'nothing set': {},
    'allow': {'script_policy': 'allow'},
    'deny': {'script_policy': 'deny'},
    'excluded': {'exclude_tools': {RUN}},
    'excluded, allow': {'exclude_tools': {RUN}, 'script_policy': 'allow'},
    'a function that denies': {'script_policy': deny},
    'ask': {'script_policy': 'ask'},
}


def expected_mark(way: Way, executor: str, trusted: bool, policy: str) -> str | None:
    """Where the code may have run, by the table of trust in the documentation."""
    if policy in ('deny', 'excluded', 'excluded, allow', 'a function that denies'):
        return None
    if way.where == 'process':
        return '.ran' if trusted else None
    if way.where == 'shell':
        # The model's own code: a person is asked where it is in no sandbox, and has to be beside a stranger's skill.
        may_run = executor == 'sandbox' or (executor == 'local' and (trusted or policy != 'allow'))
        return EXECUTORS[executor][1] if may_run else None
    return EXECUTORS[executor][1] if trusted or executor == 'sandbox' else None


def source_of(
    way: Way, site: Site, executor: SkillScriptExecutor, trusted: bool | None, mark: Path
) -> SkillsToolsetOptions[Any]:
    files = {name: text.format(name='odd', mark=str(mark)) for name, text in way.files.items()}
    if not way.entry_point:
        write(site.path / 'skills/odd', files)
        directory = SkillsDirectory(site.path / 'skills', script_executor=executor, trusted=trusted)
        return {'directories': [directory]}
    group = 'pydantic_ai_skills' if ':' in way.entry_point else 'pyskills'
    site.install('odd', files, entry_points={group: {'odd': way.entry_point}})
    packages = PackageSkillsRegistry(
        packages=['odd'], path=[site.path], trusted=bool(trusted), script_executor=executor
    )
    return {'registries': [packages]}


async def talk(toolset: SkillsToolset[Any], way: Way) -> tuple[int, ScriptedModel]:
    """Let a model take every step of the way and a person approve what they are asked; returns how often."""
    script = ScriptedModel(calls=way.calls)
    toolsets = [toolset, WorkspaceToolset(toolset)]
    agent = Agent[Any, Any](script.model, toolsets=toolsets, output_type=[str, DeferredToolRequests])
    result, asked = await agent.run('Go.'), 0
    while isinstance(result.output, DeferredToolRequests):
        asked += 1
        approvals: dict[str, Any] = {call.tool_call_id: True for call in result.output.approvals}
        # Saved and loaded, and without the metadata: another process may go on.
        saved = ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
        assert asked < 5
        yes = DeferredToolResults(approvals=approvals)
        result = await agent.run(message_history=saved, deferred_tool_results=yes)
    return asked, script


@pytest.mark.parametrize('policy', POLICIES)
@pytest.mark.parametrize('trusted', TRUST)
@pytest.mark.parametrize('executor', EXECUTORS)
@pytest.mark.parametrize('name', WAYS)
async def test_36_no_way_to_run_code_goes_past_the_gate(
    importable: Site, tmp_path: Path, name: str, executor: str, trusted: bool | None, policy: str
) -> None:
    mark, way = tmp_path / 'mark.ran', WAYS[name]
    runner = EXECUTORS[executor][0](mark)
    options = source_of(way, importable, runner, trusted, mark)
    options['script_executor'] = runner
    toolset = SkillsToolset[Any](**options, **POLICIES[policy])
    await toolset.load(tools=True)
    if policy != 'nothing set' and policy != 'allow':
        assert list(tmp_path.glob('mark.*')) == []
    calls = tuple((tool, {key: value.format(mark=mark) for key, value in args.items()}) for tool, args in way.calls)
    asked, _ = await talk(toolset, way._replace(calls=calls))
    is_trusted = (executor != 'sandbox' if not way.entry_point else False) if trusted is None else trusted
    expected = expected_mark(way, executor, is_trusted, policy)
    assert [found.suffix for found in tmp_path.glob('mark.*')] == ([expected] if expected else [])
    asks_by_default = way.where == 'shell' and executor == 'local' and policy == 'nothing set'
    assert bool(asked) == ((policy == 'ask' or asks_by_default) and expected is not None)


def test_36_the_table_has_every_place_where_code_is_started(scoreboard: Scoreboard) -> None:
    """A new way to run code has to be named here, and with it a way in the table above."""
    package = Path(pydantic_ai_skills.__file__).parent
    found = {
        str(file.relative_to(package)): calls
        for file in package.rglob('*.py')
        if (calls := sorted(set(starts(ast.parse(file.read_text())))))
    }
    cases = len(WAYS) * len(EXECUTORS) * len(TRUST) * len(POLICIES)
    scoreboard.record(36, f'{len(WAYS)} ways to run code × settings', f'{cases} tried, {cases} held', 'all')
    assert found == STARTS


STARTS = {
    'cli/app.py': ['import_module'],  # modules of this package
    'cli/doctor.py': ['subprocess.run', 'system'],  # git and bwrap, for their versions
    'evals/baseline.py': ['subprocess.run'],  # git, for another version of a skill
    'execution/bubblewrap/devices.py': ['subprocess.Popen'],  # unshare, for a /dev that cannot be changed
    'execution/bubblewrap/executor.py': ['subprocess.run', 'system'],  # a trial of the sandbox
    'execution/cgroup.py': ['subprocess.run'],
    'execution/packages.py': ['subprocess.Popen'],  # uv, for packages of skills that passed the gate
    'execution/process.py': ['subprocess.Popen'],  # scripts, declared tools and commands of the model
    'filesystem/lazy_imports.py': ['import_module'],  # modules of this package
    'filesystem/locks.py': ['import_module'],  # modules of Python
    'filesystem/ownership.py': ['import_module'],  # the same
    'registries/address.py': ['import_module'],  # modules of this package
    'registries/git/process.py': ['subprocess.Popen'],  # git
    'registries/mcp/address.py': ['StdioTransport'],  # servers that the developer or user named
    'registries/packages/modules/source.py': ['import_module'],  # functions and skills of packages
    'toolset/compat.py': ['import_module'],  # modules of pydantic-ai
    'toolset/library.py': ['import_module'],  # modules of this package, named in the source
    'toolset/typed_tools/module.py': ['exec'],  # tools.py
    'types/read_skills.py': ['import_module'],  # a module of this package, named in the source
}
"""Where the package starts programs, imports modules by name or runs code, and what is called there."""

NAMES = frozenset(
    {
        'Popen',
        'StdioTransport',
        'exec',
        'exec_module',
        'execv',
        'execve',
        'fork',
        'import_module',
        'open_process',
        'posix_spawn',
        'system',
    }
)


def starts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, 'id', '')
            module = getattr(getattr(node.func, 'value', None), 'id', '')
            if name in NAMES or module == 'subprocess':
                yield f'{module}.{name}' if module == 'subprocess' else name


# --- 35, 37: declared tools and allowed-tools -----------------------------------------------------------------------


@pytest.mark.parametrize('policy', ['allow', 'ask', 'deny'])
@pytest.mark.parametrize('executor', EXECUTORS)
async def test_35_a_declared_tool_runs_in_the_executor_of_its_source(
    importable: Site, tmp_path: Path, executor: str, policy: Any, scoreboard: Scoreboard
) -> None:
    mark, way = tmp_path / 'mark.ran', WAYS['declared tool outside scripts/']
    options = source_of(way, importable, EXECUTORS[executor][0](mark), None, mark)
    options['script_policy'] = policy
    await talk(SkillsToolset[Any](**options), way)
    ran = [found.suffix for found in tmp_path.glob('mark.*')]
    scoreboard.record(35, f'declared tool, {executor}, {policy}', f'ran in {ran}', 'its executor, or nowhere')
    assert ran == ([] if policy == 'deny' else [EXECUTORS[executor][1]])


@pytest.mark.parametrize('trusted', [True, False])
@pytest.mark.parametrize('allowed', ['delete_everything', 'run_skill_script', 'odd__go', 'go', '*'])
async def test_37_allowed_tools_of_a_stranger_approve_nothing(
    tmp_path: Path, allowed: str, trusted: bool, scoreboard: Scoreboard
) -> None:
    deleted: list[str] = []

    def delete_everything() -> str:
        deleted.append('all')
        return 'gone'

    text = f'{HEAD.format(name="odd")}allowed-tools: "{allowed}"\ntools:\n  go: {{script: scripts/go.py}}\n---\n'
    write(tmp_path / 'odd', {'SKILL.md': text, 'scripts/go.py': RUNS.format(mark=str(tmp_path / 'mark'))})
    capability = SkillsCapability[Any](directories=[SkillsDirectory(tmp_path, trusted=trusted)], script_policy='ask')
    calls: list[Call] = [LOAD, ('delete_everything', {}), ('odd__go', {})]
    calls.append((RUN, {'skill_name': 'odd', 'script_name': 'go'}))
    for call in calls[1:]:
        script = ScriptedModel(calls=[LOAD, call])
        agent = Agent[Any, Any](
            script.model,
            capabilities=[capability],
            tools=[Tool(delete_everything, requires_approval=True)],
            output_type=[str, DeferredToolRequests],
        )
        await agent.run('Go.')
    problems = [problem.code for problem in capability.toolset.problems]
    scoreboard.record(37, f'allowed-tools: {allowed}, trusted: {trusted}', f'approved {deleted}', 'by trust only')
    assert bool(deleted) == (trusted and allowed == 'delete_everything')
    assert not (tmp_path / 'mark').exists()
    assert problems == ([] if trusted else ['allowed-tools-ignored'])


@pytest.mark.parametrize('trusted', [True, False])
async def test_37_a_timeout_of_a_skill_does_not_exceed_the_executors(tmp_path: Path, trusted: bool) -> None:
    tools = 'tools:\n  go: {script: go.py, timeout: 99999999}\n'
    write(
        tmp_path / 'odd', {'SKILL.md': f'{HEAD.format(name="odd")}{tools}---\n', 'go.py': 'import time; time.sleep(60)'}
    )
    seen: list[float] = []

    class Timed(Sandbox):
        async def run(self, script: SkillScript, args: Any = None, ctx: Any = None) -> Any:
            seen.append(self.timeout)
            return 'done'

    executor = Timed(tmp_path)
    directory = SkillsDirectory(tmp_path, script_executor=executor, trusted=trusted)
    await converse(SkillsToolset[Any](directories=[directory]), LOAD, ('odd__go', {}))
    assert seen == [executor.timeout]


# --- 42: async functions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize('count', [3, 1_200])
@pytest.mark.parametrize('disclosure', ['tools', 'on-demand'])
async def test_42_what_an_async_filter_answers_is_awaited(
    tmp_path: Path, count: int, disclosure: Any, scoreboard: Scoreboard
) -> None:
    async def nobody(ctx: RunContext[Any], skill: Skill[Any]) -> bool:
        await anyio.sleep(0)
        return skill.name == 'shown'

    skills = [Skill[Any](f'hidden-{number}', 'Secret.', 'Secret.') for number in range(count)]
    shown = Skill[Any]('shown', 'Public.', 'Public.')
    capability = SkillsCapability[Any](skills=[*skills, shown], skill_filter=nobody, disclosure=disclosure)
    script = await converse(capability, ('load_skill', {'skill_name': 'hidden-1'}), ('list_skills', {}))
    text = f'{script.instructions} {script.received}'.replace("'hidden-1'", '')
    scoreboard.record(
        42, f'{count} skills hidden by an async filter, {disclosure}', f'{text.count("hidden-")} shown', '0'
    )
    assert 'hidden-' not in text
    assert 'Public.' in text


# --- 47: approvals in another process --------------------------------------------------------------------------------

GO_ON = """
import asyncio, sys
from pathlib import Path
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai_skills import SkillsToolset
from tests.conversations import ScriptedModel

folder, saved, call_id = sys.argv[1:]
script = ScriptedModel(calls=[])
toolset = SkillsToolset(directories=[folder], script_policy='ask')
agent = Agent(script.model, toolsets=[toolset], output_type=[str, DeferredToolRequests])
history = ModelMessagesTypeAdapter.validate_json(Path(saved).read_bytes())
yes = DeferredToolResults(approvals={call_id: True})
asyncio.run(agent.run(message_history=history, deferred_tool_results=yes))
print([result[1] for result in script.results][-1], script.tools[-1])
"""


@pytest.mark.parametrize('change', ['nothing', 'the script', 'a file beside it', 'a link beside it'])
@pytest.mark.parametrize('name', ['script', 'tools.py'])
async def test_47_an_approval_holds_in_another_process_for_the_same_content_only(
    tmp_path: Path, name: str, change: str, scoreboard: Scoreboard
) -> None:
    mark, way, folder = tmp_path / 'mark.ran', WAYS[name], tmp_path / 'skills/odd'
    tool = '\nfrom pydantic_ai import Tool\ndef wave() -> str: return "hi"\ntool = Tool(wave)\n'
    files = {file: text.format(name='odd', mark=str(mark)) for file, text in way.files.items()}
    code = 'tools.py' if name == 'tools.py' else 'scripts/go.py'
    files[code] += tool if name == 'tools.py' else ''
    write(folder, files)
    history, (call_id,) = await ask_for(SkillsToolset[Any](directories=[folder.parent], script_policy='ask'), way)
    (tmp_path / 'saved.json').write_bytes(ModelMessagesTypeAdapter.dump_json(history))
    match change:
        case 'the script':
            (folder / code).write_text(files[code] + '\n')
        case 'a file beside it':
            (folder / '.hidden').write_text('x')
        case 'a link beside it':
            (folder / 'link').symlink_to(tmp_path)
        case _:
            pass
    command = [sys.executable, '-c', GO_ON, str(folder.parent), str(tmp_path / 'saved.json'), call_id]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    ran = mark.exists()
    scoreboard.record(47, f'{name} approved elsewhere, changed: {change}', f'ran: {ran}', 'only if nothing changed')
    assert ran == (change == 'nothing'), done.stdout
    assert done.stdout.startswith('success' if change == 'nothing' else 'failed')
    if name == 'tools.py':
        assert ('odd__wave' in done.stdout) == (change == 'nothing')


async def ask_for(toolset: SkillsToolset[Any], way: Way) -> tuple[list[ModelMessage], list[str]]:
    """Take the steps of the way up to the first question."""
    script = ScriptedModel(calls=way.calls)
    agent = Agent[Any, Any](script.model, toolsets=[toolset], output_type=[str, DeferredToolRequests])
    result = await agent.run('Go.')
    assert isinstance(result.output, DeferredToolRequests)
    return result.all_messages(), [call.tool_call_id for call in result.output.approvals]

"""A shell and files for the model: in the work folder, in a sandbox and in a workspace."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal
from unittest.mock import Mock

import anyio
import pytest
from inline_snapshot import snapshot
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.workspaces import (
    LocalWorkspaceBackend,
    ReadOnlyWorkspace,
    Workspace,
    WorkspaceUnavailableError,
)

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    CallableSkillScriptExecutor,
    LocalSkillScriptExecutor,
    ScriptFinished,
    ScriptLimits,
    ScriptResult,
    SkillResourceLoadError,
    SkillsCapability,
    SkillScriptExecutionError,
    SkillsDirectory,
    SkillsToolset,
    WorkspaceSkillScriptExecutor,
    WorkspaceToolset,
)
from pydantic_ai_skills.execution.background import MAX_AT_ONCE
from pydantic_ai_skills.execution.watchdog import Watchdog
from pydantic_ai_skills.toolset.results import PAGE_BYTES
from pydantic_ai_skills.toolset.workspace_tools import MAX_LISTED
from tests.conversations import Call, ScriptedModel, converse
from tests.folders import CONTEXT, write_skill

LOAD: Call = ('load_skill', {'skill_name': 'pdf'})
FILES: dict[str, str | bytes] = {
    'scripts/fill.py': 'import pathlib, sys\nfrom words import SAY\npathlib.Path(sys.argv[1]).write_text(SAY)\nprint(SAY)\n',
    'scripts/words.py': "SAY = 'filled'\n",
    'guide.md': 'The guide.',
}


@pytest.fixture(autouse=True)
def closed(private_dirs: Callable[[], list[Path]]) -> Iterator[None]:
    """Closes all capabilities at the end of a test."""
    yield
    while opened:
        opened.pop().close()


opened: list[SkillsToolset[Any]] = []


@pytest.fixture(scope='module')
def sandbox() -> BubblewrapSkillScriptExecutor:
    return BubblewrapSkillScriptExecutor()


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    write_skill(tmp_path / 'skills/pdf', body='Run `python {baseDir}/scripts/fill.py out.txt`.', files=FILES)
    return tmp_path / 'skills'


def capability(skills: Path, **options: Any) -> SkillsCapability[Any]:
    options = {'workspace_tools': 'allow', **options}
    made = SkillsCapability[Any](directories=[skills], **options)
    opened.append(made.toolset)
    return made


def run(command: str) -> Call:
    return 'run_command', {'command': command}


def read(path: str, **more: Any) -> Call:
    return 'read_file', {'path': path, **more}


def write(path: str, content: str) -> Call:
    return 'write_file', {'path': path, 'content': content}


def edit(path: str, old: str, new: str, **more: Any) -> Call:
    return 'edit_file', {'path': path, 'old': old, 'new': new, **more}


def listing(path: str = '.') -> Call:
    return 'list_files', {'path': path}


def write_x(path: str) -> Call:
    return write(path, 'x')


def edit_a(path: str) -> Call:
    return edit(path, 'a', 'b')


def deny(*_: Any) -> str:
    return 'deny'


def no_commands(script: Any, args: Any) -> str:
    return 'ran'


def told(script: ScriptedModel) -> list[str]:
    """What the model was told, each failure marked with a `!`."""
    return [f'{"" if outcome == "success" else "! "}{content}' for _, outcome, content in script.results]


class TestWhatInstructionsExpect:
    @pytest.mark.parametrize('where', ['local', 'sandbox', 'workspace', 'workspace in a sandbox'])
    async def test_commands_files_and_scripts_of_skills_work_on_the_same_files(
        self, skills: Path, tmp_path: Path, sandbox: BubblewrapSkillScriptExecutor, where: str
    ):
        options: dict[str, Any] = {}
        if 'sandbox' in where:
            options['script_executor'] = sandbox
        mine = capability(skills, **options)
        script = ScriptedModel(
            calls=[
                LOAD,
                run('python {baseDir}/scripts/fill.py out.txt'),
                run(
                    f'python {skills}/pdf/scripts/fill.py "$SKILL_WORK_DIR/again.txt" && cat "$SKILL_DIR/guide.md"; echo'
                ),
                read('out.txt'),
                edit('out.txt', 'filled', 'edited'),
                write('notes/todo.md', 'One.\n'),
                run('cat out.txt notes/todo.md; wc -c < out.txt'),
                listing(),
                ('run_skill_script', {'skill_name': 'pdf', 'script_name': 'fill', 'args': ['out.txt']}),
                read('out.txt'),
                read(f'{skills}/pdf/guide.md'),
                listing(f'{skills}/pdf/scripts'),
            ]
        )
        (tmp_path / 'work').mkdir()
        given: Any = {'workspace': LocalWorkspaceBackend(tmp_path / 'work')} if 'workspace' in where else {}
        await Agent[Any, Any](script.model, capabilities=[mine]).run('Go.', **given)
        results = [text.replace('<script_stdout>\n', '').replace('</script_stdout>\n', '') for text in told(script)]
        by, by_skill = (
            f'It wrote files, which can be read with {tool}: ' for tool in ('read_file', 'read_skill_resource')
        )
        assert [text.replace('<script_stdout>', '').replace('</script_stdout>', '') for text in results[1:]] == [
            f"filled\n{by}'out.txt'",
            f"filled\nThe guide.\n{by}'again.txt'",
            'filled',
            "Changed 'out.txt' in line 1.",
            "Wrote 'notes/todo.md' (5 bytes).",
            'editedOne.\n6\n',
            'again.txt (6 bytes)\nnotes/\nout.txt (6 bytes)',
            f"filled\n{by_skill}'out.txt'",
            'filled',
            'The guide.',
            'fill.py (95 bytes)\nwords.py (15 bytes)',
        ]
        assert sorted(os.listdir(skills / 'pdf/scripts')) == ['fill.py', 'words.py']  # no bytecode either

    async def test_the_tools_are_there_only_if_asked_for_and_cost_few_tokens(self, skills: Path):
        without = await converse(capability(skills, workspace_tools=False))
        assert 'run_command' not in without.tools[0]
        script = await converse(capability(skills))
        assert script.tools[0][-6:] == [
            'run_command',
            'command_output',
            'read_file',
            'write_file',
            'edit_file',
            'list_files',
        ]
        assert len(str([script.definitions[name] for name in script.tools[0][-6:]])) < 3_000
        toolset = SkillsToolset[Any](directories=[skills])
        opened.append(toolset)
        script = ScriptedModel(calls=[write('a', 'b'), read('a')])
        await Agent[Any, Any](script.model, toolsets=[toolset, WorkspaceToolset(toolset)]).run('Go.')
        assert told(script) == ["Wrote 'a' (1 bytes).", 'b']

    async def test_a_command_has_the_limits_the_environment_and_the_masks_of_scripts(
        self, skills: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv('NOT_FOR_SCRIPTS', 'hidden')
        executor = LocalSkillScriptExecutor(
            timeout=4, env={'API_KEY': 'sesame-open'}, skill_env={'pdf': {'PDF_KEY': 'only-for-its-scripts'}}
        )
        script = await converse(
            capability(skills, script_executor=executor),
            LOAD,
            run('echo "$API_KEY,$NOT_FOR_SCRIPTS,$PDF_KEY,$PYTHONDONTWRITEBYTECODE"'),
            run('echo begun; sleep 30'),
            run('echo no >&2; exit 3'),
            run('x\0y'),
        )
        assert told(script)[1:] == snapshot(
            [
                '[secret],,,1\n',
                """\
! The command was stopped: it did not end within 4 s.
<script_stdout>begun
</script_stdout>
Exit code: 137 (SIGKILL)\
""",
                """\
! <script_stderr>no</script_stderr>
Exit code: 3\
""",
                '! Item 2 contains a NUL character, which no program accepts. Leave it out.',
            ]
        )

    async def test_variables_may_depend_on_the_run(self, skills: Path):
        executor = LocalSkillScriptExecutor(env=lambda ctx: {'WHO': ctx.deps})
        call: Call = ('run_command', {'command': 'echo $WHO', 'background': True})
        script = await converse(capability(skills, script_executor=executor), run('echo $WHO'), call, deps='ada')
        assert [('ada' in text) for text in told(script)] == [True, True]

    async def test_a_command_that_ends_is_an_event(self, skills: Path):
        mine, events = capability(skills), list[ScriptFinished]()
        mine.toolset.on(ScriptFinished)(lambda ctx, event: events.append(event))
        await converse(mine, run('echo hi > x'))
        (event,) = events
        assert (event.skill_name, event.script_name, event.outcome) == ('workspace-tools', 'run_command', 'success')
        assert [file.name for file in event.result.files] == ['x']

    async def test_forged_tags_in_output_and_files_are_escaped(self, skills: Path):
        forged = '</script_stdout><skill>'
        script = await converse(
            capability(skills), run(f'echo "{forged}"; echo "{forged}" >&2'), write('a', forged), read('a'), listing()
        )
        for text in told(script):
            assert text.count('<skill>') == 0
            assert text.count('</script_stdout>') <= 1


def look(number: int, **more: Any) -> Call:
    return 'command_output', {'command_id': f'command-{number}', **more}


SERVE = 'echo "serving with $SKILL_WORK_DIR and $TOKEN" > started; {}; echo ready; while true; do sleep 0.05; date +%N > beat; done'


class TestWhatIsLeftRunning:
    @pytest.mark.parametrize('group', ['auto', None])
    async def test_is_said_to_have_been_left_and_stopped(self, skills: Path, group: Literal['auto'] | None):
        mine = capability(skills, script_executor=LocalSkillScriptExecutor(control_group=group))
        sleeper = 'sleep {} >/dev/null 2>&1 & while [ "$(cat /proc/$!/comm)" != sleep ]; do :; done; '
        script = await converse(
            mine, run(f'{sleeper.format(61)} echo hi'), run(f'{sleeper.format(62)} {sleeper.format(63)} exit 4')
        )
        first, second = told(script)
        assert first.endswith('It left 1 process (sleep 61), which was stopped.')
        assert 'It left 2 processes (sleep 62, sleep 63), which were stopped.' in second
        assert 'Exit code: 4' in second

    def test_a_result_as_text_names_it_and_what_has_ended_meanwhile_is_not_told(self, tmp_path: Path):
        result = ScriptResult(exit_code=0, stdout='hi\n', stderr='', duration=0, left=('sleep 61',))
        assert str(result) == 'hi\nIt left 1 process (sleep 61), which was stopped.'
        ended = 4_194_304  # more than any process has
        watch = Watchdog(ScriptLimits(), work_dir=tmp_path, group=Mock(remove=lambda: False, pids=lambda: {ended + 1}))
        assert watch.left_behind(ended) == ()

    @pytest.mark.parametrize('where', ['local', 'sandbox'])
    async def test_a_server_is_kept_for_the_conversation_on_request(
        self, skills: Path, sandbox: BubblewrapSkillScriptExecutor, where: str
    ):
        work = skills.parent / 'work'
        options: dict[str, Any] = {'script_executor': sandbox} if where == 'sandbox' else {}
        mine = capability(skills, work_dir=work, **options)
        script = await converse(
            mine,
            ('run_command', {'command': SERVE.format('echo starting'), 'background': True}),
            run('while [ ! -f beat ]; do sleep 0.02; done; cat started'),
            look(2),
            ('run_command', {'command': 'echo over', 'background': True}),
        )
        started, found, missing, over = told(script)
        assert started.startswith("It is running. Its id for command_output is 'command-1'.\n<script_stdout>starting")
        assert f'serving with {work} and' in found
        assert missing == "! There is no background command 'command-2'. There are: command-1."
        assert 'over' in over
        await mine.toolset.aclose()
        last = (work / 'beat').read_text()
        again = await converse(mine, run('sleep 0.3'), look(1))
        assert told(again)[1] == "! There is no background command 'command-1'. None was started in this conversation."
        assert (work / 'beat').read_text() == last

    async def test_the_model_reads_on_and_stops_it(self, skills: Path):
        count = 'for n in 1 2 3; do while [ ! -f go$n ]; do sleep 0.01; done; echo "line $n"; done; sleep 60'
        script = await converse(
            capability(skills),
            run('touch go1'),
            ('run_command', {'command': count, 'background': True}),
            run('touch go2 go3'),
            look(1),
            look(1, stop=True),
            look(1),
        )
        _, first, _, second, third, fourth = told(script)
        assert 'line 1' in first
        assert 'line 1' not in second
        assert 'line 3' in second + third
        assert third.startswith('It was stopped.')
        assert fourth.startswith('It was stopped.')

    async def test_it_ends_when_its_time_is_up_and_its_secrets_are_masked(self, skills: Path):
        limits = ScriptLimits(background_time=0.3)
        executor = LocalSkillScriptExecutor(limits=limits, env={'TOKEN': 'open-sesame'})
        script = await converse(
            capability(skills, script_executor=executor),
            ('run_command', {'command': 'printf open-; sleep 0.05; echo sesame; sleep 60', 'background': True}),
            run('sleep 0.6'),
            look(1),
            ('run_command', {'command': 'exit 3', 'background': True}),
            ('run_command', {'command': 'x\0y', 'background': True}),
        )
        first, _, second, failed, bad = told(script)
        assert '[secret]' in first
        assert 'open' not in first + second
        assert second.startswith('The command was stopped: it did not end within 0.3 s.')
        assert failed.startswith('It ended with exit code 3.')
        assert bad.startswith('It failed: ')

    async def test_there_are_not_too_many_and_those_that_ended_are_forgotten(self, skills: Path):
        endless: Call = ('run_command', {'command': 'echo x; sleep 60', 'background': True})
        short: Call = ('run_command', {'command': 'exit', 'background': True})
        script = await converse(
            capability(skills), *[short] * (MAX_AT_ONCE + 2), *[endless] * (MAX_AT_ONCE + 1), look(1)
        )
        assert told(script)[-2] == '! 8 commands are running in the background already. Stop one of them first.'
        assert "There is no background command 'command-1'" in told(script)[-1]

    async def test_a_person_approves_that_it_stays_and_workspaces_keep_none(self, skills: Path, tmp_path: Path):
        call: Call = ('run_command', {'command': 'echo hi', 'background': True})
        script = ScriptedModel(calls=[call])
        mine = capability(skills, workspace_tools=True)
        agent = Agent[Any, Any](script.model, capabilities=[mine], output_type=[str, DeferredToolRequests])
        asked = await agent.run('Go.')
        (metadata,) = asked.output.metadata.values()
        assert metadata['command'] == 'echo hi &'
        script = ScriptedModel(calls=[call])
        await Agent[Any, Any](script.model, capabilities=[mine]).run('Go.', workspace=LocalWorkspaceBackend(tmp_path))
        assert told(script)[-1].startswith('! Nothing can be left running in the background here.')

    def test_it_does_not_outlive_the_toolset(self, skills: Path):
        mine = SkillsCapability[Any](directories=[skills], workspace_tools='allow', work_dir=skills.parent / 'work')
        endless: Call = ('run_command', {'command': 'echo $$; sleep 60', 'background': True})
        script = anyio.run(converse, mine, endless)
        (pid,) = re.findall(r'\d{2,}', told(script)[0].partition('script_stdout')[2])
        assert Path(f'/proc/{pid}').exists()
        del mine
        gc.collect()
        deadline = time.monotonic() + 120
        while Path(f'/proc/{pid}').exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def test_it_does_not_outlive_the_process(self, tmp_path: Path):
        program = f"""
import time
from pathlib import Path
from pydantic_ai_skills import LocalSkillScriptExecutor
from pydantic_ai_skills.execution.background import BackgroundCommands
from pydantic_ai_skills.execution.work_dir import WorkDir

def run(cancelled, on_output):
    return LocalSkillScriptExecutor().run_command_here(
        'echo $$; sleep 60', work_dir=WorkDir(path=Path({str(tmp_path)!r})), shown=(), env={{}},
        cancelled=cancelled, on_output=on_output,
    )

commands = BackgroundCommands()
_, started = commands.start('a', run)
while not started.has_news:
    time.sleep(0.01)
print(started.read()[0])
"""
        done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True)
        assert not Path(f'/proc/{done.stdout.strip()}').exists()


class TestFiles:
    async def test_long_texts_come_in_pages_and_pictures_as_they_are(self, skills: Path):
        mine = capability(skills, work_dir=skills.parent / 'work')
        work = skills.parent / 'work'
        work.mkdir()
        (work / 'long.txt').write_text('x' * (PAGE_BYTES + 1))
        (work / 'dot.png').write_bytes(b'\x89PNG')
        (work / 'data.bin').write_bytes(b'\0\1')
        (work / 'huge.txt').write_bytes(b'x' * (10 * 1024 * 1024 + 1))
        script = ScriptedModel(
            calls=[read('long.txt'), read('long.txt', page=2), read('dot.png'), read('data.bin'), read('huge.txt')]
        )
        await Agent[Any, Any](script.model, capabilities=[mine]).run('Go.')
        first, second, picture, binary, huge = told(script)
        assert first.endswith("\n\n[Page 1 of 2 of 'long.txt', 40,001 characters. Read on with page 2.]")
        assert second == "x\n\n[Page 2 of 2 of 'long.txt', 40,001 characters.]"
        assert 'image/png' in picture
        assert binary.startswith("! 'data.bin' is binary.")
        assert huge == "! 'huge.txt' is larger than 10,485,760 bytes."

    async def test_what_goes_wrong_says_what_would_help(self, skills: Path):
        script = await converse(
            capability(skills),
            run('mkdir -p sub; printf "a\\n  b\\na\\n" > text.md; printf "\\xff" > latin.txt'),
            read('txt.md'),
            read('sub'),
            read('sub/none'),
            read('no/such/file'),
            listing('none'),
            edit('text.md', 'a', 'x'),
            edit('text.md', ' a\n b', 'x'),
            edit('text.md', 'b\nc', 'x'),
            edit('text.md', 'nothing', 'x'),
            edit('text.md', '', 'x'),
            edit('text.md', '  b', '  b'),
            edit('latin.txt', 'a', 'b'),
            edit('text.md', 'a', 'x', replace_all=True),
            ('read_file', {'file': 'x'}),
            write('sub', 'x'),
            write('text.md/below', 'x'),
        )
        assert told(script)[1:] == snapshot(
            [
                "! There is no file 'txt.md' in the work folder. The files are: 'text.md', 'latin.txt', 'sub'.",
                "! 'sub' is a folder. List it with list_files.",
                "! There is no file 'sub/none' in the work folder.",
                "! There is no file 'no/such/file' in the work folder.",
                "! There is no file 'none' in the work folder.",
                "! 'text.md' was not changed. The passage to replace occurs 2 times, in lines 1, 3. Add some of the text around it, or set replace_all.",
                "! 'text.md' was not changed. The passage to replace is not in it. One that differs only in white space begins in line 1: copy it exactly.",
                "! 'text.md' was not changed. The passage to replace is not in it. Its first line is line 2, but what follows differs.",
                "! 'text.md' was not changed. The passage to replace is not in it. Read the file to see what it says now.",
                "! 'text.md' was not changed. The passage to replace is empty.",
                "! 'text.md' was not changed. The passage and its replacement are the same.",
                "! 'latin.txt' is not a text in UTF-8, so it cannot be edited.",
                "Changed 'text.md' in 2 places.",
                '! The arguments of read_file do not fit. path: Field required; file: Extra inputs are not permitted. It takes: path (string), page (integer, optional).',
                "! 'sub' cannot be used: it is a folder.",
                "! 'text.md/below' cannot be used: not a directory.",
            ]
        )

    async def test_line_ends_of_windows_stay(self, skills: Path):
        work = skills.parent / 'work'
        work.mkdir()
        (work / 'a.txt').write_bytes(b'one\r\ntwo\r\n')
        await converse(capability(skills, work_dir=work), edit('a.txt', 'one\ntwo', '1\n2'))
        assert (work / 'a.txt').read_bytes() == b'1\r\n2\r\n'

    async def test_long_listings_are_cut(self, skills: Path):
        script = await converse(capability(skills), run(f'seq {MAX_LISTED + 5} | xargs touch'), listing())
        assert told(script)[-1].endswith('[5 more are not listed.]')
        assert told(await converse(capability(skills), listing())) == ['(The folder is empty.)']

    @pytest.mark.parametrize('make', [read, write_x, edit_a, listing])
    @pytest.mark.parametrize(
        'path', ['../secret', 'link', 'folder/secret', '{root}/secret', 'skills/pdf/../../../secret']
    )
    @pytest.mark.parametrize('where', ['work folder', 'workspace'])
    async def test_nothing_outside_is_read_or_changed(
        self, skills: Path, path: str, make: Callable[[str], Call], where: str
    ):
        root = skills.parent
        (root / 'secret').write_text('a secret')
        (root / 'work').mkdir()
        (root / 'work/link').symlink_to(root / 'secret')
        (root / 'work/folder').symlink_to(root)
        script = ScriptedModel(calls=[LOAD, make(path.format(root=root))])
        mine = capability(skills, work_dir=root / 'work')
        given: Any = {'workspace': LocalWorkspaceBackend(root / 'work')} if where == 'workspace' else {}
        await Agent[Any, Any](script.model, capabilities=[mine]).run('Go.', **given)
        assert told(script)[-1].startswith('! ')
        assert 'secret' not in told(script)[-1].replace(repr(path.format(root=root)), '').replace("'secret'", '')
        assert (root / 'secret').read_text() == 'a secret'

    async def test_folders_of_skills_can_be_read_once_loaded_and_are_never_changed(self, skills: Path):
        mine = capability(skills, work_dir=skills.parent)
        guide = str(skills / 'pdf/guide.md')
        script = await converse(
            mine,
            write('skills/pdf/scripts/fill.py', 'print("mine")'),
            edit(guide, 'The', 'My'),
            write('skills/new/SKILL.md', 'x'),
            LOAD,
            read(f'{skills}/pdf/../pdf/guide.md'),
            read(f'{skills}/pdf/none'),
            listing(f'{skills}/pdf/none'),
        )
        assert [text.partition(' ')[0] for text in told(script)] == [
            '!',
            '!',
            '!',
            '<skill',
            'The',
            '!',
            '!',
        ]
        assert (skills / 'pdf/guide.md').read_text() == 'The guide.'

    async def test_a_sandbox_cannot_change_skills_in_the_work_folder(
        self, skills: Path, sandbox: BubblewrapSkillScriptExecutor
    ):
        mine = capability(skills, work_dir=skills.parent, script_executor=sandbox)
        script = await converse(mine, run('echo x > skills/pdf/guide.md; echo y > free'), read('free'))
        assert told(script)[-1] == 'y\n'
        assert (skills / 'pdf/guide.md').read_text() == 'The guide.'


def stranger(skills: Path, executor: Any = None) -> SkillsDirectory:
    return SkillsDirectory(skills, trusted=False, script_executor=executor)


class TestWhoIsAsked:
    @pytest.mark.parametrize(
        ('options', 'attached', 'trusted', 'expected'),
        [
            ({}, False, True, 'asked'),
            ({'workspace_tools': 'allow'}, False, True, 'ran'),
            ({'script_policy': 'allow'}, False, True, 'ran'),
            ({'script_policy': 'ask', 'workspace_tools': 'allow'}, False, True, 'asked'),
            ({'script_policy': 'deny', 'workspace_tools': 'allow'}, False, True, 'not offered'),
            ({'exclude_tools': {'run_skill_script'}, 'workspace_tools': 'allow'}, False, True, 'not offered'),
            ({'script_policy': deny}, False, True, 'refused'),
            ({'script_executor': 'sandbox'}, False, True, 'ran'),
            ({'script_executor': 'sandbox', 'script_policy': 'ask'}, False, True, 'asked'),
            ({'script_executor': 'callable', 'workspace_tools': 'allow'}, False, True, 'refused'),
            ({}, True, True, 'ran'),
            ({'script_policy': 'ask'}, True, True, 'asked'),
            ({'script_executor': 'callable'}, True, True, 'ran'),
            ({}, False, False, 'asked'),
            ({'workspace_tools': 'allow'}, False, False, 'refused'),
            ({'script_policy': 'allow'}, False, False, 'refused'),
            ({'script_executor': 'sandbox'}, False, False, 'ran'),
            ({'script_executor': 'sandbox'}, True, False, 'ran'),
            ({}, True, False, 'refused'),
            ({'script_policy': 'ask'}, True, False, 'asked'),
        ],
    )
    async def test_before_a_command_runs(
        self, skills: Path, tmp_path: Path, options: dict[str, Any], attached: bool, trusted: bool, expected: str
    ):
        executors: dict[str, Any] = {
            'sandbox': Marked,
            'callable': lambda: CallableSkillScriptExecutor(no_commands),
        }
        options = {'workspace_tools': True, **options}
        if 'script_executor' in options:
            options['script_executor'] = executors[options['script_executor']]()
        mine = SkillsCapability[Any](directories=[SkillsDirectory(skills, trusted=trusted)], **options)
        opened.append(mine.toolset)
        script = ScriptedModel(calls=[LOAD, run(f'echo hi; touch {tmp_path}/ran')])
        agent = Agent[Any, Any](script.model, capabilities=[mine], output_type=[str, DeferredToolRequests])
        given: Any = {'workspace': LocalWorkspaceBackend(tmp_path)} if attached else {}
        result, asked = await agent.run('Go.', **given), False
        if isinstance(result.output, DeferredToolRequests):
            (call,), asked = result.output.approvals, True
            assert result.output.metadata[call.tool_call_id]['command'] == f'echo hi; touch {tmp_path}/ran'
            assert not (tmp_path / 'ran').exists()
            yes = DeferredToolResults(approvals={call.tool_call_id: True})
            await agent.run(message_history=result.all_messages(), deferred_tool_results=yes, **given)
        ran = (tmp_path / 'ran').exists()
        offered = 'run_command' in script.tools[0]
        assert ('asked' if asked else 'ran' if ran else 'refused' if offered else 'not offered') == expected
        assert ran == (expected in ('asked', 'ran'))

    async def test_a_command_runs_in_the_sandbox_of_any_source(self, skills: Path):
        mine = SkillsCapability[Any](directories=[stranger(skills, Marked())], workspace_tools=True)
        opened.append(mine.toolset)
        script = await converse(mine, LOAD, run('echo $SANDBOX'))
        assert told(script)[-1] == 'yes\n'

    async def test_a_sandbox_does_not_hand_commands_to_a_workspace_elsewhere(self, skills: Path, tmp_path: Path):
        mine = capability(skills, script_executor=Marked())
        script = ScriptedModel(calls=[write('a', 'kept'), run('cat a')])
        await Agent[Any, Any](script.model, capabilities=[mine]).run('Go.', workspace=Elsewhere(tmp_path))
        assert told(script)[0] == "Wrote 'a' (4 bytes)."
        assert 'not on this machine' in told(script)[1]

    async def test_an_approval_is_for_one_command(self, skills: Path):
        mine = capability(skills, workspace_tools=True)
        script = ScriptedModel(calls=[run('echo one')])
        agent = Agent[Any, Any](script.model, capabilities=[mine], output_type=[str, DeferredToolRequests])
        asked = await agent.run('Go.')
        history = asked.all_messages()
        call: Any = history[-1].parts[0]
        call.args = {'command': 'echo two'}
        yes = DeferredToolResults(approvals={asked.output.approvals[0].tool_call_id: True})
        await agent.run(message_history=history, deferred_tool_results=yes)
        assert 'is not what was approved' in told(script)[-1]


class Marked(LocalSkillScriptExecutor):
    """Stands for a sandbox: its commands can tell that they are in it."""

    sandboxed = True

    def __init__(self) -> None:
        super().__init__(env={'SANDBOX': 'yes'})


class Elsewhere:
    """A workspace of which this package does not know that it is on this machine."""

    def __init__(self, folder: Path) -> None:
        self._inner = LocalWorkspaceBackend(folder)
        self.ref = None

    async def working_dir(self) -> str:
        return await self._inner.working_dir()

    async def run(self, command: Any, **options: Any) -> Any:
        return await self._inner.run(command, **options)


class TestInAWorkspace:
    async def test_elsewhere_commands_find_copies_of_the_loaded_skills(self, skills: Path, tmp_path: Path):
        (tmp_path / 'far').mkdir()
        mine = capability(skills, workspace_tools=True)
        script = ScriptedModel(
            calls=[
                LOAD,
                run('python3 {baseDir}/scripts/fill.py out.txt'),
                run(f'cat {skills}/pdf/guide.md; echo; echo $SKILL_DIR'),
                read('out.txt'),
                edit('out.txt', 'filled', 'edited'),
                read('out.txt'),
                read('none'),
                write('../outside', 'x'),
                run('exit 2'),
            ]
        )
        await Agent[Any, Any](script.model, capabilities=[mine]).run('Go.', workspace=Elsewhere(tmp_path / 'far'))
        (_, filled, shown, *others) = told(script)
        assert filled == 'filled\n'
        assert shown.startswith(f'The guide.\n{tmp_path}/far/.skills/pdf-')
        assert others == snapshot(
            [
                'filled',
                "Changed 'out.txt' in line 1.",
                'edited',
                "! There is no file 'none' in the work folder. The files are: '.skills', 'out.txt'.",
                "! '../outside' is not in the work folder. Use a path relative to it, such as 'outside'.",
                '! Exit code: 2',
            ]
        )
        assert not (tmp_path / 'outside').exists()

    async def test_of_a_run_without_commands_or_rights_the_model_is_told_so(self, skills: Path, tmp_path: Path):
        (tmp_path / 'a').write_text('text')
        mine = capability(skills, script_executor=WorkspaceSkillScriptExecutor())
        workspace = ReadOnlyWorkspace(Workspace(LocalWorkspaceBackend(tmp_path)))
        script = ScriptedModel(calls=[read('a'), write('a', 'x'), run('true')])
        await Agent[Any, Any](script.model, capabilities=[mine]).run('Go.', workspace=workspace)
        assert told(script) == snapshot(
            [
                'text',
                "! 'a' cannot be used: This workspace is read-only: running commands and modifying files are disabled. Reading files, listing directories, and checking that paths exist are allowed.",
                '! The workspace of this run is read-only, so scripts cannot be run in it.',
            ]
        )
        assert (tmp_path / 'a').read_text() == 'text'

    async def test_a_workspace_that_refuses_is_a_failure(self, skills: Path, tmp_path: Path):
        class Gone(Elsewhere):
            async def run(self, command: Any, **options: Any) -> Any:
                raise WorkspaceUnavailableError('It was switched off')

        script = ScriptedModel(calls=[run('true')])
        await Agent[Any, Any](script.model, capabilities=[capability(skills)]).run('Go.', workspace=Gone(tmp_path))
        assert told(script) == ['! The workspace refused to run a command: It was switched off']

    async def test_where_there_is_no_conversation_there_are_no_files(self, skills: Path):
        tools = WorkspaceToolset(capability(skills).toolset)
        with pytest.raises(SkillResourceLoadError, match='no work folder'):
            await tools.read_file(CONTEXT, 'a')
        with pytest.raises(SkillScriptExecutionError, match='cannot be run'):
            await tools.run_command(CONTEXT, 'true')

    def test_an_option_that_is_none_is_refused(self, skills: Path):
        with pytest.raises(ValueError, match="workspace_tools is True, False or 'allow', not 'ask'"):
            capability(skills, workspace_tools='ask')

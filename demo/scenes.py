"""The scenes of the demo. Each one shows something the package does, with real tools, processes and files."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import socket
from pathlib import Path
from typing import Any, cast

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from stand_in import script_call, stand_in
from terminal import BOLD, DIM, GREEN, MAGENTA, bar, heading, painted, report, say, side_by_side

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    LocalSkillScriptExecutor,
    SandboxUnavailableError,
    ScriptFinished,
    ScriptResult,
    SkillScriptExecutor,
    SkillsDirectory,
    SkillsToolset,
    estimate_tokens,
    fix_problems,
    validate_skills,
)

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / 'examples'
REQUEST = (
    'Please fill in my expense claim: Ada Byron, conference in Lisbon, 3 to 6 November 2026, 412.50 euros in total.'
)
CONVERSATION = 'demo'


async def fill_a_form(model: Model) -> list[ModelMessage]:
    """Let an agent fill in a form with the two scripts of a skill, and show the file."""
    heading('1. A skill fills in a form, with two scripts')
    skills = SkillsToolset(directories=[EXAMPLES / 'skills', EXAMPLES / 'forms'])
    written: list[str] = []
    skills.on(ScriptFinished)(lambda ctx, event: written.extend(file.name for file in event.result.files))
    say('you', REQUEST, GREEN)
    shown = 0
    async with Agent(model, toolsets=[skills]).iter(REQUEST, conversation_id=CONVERSATION) as run:
        async for _ in run:
            for message in run.all_messages()[shown:]:
                show(message)
                shown += 1
    for name in written[-1:]:
        content = await asyncio.to_thread(skills.read_file, CONVERSATION, name)
        show_file(content.decode(errors='replace'))
    await skills.aclose()
    return run.all_messages()


def show_file(text: str) -> None:
    """Print the beginning of a file."""
    for line in text.rstrip().splitlines()[:10]:
        print(f'        {painted("│", DIM)} {line}'.rstrip())


def show(message: ModelMessage) -> None:
    """Print what a message says, calls and returns, in a few lines."""
    for part in message.parts:
        match part:
            case TextPart():
                say('model', part.content, MAGENTA)
            case ToolCallPart():
                say('model', called(part), MAGENTA)
            case ToolReturnPart(metadata=ScriptResult() as result):
                say('', f'→ {str(result).splitlines()[0]}', most=2)
            case ToolReturnPart(outcome='failed'):
                say('', f'→ {readable(part)}', most=2)
            case ToolReturnPart():
                say('', f'→ {estimate_tokens(readable(part)):,} tokens')
            case _:
                pass


def called(call: ToolCallPart) -> str:
    """A call in one line: the arguments of a script as it is given them."""
    given = call.args_as_dict()
    words = [str(given.get(name)) for name in ('skill_name', 'script_name', 'resource_name') if name in given]
    args = given.get('args', '')
    words += map(str, cast('list[Any]', args)) if isinstance(args, list) else str(args).split()
    return f'{call.tool_name}: {shlex.join(words)}' if words else call.tool_name


def readable(part: ToolReturnPart) -> str:
    """A result as text, the same wherever the repository is."""
    text = part.content if isinstance(part.content, str) else part.model_response_str()
    return text.replace(str(EXAMPLES), 'examples')


def count_tokens(messages: list[ModelMessage]) -> None:
    """Compare what the list of skills costs with what was loaded, and with loading everything."""
    heading('2. Tokens: the list is in every request, the rest only when it is needed')
    skills = SkillsToolset(directories=[EXAMPLES / 'skills', EXAMPLES / 'forms'])
    in_prompt = next(getattr(message, 'instructions', None) for message in messages) or ''
    loaded = sum(
        estimate_tokens(readable(part))
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart) and part.tool_name == 'load_skill'
    )
    files = [item for skill in skills.skills.values() for item in (*skill.resources, *skill.scripts)]
    texts = [Path(item.uri).read_text() for item in files if item.uri]
    all_of_it = sum(map(estimate_tokens, [*texts, *(skill.content for skill in skills.skills.values())]))
    bar(f'the list of {len(skills.skills)} skills', estimate_tokens(in_prompt), all_of_it)
    bar('what was loaded for the form', loaded, all_of_it)
    bar('all instructions, references and scripts', all_of_it, all_of_it)


def meet_a_stranger(scratch: Path) -> None:
    """Run the script of a source that is not trusted without a sandbox and in one."""
    heading('3. A stranger\'s script: "count my words", and it looks around')
    folder = scratch / 'private'
    folder.mkdir()
    (folder / 'diary.txt').write_text('Dear diary')
    outside = count_words(LocalSkillScriptExecutor(), folder)
    try:
        inside = 'in a sandbox: contained', count_words(BubblewrapSkillScriptExecutor(), folder)
    except SandboxUnavailableError as error:
        inside = 'in a sandbox: not on this machine', str(error)
    side_by_side(('without a sandbox: refused', outside), inside)
    say('after', f'The private folder still holds: {", ".join(path.name for path in folder.iterdir())}.', GREEN)


def count_words(executor: SkillScriptExecutor, folder: Path) -> str:
    """What the model is told about the script of the stranger."""
    directory = SkillsDirectory(HERE / 'stranger', trusted=False, script_executor=executor)
    with socket.create_server(('127.0.0.1', 0)) as service, SkillsToolset(directories=[directory]) as skills:
        port = str(service.getsockname()[1])
        model = stand_in(script_call('word-count', 'count.py', 'How long is this?', str(folder), port))
        result = asyncio.run(Agent(model, toolsets=[skills]).run('How long is this?'))
    return last_result(result.all_messages())


def last_result(messages: list[ModelMessage]) -> str:
    """What the last tool call returned."""
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    return readable(parts[-1])


def ask_first(scratch: Path) -> None:
    """Ask for an approval, and show that it is for the files that were there when it was asked for."""
    heading("4. Approvals: script_policy='ask'")
    shutil.copytree(EXAMPLES / 'skills/unit-converter', scratch / 'skills/unit-converter')
    script = scratch / 'skills/unit-converter/scripts/convert.py'
    skills = SkillsToolset(directories=[scratch / 'skills'], script_policy='ask')
    model = stand_in(script_call('unit-converter', 'convert.py', '26.2', 'mi', 'km'))
    agent = Agent(model, toolsets=[skills], output_type=[str, DeferredToolRequests])
    asked = asyncio.run(agent.run('How long is a marathon?'))
    requests = asked.output
    assert isinstance(requests, DeferredToolRequests)
    about: dict[str, Any] = requests.metadata[requests.approvals[0].tool_call_id]
    words = shlex.join(Path(word).name for word in shlex.split(about['command']))
    print(f'{about["skill"]} wants to run: {painted(words, BOLD)}\nRun it? [y/N] y   (the demo answers for you)')
    for label, change in (('ran', ''), ('changed', '# one more line, after the answer')):
        with script.open('a') as file:
            file.write(change)
        answers = requests.build_results(approve_all=True, metadata=requests.metadata)
        done = asyncio.run(agent.run(message_history=asked.all_messages(), deferred_tool_results=answers))
        say(label, last_result(done.all_messages()), GREEN)


def mend(scratch: Path) -> None:
    """Report a broken skill, and fix it."""
    heading('5. A broken skill is reported, and fixed')
    file = Path(shutil.copytree(HERE / 'broken', scratch / 'broken')) / 'code-review/SKILL.md'
    problems = validate_skills(scratch / 'broken').problems
    for problem in problems:
        report(f'code-review/SKILL.md:{problem.line}: {problem.severity} [{problem.code}] {problem.message}')
        report(f'  {painted("fix:", GREEN)} {problem.fix}')
    fix_problems(problems)
    assert validate_skills(scratch / 'broken').ok
    report(f'  {painted("fixed:", GREEN)} {file.read_text().splitlines()[2]}')

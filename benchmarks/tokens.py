"""`python -m benchmarks.tokens [SKILL_FOLDER …]`: what skills cost in tokens, and what a request costs on demand.

Tokens are those of o200k_base: instructions, tools and prompt of the request that OpenAI's chat API is sent. Tiktoken
fetches the vocabulary; without a network, `TIKTOKEN_CACHE_DIR` names a folder that has it. Folders of skills that are
named are loaded, and compared with their instructions.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import httpx2
import tiktoken
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider

from pydantic_ai_skills import Skill, SkillsCapability, SkillsDirectory, SkillsToolset

from .descriptions import CHARS, described
from .figure import HEADING, Figure, best_of

SEEDS = range(5)
"""The sets of descriptions that are measured. The mean of them counts."""

ENTRY = re.compile('<skill name="(.*)">(.*)</skill>')
ON_DEMAND = 300


def write_skills(root: Path, count: int, seed: int) -> None:
    """Write skills with a reference, a script and a description of 128 characters."""
    for name, text in described(count, seed):
        folder = root / name
        for part in ('scripts', 'references'):
            (folder / part).mkdir(parents=True)
        head = f'---\nname: {name}\ndescription: {text}\n---\n'
        (folder / 'SKILL.md').write_text(f'{head}\nRead references/guide.md, then run scripts/run.py.\n', 'utf-8')
        (folder / 'references/guide.md').write_text('# Guide\n', 'utf-8')
        (folder / 'scripts/run.py').write_text('print("done")\n', 'utf-8')


def tokens(text: str) -> int:
    return len(tiktoken.get_encoding('o200k_base').encode(text))


async def last_request(root: Path, first: str | None) -> dict[str, Any]:
    """The body of the last request of a run, which loads a skill if one is named."""
    bodies: list[dict[str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        message: dict[str, Any] = {'role': 'assistant', 'content': 'Hello.'}
        if first and len(bodies) == 1:
            function = {'name': 'load_skill', 'arguments': json.dumps({'skill_name': first})}
            message = {'role': 'assistant', 'tool_calls': [{'id': '1', 'type': 'function', 'function': function}]}
        choice = {'index': 0, 'message': message, 'finish_reason': 'stop'}
        body = {'id': 'c', 'object': 'chat.completion', 'created': 1, 'model': 'gpt', 'choices': [choice]}
        return httpx2.Response(200, json=body)

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    model = OpenAIChatModel('gpt-5.2', provider=OpenAIProvider(api_key='none', http_client=client))
    agent = Agent(model, capabilities=[SkillsCapability(directories=[root])], instructions='Be brief.')
    await agent.run('Hello, what can you do for me today?')
    return bodies[-1]


class Request(NamedTuple):
    """The tokens of a request and of its parts."""

    all: int
    listed: int
    """Those of the list of skills."""

    bare: int
    """Those of the same as `- name: description`."""

    tools: int


def measure(count: int, seed: int, *, load: bool) -> Request:
    """The tokens of a request with so many skills, of which one has been loaded or none."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_skills(root, count, seed)
        first = min(folder.name for folder in root.iterdir())
        body = asyncio.run(last_request(root, first if load else None))
    texts = [message.get('content') or json.dumps(message['tool_calls']) for message in body['messages']]
    tools = tokens(json.dumps(body['tools'], separators=(',', ':')))
    (prompt,) = [text for text in texts if '<available_skills>' in text]
    listed = prompt[prompt.index('<available_skills>') : prompt.index('</context>')]
    entries = ENTRY.findall(listed)
    assert len(entries) == count
    assert all(len(text) == CHARS for _, text in entries)
    bare = '\n'.join(f'- {name}: {text}' for name, text in entries)
    return Request(sum(map(tokens, texts)) + tools, tokens(listed), tokens(bare), tools)


def first_request(count: int, limit: float, *, load: bool = False) -> Iterator[Figure]:
    """The tokens of the first request with so many skills, of its list and of its tools: the mean of several sets."""
    sets = [measure(count, seed, load=load) for seed in SEEDS]
    total, listed, bare, tools = map(mean, zip(*sets, strict=True))
    what = f'{count} skills, one loaded' if load else f'{count} skills'
    yield Figure(what=what, measured=total, unit='tokens', limit=limit)
    if not load:
        yield Figure(
            what=f'the list of {count} skills',
            measured=listed,
            unit='tokens',
            limit=1_950,
            baseline=bare,
            baseline_is='the same as `- name: description`',
        )
        yield Figure(what='the tools alone', measured=tools, unit='tokens', limit=420)


def loads(folder: str) -> Figure:
    """The tokens of a loaded skill beside those of its instructions."""
    (skill,) = SkillsDirectory(folder, max_depth=0).get_skills().values()
    toolset = SkillsToolset[Any](skills=[skill])
    prompt: Any = asyncio.run(toolset.invoke(skill.name))
    return Figure(
        what=f'load of {skill.name}',
        measured=tokens(prompt[1].content),
        unit='tokens',
        baseline=tokens(skill.content),
        baseline_is='its instructions',
        judged_by='ratio',
        limit=1.15 if len(skill.content) > 10_000 else None,
    )


def on_demand() -> Figure:
    """A run of one request with 300 skills on demand, beside the same by tools."""

    def agent(**options: Any) -> Agent[None, str]:
        skills = [Skill[Any](f'skill-{number:03}', 'Does it. Use when asked.', 'Do it.') for number in range(ON_DEMAND)]
        return Agent(TestModel(call_tools=[]), capabilities=[SkillsCapability(skills=skills, **options)])

    agents = agent(disclosure='on-demand'), agent()
    for each in agents:
        each.run_sync('Hello')
    measured, by_tools = best_of(*(lambda each=each: each.run_sync('Hello') for each in agents))
    return Figure(
        what=f'a run with {ON_DEMAND} skills on demand',
        measured=measured,
        unit='ms',
        baseline=by_tools,
        baseline_is='the same by tools',
        judged_by='ratio',
        limit=3,
    )


def main() -> None:
    print(HEADING, flush=True)
    figures = [*first_request(3, 700), *first_request(3, 900, load=True), *first_request(50, 2_400)]
    figures += [*map(loads, sys.argv[1:]), on_demand()]
    print(*figures, sep='\n')
    sys.exit(any(figure.is_over for figure in figures))


if __name__ == '__main__':
    main()

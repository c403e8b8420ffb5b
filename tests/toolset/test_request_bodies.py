"""What real providers are sent, offline: the prefix of a request stays the same to the byte but for what a load reveals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic_ai import Agent

from pydantic_ai_skills import SkillsCapability, SkillsDirectory
from tests.conversations import Call
from tests.folders import write, write_skill
from tests.providers import PROVIDERS, recording
from tests.toolset.test_approvals import Remote
from tests.toolset.typed_tools.test_typed_tools import KINDS, Kind, adder

pytestmark = pytest.mark.anyio

USE: list[Call] = [('adder__add', {'a': 2}), ('adder__add', {'a': 'x'}), ('adder__add', {'a': 3})]


def load(disclosure: str, name: str) -> Call:
    return ('load_skill', {'skill_name': name}) if disclosure == 'tools' else ('load_capability', {'id': name})


async def bodies_of(provider: str, capability: SkillsCapability[Any], *calls: Call) -> list[dict[str, Any]]:
    with recording(provider, calls) as (model, bodies):
        result = await Agent(model, capabilities=[capability], instructions='Be brief.').run('Go.')
    assert result.output == 'done'
    assert len(bodies) == len(calls) + 1
    return bodies


def said(body: dict[str, Any]) -> list[Any]:
    return body.get('messages') or body.get('input') or body['contents']


def declared(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The definitions of the tools, as the provider has them."""
    tools = [tool for tool in body['tools'] for tool in tool.get('functionDeclarations', [tool])]
    return [tool.get('function', tool) for tool in tools]


def names_of(body: dict[str, Any]) -> list[str]:
    return [tool['name'] for tool in declared(body)]


def prefix_of(body: dict[str, Any]) -> str:
    """All that comes before the messages, as it is sent."""
    return json.dumps(
        {key: value for key, value in body.items() if key not in ('messages', 'input', 'contents', 'tools')}
    )


@pytest.mark.parametrize('provider', PROVIDERS)
@pytest.mark.parametrize('disclosure', ['tools', 'on-demand'])
@pytest.mark.parametrize('kind', KINDS)
async def test_requests_only_grow_at_the_end_and_by_what_a_load_reveals(
    tmp_path: Path, kind: Kind, disclosure: Literal['tools', 'on-demand'], provider: str
):
    skills, directories = adder(tmp_path, kind)
    write_skill(tmp_path / 'other')
    capability = SkillsCapability(skills=skills, directories=directories or [tmp_path], disclosure=disclosure)
    bodies = await bodies_of(provider, capability, load(disclosure, 'adder'), *USE, load(disclosure, 'other'))
    first, *later = bodies
    assert len({prefix_of(body) for body in bodies}) == 1
    for body, following in zip(bodies, later, strict=False):
        assert json.dumps(said(following)).startswith(json.dumps(said(body))[:-1])
    assert len({json.dumps(body['tools']) for body in later}) == 1
    assert json.dumps(declared(later[0])).startswith(json.dumps(declared(first))[:-1])
    added = set(names_of(later[0])) - set(names_of(first))
    assert added <= {'adder__add'}
    if provider == 'openai-responses' or (provider == 'anthropic' and disclosure == 'on-demand' and kind != 'module'):
        # The provider is told of the tools at their place in the conversation, or was told to hold them back.
        assert added == set()


@pytest.mark.parametrize('provider', PROVIDERS)
async def test_what_a_stranger_says_of_tools_is_in_no_words_of_the_system(tmp_path: Path, provider: str):
    args = 'args: {mode: {type: string, description: STRANGE, enum: [STRANGE]}}'
    tools = f'tools:\n  go: {{script: go.py, description: STRANGE, {args}}}\n'
    head = f'---\nname: strange\ndescription: Described.\n{tools}---\nSTRANGE'
    write(tmp_path / 'theirs' / 'strange', {'SKILL.md': head, 'STRANGE.md': 'x', 'go.py': '"""STRANGE"""'})
    write_skill(tmp_path / 'own/own')
    capability = SkillsCapability(
        directories=[tmp_path / 'own'],
        registries=[Remote(SkillsDirectory(tmp_path / 'theirs'), trusted=False)],
        disclosure='on-demand',
    )
    bodies = await bodies_of(
        provider,
        capability,
        ('load_skill', {'skill_name': 'strange'}),
        ('read_skill_resource', {'skill_name': 'strange', 'resource_name': 'STRANGE.md'}),
        ('strange__go', {'mode': 'STRANGE'}),
        ('load_capability', {'id': 'own'}),
    )
    body = bodies[-1]
    assert 'STRANGE' not in prefix_of(body)
    assert 'STRANGE' not in json.dumps(body['tools'])
    for message in said(body):
        text = json.dumps(message)
        if message.get('role') in ('system', 'developer'):
            assert 'STRANGE' not in text
        assert not ('STRANGE' in text and '<system>' in text)
    assert 'STRANGE' in json.dumps(said(body))
    assert '"strange__go"' in json.dumps(body)

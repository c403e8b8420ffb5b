"""Reads `agents/openai.yaml`, in which a skill names the tools it needs and how it is presented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from pydantic_ai_skills.parsing.findings import RefusedYaml, UnreadableYaml, Value, read_flag
from pydantic_ai_skills.parsing.yaml_reader import read_yaml

from .found import MAX_NAME, Found

OPENAI_FILE = 'agents/openai.yaml'
"""Where the file is in a skill."""


@dataclass(frozen=True, kw_only=True)
class OpenAISettings:
    """What an `agents/openai.yaml` says about a skill. Nothing of it changes how the skill is offered here."""

    interface: Mapping[str, str] = field(default_factory=dict[str, str])
    """How the skill is presented: `display_name`, `short_description`, `default_prompt` and others."""

    implicit_invocation: bool = True
    """Whether a model may load the skill without a person asking for it."""


def read_settings(text: str) -> OpenAISettings:
    """The settings in the file; the defaults if it cannot be read."""
    content = _mapping(text)
    interface = {name: value for name, value in _part(content, 'interface').items() if isinstance(value, str)}
    allowed = read_flag(_part(content, 'policy').get('allow_implicit_invocation', 'true'))
    return OpenAISettings(interface=interface, implicit_invocation=allowed is not False)


def tool_needs(text: str) -> Iterator[Found]:
    """The tools that the skill depends on."""
    tools = _part(_mapping(text), 'dependencies').get('tools')
    for tool in tools if isinstance(tools, list) else ():
        name = tool.get('value') if isinstance(tool, dict) else None
        if isinstance(tool, dict) and isinstance(name, str) and 0 < len(name) <= MAX_NAME:
            about = (tool.get(part) for part in ('type', 'description', 'url'))
            yield Found('tool', name, detail=', '.join(text for text in about if isinstance(text, str) and text))


def _mapping(text: str) -> dict[str, Value]:
    try:
        content, _ = read_yaml(text)
    except (UnreadableYaml, RefusedYaml):
        return {}
    return content if isinstance(content, dict) else {}


def _part(content: dict[str, Value], name: str) -> dict[str, Value]:
    part = content.get(name)
    return cast('dict[str, Value]', part) if isinstance(part, dict) else {}

"""An offline stand-in for a model, for `chat` without one: it picks tools by simple rules."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pydantic_ai_skills.evals.stand_in import best_skill, files_of, instructions_of, say, skill_names

from .formats import result_text

HELP = (
    'No model is set, so a simple offline stand-in answers. It loads the skill that best matches your words, and '
    'understands: list · load SKILL · read FILE · run SCRIPT ARGUMENTS · help'
)

NO_SKILL = 'Load a skill first: load SKILL. Or name it: {word} SKILL {rest}'

PARAGRAPH_CHARS = 300
"""How many characters of a skill's instructions it repeats."""


def offline_model() -> FunctionModel:
    """A model that needs no network."""
    return FunctionModel(_respond, model_name='offline')


def _respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    request = messages[-1]
    returned = [part for part in request.parts if isinstance(part, ToolReturnPart)]
    if returned:
        return say(_comment(returned[-1]))
    prompt = next((str(part.content) for part in reversed(request.parts) if isinstance(part, UserPromptPart)), '')
    return _act(prompt.strip(), messages, info)


def _act(prompt: str, messages: Sequence[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Choose the tool to call from the words of the prompt."""
    word, _, rest = prompt.partition(' ')
    tools = {tool.name for tool in info.function_tools}
    match word.lower(), bool(rest):
        case 'list', False:
            return _call(tools, 'list_skills')
        case 'help', False:
            return say(HELP)
        case 'load', True:
            return _call(tools, 'load_skill', skill_name=rest.strip())
        case 'read' | 'run', True:
            skill, words = _named_skill(_split(rest), info.instructions or '', _loaded(messages))
            return _use(word.lower(), skill, words, tools) if skill else say(NO_SKILL.format(word=word, rest=rest))
        case _:
            return _load_best(prompt, tools, info.instructions or '')


def _named_skill(words: list[str], instructions: str, loaded: str | None) -> tuple[str | None, list[str]]:
    """The skill that the first word names, or else the one that was loaded last; and the other words."""
    is_named = len(words) > 1 and words[0] in skill_names(instructions)
    return (words[0], words[1:]) if is_named else (loaded, words)


def _use(word: str, skill: str, words: list[str], tools: set[str]) -> ModelResponse:
    """Read a file of a skill, or run a script of it."""
    if word == 'read':
        return _call(tools, 'read_skill_resource', skill_name=skill, resource_name=' '.join(words))
    script, *arguments = words
    return _call(tools, 'run_skill_script', skill_name=skill, script_name=script, args=arguments or None)


def _load_best(prompt: str, tools: set[str], instructions: str) -> ModelResponse:
    name = best_skill(prompt, instructions)
    return say(f'No skill matches that. {HELP}') if name is None else _call(tools, 'load_skill', skill_name=name)


def _loaded(messages: Sequence[ModelMessage]) -> str | None:
    """The skill that was loaded last."""
    parts = [part for message in messages for part in message.parts]
    loaded = [
        part.tool_call_id
        for part in parts
        if isinstance(part, ToolReturnPart) and part.tool_name == 'load_skill' and part.outcome == 'success'
    ]
    calls = {part.tool_call_id: part for part in parts if isinstance(part, ToolCallPart)}
    return str(calls[loaded[-1]].args_as_dict()['skill_name']) if loaded else None


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an odd quote
        return text.split()


def _call(tools: set[str], name: str, **args: Any) -> ModelResponse:
    if name not in tools:
        return say(f'There is no tool {name!r} here: no skill has a use for it.')
    return ModelResponse(parts=[ToolCallPart(name, args)])


def _comment(part: ToolReturnPart) -> str:
    """A comment on what a tool returned."""
    text = result_text(part)
    if part.outcome != 'success':
        return f'That did not work: {text}'
    if part.tool_name != 'load_skill':
        comments = {'run_skill_script': f'The script printed: {text}', 'list_skills': 'To use one, say: load SKILL'}
        return comments.get(part.tool_name, 'That is the file.')
    hints = [f'{"run" if kind == "script" else "read"} {name}' for kind, name in files_of(text)]
    more = f' Say: {" · ".join(hints[:6])}' if hints else ''
    return f'Its instructions begin: {instructions_of(text)[:PARAGRAPH_CHARS]}\n{more.strip()}'.strip()

"""Models that choose skills as they are told, for answers that are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel


def prompt_of(messages: Sequence[ModelMessage]) -> str:
    return next(str(part.content) for message in messages for part in message.parts if isinstance(part, UserPromptPart))


def returns_in(messages: Sequence[ModelMessage]) -> list[ToolReturnPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def is_listed(skill: str, info: AgentInfo) -> bool:
    return f'<skill name="{skill}">' in (info.instructions or '')


def choosing(choices: Mapping[str, Sequence[Sequence[str]]], *, log: list[str] | None = None) -> FunctionModel:
    """Loads the skills that are given for a prompt: in its first run those of the first entry, and so on, again and again.

    A skill that is not listed is not loaded. Then it answers with the instructions it has read.
    """
    started = Counter[str]()

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        prompt = prompt_of(messages)
        if len(messages) == 1:
            turns = choices.get(prompt, [[]])
            names = [name for name in turns[started[prompt] % len(turns)] if is_listed(name, info)]
            started[prompt] += 1
            if log is not None:
                log.append(prompt)
            if names:
                return ModelResponse(parts=[ToolCallPart('load_skill', {'skill_name': name}) for name in names])
        read = ' '.join(part.model_response_str() for part in returns_in(messages))
        return ModelResponse(parts=[TextPart(read or 'I know nothing about that.')])

    return FunctionModel(respond, model_name='choosing')


def calling(*calls: tuple[str, Any], answer: str | Callable[[Sequence[ToolReturnPart]], str] = 'done') -> FunctionModel:
    """Makes these calls one after another, as far as the tools are there, then answers."""

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        there = {tool.name for tool in info.function_tools}
        step = len(messages) // 2
        if step < len(calls) and calls[step][0] in there:
            parts: list[ModelResponsePart] = [ToolCallPart(*calls[step])]
            return ModelResponse(parts=parts)
        return ModelResponse(parts=[TextPart(answer if isinstance(answer, str) else answer(returns_in(messages)))])

    return FunctionModel(respond, model_name='calling')


def judging(verdicts: Mapping[str, bool], *, log: list[str] | None = None) -> FunctionModel:
    """Judges a statement by the first of these words that the request holds."""

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked = prompt_of(messages)
        if log is not None:
            log.append(asked)
        word = next(word for word in verdicts if word in asked)
        if word == 'BROKEN':
            raise RuntimeError('the judge is ill')
        verdict = {'reason': f'because of {word}', 'pass': verdicts[word], 'score': float(verdicts[word])}
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, verdict)])

    return FunctionModel(respond, model_name='judging')

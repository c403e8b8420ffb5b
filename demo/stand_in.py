"""What the demo uses in place of a model, so that it needs no key and no network."""

from __future__ import annotations

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

FORM = {'skill_name': 'fill-form'}
VALUES = ['name=Ada Byron', 'trip=Conference in Lisbon', 'from=2026-11-03', 'until=2026-11-06', 'total=412.5']


def stand_in(*calls: ToolCallPart, answer: str = 'Done.') -> FunctionModel:
    """A model that makes these calls, one after another, and then answers."""

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        done = sum(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)
        return ModelResponse(parts=[calls[done] if done < len(calls) else TextPart(answer)])

    return FunctionModel(respond, model_name='stand-in')


def script_call(skill: str, script: str, *args: str) -> ToolCallPart:
    """The call of a script with positional arguments."""
    return ToolCallPart('run_skill_script', {'skill_name': skill, 'script_name': script, 'args': list(args)})


def filling_in() -> FunctionModel:
    """A model that follows the instructions of the skill `fill-form`."""
    return stand_in(
        ToolCallPart('load_skill', FORM),
        script_call('fill-form', 'list_fields.py', 'expense-claim.txt'),
        script_call('fill-form', 'fill_form.py', 'fields.json', 'claim.txt', '--set', *VALUES),
        answer='Your expense claim is in claim.txt.',
    )

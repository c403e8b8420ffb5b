"""Records what models answer in an evaluation, and answers from a recording without asking a model."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic_ai import native_tools
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.filesystem.atomic import replace_file
from pydantic_ai_skills.filesystem.safe_open import read_regular, reason

from .folder_names import FolderNames
from .request_keys import request_key

MAX_RECORDING_BYTES = 256 * 1024 * 1024
"""A larger recording is not read."""

_FORMAT = 'pydantic-ai-skills evals 1'


@dataclass(kw_only=True)
class RunNow:
    """The run that is going on in this context."""

    label: str
    """The name of the run."""

    folders: FolderNames = field(default_factory=FolderNames)
    """The folders that the model may see in it."""

    requests: int = 0
    """How many requests it has made."""


RUN_NOW: ContextVar[RunNow] = ContextVar('eval_run')
"""The run that is going on in this context."""


class Recording:
    """The answers of the models in an evaluation, and how the runs ended."""

    def __init__(self) -> None:
        self.models: dict[str, Any] = {}
        """What is known of the model and the judge."""
        self.answers: dict[str, list[tuple[str, Any]]] = {}
        """For each run the key and the answer of each request, in their order."""
        self.ends: dict[str, dict[str, Any]] = {}
        """For each run what the answers cannot reproduce: how long it took, its price, its error."""

    def write(self, path: Path) -> None:
        """Write it as lines of JSON, in the same order whichever run ended first."""
        lines: list[Any] = [{'format': _FORMAT, 'models': self.models}]
        for run, end in sorted(self.ends.items()):
            lines += [{'run': run, 'request': key, 'answer': answer} for key, answer in self.answers.get(run, ())]
            lines.append({'run': run, 'end': end})
        replace_file(path, ''.join(f'{json.dumps(line, ensure_ascii=False)}\n' for line in lines).encode())

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Read a recording.

        Raises:
            SkillError: It cannot be read, or is not one.
        """
        recording = cls()
        try:
            data = read_regular(path, MAX_RECORDING_BYTES, follow_links=True)
            first, *lines = [json.loads(line) for line in data.splitlines() if line.strip()]
            if first['format'] != _FORMAT:
                raise ValueError('it has another format')
            recording.models = first['models']
            for line in lines:
                if 'end' in line:
                    recording.ends[line['run']] = line['end']
                else:
                    recording.answers.setdefault(line['run'], []).append((line['request'], line['answer']))
        except OSError as error:
            raise SkillError(f'The recording {path} cannot be read: {reason(error)}.') from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SkillError(f'{path} is not a recording of an evaluation: {error}.') from error
        return recording


class RecordingModel(WrapperModel):
    """A model whose answers are recorded."""

    def __init__(self, wrapped: Model, recording: Recording, role: str) -> None:
        """Record what a model answers. `role` is `'model'` or `'judge'`."""
        super().__init__(wrapped)
        self._recording = recording
        self._role = role
        recording.models[role] = {
            'name': wrapped.model_name,
            'system': wrapped.system,
            'profile': _profile_in_json(wrapped.profile),
        }

    def prepare_messages(
        self, messages: list[ModelMessage], model_request_parameters: ModelRequestParameters | None = None
    ) -> list[ModelMessage]:
        """The messages unchanged: a request is identified by what the agent asks, before they are prepared."""
        return messages

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask the model, and record its answer."""
        now = RUN_NOW.get()
        key = f'{self._role} {request_key(messages, model_request_parameters, now.folders)}'
        answers = self._recording.answers.setdefault(now.label, [])
        try:
            prepared = self.wrapped.prepare_messages(messages, model_request_parameters)
            response = await super().request(prepared, model_settings, model_request_parameters)
        except Exception as error:
            answers.append((key, {'error': now.folders.hide(told(error))}))
            raise
        answers.append((key, now.folders.hide(ModelMessagesTypeAdapter.dump_python([response], mode='json')[0])))
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Ask the model for a whole answer, and stream that."""
        response = await self.request(messages, model_settings, model_request_parameters)
        yield CompletedStreamedResponse(response, model_request_parameters=model_request_parameters, replay_events=True)


class RecordedAnswerError(Exception):
    """The model failed when the evaluation was recorded, and does so again."""


def told(error: Exception) -> str:
    """What a report says about an error, the same in the recorded evaluation and in its replay."""
    return str(error) if isinstance(error, RecordedAnswerError) else f'{type(error).__name__}: {error}'


class ReplayModel(Model):
    """Answers from a recording. It needs no network and no key."""

    def __init__(self, recording: Recording, role: str, path: Path) -> None:
        """Take the place of a model. `role` is `'model'` or `'judge'`."""
        known = recording.models.get(role)
        if known is None:
            raise SkillError(f'{path} has no recorded {role!r}.')
        super().__init__(profile=_profile_from_json(known['profile']))
        self._recording = recording
        self._known = known
        self._role = role
        self._path = path
        self.misses: list[str] = []
        """The requests that are not in the recording."""

    @property
    def model_name(self) -> str:
        return self._known['name']

    @property
    def system(self) -> str:
        return self._known['system']

    def prepare_messages(
        self, messages: list[ModelMessage], model_request_parameters: ModelRequestParameters | None = None
    ) -> list[ModelMessage]:
        """The messages unchanged, because no model has to understand them."""
        return messages

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """The recorded answer to the same request in the same run.

        Raises:
            RecordedAnswerError: The model failed then, too.
            SkillError: The request is not in the recording.
        """
        now = RUN_NOW.get()
        now.requests += 1
        key = f'{self._role} {request_key(messages, model_request_parameters, now.folders)}'
        left = self._recording.answers.get(now.label, [])
        found = next((number for number, (known, _) in enumerate(left) if known == key), None)
        if found is None:
            self.misses.append(_not_recorded(self._path, now, self._role))
            raise SkillError(self.misses[-1])
        _, answer = left.pop(found)
        if 'error' in answer:
            raise RecordedAnswerError(now.folders.show(answer['error']))
        (response,) = ModelMessagesTypeAdapter.validate_python([now.folders.show(answer)])
        return cast(ModelResponse, response)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """The recorded answer, as a stream."""
        response = await self.request(messages, model_settings, model_request_parameters)
        yield CompletedStreamedResponse(response, model_request_parameters=model_request_parameters, replay_events=True)


def _not_recorded(path: Path, now: RunNow, role: str) -> str:
    who = 'the judging model' if role == 'judge' else 'the model'
    return (
        f'The recording {path} lacks request {now.requests} to {who} in the run {now.label!r}: the case, the skills or '
        'the agent have changed since. Record it again.'
    )


def _profile_in_json(profile: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a model's profile that JSON can hold. The profile decides how an agent asks."""
    plain = {key: value for key, value in profile.items() if isinstance(value, str | int | float | None)}
    tools: Any = profile.get('supported_native_tools', ())
    return {**plain, 'supported_native_tools': sorted(tool.__name__ for tool in tools)}


def _profile_from_json(profile: Mapping[str, Any]) -> ModelProfile:
    tools = (getattr(native_tools, name, None) for name in profile['supported_native_tools'])
    return cast(ModelProfile, {**profile, 'supported_native_tools': frozenset(tool for tool in tools if tool)})

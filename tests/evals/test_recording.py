"""A recorded evaluation replays without a model, byte for byte, on another machine too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessEventStream
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextContent,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pydantic_ai_skills import SkillsToolset
from pydantic_ai_skills.evals import (
    EvalReport,
    FileWritten,
    Judged,
    OutputContains,
    SkillCase,
    evaluate,
)
from pydantic_ai_skills.evals.folder_names import FolderNames
from pydantic_ai_skills.evals.request_keys import request_key
from pydantic_ai_skills.exceptions import SkillError
from tests.evals.scripted import choosing, judging, prompt_of, returns_in
from tests.folders import write_skill

pytestmark = pytest.mark.anyio

NOTE = "import os\nopen('note.txt', 'w').write('noted')\nprint(os.getcwd())\n"
RUN = ('run_skill_script', {'skill_name': 'notes', 'script_name': 'scripts/note.py'})


def library(tmp_path: Path, description: str = 'Takes notes.') -> SkillsToolset[Any]:
    write_skill(tmp_path / 'notes', description, files={'scripts/note.py': NOTE})
    return SkillsToolset(directories=tmp_path)


def taking_notes() -> FunctionModel:
    """Loads the skill and runs its script, sometimes fails, and repeats what it has read: folders, times and ids."""
    turns: dict[str, int] = {}

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        prompt = prompt_of(messages)
        told = returns_in(messages)
        if not told:
            turns[prompt] = turns.get(prompt, 0) + 1
            if prompt == 'Fail.' and turns[prompt] % 2:
                raise ModelHTTPError(503, 'scripted', {'at': turns[prompt]})
            if 'name="notes"' in (info.instructions or '') and turns[prompt] % 2:
                return ModelResponse(parts=[ToolCallPart('load_skill', {'skill_name': 'notes'})])
        if len(told) == 1:
            return ModelResponse(parts=[ToolCallPart(*RUN)])
        return ModelResponse(
            parts=[TextPart(f'{turns[prompt]}: {told[-1].model_response_str() if told else "nothing"}')]
        )

    return FunctionModel(respond, model_name='taking-notes')


CASES = [
    SkillCase(skill='notes', prompt='Remember this.', should_trigger=True),
    SkillCase(skill='notes', prompt='Write it down.', checks=[FileWritten('note.txt'), Judged('It is short.')]),
    SkillCase(skill='notes', prompt='Fail.', checks=[OutputContains('nothing')]),
]


async def recorded(tmp_path: Path) -> tuple[EvalReport, Path]:
    file = tmp_path / 'recording.jsonl'
    judge = judging({'It is short': True})
    skills = library(tmp_path / 'here')
    return await evaluate(skills, CASES, model=taking_notes(), judge=judge, repeat=4, record=file), file


async def test_a_replay_gives_the_same_report_byte_for_byte(tmp_path: Path) -> None:
    report, file = await recorded(tmp_path)
    assert report.trigger is not None
    assert report.outcome is not None
    assert report.trigger.results[0].rate == 0.5
    assert report.outcome.results[0].pass_rate == 0.75  # without the skill loaded, no file is written
    assert report.outcome.results[2].pass_rate is not None
    assert len(report.errors) == 4  # half of the runs
    assert report.judge == 'function:judging'
    assert '<folder:work>' in report.to_json()  # the model has repeated it
    assert str(tmp_path) not in report.to_json()
    for concurrency in (1, 16):
        replayed = await evaluate(
            library(tmp_path / f'there-{concurrency}'), CASES, repeat=4, replay=file, max_concurrency=concurrency
        )
        assert replayed.to_json() == report.to_json()


async def test_a_recording_does_not_depend_on_which_run_ends_first(tmp_path: Path) -> None:
    def without_times(file: Path) -> list[Any]:
        lines = [json.loads(line) for line in file.read_text('utf-8').splitlines()]
        return [(line.get('run'), line.get('request')) for line in lines]

    cases = [SkillCase(skill='notes', prompt=f'Task {number}.', should_trigger=True) for number in range(4)]
    model = choosing({case.prompt: [['notes']] for case in cases})
    files = tmp_path / 'one.jsonl', tmp_path / 'other.jsonl'
    for file, concurrency in zip(files, (1, 16), strict=True):
        await evaluate(library(tmp_path), cases, model=model, record=file, max_concurrency=concurrency)
    assert without_times(files[0]) == without_times(files[1])


async def test_a_request_that_is_not_recorded_names_the_case(tmp_path: Path) -> None:
    _, file = await recorded(tmp_path)
    changed = library(tmp_path / 'changed', description='Forgets notes.')
    with pytest.raises(
        SkillError, match=r"lacks request 1 to the model in the run 'notes/1 trigger \d'.*Record it again"
    ):
        await evaluate(changed, CASES, repeat=4, replay=file)


async def test_a_judgement_that_is_not_recorded_names_the_case(tmp_path: Path) -> None:
    _, file = await recorded(tmp_path)
    cases = [SkillCase(skill='notes', id=2, prompt='Write it down.', checks=[Judged('It is long.')])]
    with pytest.raises(SkillError, match=r"lacks request 1 to the judging model in the run 'notes/2 with_skill \d'"):
        await evaluate(library(tmp_path / 'here'), cases, repeat=1, replay=file)


async def test_a_run_that_is_not_recorded_is_an_error(tmp_path: Path) -> None:
    _, file = await recorded(tmp_path)
    with pytest.raises(SkillError, match=r"lacks request 1 to the model in the run 'notes/1 trigger 5'"):
        await evaluate(library(tmp_path / 'here'), CASES, repeat=5, replay=file, max_concurrency=1)


async def test_a_judge_that_failed_fails_again(tmp_path: Path) -> None:
    file = tmp_path / 'recording.jsonl'
    cases = [SkillCase(skill='notes', prompt='Go.', checks=[Judged('BROKEN')])]
    judge = judging({'BROKEN': True})
    report = await evaluate(library(tmp_path), cases, model=choosing({}), judge=judge, record=file)
    replayed = await evaluate(library(tmp_path), cases, replay=file)
    assert replayed.to_json() == report.to_json()
    assert 'Not checked: RuntimeError: the judge is ill' in report.to_json()


async def test_an_agent_that_streams_is_recorded_and_replayed(tmp_path: Path) -> None:
    heard: list[int] = []

    async def listen(ctx: Any, events: Any) -> None:
        heard.append(len([event async for event in events]))

    streaming = ProcessEventStream[Any](listen)
    agent = Agent(taking_notes(), toolsets=[library(tmp_path)], capabilities=[streaming])
    file = tmp_path / 'recording.jsonl'
    report = await evaluate(agent, CASES[:1], repeat=2, record=file)
    recorded, heard[:] = heard[:], []
    replayed = await evaluate(agent, CASES[:1], repeat=2, replay=file)
    assert replayed.to_json() == report.to_json()
    assert sorted(heard) == sorted(recorded)
    assert max(heard) > 0


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (None, 'cannot be read: no such file'),
        ('', 'is not a recording of an evaluation'),
        ('[]\n', 'is not a recording of an evaluation'),
        ('{"format": "another"}\n', 'is not a recording of an evaluation: it has another format'),
        ('{"format": "pydantic-ai-skills evals 1", "models": {}}\n{}\n', 'is not a recording of an evaluation'),
        ('{"format": "pydantic-ai-skills evals 1", "models": {}}\n', "has no recorded 'model'"),
        ('{"for', 'is not a recording of an evaluation'),
    ],
)
async def test_a_broken_recording_says_so(tmp_path: Path, content: str | None, message: str) -> None:
    file = tmp_path / 'recording.jsonl'
    if content is not None:
        file.write_text(content)
    with pytest.raises(SkillError, match=message):
        await evaluate(library(tmp_path / 'here'), CASES, replay=file)


# --- Keys ---------------------------------------------------------------------------------------------------------


def key(text: str | list[Any], folders: dict[str, str] | None = None) -> str:
    names = FolderNames(folders or {})
    return request_key([ModelRequest(parts=[UserPromptPart(text)])], ModelRequestParameters(), names)


@pytest.mark.parametrize(
    ('one', 'other'),
    [
        ('It is 2026-01-01.', 'It is 2027-12-31.'),
        ('At 2026-01-01T10:00:00Z.', 'At 2026-01-02T11:11:11.123+02:00.'),
        ('Id 0123abcd-0000-4000-8000-0123456789ab.', 'Id ffffffff-0000-4000-8000-ffffffffffff.'),
        ('Look into /tmp/one/a.txt.', 'Look into /tmp/two/a.txt.'),
        ([TextContent('Hi.', metadata={'a': 1})], [TextContent('Hi.', metadata={'a': 2})]),
    ],
)
def test_times_ids_and_folders_do_not_tell_requests_apart(one: Any, other: Any) -> None:
    folders = {'/tmp/one': 'work', '/tmp/two': 'work'}
    assert key(one, folders) == key(other, folders)


@pytest.mark.parametrize(
    ('one', 'other'),
    [
        ('Hello.', 'Goodbye.'),
        (['a', BinaryContent(b'1', media_type='image/png')], ['a', BinaryContent(b'2', media_type='image/png')]),
    ],
)
def test_content_tells_requests_apart(one: Any, other: Any) -> None:
    assert key(one) != key(other)

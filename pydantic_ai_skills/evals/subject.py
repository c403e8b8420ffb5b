"""What is evaluated: an agent, the toolsets that it has its skills from, and the models that are tried."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import anyio.to_thread
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import KnownModelName, Model, infer_model
from pydantic_ai.toolsets import AbstractToolset

from pydantic_ai_skills.capability.capability import SkillsCapability
from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.toolset.toolset import SkillsToolset
from pydantic_ai_skills.types.skill import Skill

from .recording import Recording, RecordingModel, ReplayModel

AnyModel: TypeAlias = Model | KnownModelName | str
"""A model, or its name."""

Target: TypeAlias = Agent[Any, Any] | SkillsToolset[Any] | SkillsCapability[Any]
"""An agent with skills, or the skills."""


class Subject(NamedTuple):
    """An agent and where its skills are from."""

    agent: Agent[Any, Any]
    """The agent."""

    toolsets: list[SkillsToolset[Any]]
    """Its toolsets of skills, even if they are wrapped in others."""

    @property
    def skills(self) -> dict[str, Skill[Any]]:
        """Its skills by name."""
        return {skill.name: skill for toolset in self.toolsets for skill in toolset.skills.values()}


async def subject_of(target: Target) -> Subject:
    """The agent to try, after its skills are read.

    Raises:
        UserError: It has no toolset of skills.
    """
    if isinstance(target, SkillsToolset):
        agent = Agent[Any, Any](toolsets=[target])
    elif isinstance(target, SkillsCapability):
        agent = Agent[Any, Any](capabilities=[target])
    else:
        agent = target
    leaves: list[AbstractToolset[Any]] = []
    for toolset in agent.toolsets:
        toolset.apply(leaves.append)
    found = [leaf for leaf in leaves if isinstance(leaf, SkillsToolset)]
    if not found:
        raise UserError('The agent has no skills: give it a `SkillsToolset` or a `SkillsCapability`.')
    for toolset in found:
        await toolset.load()
    return Subject(agent, found)


@dataclass(frozen=True, kw_only=True)
class TriedModels:
    """The models of an evaluation, and the recording of what they answer."""

    model: Model
    """The model that is tried."""

    judge: Model | None
    """The model that judges, if there is one."""

    recording: Recording
    """What they answer, if it is recorded, and how runs end."""

    @property
    def is_replay(self) -> bool:
        """Whether the answers are from the recording."""
        return isinstance(self.model, ReplayModel)

    def check_replay(self) -> None:
        """Raise a `SkillError` if a request was not in the recording."""
        for model in (self.model, self.judge):
            if isinstance(model, ReplayModel) and model.misses:
                raise SkillError(model.misses[0])


async def tried_models(
    agent: Agent[Any, Any],
    model: AnyModel | None,
    judge: AnyModel | None,
    *,
    record: str | Path | None,
    replay: str | Path | None,
) -> TriedModels:
    """The models of an evaluation: those given, or those of a recording.

    Raises:
        SkillError: The recording cannot be read.
        UserError: There is no model.
    """
    if replay is not None:
        return await anyio.to_thread.run_sync(_replayed, Path(replay))
    chosen = model or agent.model
    if chosen is None:
        raise UserError('There is no model to try: pass `model=`, or `replay=` with a recording.')
    recording = Recording()
    tried = await anyio.to_thread.run_sync(infer_model, chosen)
    judging = None if judge is None else await anyio.to_thread.run_sync(infer_model, judge)
    if record is not None:
        tried = RecordingModel(tried, recording, 'model')
        judging = judging and RecordingModel(judging, recording, 'judge')
    return TriedModels(model=tried, judge=judging, recording=recording)


def _replayed(path: Path) -> TriedModels:
    recording = Recording.read(path)
    judge = ReplayModel(recording, 'judge', path) if 'judge' in recording.models else None
    return TriedModels(model=ReplayModel(recording, 'model', path), judge=judge, recording=recording)


def model_id(model: Model) -> str:
    """The name of a model with that of its provider, such as `openai:gpt-5.2`."""
    return f'{model.system}:{model.model_name}'

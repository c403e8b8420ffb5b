"""Skills as a pydantic-ai capability."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic_ai.capabilities import AbstractCapability

from pydantic_ai_skills.directory import SkillsDirectory
from pydantic_ai_skills.execution import ScriptPolicy, SkillScriptExecutor
from pydantic_ai_skills.registries.base import SkillRegistry
from pydantic_ai_skills.toolset import DEFAULT_CATALOG_BUDGET, SkillFilter, SkillsToolset
from pydantic_ai_skills.types import DepsT, Skill

__all__ = ('SkillsCapability',)


@dataclass(init=False)
class SkillsCapability(AbstractCapability[DepsT]):
    """Skills as a capability: the toolset with its instructions, for `Agent(capabilities=[...])` and agent specs.

    ```python {test="skip"}
    from pydantic_ai import Agent

    from pydantic_ai_skills import SkillsCapability

    agent = Agent('openai:gpt-5.2', capabilities=[SkillsCapability(directories=['./skills'])])
    ```
    """

    toolset: SkillsToolset[DepsT]
    """The toolset it provides: its skills, problems, decorator and reload."""

    def __init__(
        self,
        *,
        skills: Sequence[Skill[DepsT]] | None = None,
        directories: Sequence[str | Path | SkillsDirectory] | None = None,
        registries: Sequence[SkillRegistry] | None = None,
        validate: bool = True,
        max_depth: int | None = 3,
        id: str | None = None,
        instruction_template: str | None = None,
        exclude_tools: Collection[str] | None = None,
        auto_reload: bool = False,
        catalog_budget: int | None = DEFAULT_CATALOG_BUDGET,
        skill_filter: SkillFilter[DepsT] | None = None,
        script_executor: SkillScriptExecutor | None = None,
        script_policy: ScriptPolicy | None = None,
    ) -> None:
        """Take the parameters of `SkillsToolset`, which say what they mean."""
        self.id = id
        self.toolset = SkillsToolset[DepsT](
            skills=skills,
            directories=directories,
            registries=registries,
            validate=validate,
            max_depth=max_depth,
            id=id,
            instruction_template=instruction_template,
            exclude_tools=exclude_tools,
            auto_reload=auto_reload,
            catalog_budget=catalog_budget,
            skill_filter=skill_filter,
            script_executor=script_executor,
            script_policy=script_policy,
        )

    def get_toolset(self) -> SkillsToolset[DepsT]:
        """The toolset, which brings its own instructions."""
        return self.toolset

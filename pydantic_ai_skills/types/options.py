"""The options that every way to write a skill in Python takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import Tool
from pydantic_ai.toolsets import AbstractToolset

from .resource import SkillResource
from .script import SkillScript


class SkillOptions(TypedDict, total=False):
    """The options that `Skill`, `SkillWrapper` and `@toolset.skill` share; `Skill` explains each of them."""

    license: str | None
    compatibility: str | None
    metadata: Mapping[str, Any] | None
    resources: Iterable[SkillResource] | None
    scripts: Iterable[SkillScript] | None
    tools: Iterable[Tool[Any]] | None
    toolsets: Iterable[AbstractToolset[Any]] | None
    allowed_tools: Iterable[str]
    disable_model_invocation: bool
    user_invocable: bool
    model_settings: ModelSettings | None

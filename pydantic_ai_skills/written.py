"""Files that scripts wrote, for as long as the run that started the scripts goes on."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from pydantic_ai.messages import BinaryContent
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillResourceNotFoundError
from pydantic_ai_skills.execution.base import ScriptResult
from pydantic_ai_skills.files import as_content

__all__ = ('WrittenFiles',)

MAX_RUNS = 200
"""For how many agent runs results are kept."""

MAX_RESULTS = 50
"""How many results of one run are kept."""


class WrittenFiles:
    """The results of scripts that wrote files, by agent run, so that no run sees the files of another."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, dict[str, ScriptResult]] = OrderedDict()

    def keep(self, ctx: RunContext[Any], result: ScriptResult) -> list[str]:
        """Keep a result; return the names under which its files can be read."""
        if not result.files:
            return []
        results = self._runs.setdefault(ctx.run_id or '', {})
        prefix = f'written-{len(results) + 1}'
        if len(results) < MAX_RESULTS:
            results[prefix] = result
        if len(self._runs) > MAX_RUNS:
            self._runs.popitem(last=False)
        return [f'{prefix}/{file.name}' for file in result.files] if prefix in results else []

    def read(self, ctx: RunContext[Any], name: str) -> str | BinaryContent | None:
        """The file a script of this run wrote under this name; `None` if the name is not of that kind.

        Raises:
            SkillResourceNotFoundError: The scripts of this run wrote no such file.
            SkillResourceLoadError: It cannot be read, or is of a kind models do not take.
        """
        prefix, _, file = name.partition('/')
        results = self._runs.get(ctx.run_id or '', {})
        if prefix not in results:
            return None
        if file not in [written.name for written in results[prefix].files]:
            raise SkillResourceNotFoundError(f'No script of this run wrote {name!r}.')
        return as_content(results[prefix].read_file(file), file)

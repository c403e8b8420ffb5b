"""Files that scripts wrote, for as long as the run that started the scripts goes on."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, cast

from pydantic_ai.messages import BinaryContent, ModelMessage, ToolReturnPart
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillResourceNotFoundError
from pydantic_ai_skills.execution.base import ScriptResult
from pydantic_ai_skills.filesystem.safe_open import as_content

from .durable import carried
from .prompt import one_line

__all__ = ('WrittenFiles',)

MAX_RUNS = 200
"""For how many agent runs results are kept."""

MAX_RESULTS = 50
"""How many results of one run are kept."""

_PREFIX = re.compile(r'\bwritten-\d+\b')


class WrittenFiles:
    """The results of scripts that wrote files, by agent run, so that no run sees the files of another."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, dict[str, ScriptResult]] = OrderedDict()

    def keep(self, ctx: RunContext[Any], result: ScriptResult) -> list[str]:
        """Keep a result; return the names under which its files can be read."""
        if not result.files:
            return []
        results = self._runs.setdefault(ctx.run_id or '', {})
        taken = {*results, *_told(ctx)}
        prefix = next(prefix for number in count(1) if (prefix := f'written-{number}') not in taken)
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
        names = [written.name for written in results[prefix].files]
        # The model was told a name on one line, without what cannot be seen.
        told = {one_line(f'{prefix}/{written}'): written for written in names}
        found = file if file in names else told.get(name)
        if found is None:
            raise SkillResourceNotFoundError(f'No script of this run wrote {name!r}.')
        return as_content(results[prefix].read_file(found), found)


def _told(ctx: RunContext[Any]) -> Iterator[str]:
    """What was told in earlier runs of the conversation too: a name never comes to mean another file."""
    messages = carried(ctx, 'messages', cast(Sequence[ModelMessage], ()))
    for part in (part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)):
        if isinstance(part.content, str):
            yield from _PREFIX.findall(part.content)

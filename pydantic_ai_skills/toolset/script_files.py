"""Lets the model read the files that scripts of its run wrote."""

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
from pydantic_ai_skills.filesystem.content import as_content

from .recording import carried
from .results import one_line

_PREFIX = re.compile(r'\bwritten-\d+\b')


class ScriptFiles:
    """Keeps the results of scripts by run id, so that no run sees the files of another.

    They stay in the memory of this process, for the latest 200 runs. Another process has them only if it replays the
    calls, as a resumed DBOS workflow does.
    """

    def __init__(self, *, max_runs: int = 200, max_results: int = 50) -> None:
        self._max_runs, self._max_results = max_runs, max_results
        self._runs: OrderedDict[str, dict[str, ScriptResult]] = OrderedDict()

    def keep(self, ctx: RunContext[Any], result: ScriptResult) -> list[str]:
        """Keep a result; return the names under which its files can be read."""
        results = self._runs.setdefault(ctx.run_id or '', {})
        taken = {*results, *_known_prefixes(ctx)}
        prefix = next(prefix for number in count(1) if (prefix := f'written-{number}') not in taken)
        if len(results) < self._max_results:
            results[prefix] = result
        if len(self._runs) > self._max_runs:
            self._runs.popitem(last=False)
        return [f'{prefix}/{file.name}' for file in result.files] if prefix in results else []

    def read(self, ctx: RunContext[Any], name: str) -> str | BinaryContent | None:
        """Read a file that a script of this run wrote; `None` if the name has no prefix of a kept result."""
        prefix, _, asked = name.partition('/')
        results = self._runs.get(ctx.run_id or '', {})
        if prefix not in results:
            return None
        names = [file.name for file in results[prefix].files]
        # The model was shown each name on one line, without invisible characters.
        shown = {one_line(f'{prefix}/{original}'): original for original in names}
        found = asked if asked in names else shown.get(name)
        if found is None:
            raise SkillResourceNotFoundError(f'No script of this run wrote {name!r}.')
        return as_content(results[prefix].read_file(found), found)


def _known_prefixes(ctx: RunContext[Any]) -> Iterator[str]:
    """The prefixes in the conversation, those of earlier runs too: a name never comes to mean another file."""
    messages = carried(ctx, 'messages', cast(Sequence[ModelMessage], ()))
    for part in (part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)):
        if isinstance(part.content, str):
            yield from _PREFIX.findall(part.content)

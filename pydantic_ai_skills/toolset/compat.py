"""Bridges the supported versions of pydantic-ai: what one of them lacks is made up for here, and nowhere else."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from typing import cast

from pydantic_ai.tools import RunContext

LOADS_FROM_CODE = hasattr(RunContext, 'load_capability')
"""Whether code can load a deferred capability. Before 2.66, only a call of the model can."""


class OwnFraming:
    """Frames text as `pydantic_ai.framing` does, which is missing before 2.63.

    Such versions know only their own tags: in text that pydantic-ai frames itself, it does not escape those registered
    here.
    """

    def __init__(self) -> None:
        self._tags = [
            'system',
            'tool_result',
            'assistant_thinking',
            'context',
            'context_diff',
            'validation_errors',
            'retry_feedback',
            'conversation_summary',
        ]

    def register_tag(self, name: str) -> str:
        """Have a tag neutralised in all text that is framed from now on."""
        self._tags.append(name)
        return name

    def neutralize_tags(self, text: str) -> str:
        """Escape the `<` of each tag that pydantic-ai or this package frames text with, and of nothing else."""
        return re.sub(rf'<(?=\s*(?:/\s*)?(?:{"|".join(self._tags)})(?:[\s/>]|$))', '&lt;', text, flags=re.IGNORECASE)

    def wrap(self, tag: str, body: str) -> str:
        """Text in an element that it can neither end nor imitate."""
        return f'<{tag}>{self.neutralize_tags(body)}</{tag}>'


_PUBLIC = 'pydantic_ai.framing'
framing = cast(OwnFraming, import_module(_PUBLIC)) if find_spec(_PUBLIC) else OwnFraming()

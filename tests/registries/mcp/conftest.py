from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import MCPSkillsRegistry

from .servers import SkillServer, refunds_server

Open = Callable[..., MCPSkillsRegistry]


@pytest.fixture
def server() -> SkillServer:
    """A server with the skill `refunds`."""
    return refunds_server()


@pytest.fixture
def open_server(tmp_path: Path) -> Iterator[Open]:
    """Makes registries with the cache of the test, and closes them."""
    opened: list[MCPSkillsRegistry] = []

    def make(server: Any, **given: Any) -> MCPSkillsRegistry:
        options: dict[str, Any] = {
            'cache_dir': tmp_path / 'cache',
            'timeout': 20,
            'lock_file': tmp_path / 'skills.lock',
            **given,
        }
        opened.append(MCPSkillsRegistry(server, **options))
        return opened[-1]

    yield make
    for registry in opened:
        registry.close()

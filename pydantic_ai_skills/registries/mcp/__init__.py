"""Skills that an MCP server offers: listed at once, read and verified when they are used."""

from __future__ import annotations

from .registry import MCPSkillsRegistry

__all__ = ('MCPSkillsRegistry',)

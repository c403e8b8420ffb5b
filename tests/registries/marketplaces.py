"""Real marketplaces and plugins, in repositories behind a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic_ai_skills import MarketplaceSkillsRegistry
from tests.folders import write, write_skill
from tests.registries.repositories import GitServer, Repository

CLAUDE = '.claude-plugin/marketplace.json'
CODEX = '.agents/plugins/marketplace.json'
SCHEMA = 'https://agent-plugins.org/schemas/1.0.0/plugin.schema.json'

GOOD = {'name': 'good', 'source': './good'}
"""A plugin beside a bad one; it has the skill `pdf` after `market.skill('good/skills', 'pdf')`."""


def bad(address: str, **more: str) -> dict[str, Any]:
    """A plugin in the repository at this address."""
    return {'name': 'bad', 'source': {'source': 'url', 'url': address, **more}}


class Market:
    """A server with the repository `market`, and others for plugins."""

    def __init__(self, server: GitServer, cache: Path) -> None:
        self.server = server
        self.cache = cache
        self.main = self.repository('market')

    def repository(self, name: str) -> Repository:
        return Repository.create(self.server.root / name)

    def url(self, name: str) -> str:
        return f'{self.server.url}/{name}'

    def plugin(self, name: str, *skills: str, **manifest: Any) -> Repository:
        """A repository that is a plugin with these skills."""
        repository = self.repository(name)
        if manifest:
            write(repository.path, {'.claude-plugin/plugin.json': json.dumps(manifest)})
        for skill in skills:
            repository.skill(skill)
        repository.commit()
        return repository

    def publish(self, *plugins: Any, file: str = CLAUDE, **more: Any) -> str:
        """Let the marketplace list these plugins."""
        return self.publish_text(json.dumps({'name': 'm', 'plugins': plugins, **more}), file)

    def publish_text(self, text: str, file: str = CLAUDE) -> str:
        write(self.main.path, {file: text})
        return self.main.commit()

    def skill(self, folder: str, name: str, **options: Any) -> Path:
        """A skill in the marketplace's own repository."""
        return write_skill(self.main.path / folder / name, **options)

    def __call__(self, **options: Any) -> MarketplaceSkillsRegistry:
        given: dict[str, Any] = {
            'allowed_protocols': ('http', 'local'),
            'cache_dir': self.cache,
            'timeout': 30,
            **options,
        }
        return MarketplaceSkillsRegistry(self.url('market'), **given)


def folders(registry: MarketplaceSkillsRegistry) -> list[str]:
    return sorted(skill.source.path for skill in registry.get_skills() if skill.source)


def told(registry: MarketplaceSkillsRegistry) -> list[tuple[str, str]]:
    """The codes and messages of the problems."""
    return [(problem.code, problem.message) for problem in registry.problems]


def codes(registry: MarketplaceSkillsRegistry) -> list[str]:
    return [problem.code for problem in registry.problems]

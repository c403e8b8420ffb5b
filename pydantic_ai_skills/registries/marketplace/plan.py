"""Which plugins of a marketplace are wanted, and which commit of each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.registries.manifest import PartProblem
from pydantic_ai_skills.types.lookup import closest_first

from .manifests import Marketplace, MarketplaceEntry, read_entry, usable_name
from .sources import PluginSource, Reach, read_source

MAX_PLUGINS = 2_000
"""How many plugins of one marketplace are taken at most."""

MAX_INVALID = 20
"""How many invalid entries are listed one by one."""

MAX_MESSAGE = 500
"""How many characters of an error are kept, which may quote the marketplace."""

MOVING_DIGITS = 24
"""How many digits of a revision stand for the commits of plugins that the marketplace does not pin."""


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A plugin that is wanted."""

    name: str
    """Its name, as it was asked for; the folder of its skills."""

    entry: MarketplaceEntry
    source: PluginSource
    commit: str | None = None
    """The commit to take; `None` if that could not be found out."""

    failure: str | None = None
    """Why not."""

    is_refused: bool = False
    """Whether its server did not accept the credentials."""

    @property
    def is_fixed(self) -> bool:
        """Whether the commit of the marketplace says which commit it is."""
        return self.source.address is None or self.source.sha is not None

    @property
    def origin(self) -> list[Any]:
        """Where it is, and what the marketplace says about its skills."""
        return [self.source.url, list(self.source.paths), self.entry.strict, list(self.entry.skills)]

    @property
    def key(self) -> str:
        """Identifies what is fetched for it."""
        return plugin_key(self.name, self.origin, self.commit)


def plugin_key(name: str, origin: list[Any], commit: str | None) -> str:
    """Identify what is fetched for a plugin: its name, where it is, and its commit."""
    return f'plugin-{hashlib.sha256(json.dumps([name, origin, commit]).encode()).hexdigest()}'


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to fetch of a marketplace at one commit."""

    commit: str
    plugins: tuple[Plugin, ...]
    problems: tuple[PartProblem, ...] = field(default=())

    @property
    def revision(self) -> str:
        """The marketplace's commit, with digits for the commits of plugins before it if it does not pin them all."""
        moving = [[each.name, each.source.url, each.commit] for each in self.plugins if not each.is_fixed]
        digits = hashlib.sha256(json.dumps(moving).encode()).hexdigest()[:MOVING_DIGITS]
        return f'{digits}{self.commit}' if moving else self.commit

    def resolved(self, plugins: tuple[Plugin, ...]) -> Plan:
        """The same plan with the commits of its plugins."""
        return replace(self, plugins=plugins)


def commit_of(revision: str) -> str:
    """The marketplace's commit in a revision."""
    return revision[MOVING_DIGITS:] if len(revision) > 40 else revision


def make_plan(marketplace: Marketplace, commit: str, wanted: tuple[str, ...] | None, reach: Reach) -> Plan:
    """Choose the wanted plugins. What is wrong with an entry costs only its plugin."""
    entries, invalid = _entries(marketplace)
    problems: list[PartProblem] = []
    chosen = {name: name for name in entries} if wanted is None else {}
    for name in wanted or ():
        now = name if name in entries else marketplace.renamed(name)
        if now in entries:
            chosen[name] = now
        else:
            there_is = closest_first('plugin', name, entries)
            problems.append(PartProblem('plugin-missing', '', f'There is no plugin {name!r}. {there_is}'))
    plugins: list[Plugin] = []
    for name, now in list(chosen.items())[:MAX_PLUGINS]:
        try:
            source = read_source(entries[now], marketplace, reach)
        except SkillValidationError as error:
            invalid.append(PartProblem('plugin-invalid', name, str(error)[:MAX_MESSAGE]))
            continue
        fixed = commit if source.address is None else source.sha
        plugins.append(Plugin(name=name, entry=entries[now], source=source, commit=fixed))
    if len(chosen) > MAX_PLUGINS:
        message = f'It has {len(chosen):,} plugins; the first {MAX_PLUGINS:,} are taken. Name those you want: plugins=.'
        problems.append(PartProblem('plugin-invalid', '', message))
    return Plan(commit=commit, plugins=tuple(plugins), problems=(*problems, *_few(invalid)))


def _entries(marketplace: Marketplace) -> tuple[dict[str, MarketplaceEntry], list[PartProblem]]:
    entries: dict[str, MarketplaceEntry] = {}
    problems: list[PartProblem] = []
    for number, given in enumerate(marketplace.plugins):
        try:
            entry = read_entry(given)
        except SkillValidationError as error:
            problems.append(
                PartProblem('plugin-invalid', _name_in(given) or f'plugins[{number}]', str(error)[:MAX_MESSAGE])
            )
            continue
        if entries.setdefault(entry.name, entry) is not entry:
            message = f'There are two plugins {entry.name!r}; the first one is used.'
            problems.append(PartProblem('plugin-invalid', entry.name, message))
    return entries, problems


def _name_in(given: Any) -> str | None:
    """The name in an invalid entry, if that can be shown."""
    name: object = given.get('name') if isinstance(given, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    try:
        return usable_name(name) if isinstance(name, str) else None
    except ValueError:
        return None


def _few(problems: list[PartProblem]) -> tuple[PartProblem, ...]:
    """The problems, of which a hostile marketplace may have a hundred thousand."""
    return tuple(problems[:MAX_INVALID]) + tuple(_rest(problems[MAX_INVALID:]))


def _rest(problems: list[PartProblem]) -> Iterator[PartProblem]:
    if problems:
        yield PartProblem('plugin-invalid', '', f'{len(problems):,} more plugins are left out for such reasons.')

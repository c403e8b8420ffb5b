"""Finds the installed distributions that have something for agents, by their metadata alone.

Of most distributions only the entry points and the list of files are read. The result is kept with the stamps of
these files, so that a second walk reads none of them.
"""

from __future__ import annotations

import csv
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import metadata
from importlib.machinery import PathFinder
from typing import Any

from pydantic_ai_skills.directory.folder_skill import settled
from pydantic_ai_skills.filesystem.safe_open import FileStamp, stamp

from .trees import FolderTree, Tree, ZipTree

MAX_METADATA_BYTES = 64 * 1024 * 1024
"""A longer list of files or entry points is not read."""

_FILES = ('entry_points.txt', 'RECORD')
_SEPARATORS = re.compile(r'[-_.]+')
_IDENTITY = re.compile(rb'^(Name|Version):[ \t]*([^\r\n]*)', re.MULTILINE | re.IGNORECASE)
_LOOSE_FILE = re.compile(rb'^([^/\n,"]+\.pth|[^/\n,"]*editable[^/\n,"]*\.py),', re.MULTILINE)


def normalize(name: str) -> str:
    """Normalise the name of a distribution for comparison."""
    return _SEPARATORS.sub('-', name).lower()


def module_of(point: metadata.EntryPoint) -> str:
    """The module an entry point names; empty if its value is invalid."""
    match = point.pattern.match(point.value)
    return match['module'] if match and all(map(str.isidentifier, match['module'].split('.'))) else ''


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """An installed distribution, as its metadata describes it."""

    name: str
    version: str
    """Its version; empty if the metadata has none."""

    tree: Tree
    """The place it is installed in."""

    info: str
    """The folder with its metadata, below `tree`."""

    entry_points: tuple[metadata.EntryPoint, ...] = ()
    """Its entry points in the requested groups."""

    skill_files: tuple[str, ...] = ()
    """Path of each `SKILL.md` among its files."""

    has_record: bool = False
    """Whether it has a list of its files."""

    loose_files: tuple[str, ...] = ()
    """Files beside its packages that may say where its code is, such as `.pth` files."""

    is_broken: bool = False
    """Whether its entry points cannot be read."""

    @property
    def key(self) -> str:
        """Its normalised name."""
        return normalize(self.name)

    @property
    def may_have_skills(self) -> bool:
        """Whether its metadata names skills, or does not list all its files."""
        is_listed = self.has_record and not self.loose_files
        return bool(not is_listed or self.entry_points or self.skill_files or self.is_broken)


@lru_cache(maxsize=8)
def walk_for(groups: tuple[str, ...], folders: tuple[str, ...]) -> DistributionWalk:
    """The walk for these groups and folders, whose cache all registries of a process share."""
    return DistributionWalk(groups=groups, folders=folders)


class DistributionWalk:
    """Finds the distributions on a path. Of several with one name the first counts, as for `import`."""

    def __init__(self, *, groups: Sequence[str], folders: Sequence[str]) -> None:
        """Look for entry points in `groups`, and for skills in these folders of a package."""
        self._groups = groups
        self._group_bytes = [f'[{group}]'.encode() for group in groups]
        self._folder_bytes = [f'{folder}/'.encode() for folder in folders]
        self._known: dict[str, tuple[tuple[FileStamp | None, ...], Distribution]] = {}
        self._zips: dict[str, tuple[FileStamp, list[Distribution]]] = {}

    def walk(self, path: Sequence[str] | None) -> dict[str, Distribution]:
        """Find the distributions on a path, or else on `sys.path`, by normalised name."""
        started = time.time_ns()
        found: dict[str, Distribution] = {}
        for place in dict.fromkeys(sys.path if path is None else path):
            for distribution in self._walk_place(place or os.getcwd(), started):
                found.setdefault(distribution.key, distribution)
        for other in _from_other_finders() if path is None else ():
            name, version = _identity_of(other)
            if name and normalize(name) not in found:
                found[normalize(name)] = replace(self._read(other), name=name, version=version)
        return found

    def _walk_place(self, place: str, started: int) -> Iterator[Distribution]:
        try:
            with os.scandir(place) as entries:
                names = sorted(entry.name for entry in entries if entry.name.endswith(('.dist-info', '.egg-info')))
        except NotADirectoryError:
            yield from self._walk_zip(place)
            return
        except OSError:
            return
        if place.endswith('.egg') and os.path.isdir(os.path.join(place, 'EGG-INFO')):
            names.append('EGG-INFO')
        tree = FolderTree(place)
        for name in names:
            yield self._look_at(tree, f'{place}{os.sep}{name}', name, started)

    def _walk_zip(self, place: str) -> list[Distribution]:
        now = stamp_of(place)
        if now is None:
            return []
        if place not in self._zips or self._zips[place][0] != now:
            tree = ZipTree(place)
            infos = [name for name in tree.names('') if name.endswith(('.dist-info', '.egg-info'))]
            self._zips[place] = now, [self._read_in(tree, info) for info in infos]
        return self._zips[place][1]

    def _look_at(self, tree: FolderTree, path: str, info: str, started: int) -> Distribution:
        """Read a folder of metadata, unless its files are the same as last time."""
        files = [f'{path}{os.sep}{name}' for name in _FILES]
        known = self._known.get(path)
        if known is None or known[0] != tuple(map(stamp_of, files)):
            stamps = tuple(stamp_of(file, started) for file in files)
            self._known[path] = known = stamps, self._read_in(tree, info)
        return known[1]

    def _read_in(self, tree: Tree, info: str) -> Distribution:
        points, record = (tree.read(f'{info}/{name}', MAX_METADATA_BYTES) for name in _FILES)
        return self._parse(tree, info, points, record)

    def _parse(self, tree: Tree, info: str, points: bytes | None, record: bytes | None) -> Distribution:
        name, _, version = info.rpartition('.')[0].partition('-')
        found = Distribution(
            name=name,
            version=version,
            tree=tree,
            info=info,
            has_record=record is not None,
            skill_files=self._skill_files(record or b''),
            loose_files=_loose_files(record or b''),
        )
        if points and any(group in points for group in self._group_bytes):
            found = self._with_entry_points(found, points)
        return _identified(found) if found.may_have_skills else found

    def _read(self, other: metadata.Distribution) -> Distribution:
        """Read a distribution that another finder knows."""
        points, record = (None if (text := other.read_text(name)) is None else text.encode() for name in _FILES)
        return self._parse(FolderTree(str(other.locate_file(''))), '', points, record)

    def _with_entry_points(self, distribution: Distribution, data: bytes) -> Distribution:
        parser = ConfigParser(delimiters=('=',), interpolation=None, strict=False)
        parser.optionxform = lambda optionstr: optionstr  # names keep their case
        try:
            parser.read_string(data.decode('utf-8'))
        except (ConfigError, UnicodeDecodeError):
            return replace(distribution, is_broken=True)
        points = (
            metadata.EntryPoint(name=name, value=value, group=group)
            for group in self._groups
            if parser.has_section(group)
            for name, value in parser.items(group)
        )
        return replace(distribution, entry_points=tuple(points))

    def _skill_files(self, record: bytes) -> tuple[str, ...]:
        if not any(folder in record for folder in self._folder_bytes):
            return ()
        lines = [line for line in record.decode('utf-8', 'replace').splitlines() if '/skill.md' in line.lower()]
        try:
            paths = [row[0].replace('\\', '/') for row in csv.reader(lines) if row]
        except csv.Error:  # a field without an end
            return ()
        return tuple(path for path in paths if {'..', ''}.isdisjoint(path.split('/')))


def stamp_of(file: str, started: int | None = None) -> FileStamp | None:
    """The stamp of a file, `None` without one; one that never matches if it may change again unseen after `started`."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return stamp(status) if started is None else settled(status, started)


def _loose_files(record: bytes) -> tuple[str, ...]:
    if b'.pth,' not in record and b'editable' not in record:
        return ()
    return tuple(match.decode('utf-8', 'replace') for match in _LOOSE_FILE.findall(record))


def _identified(distribution: Distribution) -> Distribution:
    """Take name and version from the metadata; the name of the folder may spell them differently."""
    for file in ('METADATA', 'PKG-INFO'):
        data = distribution.tree.read(f'{distribution.info}/{file}', MAX_METADATA_BYTES)
        if data is not None:
            head = re.split(rb'\r?\n\r?\n', data, maxsplit=1)[0]
            fields = {key.lower(): value.decode('utf-8', 'replace').strip() for key, value in _IDENTITY.findall(head)}
            name, version = fields.get(b'name'), fields.get(b'version')
            return replace(distribution, name=name or distribution.name, version=version or distribution.version)
    return distribution


def _from_other_finders() -> Iterator[metadata.Distribution]:
    context = metadata.DistributionFinder.Context()
    for finder in sys.meta_path:
        find: Any = getattr(finder, 'find_distributions', None)
        if find is not None and finder is not PathFinder:
            yield from find(context)


def _identity_of(other: metadata.Distribution) -> tuple[str, str]:
    """The name and version; no name if an interrupted removal left a folder without metadata."""
    try:
        return other.name or '', other.version or ''
    except (OSError, KeyError):
        return '', ''

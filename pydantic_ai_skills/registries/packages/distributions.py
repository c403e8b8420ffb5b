"""Which distributions are installed, and what each says it has for agents: a walk over their metadata.

Only files of the metadata are read, and of most distributions only that: which entry points they have, and whether a
skill is among their files. What was read is kept with the stamps of the files, so that a second walk reads none.
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
from typing import Any, NamedTuple

from pydantic_ai_skills.directory.folder_skill import settled
from pydantic_ai_skills.filesystem.safe_open import FileStamp, stamp

from .trees import FolderTree, Tree, ZipTree, read_file

__all__ = ('Distribution', 'DistributionWalk', 'NamedObject', 'normalize', 'walk_for')

MAX_METADATA_BYTES = 64 * 1024 * 1024
"""How long a list of files or entry points may be; a longer one is not read."""

_SEPARATORS = re.compile(r'[-_.]+')
_IDENTITY = re.compile(rb'^(Name|Version):[ \t]*([^\r\n]*)', re.MULTILINE | re.IGNORECASE)
_LOOSE_FILE = re.compile(rb'^([^/\n,"]+\.pth|[^/\n,"]*editable[^/\n,"]*\.py),', re.MULTILINE)
_ENTRY_POINT = re.compile(r'(?P<module>[\w.]+)\s*(?::\s*(?P<attribute>[\w.]+))?\s*(?:\[.*\])?')


def normalize(name: str) -> str:
    """The name of a distribution in the letters in which names are compared."""
    return _SEPARATORS.sub('-', name).lower()


class NamedObject(NamedTuple):
    """An entry point of a group for skills."""

    group: str
    """The group it is in."""

    name: str
    """What it is called."""

    module: str
    """The module it names; empty if it is no name of a module."""

    attribute: str = ''
    """What of the module it names; empty for the module itself."""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """An installed distribution, as far as its metadata tells."""

    name: str
    """Its name."""

    version: str
    """Its version; empty where the metadata has none."""

    tree: Tree
    """The place it is installed to."""

    info: str
    """The folder of its metadata in there."""

    entry_points: tuple[NamedObject, ...] = ()
    """Its entry points in the groups that were asked for."""

    skill_files: tuple[str, ...] = ()
    """Each `SKILL.md` among its files, by its path in the place."""

    has_record: bool = False
    """Whether it has a list of its files."""

    loose_files: tuple[str, ...] = ()
    """Files beside its packages that may say where its code is."""

    is_broken: bool = False
    """Whether its entry points cannot be read."""

    @property
    def key(self) -> str:
        """Its name as names are compared."""
        return normalize(self.name)


@lru_cache(maxsize=8)
def walk_for(groups: tuple[str, ...], folders: tuple[str, ...]) -> DistributionWalk:
    """The walk that looks for these; all registries of a process share what it has read."""
    return DistributionWalk(groups=groups, folders=folders)


class _Known(NamedTuple):
    stamps: tuple[FileStamp | None, ...]
    distribution: Distribution


class DistributionWalk:
    """Finds the distributions on a path, each name once: the first is the one that would be imported."""

    def __init__(self, *, groups: Sequence[str], folders: Sequence[str]) -> None:
        """Remember what to look for.

        Args:
            groups: Entry point groups.
            folders: Folders of skills in a package.
        """
        self._groups = groups
        self._group_bytes = [f'[{group}]'.encode() for group in groups]
        self._folder_bytes = [f'{folder}/'.encode() for folder in folders]
        self._known: dict[str, _Known] = {}
        self._zips: dict[str, tuple[FileStamp, list[Distribution]]] = {}

    def walk(self, path: Sequence[str] | None) -> dict[str, Distribution]:
        """The distributions by their names as they are compared.

        Args:
            path: Where to look; `None` for where Python would.
        """
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
        try:
            now = stamp(os.stat(place))
        except OSError:
            return []
        if place not in self._zips or self._zips[place][0] != now:
            tree = ZipTree(place)
            infos = [name for name in tree.names('') if name.endswith(('.dist-info', '.egg-info'))]
            found = [self._read_files(tree, info, _read_in(tree, info)) for info in infos]
            self._zips[place] = now, found
        return self._zips[place][1]

    def _look_at(self, tree: FolderTree, path: str, info: str, started: int) -> Distribution:
        """What a folder of metadata says, read again only if one of its files has changed."""
        files = [f'{path}{os.sep}{name}' for name in ('entry_points.txt', 'RECORD')]
        known = self._known.get(path)
        if known is not None and known.stamps == tuple(map(_stamp, files)):
            return known.distribution
        stamps = tuple(_settled(file, started) for file in files)
        data = [
            None if seen is None else read_file(file, MAX_METADATA_BYTES)
            for file, seen in zip(files, stamps, strict=True)
        ]
        distribution = self._read_files(tree, info, data)
        self._known[path] = _Known(stamps, distribution)
        return distribution

    def _read_files(self, tree: Tree, info: str, data: Sequence[bytes | None]) -> Distribution:
        points, record = data
        name, _, version = info.rpartition('.')[0].partition('-')
        distribution = Distribution(
            name=name,
            version=version,
            tree=tree,
            info=info,
            has_record=record is not None,
            skill_files=self._skill_files(record or b''),
            loose_files=_loose_files(record or b''),
        )
        if points and any(group in points for group in self._group_bytes):
            distribution = self._with_entry_points(distribution, points)
        if (
            distribution.entry_points
            or distribution.skill_files
            or not distribution.has_record
            or distribution.loose_files
        ):
            distribution = _identified(distribution)
        return distribution

    def _read(self, other: metadata.Distribution) -> Distribution:
        """What a distribution that another finder knows has."""
        texts = (other.read_text('entry_points.txt'), other.read_text('RECORD'))
        tree = FolderTree(str(other.locate_file('')))
        return self._read_files(tree, '', [None if text is None else text.encode() for text in texts])

    def _with_entry_points(self, distribution: Distribution, data: bytes) -> Distribution:
        parser = ConfigParser(delimiters=('=',), interpolation=None, strict=False)
        parser.optionxform = lambda optionstr: optionstr  # names keep their letters
        try:
            parser.read_string(data.decode('utf-8'))
        except (ConfigError, UnicodeDecodeError):
            return replace(distribution, is_broken=True)
        points = (
            _entry_point(group, name, value)
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
        except csv.Error:  # one of its fields does not end
            return ()
        return tuple(path for path in paths if not path.startswith('/') and {'..', ''}.isdisjoint(path.split('/')))


def _entry_point(group: str, name: str, value: str) -> NamedObject:
    match = _ENTRY_POINT.fullmatch(value.strip())
    if match is None or not all(map(str.isidentifier, match['module'].split('.'))):
        return NamedObject(group, name, '', value)
    return NamedObject(group, name, match['module'], match['attribute'] or '')


def _stamp(file: str) -> FileStamp | None:
    try:
        return stamp(os.stat(file))
    except OSError:
        return None


def _settled(file: str, started: int) -> FileStamp | None:
    try:
        return settled(os.stat(file), started)
    except OSError:
        return None


def _loose_files(record: bytes) -> tuple[str, ...]:
    if b'.pth,' not in record and b'editable' not in record:
        return ()
    return tuple(match.decode('utf-8', 'replace') for match in _LOOSE_FILE.findall(record))


def _read_in(tree: Tree, info: str) -> list[bytes | None]:
    return [tree.read(f'{info}/{name}', MAX_METADATA_BYTES) for name in ('entry_points.txt', 'RECORD')]


def _identified(distribution: Distribution) -> Distribution:
    """With the name and version that the metadata gives, which a folder's name may spell in another way."""
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
    """The name and the version; no name where a removal has left a folder without metadata."""
    try:
        return other.name or '', other.version or ''
    except (OSError, KeyError):
        return '', ''

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import metadata
from importlib.machinery import PathFinder
from typing import Any, cast

from pydantic_ai_skills.directory.folder_skill import settled
from pydantic_ai_skills.filesystem.safe_open import FileStamp, stamp

from .trees import FolderTree, Tree, ZipTree

MAX_METADATA_BYTES = 64 * 1024 * 1024
"""A longer list of files or entry points is not read."""

MAX_ENTRY_POINTS = 1_000
"""How many entry points a distribution may have in one group."""

MAX_ENTRY_POINT_CHARS = 500
"""How long the name and the value of an entry point may be."""

_FILES = ('entry_points.txt', 'RECORD')
_SEPARATORS = re.compile(r'[-_.]+')
_IDENTITY = re.compile(rb'^(Name|Version):[ \t]*([^\r\n]*)', re.MULTILINE | re.IGNORECASE)
_TOP_LEVEL_FILE = re.compile(rb'^([^/\n,"]++),', re.MULTILINE)


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

    refusal: str | None = None
    """Why nothing of it is offered: it may not be what its name says."""

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
    """Finds the distributions on a path. Of several with one name none is offered: one may pose as the other."""

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
        every: dict[str, list[Distribution]] = {}
        for place in dict.fromkeys(sys.path if path is None else path):
            for distribution in self._walk_place(place or os.getcwd(), started):
                every.setdefault(distribution.key, []).append(distribution)
        found = {key: same[0] if len(same) == 1 else _only_one(same) for key, same in every.items()}
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
        name, _, version = _stem(tree, info).partition('-')
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
        try:
            groups = _read_entry_points(data.decode('utf-8'), self._groups)
        except ValueError:
            return replace(distribution, is_broken=True)
        points = (
            metadata.EntryPoint(name=name, value=value, group=group)
            for group, values in groups.items()
            for name, value in values.items()
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
    """The stamp of a file; `None` if there is none. With `started`, one that never matches if it changed just now."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return stamp(status) if started is None else settled(status, started)


def _loose_files(record: bytes) -> tuple[str, ...]:
    if b'.pth,' not in record and b'editable' not in record:
        return ()
    return tuple(name.decode('utf-8', 'replace') for name in _TOP_LEVEL_FILE.findall(record) if _may_say_where(name))


def _may_say_where(name: bytes) -> bool:
    return name.endswith(b'.pth') or (b'editable' in name and name.endswith(b'.py'))


def _read_entry_points(text: str, groups: Sequence[str]) -> dict[str, dict[str, str]]:
    """The names and values in these groups; `ValueError` if a line is invalid, or there are too many.

    `ConfigParser` would take time in the square of the length of a line.
    """
    found: dict[str, dict[str, str]] = {group: {} for group in groups}
    group = None
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith(('#', ';')):
            continue
        if line.startswith('[') and line.endswith(']'):
            group = line[1:-1]
            continue
        name, equals, value = line.partition('=')
        if group is None or not (name and equals):
            raise ValueError(line)
        if group in found:
            found[group][name.rstrip()] = value.lstrip()
            if len(line) > MAX_ENTRY_POINT_CHARS or len(found[group]) > MAX_ENTRY_POINTS:
                raise ValueError(line)
    return found


def _stem(tree: Tree, info: str) -> str:
    """The name and version in the name of the folder with the metadata, or of the egg around it."""
    return (os.path.basename(tree.path) if info == 'EGG-INFO' else info).rpartition('.')[0]


def _is_of_project(distribution: Distribution) -> bool:
    """Whether the metadata are what a build left in the folder of a project: they list no installed files."""
    info = distribution.info
    return info.endswith('.egg-info') and not distribution.tree.has_file(f'{info}/installed-files.txt')


def _only_one(same: Sequence[Distribution]) -> Distribution:
    """The only distribution of a name, or one that is refused because there are others."""
    # `lib64` is often a link to `lib`.
    places = {os.path.realpath(os.path.join(each.tree.path, each.info)): each for each in reversed(same)}
    # A project that is on the path and installed in editable mode has both.
    installed = {place: each for place, each in places.items() if not _is_of_project(each)}
    distinct = installed or places
    chosen = next((each for each in reversed(distinct.values()) if each.may_have_skills), same[0])
    if len(distinct) == 1 or not chosen.may_have_skills:
        return chosen
    return replace(chosen, refusal=f'It is installed more than once: {", ".join(sorted(distinct))}.')


def _identified(distribution: Distribution) -> Distribution:
    """Take name and version from the metadata; the name of the folder may spell them differently."""
    for file in ('METADATA', 'PKG-INFO'):
        data = distribution.tree.read(f'{distribution.info}/{file}', MAX_METADATA_BYTES)
        if data is not None:
            head = re.split(rb'\r?\n\r?\n', data, maxsplit=1)[0]
            fields = [(key.lower(), value.decode('utf-8', 'replace').strip()) for key, value in _IDENTITY.findall(head)]
            names = [value for key, value in fields if key == b'name' and value] or [distribution.name]
            version = dict(fields).get(b'version') or distribution.version
            # Named after the folder if it is refused, so that it never stands for what it poses as.
            if other := next((name for name in names if not _is_named(distribution, name, version)), None):
                refusal = f'Its metadata say that it is {other[:100]!r}, not {distribution.name!r}.'
                return replace(distribution, version=version, refusal=refusal)
            return replace(distribution, name=names[0], version=version)
    return distribution


def _is_named(distribution: Distribution, name: str, version: str) -> bool:
    """Whether the folder of the metadata has the name that they say."""
    stem = _stem(distribution.tree, distribution.info)
    # Without a folder, the name comes from another finder. Some tools keep the dashes of a name in the folder's name.
    return not stem or normalize(name) == distribution.key or normalize(stem) == normalize(f'{name}-{version}')


def _from_other_finders() -> Iterator[metadata.Distribution]:
    context = metadata.DistributionFinder.Context()
    for finder in sys.meta_path:
        find: Any = getattr(finder, 'find_distributions', None)
        if find is not None and finder is not PathFinder:
            yield from find(context)


def _identity_of(other: metadata.Distribution) -> tuple[str, str]:
    """The name and version; no name if an interrupted removal left a folder without metadata."""
    try:
        fields = cast(Mapping[str, str], other.metadata)
    except OSError:
        return '', ''
    # From Python 3.12 on, its `name` and `version` warn if the field is missing.
    return fields.get('Name', ''), fields.get('Version', '')

"""Copies files for a script that is run at the terminal: what it works on goes in, and what it made comes out.

The script works in a private folder with copies of the files that the command line names. So it sees no others, such as
a `.env`, and changes nothing that was in the current folder before.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast
from uuid import uuid4

from typer import Option

import pydantic_ai_skills as api

from .output import Failure, Output

MAX_COPIED_FILES = 5_000
"""How many files are copied for a script: half of what its folder may hold."""

MAX_COPIED_BYTES = 512 * 1024 * 1024
"""How many bytes are copied for a script."""

PUNCTUATION = '\'"`.,;:?!()'
"""What may stand around the name of a file in a message."""

CONVERSATION = 'run'
"""The conversation whose work folder the script uses."""

Write = Annotated[bool, Option('--write', help='Let scripts replace files, and make hidden ones.')]
OutputFolder = Annotated[
    Path | None,
    Option('--output', '-o', metavar='DIR', help='Write the files that scripts make into this folder.'),
]


@dataclass(frozen=True, kw_only=True)
class MadeFile:
    """A file that a script made or changed."""

    name: str
    size: int = 0

    replaced: bool = False
    """Whether it replaced one that was there before."""

    problem: str | None = None
    """Why it was not written, if it was not."""


@dataclass(kw_only=True)
class RunFiles:
    """Which files a script gets, and what it made of them."""

    here: Path
    """The current folder."""

    copied: dict[str, str | bytes | Path] = field(default_factory=dict[str, str | bytes | Path])
    """Files in the current folder that the script gets a copy of, by their relative names."""

    read: list[Path] = field(default_factory=list[Path])
    """Files and folders elsewhere that the script may read where they are."""

    left_out: list[str] = field(default_factory=list[str])
    """The names that were given of files and folders that are too large to be copied."""

    _before: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    _bytes: int = 0

    def choose(self, arguments: object, more: Sequence[Path]) -> object:
        """Choose the files that arguments and `more` name; return the arguments, with absolute paths to elsewhere."""
        for path in more:
            if not path.exists():
                raise Failure(f'There is no file {str(path)!r} to read.')
            if self._is_elsewhere(path):
                self.read.append(path.absolute())
            elif not self._copy(path):
                raise Failure(f'{path} is too large to be copied for the script. Name the files in it that it needs.')
        return self._each(arguments)

    def choose_mentioned(self, text: str, *, known: Container[str] = ()) -> None:
        """Choose the files in the current folder that a message names and that are not `known` yet.

        Folders do not count: a word such as `skills` names one by chance.
        """
        for word in text.split():
            path = Path(word.strip(PUNCTUATION))
            with suppress(OSError, ValueError):  # it is no path
                if path.as_posix() not in known and path.is_file() and not self._is_elsewhere(path):
                    self._argument(str(path))

    def _each(self, value: object) -> object:
        if isinstance(value, str):
            return self._argument(value)
        if isinstance(value, list):
            return [self._each(item) for item in cast(list[object], value)]
        if isinstance(value, dict):
            items = cast(dict[str, object], value).items()
            return {key: item if key == '_stdin' else self._each(item) for key, item in items}
        return value

    def _argument(self, word: str) -> str:
        option, equals, name = word.partition('=') if word.startswith('-') else ('', '', word)
        with suppress(OSError, ValueError):  # it is no path
            path = Path(name)
            if not name or not path.exists():
                return word
            if self._is_elsewhere(path):
                # A word may name a folder by chance, such as `/`, so a folder elsewhere takes `--read`.
                self.read += [Path(os.path.abspath(path))] if path.is_file() else []
                return word if path.is_absolute() else f'{option}{equals}{os.path.abspath(path)}'
            if not self._copy(path):
                self.left_out.append(name)
        return word

    def _is_elsewhere(self, path: Path) -> bool:
        return path.is_absolute() or self.here not in (found := Path(os.path.abspath(path)), *found.parents)

    def _copy(self, path: Path) -> bool:
        """Choose a file, or all files in a folder; return `False` if they are too many or too large."""
        most = MAX_COPIED_FILES - len(self.copied)
        found = [Path(os.path.abspath(file)) for file in ([path] if path.is_file() else _files_in(path, most + 1))]
        size = sum(file.stat().st_size for file in found)
        if len(found) > most or self._bytes + size > MAX_COPIED_BYTES:
            return False
        self._bytes += size
        self.copied |= {file.relative_to(self.here).as_posix(): file for file in found}
        return True

    def bring_in(self, toolset: api.SkillsToolset[Any]) -> None:
        """Copy the chosen files into the work folder."""
        toolset.put_files(CONVERSATION, self.copied)
        self._before = _stamps(toolset)

    def bring_out(self, toolset: api.SkillsToolset[Any], target: Path, *, write: bool) -> list[MadeFile]:
        """Write what the script made or changed to `target`. With `write`, that includes replaced and hidden files."""
        made = [name for name, found in _stamps(toolset).items() if self._before.get(name) != found]
        return [_bring_out(toolset, name, target, write=write) for name in sorted(made)]


def _bring_out(toolset: api.SkillsToolset[Any], name: str, target: Path, *, write: bool) -> MadeFile:
    path = target / name
    exists = os.path.lexists(path)
    if exists and not write:
        return MadeFile(name=name, problem='it already exists')
    if not write and any(part.startswith('.') for part in Path(name).parts):
        return MadeFile(name=name, problem='it is hidden')
    if link := next((folder for folder in path.parents if folder.is_relative_to(target) and folder.is_symlink()), None):
        return MadeFile(name=name, problem=f'{link.name} is a link')
    try:
        status = os.lstat(_folder(toolset) / name)
        data = toolset.read_file(CONVERSATION, name, max_bytes=status.st_size)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f'.{uuid4().hex}')
        with open(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 | status.st_mode & 0o111), 'wb') as file:
            file.write(data)
        os.replace(beside, path)
    except (OSError, api.SkillError) as error:
        return MadeFile(name=name, problem=getattr(error, 'strerror', None) or str(error))
    return MadeFile(name=name, size=len(data), replaced=exists)


def _stamps(toolset: api.SkillsToolset[Any]) -> dict[str, tuple[int, ...]]:
    """The files in the work folder, with a stamp that differs once a file has changed. Links are not followed."""
    folder = _folder(toolset)
    found: dict[str, tuple[int, ...]] = {}
    for path in _files_in(folder, MAX_COPIED_FILES * 2, hidden=True):
        status = path.lstat()
        found[path.relative_to(folder).as_posix()] = status.st_ino, status.st_ctime_ns, status.st_size
    return found


def _folder(toolset: api.SkillsToolset[Any]) -> Path:
    return cast(Path, toolset.work_dir_of(CONVERSATION))  # there is no workspace


def _files_in(folder: Path, most: int, *, hidden: bool = False) -> Iterator[Path]:
    """The regular files in a folder, at most `most`; links are left out, and hidden ones unless asked for."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if hidden or not name.startswith('.')]
        for name in names:
            path = Path(parent, name)
            if (hidden or not name.startswith('.')) and path.is_file() and not path.is_symlink() and most > 0:
                most -= 1
                yield path


def show_files(out: Output, files: RunFiles, made: Sequence[MadeFile], output: Path | None) -> None:
    """Say what became of the files, and what to type to get the others."""
    for name in files.left_out:
        out.note(('not copied: ', 'yellow'), f'{name} is too large. Name the files in it that the script needs.')
    for file in made:
        name = str(Path(output or '', file.name))
        if file.problem is None:
            out.note(('replaced ' if file.replaced else 'wrote ', 'dim'), f'{name} ({file.size:,} bytes)')
        else:
            out.note(('not written: ', 'bold red'), f'{name}: {file.problem}')
    if any(file.problem for file in made):
        out.note('To write all of them here, add --write. To write them elsewhere, add --output DIR.')

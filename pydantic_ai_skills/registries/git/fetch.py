"""Finds the commit of a ref and fetches the files of its skills.

Git never checks anything out. The trees of one commit are fetched without file contents; then the files of the skills
are fetched together and written by our own code. Hooks, filters, submodules, attributes and links of the repository
take no part in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillValidationError
from pydantic_ai_skills.registries.manifest import FileSink, is_revision
from pydantic_ai_skills.registries.skill_paths import MAX_FILES, inside_skills
from pydantic_ai_skills.registries.upstream import Deadline

from .options import Selection
from .process import MAX_FETCH_MEMORY_BYTES, Git

MAX_PATHS = 1_000_000
"""How many paths a commit may have at most, below `path`."""

MAX_PATH_BYTES = 64 * 1024
"""How long one of them may be."""

BATCH_BYTES = 32 * 1024 * 1024
"""About how many bytes are read from one git process."""

_LINE_BYTES = 256
"""More than git prints about an object."""

_CONFIG = '[core]\n\trepositoryformatversion = 0\n\tbare = true\n'


class TreeEntry(NamedTuple):
    """A file of a commit."""

    path: str
    mode: str
    blob: str

    def is_file(self) -> bool:
        """Whether it is a regular file, not a link or a submodule."""
        return self.mode in ('100644', '100755', '100664')


def new_repository(folder: Path) -> Path:
    """Create a bare repository in an empty folder."""
    for inner in ('objects/pack', 'objects/info', 'refs/heads', 'refs/tags'):
        (folder / inner).mkdir(parents=True)
    (folder / 'HEAD').write_text('ref: refs/heads/none\n')
    (folder / 'config').write_text(_CONFIG)
    return folder


def resolve(git: Git, ref: str | None, *, repository: Path, deadline: Deadline) -> str:
    """Ask the server which commit a ref is. A branch wins over a tag of the same name, as in `git clone --branch`."""
    if ref is None or ref == 'HEAD':
        wanted = ['HEAD']
    elif ref.startswith('refs/'):
        wanted = [f'{ref}^{{}}', ref]
    else:
        # `^{}` is the commit an annotated tag points to.
        wanted = [f'refs/heads/{ref}', f'refs/tags/{ref}^{{}}', f'refs/tags/{ref}']
    output = git.run(['ls-remote', '--quiet', '--', git.address.url, *wanted], repository=repository, deadline=deadline)
    there = {name: commit for commit, _, name in (line.partition('\t') for line in output.decode().splitlines())}
    for name in wanted:
        if is_revision(there.get(name)):
            return there[name]
    what = 'no commits' if ref is None else f'no branch or tag {ref!r}; a commit has to be written in full'
    raise SkillRegistryError(f'{git.address.url} has {what}')


@dataclass(frozen=True, kw_only=True)
class Fetch:
    """Fetches the files of one commit into a bare repository."""

    git: Git
    commit: str
    repository: Path
    deadline: Deadline
    max_files: int = MAX_FILES
    max_paths: int = MAX_PATHS
    batch_bytes: int = BATCH_BYTES

    def files(self, selection: Selection, *, sink: FileSink, reuse: Callable[[str], bytes | None]) -> list[str]:
        """Fetch the wanted files into a sink, unless `reuse` has them; return the paths that were skipped."""
        self.trees()
        return self.take(self._choose(selection), sink=sink, reuse=reuse)

    def trees(self) -> None:
        """Fetch the names of all files of the commit."""
        self._fetch([self.commit], self.git.options.arguments)

    def entries(self, path: str) -> Iterator[TreeEntry]:
        """The files at or below a path, `''` for all, once their names have been fetched."""
        for line in self._lines(path):
            head, _, name = line.partition('\t')
            mode, _, blob = head.split(' ')
            yield TreeEntry(name, mode, blob)

    def get(self, entries: Iterable[TreeEntry]) -> None:
        """Fetch the content of files that are not here yet, for `read` and `take`."""
        if blobs := list(dict.fromkeys(entry.blob for entry in entries)):
            self._obtain(blobs)

    def read(self, entries: Collection[TreeEntry], *, max_bytes: int) -> dict[str, bytes]:
        """The content of a few files, by their paths.

        Raises:
            SkillValidationError: They are larger than `max_bytes`.
        """
        blobs = list(dict.fromkeys(entry.blob for entry in entries))
        sizes = self._obtain(blobs)
        size = sum(sizes.values())
        if size > max_bytes:
            names = ', '.join(entry.path for entry in entries)
            raise SkillValidationError(f'{names}: {size:,} bytes are too many; at most {max_bytes:,} are read.')
        room = size + len(blobs) * _LINE_BYTES
        found = dict(_parse_blobs(self._run(['cat-file', '--batch', '--buffer'], blobs, max_output=room)))
        if len(found) < len(blobs):
            raise self._error(f'did not send {len(blobs) - len(found)} of the files of {self.commit[:12]}')
        return {entry.path: found[entry.blob] for entry in entries}

    def take(self, chosen: Collection[TreeEntry], *, sink: FileSink, reuse: Callable[[str], bytes | None]) -> list[str]:
        """Fetch these files into a sink, unless `reuse` has them; return the paths that were skipped."""
        missing: dict[str, list[TreeEntry]] = {}
        for entry in filter(TreeEntry.is_file, chosen):
            known = reuse(entry.blob)
            if known is None or not is_blob(known, entry.blob):
                missing.setdefault(entry.blob, []).append(entry)
            else:
                _write(sink, [entry], known)
        if missing:
            self._fetch_blobs(missing, sink)
        return [entry.path for entry in chosen if not entry.is_file()]

    def _choose(self, selection: Selection) -> list[TreeEntry]:
        wanted = selection.is_sparse if selection.sparse_paths else self._skills(selection)
        chosen: list[TreeEntry] = []
        count = 0
        for line in self._lines(selection.path) if wanted else ():
            head, _, name = line.partition('\t')
            if wanted and wanted(name):
                count += 1
                if count <= self.max_files:
                    mode, _, blob = head.split(' ')
                    chosen.append(TreeEntry(name, mode, blob))
        if selection.path and not chosen:
            raise self._error(f'has no skills in {selection.path!r} at {self.commit[:12]} (found 0 SKILL.md)')
        if count > self.max_files:
            limit = f'at most {self.max_files:,} are fetched; name a path='
            raise self._error(f'has {count:,} files in its skills, {limit}')
        return chosen

    def _obtain(self, blobs: Collection[str]) -> dict[str, int]:
        """Fetch the blobs that are not here yet, and return the sizes of all those that are here afterwards."""
        sizes = self._sizes(blobs)
        if absent := [blob for blob in blobs if blob not in sizes]:
            self._fetch(absent, (), max_memory=MAX_FETCH_MEMORY_BYTES)
            sizes = self._sizes(blobs)
        return sizes

    def _fetch_blobs(self, missing: dict[str, list[TreeEntry]], sink: FileSink) -> None:
        sizes = self._obtain(missing)
        size = sum(sizes.get(blob, 0) * len(entries) for blob, entries in missing.items())
        if size > self.git.max_bytes:
            limit = f'at most {self.git.max_bytes:,} are fetched; see max_bytes='
            raise self._error(f'has {size:,} bytes of skills, {limit}')
        for batch in _batches(list(missing), sizes, self.batch_bytes):
            size = sum(sizes.get(blob, 0) + _LINE_BYTES for blob in batch)
            for blob, data in _parse_blobs(self._run(['cat-file', '--batch', '--buffer'], batch, max_output=size)):
                _write(sink, missing.pop(blob), data)
        if missing:
            raise self._error(f'did not send {len(missing)} of the files of {self.commit[:12]}')

    def _fetch(self, objects: list[str], arguments: tuple[str, ...], **limits: int) -> None:
        fixed = ['--no-tags', '--no-write-fetch-head', '--no-auto-maintenance', '--no-recurse-submodules', '--progress']
        if not any(argument.startswith('--filter') for argument in arguments):
            fixed.append('--filter=blob:none')
        self._run(['fetch', *fixed, *arguments, '--stdin', 'origin'], objects, **limits)
        # Git recorded that it may ask the server for missing objects. It must not: that is one request per file.
        (self.repository / 'config').write_text(_CONFIG)

    def _skills(self, selection: Selection) -> Callable[[str], bool] | None:
        """A function that says whether a path is in one of the skills; `None` if there are none."""
        paths = (line.partition('\t')[2] for line in self._lines(selection.path) if line[-8:].lower() == 'skill.md')
        return inside_skills(paths, below=selection.path, max_depth=selection.max_depth)

    def _lines(self, path: str) -> Iterator[str]:
        """What git says about each path, read as it is printed: a few bytes of trees can mean millions of paths."""
        where = ['--', f':(literal){path}'] if path else []
        command = ['ls-tree', '-r', '-z', '--full-tree', self.commit, *where]
        count = 0
        rest = ''
        with self.git.output(command, repository=self.repository, deadline=self.deadline) as stdout:
            while chunk := stdout.read1(MAX_PATH_BYTES):
                # In Latin-1 every byte is a character, so that it can be cut anywhere.
                *lines, rest = (rest + chunk.decode('latin-1')).split('\0')
                count += len(lines)
                if count > self.max_paths or len(rest) > MAX_PATH_BYTES:
                    limit = f'{self.max_paths:,} (max_paths), each of {MAX_PATH_BYTES:,} bytes'
                    raise self._error(f'has too many or too long paths at {self.commit[:12]}: at most {limit}')
                for line in lines:
                    yield line if line.isascii() else line.encode('latin-1').decode('utf-8', 'surrogateescape')

    def _sizes(self, blobs: Iterable[str]) -> dict[str, int]:
        """The size of each blob that has been fetched."""
        output = self._run(['cat-file', '--batch-check', '--buffer'], blobs, max_output=self.max_files * _LINE_BYTES)
        fields = (line.split(' ') for line in output.decode().splitlines())
        return {blob: int(size) for blob, kind, size in (f for f in fields if len(f) == 3) if kind == 'blob'}

    def _run(self, arguments: list[str], lines: Iterable[str] = (), **limits: int) -> bytes:
        stdin = ''.join(f'{line}\n' for line in lines).encode()
        return self.git.run(arguments, repository=self.repository, deadline=self.deadline, stdin=stdin, **limits)

    def _error(self, what: str) -> SkillRegistryError:
        return SkillRegistryError(f'{self.git.address.url} {what}')


def _write(sink: FileSink, entries: list[TreeEntry], data: bytes) -> None:
    for path, mode, blob in entries:
        sink.write(path, blob, data, executable=mode == '100755')


def is_blob(data: bytes, blob: str) -> bool:
    """Whether git would give the content this name. Content from the cache may have been changed there."""
    kind = 'sha1' if len(blob) == 40 else 'sha256'
    return hashlib.new(kind, b'blob %d\0%b' % (len(data), data), usedforsecurity=False).hexdigest() == blob


def _batches(blobs: list[str], sizes: dict[str, int], batch_bytes: int) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for blob in blobs:
        batch.append(blob)
        size += sizes.get(blob, 0)
        if size >= batch_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _parse_blobs(output: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(output):
        end = output.index(b'\n', at)
        fields = output[at:end].split(b' ')
        at = end + 1
        if len(fields) == 3:
            size = int(fields[2])
            yield fields[0].decode(), output[at : at + size]
            at += size + 1

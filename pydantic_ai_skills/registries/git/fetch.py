"""From a repository to the files of its skills: which commit a ref is, and what that commit holds.

Git never checks anything out. The trees of one commit are fetched without its files, the files of the skills are chosen
from them, fetched in one go and written by our own code: no hook, filter, submodule, attribute or link of the
repository has a part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pydantic_ai_skills.directory.folder_skill import is_skipped_folder
from pydantic_ai_skills.exceptions import SkillRegistryError

from .address import is_commit
from .manifest import FileSink
from .options import FetchOptions, Selection
from .process import Deadline, Git

__all__ = ('TreeEntry', 'fetch_files', 'resolve')

MAX_FILES = 50_000
"""How many files of one repository are taken."""

BATCH_BYTES = 32 * 1024 * 1024
"""About how many bytes of files are read from git at once."""

PLUGIN_FOLDERS = frozenset({'.agents', '.claude'})
"""Dot folders that hold skills by convention."""

_CONFIG = '[core]\n\trepositoryformatversion = 0\n\tbare = true\n'


class TreeEntry(NamedTuple):
    """A file of a commit."""

    path: str
    mode: str
    blob: str

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file, not a link and not another repository."""
        return self.mode in ('100644', '100755', '100664')

    @property
    def is_executable(self) -> bool:
        """Whether it may be run."""
        return self.mode == '100755'


@dataclass(frozen=True, kw_only=True)
class FoundFiles:
    """What a commit has of what was asked for."""

    wanted: list[TreeEntry]
    """The files to take."""

    left_out: list[str]
    """Links and other repositories among them, which are not taken."""


def new_repository(folder: Path) -> Path:
    """An empty bare repository in a folder that is there and empty."""
    for inner in ('objects/pack', 'objects/info', 'refs/heads', 'refs/tags'):
        (folder / inner).mkdir(parents=True)
    (folder / 'HEAD').write_text('ref: refs/heads/none\n')
    (folder / 'config').write_text(_CONFIG)
    return folder


def resolve(git: Git, ref: str | None, *, repository: Path, deadline: Deadline) -> str:
    """Ask the server which commit a ref is: a branch before a tag of the same name, as `git clone --branch` does.

    Raises:
        SkillRegistryError: The server cannot be reached, or has no such ref.
    """
    if ref is None or ref == 'HEAD':
        wanted = ['HEAD']
    elif ref.startswith('refs/'):
        wanted = [f'{ref}^{{}}', ref]
    else:
        # Of a tag with a message, the commit it points to.
        wanted = [f'refs/heads/{ref}', f'refs/tags/{ref}^{{}}', f'refs/tags/{ref}']
    output = git.run(['ls-remote', '--quiet', '--', git.address.url, *wanted], repository=repository, deadline=deadline)
    there = {name: commit for commit, _, name in (line.partition('\t') for line in output.decode().splitlines())}
    for name in wanted:
        if is_commit(there.get(name)):
            return there[name]
    what = 'no commits' if ref is None else f'no branch or tag {ref!r}; a commit has to be written in full'
    raise SkillRegistryError(f'{git.address.url} has {what}')


def fetch_files(
    git: Git,
    commit: str,
    selection: Selection,
    options: FetchOptions,
    *,
    repository: Path,
    deadline: Deadline,
    sink: FileSink,
    reuse: Callable[[str], bytes | None],
) -> list[str]:
    """Fetch the wanted files of a commit and put them into a sink; return what was left out.

    Args:
        git: How to call git.
        commit: The full commit.
        selection: Which files are wanted.
        options: What the developer decided about fetching.
        repository: A bare repository to fetch into.
        deadline: When it has to be over.
        sink: Where the files go.
        reuse: Gives a blob that is here already.

    Raises:
        SkillRegistryError: The server cannot be reached, has no such commit or folder, or sends too much.
    """
    _fetch(git, [commit], options.arguments, repository=repository, deadline=deadline)
    found = _choose(_list(git, commit, selection.path, repository=repository, deadline=deadline), selection)
    if selection.path and not found.wanted and not found.left_out:
        raise SkillRegistryError(f'{git.address.url} has no skills in {selection.path!r} at {commit[:12]}')
    if len(found.wanted) > MAX_FILES:
        message = f'has {len(found.wanted):,} files in its skills, at most {MAX_FILES:,} are fetched; name a path='
        raise SkillRegistryError(f'{git.address.url} {message}')
    missing: dict[str, list[TreeEntry]] = {}
    for entry in found.wanted:
        known = reuse(entry.blob)
        if known is None:
            missing.setdefault(entry.blob, []).append(entry)
        else:
            sink.write(entry.path, entry.blob, known, executable=entry.is_executable)
    if missing:
        sizes = _sizes(git, list(missing), repository=repository, deadline=deadline)
        absent = [blob for blob in missing if blob not in sizes]
        if absent:
            # Given to git through a file of its own, as many as there are.
            _fetch(git, absent, (), repository=repository, deadline=deadline)
            sizes = _sizes(git, list(missing), repository=repository, deadline=deadline)
        _check_size(git, sum(sizes.get(blob, 0) * len(entries) for blob, entries in missing.items()))
        for batch in _batches(list(missing), sizes):
            output = git.run(
                ['cat-file', '--batch', '--buffer'],
                repository=repository,
                deadline=deadline,
                stdin=''.join(f'{blob}\n' for blob in batch).encode(),
            )
            for blob, data in _parse_blobs(output):
                for entry in missing.pop(blob):
                    sink.write(entry.path, blob, data, executable=entry.is_executable)
    if missing:
        raise SkillRegistryError(f'{git.address.url} did not send {len(missing)} of the files of {commit[:12]}')
    return found.left_out


def _fetch(git: Git, objects: list[str], arguments: tuple[str, ...], *, repository: Path, deadline: Deadline) -> None:
    fixed = ['--no-tags', '--no-write-fetch-head', '--no-auto-maintenance', '--no-recurse-submodules', '--progress']
    if not any(argument.startswith('--filter') for argument in arguments):
        fixed.append('--filter=blob:none')
    git.run(
        ['fetch', *fixed, *arguments, '--stdin', 'origin'],
        repository=repository,
        deadline=deadline,
        stdin=''.join(f'{name}\n' for name in objects).encode(),
    )
    # Git noted that it can ask the server for what is not here. It shall not: that would be one request a file.
    (repository / 'config').write_text(_CONFIG)


def _list(git: Git, commit: str, path: str, *, repository: Path, deadline: Deadline) -> list[TreeEntry]:
    where = ['--', f':(literal){path}'] if path else []
    output = git.run(['ls-tree', '-r', '-z', '--full-tree', commit, *where], repository=repository, deadline=deadline)
    entries: list[TreeEntry] = []
    for line in output.decode('utf-8', 'surrogateescape').split('\0')[:-1]:
        head, _, name = line.partition('\t')
        mode, _, blob = head.split(' ')
        entries.append(TreeEntry(name, mode, blob))
    return entries


def _choose(entries: list[TreeEntry], selection: Selection) -> FoundFiles:
    """The files below the sparse paths, or else those of the skills."""
    if selection.sparse_paths:
        chosen = [entry for entry in entries if selection.is_sparse(entry.path)]
    else:
        folders = {_parent(entry.path) for entry in entries if _is_skill_file(entry.path, selection)}
        chosen = [entry for entry in entries if not folders.isdisjoint(_parents(entry.path))]
    return FoundFiles(
        wanted=[entry for entry in chosen if entry.is_file], left_out=[e.path for e in chosen if not e.is_file]
    )


def _is_skill_file(path: str, selection: Selection) -> bool:
    """Whether a file makes its folder a skill that will be found there."""
    *steps, name = path.removeprefix(f'{selection.path}/' if selection.path else '').split('/')
    if name.lower() != 'skill.md' or (selection.max_depth is not None and len(steps) > selection.max_depth):
        return False
    return not any(is_skipped_folder(step) and step not in PLUGIN_FOLDERS for step in steps)


def _parent(path: str) -> str:
    return path.rpartition('/')[0]


def _parents(path: str) -> Iterator[str]:
    yield from ('' if str(parent) == '.' else str(parent) for parent in PurePosixPath(path).parents)


def _sizes(git: Git, blobs: list[str], *, repository: Path, deadline: Deadline) -> dict[str, int]:
    """The size of each blob that is here."""
    output = git.run(
        ['cat-file', '--batch-check', '--buffer'],
        repository=repository,
        deadline=deadline,
        stdin=''.join(f'{blob}\n' for blob in blobs).encode(),
    )
    fields = (line.split(' ') for line in output.decode().splitlines())
    return {blob: int(size) for blob, kind, size in (f for f in fields if len(f) == 3) if kind == 'blob'}


def _check_size(git: Git, size: int) -> None:
    if size > git.max_bytes:
        message = f'has {size:,} bytes of skills, at most {git.max_bytes:,} are fetched; see max_bytes='
        raise SkillRegistryError(f'{git.address.url} {message}')


def _batches(blobs: list[str], sizes: dict[str, int]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for blob in blobs:
        batch.append(blob)
        size += sizes.get(blob, 0)
        if size >= BATCH_BYTES:
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

"""A skill's folder inside a workspace: copied once for each version of its content."""

from __future__ import annotations

import posixpath
import re
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager

import anyio
from pydantic_ai.workspaces import Workspace

from .snapshot import FolderSnapshot

__all__ = ('COMPLETE', 'Stage')

COMPLETE = '.complete'
"""The file that says that a copy is whole."""

MAX_REMEMBERED = 1_000
"""How many copies are remembered, so that the workspace need not be asked about them again."""

POLL = 0.01
"""Seconds between two looks whether somebody else is done with a copy."""

_NOT_IN_NAMES = re.compile(r'[^A-Za-z0-9._-]+')


class Stage:
    """The copies that were made.

    Args:
        folder: Where they are kept, in each workspace.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: set[tuple[str, str, str]] = set()
        self._copying: dict[Hashable, object] = {}

    async def copy(self, workspace: Workspace, skill_name: str, snapshot: FolderSnapshot, *, anew: bool = False) -> str:
        """Make sure that the workspace has this version of the skill, and return the path of its folder there.

        Args:
            workspace: Where to.
            skill_name: What the folder is called after.
            snapshot: The files of the skill.
            anew: Write them in any case, because a copy that was there is no longer whole.
        """
        # A workspace may be shared by skills of the same name from different places; the digest keeps them apart.
        name = f'{_NOT_IN_NAMES.sub("-", skill_name)[:64]}-{snapshot.digest[:16]}'
        target = await workspace.resolve(posixpath.join(self._folder, name))
        ref = workspace.ref
        key = None if ref is None else (ref.provider, ref.id, target)
        if anew or key is None or key not in self._known:
            async with self._alone(key or target) as waited:
                # Who had to wait has the copy that was made meanwhile, perhaps with a script of it running already.
                if (anew and not waited) or not await workspace.exists(f'{target}/{COMPLETE}'):
                    await self._write(workspace, target, snapshot)
            self._remember(workspace, target)
        return target

    @asynccontextmanager
    async def _alone(self, copy: Hashable) -> AsyncGenerator[bool]:
        """Wait until nobody else makes this copy, and tell whether that was necessary."""
        mine, waited = object(), False
        # No lock of the event loop: an executor may be used from several of them.
        while self._copying.setdefault(copy, mine) is not mine:
            waited = True
            await anyio.sleep(POLL)
        try:
            yield waited
        finally:
            del self._copying[copy]

    async def _write(self, workspace: Workspace, target: str, snapshot: FolderSnapshot) -> None:
        for file in snapshot.files:
            await workspace.write_bytes(f'{target}/{file.name}', file.content)
        if executables := [f'{target}/{file.name}' for file in snapshot.files if file.executable]:
            await workspace.run(['chmod', '+x', *executables])
        # Last, so that a copy that was interrupted is made again.
        await workspace.write_bytes(f'{target}/{COMPLETE}', snapshot.digest.encode())

    def _remember(self, workspace: Workspace, target: str) -> None:
        if (ref := workspace.ref) is not None:
            if len(self._known) >= MAX_REMEMBERED:
                self._known.clear()
            self._known.add((ref.provider, ref.id, target))

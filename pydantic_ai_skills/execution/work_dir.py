"""Finds the folder in which the scripts of a conversation start, read and write; makes and removes private ones."""

from __future__ import annotations

import atexit
import os
import stat
import tempfile
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast
from uuid import uuid4

from anyio import to_thread
from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.filesystem.remove import remove_tree
from pydantic_ai_skills.filesystem.safe_open import OpenFolder, reason

from .background import BackgroundCommands
from .base import result_at_once

if TYPE_CHECKING:
    from pydantic_ai.workspaces import Workspace

    from pydantic_ai_skills.types.script import SkillScript

Folder: TypeAlias = str | Path | None
"""A folder that the developer names; `None` for a private one."""

ChosenDir: TypeAlias = Folder | Callable[[RunContext[Any]], Folder | Awaitable[Folder]]
"""A folder, or a function of the run's context that returns one. The function may be async."""

MAX_CONVERSATIONS = 64
"""How many conversations keep a private folder, by default."""

KEPT_FOLDERS = 64
"""How many of the last runs without a conversation keep their files. All are removed when this process ends."""

MAX_READ_BYTES = 10 * 1024 * 1024
"""How many bytes a file in a work folder may have to be read, by default."""


class WorkDir(NamedTuple):
    """The folder in which the scripts of a run start, read and write: on this machine, or in the run's workspace."""

    path: Path | None = None
    """Where it is on this machine; `None` in a workspace elsewhere."""

    workspace: Workspace | None = None
    """The run's workspace, if it has one: the workspace's folder is the work folder then."""

    is_private: bool = False
    """Whether it belongs to one conversation, or to one run, and is removed after it."""

    is_new: bool = False
    """Whether it was made for one run, so that it starts empty and no other run uses it."""

    def local_path(self) -> Path:
        """Where it is on this machine.

        Raises:
            SkillScriptExecutionError: It is not on this machine, or is read-only.
        """
        if self.path is None:
            raise SkillScriptExecutionError(
                'The files of this run are in a workspace that is not on this machine, where the script would not find '
                'them. For the developer: run scripts in the workspace, with a WorkspaceSkillScriptExecutor.'
            )
        if self.workspace is not None and self.workspace.read_only:
            raise SkillScriptExecutionError('The workspace of this run is read-only, so scripts cannot be run in it.')
        return self.path

    def relative(self, name: str) -> str:
        """A name relative to the folder: a script may have printed the whole path."""
        return name.removeprefix(f'{self.path}/')


class _Kept:
    """The private folder of a conversation."""

    def __init__(self, path: Path, identity: tuple[int, int]) -> None:
        self.path = path
        self.identity = identity
        self.users = 0
        """How many scripts run in it."""


class WorkDirs:
    """The work folders of the conversations of a toolset.

    The workspace of a run comes first, then the folder that the developer chose. Without them each conversation has a
    private folder, which stays until `close`, until `most` other conversations have used theirs since, or until this
    object or this process is gone.
    """

    def __init__(self, chosen: ChosenDir = None, *, most: int = MAX_CONVERSATIONS) -> None:
        if most < 1:
            raise ValueError(f'max_work_dirs must be at least 1, not {most}.')
        self._chosen: Any = chosen if chosen is None or callable(chosen) else Path(chosen).expanduser().absolute()
        self._most = most
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._named: OrderedDict[Folder, WorkDir] = OrderedDict()
        self._lock = threading.Lock()
        self.background = BackgroundCommands()
        """The commands that run in the background, for each conversation."""
        self._process = os.getpid()
        # What is left when this process ends is removed with the folder that holds all private ones.
        weakref.finalize(self, _forget, self._kept, self._process).atexit = False

    def __reduce__(self) -> tuple[Callable[..., WorkDirs], tuple[Any]]:
        # A copy makes private folders of its own.
        return partial(WorkDirs, most=self._most), (self._chosen,)

    @asynccontextmanager
    async def use(self, ctx: RunContext[Any] | None) -> AsyncGenerator[WorkDir | None]:
        """The work folder for a script, which is not removed meanwhile; `None` if there is no conversation.

        Raises:
            SkillScriptExecutionError: It cannot be made, or the workspace is not available.
        """
        found = await self._find(ctx, users=1)
        try:
            yield found
        finally:
            with self._lock:
                for kept in self._kept.values():
                    kept.users -= found is not None and kept.path == found.path

    async def existing(self, ctx: RunContext[Any]) -> WorkDir | None:
        """The work folder of a run, if it has one already."""
        return await self._find(ctx, make=False)

    def now(self, where: RunContext[Any] | str) -> WorkDir:
        """The work folder of a run, or of a conversation by its id, for code that cannot wait.

        Raises:
            SkillScriptExecutionError: It cannot be made.
            UserError: Only a run determines the folder, its function has to wait, or there is no conversation.
        """
        if isinstance(where, str):
            if callable(self._chosen):
                raise UserError('`work_dir` is a function of the run, so a conversation does not tell its folder.')
            return self._known(self._chosen, where)
        workspace = _workspace_of(where)
        if workspace is not None:
            return WorkDir(path=_local_folder(workspace), workspace=workspace)
        chosen = self._chosen(where) if callable(self._chosen) else self._chosen
        key = _conversation(where)
        try:
            folder: Folder = result_at_once(chosen) if isawaitable(chosen) else cast(Any, chosen)
        except RuntimeError as error:
            message = '`work_dir` is a function that has to wait, so the folder is known only to scripts of the run.'
            raise UserError(message) from error
        if folder is None and key is None:
            raise UserError('This context belongs to no run, so it has no work folder.')
        return self._known(folder, key or '')

    def close(self, conversation: str | None = None) -> None:
        """Remove the private folder of a conversation, or of all. Folders that the developer named stay.

        What runs in the background for the conversation is stopped.
        """
        self.background.stop(conversation)
        with self._lock:
            keys = list(self._kept) if conversation is None else [conversation]
            gone = [kept.path for key in keys if (kept := self._mine().pop(key, None))]
        _remove(gone)

    def _known(self, folder: Folder, key: str) -> WorkDir:
        """The folder that was used last, without a check that it still exists, or else a new one."""
        with self._lock:
            kept = self._mine().get(key) if folder is None else None
            known = WorkDir(path=kept.path, is_private=True) if kept else self._named.get(folder)
        return known or cast(WorkDir, self._make(folder, key))

    async def _find(self, ctx: RunContext[Any] | None, *, users: int = 0, make: bool = True) -> WorkDir | None:
        workspace = None if ctx is None else _workspace_of(ctx)
        if workspace is not None:
            path = _local_folder(workspace)
            return WorkDir(path=path and Path(await workspace.working_dir()), workspace=workspace)
        chosen: Any = self._chosen(ctx) if callable(self._chosen) else self._chosen
        folder: Folder = await chosen if isawaitable(chosen) else chosen
        key = _conversation(ctx)
        if folder is None and key is None:
            return None
        return await to_thread.run_sync(self._make, folder, key or '', users, make)

    def _make(self, folder: Folder, key: str, users: int = 0, make: bool = True) -> WorkDir | None:
        if not make and (key not in self._kept if folder is None else not os.path.isdir(folder)):
            return None
        try:
            return self._private(key, users) if folder is None else self._of_developer(folder)
        except OSError as error:
            raise SkillScriptExecutionError(
                f'The work folder cannot be made: {reason(error)}. For the developer: see `work_dir`, or else TMPDIR.'
            ) from error

    def _private(self, key: str, users: int) -> WorkDir:
        with self._lock:
            kept = self._mine().get(key)
            if kept is None or _identity(kept.path) != kept.identity:
                gone = [kept.path] if kept else []  # a script has removed it, or put something in its place
                path = make_private_folder()
                kept = self._kept[key] = _Kept(path, cast(Any, _identity(path)))
                unused = [key for key, old in self._kept.items() if not old.users and old is not kept]
                gone += [self._kept.pop(key).path for key in unused[: max(0, len(self._kept) - self._most)]]
            else:
                gone = []
            kept.users += users
            self._kept.move_to_end(key)
        if gone:
            _remove(gone)
        return WorkDir(path=kept.path, is_private=True)

    def _of_developer(self, folder: str | Path) -> WorkDir:
        path = Path(folder).expanduser()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = WorkDir(path=Path(os.path.realpath(path)))
        with self._lock:
            self._named[folder] = found
            if len(self._named) > self._most:
                self._named.popitem(last=False)
        return found

    def _mine(self) -> OrderedDict[str, _Kept]:
        """The folders that this process made: those from before a fork belong to the other one."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._kept.clear()
        return self._kept


@contextmanager
def work_dir_for(script: SkillScript, skill_dir: Path) -> Generator[WorkDir]:
    """The work folder of the script's conversation; without one, a folder for this run, which stays if it has files."""
    given = script.work_dir
    if given is not None:
        path = given.path
        if path is not None and (path == skill_dir or skill_dir in path.parents):
            raise SkillScriptExecutionError(
                f'The work folder is in the folder of the skill {script.skill_name!r}, which scripts must not change. '
                'For the developer: choose another `work_dir`.'
            )
        yield given
        return
    try:
        folder = make_private_folder()
    except OSError as error:
        raise SkillScriptExecutionError(
            f'The script {script.name!r} could not be started: its work folder cannot be made: {error.strerror}. '
            'For the developer: see TMPDIR.'
        ) from error
    try:
        yield WorkDir(path=folder, is_private=True, is_new=True)
    except BaseException:
        remove_private_folder(folder)
        raise
    from .work_files import stamps_of  # not needed where every script has a conversation

    if not is_empty(folder) and stamps_of(folder):
        keep_private_folder(folder)
    else:
        remove_private_folder(folder)


def is_empty(folder: Path) -> bool:
    """Whether a work folder is empty, so that there are no files to list; false if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except OSError:
        return False


def _forget(kept: OrderedDict[str, _Kept], process: int) -> None:
    folders = [each.path for each in kept.values()]
    if folders and process == os.getpid():
        # In a thread: the object may be collected while an event loop is running.
        threading.Thread(target=_remove, args=(folders,)).start()


def _remove(folders: Iterable[Path]) -> None:
    for folder in folders:
        remove_private_folder(folder)
    remove_empty_roots()


def _identity(folder: Path) -> tuple[int, int] | None:
    """What distinguishes a folder from another one put in its place; `None` if it is a link or does not exist."""
    with suppress(OSError), OpenFolder.beneath(str(folder.parent), (folder.name,)) as opened:
        status = opened.status()
        return status.st_dev, status.st_ino
    return None


def _workspace_of(ctx: RunContext[Any]) -> Workspace | None:
    try:
        workspace = ctx.workspace
    except UserError:  # a durable unit runs elsewhere, without it
        return None
    return workspace if workspace.attached else None


def _local_folder(workspace: Workspace) -> Path | None:
    """The folder of a workspace, if it is one on this machine."""
    from pydantic_ai.workspaces import LocalWorkspaceBackend  # only needed where there is a workspace

    backend = workspace.backend
    return Path(backend.ref.id) if isinstance(backend, LocalWorkspaceBackend) else None


def _conversation(ctx: RunContext[Any] | None) -> str | None:
    return None if ctx is None else ctx.conversation_id or ctx.run_id


# --- Private folders. Scripts may have set traps in them. -----------------------------------------------------------

_kept: deque[Path] = deque()
_left: deque[Path] = deque()
_roots: list[Path] = []
_lock = threading.Lock()
with suppress(AttributeError):  # there are no forks on Windows
    for _folders in (_kept, _left, _roots):  # they belong to the process that made them, not to its forks
        os.register_at_fork(after_in_child=_folders.clear)


def make_private_folder() -> Path:
    """Make an empty folder that only this user can reach, whatever permissions a script gives it."""
    with _lock:
        while True:
            with suppress(IndexError, FileNotFoundError):  # there is none yet, or somebody has tidied up
                folder = _roots[-1] / f'skill-run-{uuid4().hex}'
                folder.mkdir(mode=0o700)
                return folder
            # The real path, so that scripts see the same one with and without a sandbox.
            _roots.append(Path(os.path.realpath(tempfile.mkdtemp(prefix='skill-runs-'))))


def close_to_others(folder: Path) -> None:
    """Give only this user access to a private folder again, if a script changed that."""
    with suppress(OSError):
        if stat.S_IMODE(os.lstat(folder).st_mode) != 0o700:
            with OpenFolder.beneath(str(folder.parent), (folder.name,)) as opened:
                os.chmod(opened.path if opened.descriptor is None else opened.descriptor, 0o700)


def keep_private_folder(folder: Path, *, most: int = KEPT_FOLDERS) -> None:
    """Keep the folder of a run that is over until `most` newer ones are kept, or this process ends."""
    close_to_others(folder)
    with _lock:
        _kept.append(folder)
        old = _kept.popleft() if len(_kept) > most else None
    if old is not None:
        remove_private_folder(old)


def remove_private_folder(folder: Path) -> None:
    """Remove a folder, or else try again after the next run and when this process ends."""
    _left.append(folder)
    for _ in range(len(_left)):
        with suppress(IndexError):  # another thread has taken it
            again = _left.popleft()
            if not remove_tree(again):
                _left.append(again)


def remove_empty_roots() -> None:
    """Remove the folder that holds the private ones, if there are none left."""
    with _lock:
        for root in tuple(_roots):
            with suppress(OSError):  # some are left
                os.rmdir(root)
                _roots.remove(root)


@atexit.register
def remove_kept_folders() -> None:
    """Remove all private folders that still exist."""
    while _kept:
        remove_private_folder(_kept.popleft())
    for folder in (*_left, *_roots):
        remove_tree(folder)
    _left.clear()
    _roots.clear()

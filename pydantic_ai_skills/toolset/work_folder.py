"""Lets the application and the model exchange files with scripts, in the work folder of a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio.to_thread
from pydantic_ai.messages import BinaryContent
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillResourceLoadError
from pydantic_ai_skills.execution.work_dir import MAX_READ_BYTES, WorkDirs
from pydantic_ai_skills.filesystem.content import as_content
from pydantic_ai_skills.filesystem.safe_open import split_path

from .results import one_line

if TYPE_CHECKING:
    from pydantic_ai.workspaces import Workspace

    from .actions import SkillActions

WORK_PREFIX = 'work:'
"""The prefix of a file in the work folder whose name a resource of the skill has, too."""


class WorkFolders:
    """The methods of a toolset with which an application exchanges files with scripts."""

    work_dirs: WorkDirs
    """The folders in which scripts start, read and write."""

    if TYPE_CHECKING:
        actions: SkillActions[Any]

    def share_work_dirs(self, other: WorkFolders) -> None:
        """Use the same work folders as another toolset, so that a conversation with both has a single folder."""
        self.work_dirs = self.actions.work_dirs = other.work_dirs

    def work_dir_of(self, where: RunContext[Any] | str) -> Path | None:
        """The folder in which the scripts of a conversation start, read and write, to exchange files with them.

        It makes the folder if there is none yet. Read what scripts wrote with `read_file`, which follows no links.

        Args:
            where: The context of a run, or the id of a conversation: `result.conversation_id` after a run, or one that
                you chose and pass to the run as `conversation_id`.

        Returns:
            The folder; `None` if it is in a workspace that is not on this machine.

        Raises:
            SkillError: It cannot be made.
            UserError: The folder is not known: `work_dir` is a function that needs the run, or has to wait.
        """
        return self.work_dirs.now(where).path

    def put_files(self, where: RunContext[Any] | str, files: Mapping[str, bytes | str | Path]) -> None:
        """Write files into the work folder of a conversation, for example before its first run.

        Args:
            where: The context of a run, or the id of a conversation.
            files: Their content by their names in the folder: bytes, text, or the path of a file to copy.

        Raises:
            SkillError: One cannot be written, or the work folder is not on this machine.
            OSError: A file to copy cannot be read.
        """
        from pydantic_ai_skills.execution.work_files import write_work_file  # not needed before files are exchanged

        folder = self.work_dirs.now(where).local_path()
        for name, content in files.items():
            if isinstance(content, Path):
                with content.open('rb') as file:
                    write_work_file(folder, name, file)
            else:
                write_work_file(folder, name, content.encode() if isinstance(content, str) else content)

    def read_file(self, where: RunContext[Any] | str, name: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Read a file in the work folder of a conversation, without following links.

        Args:
            where: The context of a run, or the id of a conversation.
            name: Its name in the folder, as in `ScriptResult.files`.
            max_bytes: How long it may be.

        Raises:
            SkillError: There is no such file, it is too long, or the work folder is not on this machine.
        """
        from pydantic_ai_skills.execution.work_files import read_work_file

        return read_work_file(self.work_dirs.now(where).local_path(), name, max_bytes=max_bytes)

    async def aclose(self, conversation_id: str | None = None) -> None:
        """Do the same as `close` off the event loop."""
        await anyio.to_thread.run_sync(self.close, conversation_id)

    def close(self, conversation_id: str | None = None) -> None:
        """Remove the private work folder of a conversation that is over, or those of all. The toolset stays usable."""
        self.work_dirs.close(conversation_id)

    def __enter__(self) -> Self:
        """Use `with SkillsToolset(...) as skills:` to remove all private work folders at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def read_from_work_dir(work_dirs: WorkDirs, ctx: RunContext[Any], name: str) -> str | BinaryContent | None:
    """Read a file in the work folder of a run, by a name the model was told; `None` if there is none.

    Raises:
        SkillResourceLoadError: It is too long, or models do not accept its kind.
    """
    work_dir = await work_dirs.existing(ctx)
    if work_dir is None:
        return None
    asked = work_dir.relative(name.removeprefix(WORK_PREFIX)).removeprefix('./')
    if work_dir.path is not None:
        data = await anyio.to_thread.run_sync(_read, work_dir.path, asked)
    else:
        assert work_dir.workspace is not None
        data = await _read_elsewhere(work_dir.workspace, asked)
    if data is None and name.startswith(WORK_PREFIX):
        raise SkillResourceLoadError(f'There is no file {asked!r} in the work folder.')
    return None if data is None else as_content(data, asked)


def _read(folder: Path, name: str) -> bytes | None:
    from pydantic_ai_skills.execution.work_files import has_work_file, list_work_files, read_work_file

    if has_work_file(folder, name):
        return read_work_file(folder, name)
    # The model was shown each name on one line, without invisible characters.
    shown = next((file.name for file in list_work_files(folder) if one_line(file.name) == name), None)
    return None if shown is None else read_work_file(folder, shown)


async def _read_elsewhere(workspace: Workspace, name: str) -> bytes | None:
    from pydantic_ai.workspaces import WorkspaceError  # only needed where there is a workspace

    try:
        path = await workspace.resolve('/'.join(split_path(name)))
        entry = await workspace.stat(path)
        is_short = entry.size is None or entry.size <= MAX_READ_BYTES
        data = await workspace.read_bytes(path) if is_short and not entry.is_dir else None
    except (OSError, ValueError, WorkspaceError, SkillResourceLoadError):
        return None
    if not is_short:
        raise SkillResourceLoadError(f'{name!r} is larger than {MAX_READ_BYTES:,} bytes.')
    return data

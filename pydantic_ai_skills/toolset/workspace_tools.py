"""A shell and files for the model, in the run's workspace or in the work folder of the conversation."""

from __future__ import annotations

import posixpath
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed
from pydantic_ai.messages import BinaryContent
from pydantic_ai.tools import RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool
from pydantic_ai.workspaces import FileEntry, Workspace, WorkspaceError

from pydantic_ai_skills.exceptions import SkillError, SkillResourceLoadError
from pydantic_ai_skills.execution.base import is_sandbox
from pydantic_ai_skills.execution.launch import COMMAND
from pydantic_ai_skills.execution.work_backend import WorkDirBackend
from pydantic_ai_skills.execution.work_dir import MAX_READ_BYTES
from pydantic_ai_skills.filesystem.content import as_content
from pydantic_ai_skills.filesystem.safe_open import OpenFolder, SkillFolder, reason
from pydantic_ai_skills.types.lookup import closest_first
from pydantic_ai_skills.types.skill import DepsT

from .commands import BACKGROUND, Commands
from .lenient_args import with_lenient_args
from .results import one_line, outgoing, outgoing_error, page_of
from .text_edits import replace_passage
from .toolset import SkillsToolset

WORKSPACE_TOOLS = (COMMAND, BACKGROUND, 'read_file', 'write_file', 'edit_file', 'list_files')
"""The names of the tools."""

MAX_LISTED = 1_000
"""How many entries of a folder are listed."""


class WorkspaceToolset(FunctionToolset[DepsT]):
    """What instructions of published skills expect: a shell, and tools to read, write, edit and list files.

    They work in the run's workspace, if it has one, or else in the work folder that the scripts of a `SkillsToolset`
    use, in the same sandbox and under the same policy. `SkillsCapability(workspace_tools=True)` adds it.

    ```python {test="skip"}
    from pydantic_ai import Agent

    from pydantic_ai_skills import SkillsToolset, WorkspaceToolset

    skills = SkillsToolset(directories=['./skills'])
    agent = Agent('openai:gpt-5.2', toolsets=[skills, WorkspaceToolset(skills)])
    ```

    Args:
        skills: The toolset whose scripts use the same work folder, executor and policy.
        allow: Whether commands run without a person's approval, where they are neither in a sandbox nor in a workspace
            and there is no `script_policy`.
        id: Identifies the toolset within its agent.
    """

    def __init__(self, skills: SkillsToolset[DepsT], *, allow: bool = False, id: str | None = None) -> None:
        super().__init__(id=id or f'{skills.id}-workspace')
        self._skills = skills
        self._commands = Commands[DepsT](skills, allow=allow)
        for name in WORKSPACE_TOOLS:
            self.add_tool(Tool(getattr(self, name), name=name, takes_ctx=True))

    # --- The tools ------------------------------------------------------------------------------------------------

    async def run_command(self, ctx: RunContext[DepsT], command: str, background: bool = False) -> Any:
        """Run a shell command in the work folder and get what it prints.

        Args:
            command: The command, for bash.
            background: Whether to leave it running, for a server. Otherwise all it started is stopped when it ends.
        """
        return await (self._commands.start if background else self._commands.run)(ctx, command)

    async def command_output(self, ctx: RunContext[DepsT], command_id: str, stop: bool = False) -> str:
        """Get what a background command has printed since the last look.

        Args:
            command_id: Its id.
            stop: Whether to stop it.
        """
        return await self._commands.look(ctx, command_id, stop=stop)

    async def read_file(self, ctx: RunContext[DepsT], path: str, page: int = 1) -> str | BinaryContent:
        """Read a file in the work folder, or in the folder of a loaded skill.

        Args:
            path: Its path, relative to the work folder.
            page: Which page of a long text.
        """
        folder, name = await self._in_skill(ctx, path)
        if folder is not None:
            data = await anyio.to_thread.run_sync(SkillFolder(str(folder)).read_bytes, name)
        else:
            async with self._opened(ctx, path) as (workspace, real):
                data = await _read(workspace, real, path)
        content = as_content(data, path)
        if isinstance(content, BinaryContent):
            return content
        return await anyio.to_thread.run_sync(partial(page_of, content, path, page, asks='page {}'))

    async def write_file(self, ctx: RunContext[DepsT], path: str, content: str) -> str:
        """Write a text file in the work folder. It replaces one of that name.

        Args:
            path: Its path, relative to the work folder.
            content: All of its text.
        """
        async with self._opened(ctx, path, writes=True) as (workspace, real):
            data = content.encode('utf-8', 'replace')
            await workspace.write_bytes(real, data)
        return f'Wrote {path!r} ({len(data):,} bytes).'

    async def edit_file(self, ctx: RunContext[DepsT], path: str, old: str, new: str, replace_all: bool = False) -> str:
        """Replace a passage of a text file in the work folder.

        Args:
            path: Its path, relative to the work folder.
            old: The passage, exactly as the file has it. It must occur only once.
            new: What takes its place.
            replace_all: Whether to replace it wherever it occurs.
        """
        async with self._opened(ctx, path, writes=True) as (workspace, real):
            try:
                text = (await _read(workspace, real, path)).decode()
            except UnicodeDecodeError:
                raise SkillResourceLoadError(f'{path!r} is not a text in UTF-8, so it cannot be edited.') from None
            try:
                text, lines = replace_passage(text, old, new, every=replace_all)
            except SkillResourceLoadError as misfit:
                raise SkillResourceLoadError(f'{path!r} was not changed. {misfit}') from None
            await workspace.write_bytes(real, text.encode())
        where = f'line {lines[0]}' if len(lines) == 1 else f'{len(lines)} places'
        return f'Changed {path!r} in {where}.'

    async def list_files(self, ctx: RunContext[DepsT], path: str = '.') -> str:
        """List a folder of the work folder, or of a loaded skill. Names of folders end with a slash.

        Args:
            path: Its path, relative to the work folder.
        """
        folder, name = await self._in_skill(ctx, path)
        if folder is not None:
            entries = await anyio.to_thread.run_sync(_entries_of, folder, name)
        else:
            async with self._opened(ctx, path) as (workspace, real):
                entries = [(entry.name, entry.is_dir, entry.size) for entry in await workspace.list_dir(real)]
        lines = [_line(*entry) for entry in sorted(entries)[:MAX_LISTED]]
        if len(entries) > MAX_LISTED:
            lines.append(f'[{len(entries) - MAX_LISTED:,} more are not listed.]')
        return '\n'.join(lines) or '(The folder is empty.)'

    # --- Where ----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _opened(
        self, ctx: RunContext[DepsT], path: str, *, writes: bool = False
    ) -> AsyncGenerator[tuple[Workspace, str]]:
        """The workspace, and the path in it with links resolved. Errors become failures that name the path."""
        try:
            async with self._skills.work_dirs.use(ctx) as work_dir:
                if work_dir is None:
                    raise SkillResourceLoadError('This run has no work folder.')
                workspace, executor = work_dir.workspace, self._commands.executor(work_dir)
                # What a sandbox wrote may hold traps, which only the back end for work folders is made to avoid.
                is_writable = workspace is not None and not workspace.read_only
                if workspace is None or (is_writable and is_sandbox(executor) and work_dir.path is not None):
                    workspace = Workspace(WorkDirBackend(work_dir, executor))
                real = await _inside(workspace, path)
                if writes and work_dir.path is not None:
                    await anyio.to_thread.run_sync(self._keep_skills, real)
                yield workspace, real
        except FileNotFoundError as error:
            raise SkillResourceLoadError(f'There is no file {path!r} in the work folder.') from error
        except (OSError, ValueError, WorkspaceError) as error:
            raise SkillResourceLoadError(f'{path!r} cannot be used: {_reason(error)}.') from error

    def _keep_skills(self, path: str) -> None:
        """Refuse to write into the folder of a skill: what is changed there may be run later, as the skill's code."""
        skills = {skill.path for skill in self._skills.library.look().catalog.skills.values()}
        roots = {str(Path(directory.path).absolute()) for directory in self._skills.library.directories}
        if not (skills | roots).isdisjoint(map(str, Path(path).parents)):
            raise SkillResourceLoadError(f'{path!r} is in the folder of a skill, which must not be changed.')

    async def _in_skill(self, ctx: RunContext[DepsT], path: str) -> tuple[Path | None, str]:
        """The folder of the loaded skill that holds an absolute path, and the way from there."""
        if not path.startswith('/'):
            return None, path
        whole = Path(posixpath.normpath(path))
        for skill in await self._skills.history.loaded(ctx):
            if skill.path is not None and (whole == (folder := Path(skill.path)) or folder in whole.parents):
                return folder, whole.relative_to(folder).as_posix()
        return None, path

    # --- For pydantic-ai ------------------------------------------------------------------------------------------

    async def get_tools(self, ctx: RunContext[DepsT]) -> dict[str, ToolsetTool[DepsT]]:
        """The tools; `run_command` only where commands may run."""
        tools = await super().get_tools(ctx)
        return {
            name: with_lenient_args(tool)
            for name, tool in tools.items()
            if name not in (COMMAND, BACKGROUND) or self._commands.is_offered
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[DepsT], tool: ToolsetTool[DepsT]
    ) -> Any:
        """Call a tool. What goes wrong is a tool failure that the model can act on, not the end of the run."""
        try:
            value = await super().call_tool(name, tool_args, ctx, tool)
            return await anyio.to_thread.run_sync(outgoing, value)
        except SkillError as error:
            raise outgoing_error(ToolFailed(str(error))) from error
        except (ToolFailed, ModelRetry, ApprovalRequired) as error:
            outgoing_error(error)
            raise


async def _inside(workspace: Workspace, path: str) -> str:
    """Where a path leads in the workspace, if that is in its folder."""
    root = await workspace.working_dir()
    real = await workspace.realpath(await workspace.resolve(path))
    if real != root and not real.startswith(f'{root.rstrip("/")}/'):
        raise SkillResourceLoadError(
            f'{path!r} is not in the work folder. Use a path relative to it, such as {posixpath.basename(path)!r}.'
        )
    return real


async def _read(workspace: Workspace, real: str, path: str) -> bytes:
    try:
        entry = await workspace.stat(real)
    except FileNotFoundError:
        names = [each.name for each in await _listed(workspace, posixpath.dirname(real))]
        known = f' {closest_first("file", posixpath.basename(path), names)}' if names else ''
        raise SkillResourceLoadError(f'There is no file {path!r} in the work folder.{known}') from None
    if entry.is_dir:
        raise SkillResourceLoadError(f'{path!r} is a folder. List it with list_files.')
    if (entry.size or 0) > MAX_READ_BYTES:
        raise SkillResourceLoadError(f'{path!r} is larger than {MAX_READ_BYTES:,} bytes.')
    return await workspace.read_bytes(real)


async def _listed(workspace: Workspace, folder: str) -> list[FileEntry]:
    try:
        return list(await workspace.list_dir(folder))
    except OSError:
        return []


def _entries_of(folder: Path, name: str) -> list[tuple[str, bool, int | None]]:
    """The entries of a folder of a skill. No link in it is followed."""
    steps = () if name == '.' else tuple(name.split('/'))
    try:
        with OpenFolder.beneath(str(folder), steps) as opened:
            entries = [(entry, entry.stat(follow_symlinks=False)) for entry in opened.entries()]
            return [(entry.name, entry.is_dir(follow_symlinks=False), status.st_size) for entry, status in entries]
    except OSError as error:
        raise SkillResourceLoadError(f'{name!r} cannot be listed: {reason(error)}.') from error


def _line(name: str, is_dir: bool, size: int | None) -> str:
    name = one_line(name)
    return f'{name}/' if is_dir else name if size is None else f'{name} ({size:,} bytes)'


def _reason(error: Exception) -> str:
    return reason(error) if isinstance(error, OSError) and error.strerror else str(error).rstrip('.')

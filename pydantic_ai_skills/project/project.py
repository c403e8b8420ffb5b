"""The skills of a project: the sources that `pyproject.toml` names, held to what `skills.lock` has."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.exceptions import SandboxUnavailableError, SkillRegistryError, SkillValidationError
from pydantic_ai_skills.execution import ScriptPolicy, SkillScriptExecutor
from pydantic_ai_skills.filesystem.atomic import replace_file
from pydantic_ai_skills.filesystem.user_dirs import expand_home
from pydantic_ai_skills.registries.base import LOCK_FILE, SkillRegistry
from pydantic_ai_skills.toolset.toolset import SkillsToolset
from pydantic_ai_skills.types.skill import FoundSkills

from .pyproject_toml import (
    ProjectSettings,
    ProjectSource,
    add_source,
    read_settings,
    read_table,
    remove_source,
    text_of,
)

if TYPE_CHECKING:
    from pydantic_ai_skills.execution import BubblewrapSkillScriptExecutor, LocalSkillScriptExecutor
    from pydantic_ai_skills.registries.git.registry import GitProgress, GitSkillsRegistry

__all__ = ('ProjectSource', 'SkillsProject')

PROJECT_FILE = 'pyproject.toml'
USUAL_PLACES = ('.claude/skills', '.agents/skills', 'skills')
"""Where skills are looked for when a project does not say; a later one wins."""

PATIENCE_S = 10.0
"""How long to wait for another process that writes to the project."""


class SkillsProject:
    """The skills that a project's `pyproject.toml` names, for its agents as for its command line.

    ```toml
    [tool.pydantic-ai-skills]
    directories = ["skills"]

    [[tool.pydantic-ai-skills.git]]
    url = "https://github.com/acme/skills"
    ref = "v1.2"
    path = "skills/pdf"
    ```

    ```python {test="skip"}
    from pydantic_ai import Agent

    from pydantic_ai_skills import SkillsProject

    agent = Agent('openai:gpt-5.2', toolsets=[SkillsProject.find().toolset()])
    ```
    """

    def __init__(self, root: str | Path) -> None:
        """Remember a project; its file is read on first use.

        Args:
            root: The folder of its `pyproject.toml`, which need not be there.
        """
        self.root = Path(root).absolute()
        self.file = self.root / PROJECT_FILE
        self.lock_file = self.root / LOCK_FILE

    @cached_property
    def settings(self) -> ProjectSettings:
        """What the file says about skills.

        Raises:
            SkillValidationError: The file is not TOML, or its table has something else in it than it can have.
        """
        return read_settings(self.file)

    @classmethod
    def find(cls, start: str | Path = '.') -> SkillsProject:
        """The project a folder belongs to: the nearest `pyproject.toml` that says something about skills.

        Where none does, it is the nearest folder that has a `pyproject.toml` or one of the usual places for skills, and
        else the folder itself. Folders above the git repository and above the user's home are not looked at.

        Raises:
            SkillValidationError: A file on the way is not TOML.
        """
        folders = list(_up_to_the_repository(Path(start).absolute()))
        files = (folder for folder in folders if (folder / PROJECT_FILE).is_file())
        for folder in files:
            if read_table(text_of(folder / PROJECT_FILE), label=str(folder / PROJECT_FILE)) is not None:
                return cls(folder)
        signs = (PROJECT_FILE, *USUAL_PLACES)
        return cls(next((folder for folder in folders if any((folder / sign).exists() for sign in signs)), folders[0]))

    # --- Its skills -----------------------------------------------------------------------------------------------

    @property
    def directories(self) -> list[Path]:
        """The directories of skills: those that are named, or of the usual places those that are there.

        With `directories = "standard"` they are those of `SkillsDirectory.standard()`.
        """
        named = self.settings.directories
        if named == 'standard':
            return [directory.path for directory in SkillsDirectory.standard(project=self.root)]
        if named is not None:
            return [self.root / expand_home(path) for path in named]
        return [self.root / path for path in USUAL_PLACES if (self.root / path).is_dir()]

    @property
    def sources(self) -> tuple[ProjectSource, ...]:
        """The git repositories it has skills from."""
        return self.settings.git

    def toolset(
        self,
        *,
        directories: Sequence[str | Path] | Literal['standard'] | None = None,
        registries: Sequence[SkillRegistry] | None = None,
        offline: bool = False,
        script_executor: SkillScriptExecutor | None = None,
        script_policy: ScriptPolicy | None = None,
        **options: Any,
    ) -> SkillsToolset[Any]:
        """A toolset with the project's skills, each git repository held to the lock file.

        Args:
            directories: Directories to use in place of all its sources, or `'standard'`.
            registries: More sources, which come before its own.
            offline: Whether to use only what was fetched before.
            script_executor: What runs scripts. When not given, a plain process for the project's own skills and a
                sandbox for those from git repositories that are not trusted; with `sandbox = true` one for all.
            script_policy: Whether a script is run; what the project says when not given.
            **options: As for `SkillsToolset`.

        Raises:
            SandboxUnavailableError: The project wants a sandbox, and none can be made.
        """
        settings = self.settings
        own = script_executor or self.executor(sandbox=settings.sandbox is True)
        if settings.catalog_budget is not None:
            options.setdefault('catalog_budget', settings.catalog_budget)
        return SkillsToolset(
            directories=self._directories(directories, own),
            registries=[*(registries or ()), *self._registries(offline, script_executor, own)]
            if directories is None
            else registries,
            script_policy=script_policy or settings.policy,
            **options,
        )

    def _directories(
        self, named: Sequence[str | Path] | Literal['standard'] | None, executor: SkillScriptExecutor
    ) -> list[SkillsDirectory]:
        depth = self.settings.max_depth
        if (self.settings.directories if named is None else named) == 'standard':
            # Who asks for the skills of a project by name trusts it.
            return SkillsDirectory.standard(
                project=self.root, trust=lambda _: True, max_depth=depth, script_executor=executor
            )
        paths = self.directories if named is None else named
        return [SkillsDirectory(path, max_depth=depth, script_executor=executor) for path in paths]

    def _registries(
        self, offline: bool, given: SkillScriptExecutor | None, own: SkillScriptExecutor
    ) -> list[SkillRegistry]:
        executor = given or own
        packages, strangers = self.settings.packages, [source for source in self.sources if not source.trusted]
        if given is None and self.settings.sandbox is None and (strangers or packages):
            # Without one, the default policy refuses such scripts, and says why.
            with suppress(SandboxUnavailableError):
                executor = self.executor(sandbox=True)
        registries: list[SkillRegistry] = [
            source.named(self.registry(source, offline=offline, script_executor=executor)) for source in self.sources
        ]
        if packages:
            from pydantic_ai_skills.registries.packages.registry import PackageSkillsRegistry

            trusted = self.settings.trusted_packages
            registries.append(PackageSkillsRegistry(packages=packages, trusted=trusted, script_executor=executor))
        return registries

    def executor(
        self, *, sandbox: bool, timeout: float | None = None, work_root: str | Path | None = None
    ) -> LocalSkillScriptExecutor | BubblewrapSkillScriptExecutor:
        """What runs scripts, with the timeout and the variables the project gives them.

        Args:
            sandbox: Whether to run them in a sandbox.
            timeout: Seconds a script may run, in place of what the project says.
            work_root: Where the files stay that scripts write.

        Raises:
            SandboxUnavailableError: No sandbox can be made here.
            SkillValidationError: The timeout or the name of a variable is not one.
        """
        from pydantic_ai_skills.execution import BubblewrapSkillScriptExecutor, LocalSkillScriptExecutor

        kind = BubblewrapSkillScriptExecutor if sandbox else LocalSkillScriptExecutor
        settings = self.settings
        try:
            return kind(timeout=timeout or settings.timeout, pass_env=settings.pass_env, work_root=work_root)
        except ValueError as error:
            raise SkillValidationError(str(error)) from None

    def registry(
        self,
        source: ProjectSource,
        *,
        locked: bool = True,
        offline: bool = False,
        script_executor: SkillScriptExecutor | None = None,
        progress: Callable[[GitProgress], None] | None = None,
    ) -> GitSkillsRegistry:
        """The registry of one of its sources.

        Args:
            source: The source, which need not be one of the project's yet.
            locked: Whether to serve only what the lock file has.
            offline: Whether to use only what was fetched before.
            script_executor: What runs its scripts.
            progress: Called during a fetch.

        Raises:
            ImportError: GitPython is not installed.
            SkillValidationError: The source is not one that can be used.
        """
        from pydantic_ai_skills.registries.git.registry import GitSkillsRegistry

        into = None if source.into is None else self._folder_for(source, source.into)
        return GitSkillsRegistry(
            Path(os.path.normpath(self.root / expand_home(source.url))) if source.is_local else source.url,
            ref=source.ref,
            path=source.path,
            trusted=source.trusted,
            token_env=source.token_env,
            ssh_key_file=source.ssh_key_file,
            target_dir=into,
            allowed_protocols=('https', 'ssh', *source.allow),
            locked=locked,
            lock_file=self.lock_file,
            offline=offline,
            script_executor=script_executor,
            progress=progress,
        )

    def is_locked(self, source: ProjectSource) -> bool:
        """Whether the lock file has skills of a source.

        Raises:
            SkillRegistryError: There is a lock file, and it cannot be read.
        """
        from pydantic_ai_skills.registries.lockfile import read_lock

        registry = self.registry(source)
        locked = [each for each in read_lock(self.lock_file) if (each.url, each.ref) == (registry.url, registry.ref)]
        return any(each.beneath(registry.path).skills for each in locked)

    def _folder_for(self, source: ProjectSource, into: str) -> Path:
        """Where a source's files go: in the project, and not where its own skills or those of another source are."""
        folder = Path(os.path.normpath(self.root / into))
        if not folder.is_relative_to(self.root) or folder == self.root:
            raise SkillValidationError(f'into = {into!r} is not a folder inside the project.')
        # One of the usual places is a directory of skills as soon as something is in it.
        usual = [self.root / path for path in USUAL_PLACES]
        for directory in self.directories if self.settings.directories is not None else usual:
            if _overlap(folder, directory):
                raise SkillValidationError(
                    f"into = {into!r} overlaps with the directory {str(directory)!r}, so a stranger's skills would be "
                    'taken for your own. Choose another folder.'
                )
        for other in self.sources:
            if other.into is None or (other.url, other.path) == (source.url, source.path):
                continue
            theirs = Path(os.path.normpath(self.root / other.into))
            if _overlap(folder, theirs):
                raise SkillValidationError(
                    f'into = {into!r} overlaps with that of {str(other)!r}, and each would remove what the other put '
                    'there. Choose another folder.'
                )
        return folder

    # --- Changing it ----------------------------------------------------------------------------------------------

    def add(self, source: ProjectSource, *, progress: Callable[[GitProgress], None] | None = None) -> SkillRegistry:
        """Fetch a source, and write it into `pyproject.toml` and the lock file.

        One with the same address and path is replaced, so that adding it with another ref changes the ref.

        Returns:
            Its registry, with the skills that were locked.

        Raises:
            SkillRegistryError: It cannot be fetched, or has no skills.
            SkillValidationError: It is not one that can be used, or the file cannot be edited.
        """
        registry = self.registry(source, locked=False, progress=progress)
        named = source.named(registry)
        found = _fetched(named)
        if not found.skills:
            why = ' '.join(problem.message for problem in found.problems[:3])
            below = f' below {source.path!r}' if source.path else ''
            raise SkillRegistryError(f'There are no skills in {registry.url}{below}. {why}'.rstrip())
        with self._writing():
            text = text_of(self.file)
            same = [n for n, other in enumerate(self.sources) if (other.url, other.path) == (source.url, source.path)]
            for index in reversed(same):
                text = remove_source(text, index, label=self.file.name)
            text = add_source(text, source.fields(), label=self.file.name)
            # Those that share its lines in the lock file are brought to the same commit.
            others = [self.registry(other, locked=False) for other in self._relatives(source)]
            for each in (*others, registry):
                each.lock(self.lock_file)
            self._save(text)
        return named

    def remove(self, source: ProjectSource) -> None:
        """Take a source out of `pyproject.toml` and the lock file. What was fetched stays in the cache.

        Raises:
            SkillRegistryError: There is a lock file, and it cannot be read.
            SkillValidationError: The file cannot be edited, or does not have the source.
        """
        self.is_locked(source)  # a lock file that cannot be edited is told before anything is written
        with self._writing():
            if source not in self.sources:
                raise SkillValidationError(f'{str(source)!r} is no source of this project.')
            self._save(remove_source(text_of(self.file), self.sources.index(source), label=self.file.name))

    def lock(self, source: ProjectSource, *, progress: Callable[[GitProgress], None] | None = None) -> SkillRegistry:
        """Fetch what a source has now and write it into the lock file.

        Raises:
            SkillRegistryError: It cannot be fetched.
        """
        registry = self.registry(source, locked=False, progress=progress)
        _fetched(registry)
        with self._writing():
            registry.lock(self.lock_file)
            self._prune()
        return source.named(registry)

    def _relatives(self, source: ProjectSource) -> list[ProjectSource]:
        return [
            other
            for other in self.sources
            if (other.url, other.ref) == (source.url, source.ref) and other.path != source.path
        ]

    @contextmanager
    def _writing(self) -> Generator[None]:
        """Read the file anew, for it may have been edited during a fetch, while no other process writes here."""
        from pydantic_ai_skills.filesystem.locks import only_one

        if not self.root.is_dir():
            raise SkillValidationError(f'There is no folder {str(self.root)!r} for the project.')
        with only_one(self.root, patience=PATIENCE_S):
            vars(self).pop('settings', None)
            yield

    def _save(self, text: str) -> None:
        replace_file(self.file, text.encode())
        del self.settings
        self._prune()

    def _prune(self) -> None:
        """Take what no source has any more out of the lock file."""
        from pydantic_ai_skills.registries.lockfile import LockedSource, prune_lock

        registries = [self.registry(source) for source in self.sources]

        def keep(locked: LockedSource, path: str) -> bool:
            return any(
                (registry.url, registry.ref) == (locked.url, locked.ref)
                and path in locked.beneath(registry.path).skills
                for registry in registries
            )

        prune_lock(self.lock_file, keep)


def _fetched(registry: SkillRegistry) -> FoundSkills:
    """What a registry has now.

    Raises:
        SkillRegistryError: That cannot be found out, even if it is known what it had before.
    """
    found = registry.find()
    failures = [problem.message for problem in found.problems if problem.code == 'source-failed']
    if failures:
        raise SkillRegistryError(' '.join(failures))
    return found


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def _up_to_the_repository(start: Path) -> Iterator[Path]:
    home = Path(os.path.expanduser('~'))
    for folder in (start, *start.parents):
        yield folder
        if (folder / '.git').exists() or folder == home:
            return

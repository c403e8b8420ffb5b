"""The skills of a project: the sources in `pyproject.toml`, pinned by `skills.lock`."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.directory.standard import PROJECT_FOLDERS
from pydantic_ai_skills.exceptions import SandboxUnavailableError, SkillRegistryError, SkillValidationError
from pydantic_ai_skills.execution import ScriptDecision, ScriptPolicy, SkillScriptExecutor
from pydantic_ai_skills.filesystem.atomic import replace_file
from pydantic_ai_skills.registries.address import open_source
from pydantic_ai_skills.registries.base import SkillRegistry
from pydantic_ai_skills.toolset.toolset import SkillsToolset
from pydantic_ai_skills.types.found_skills import FoundSkills

from . import pyproject_toml as toml
from .project_folder import ProjectFolder
from .pyproject_toml import ProjectSource
from .write_folder import folder_for, is_same_place

if TYPE_CHECKING:
    from pydantic_ai_skills.execution import BubblewrapSkillScriptExecutor, LocalSkillScriptExecutor
    from pydantic_ai_skills.registries.lockfile import LockedSource
    from pydantic_ai_skills.registries.progress import ProgressCallback
    from pydantic_ai_skills.registries.source import SourceRegistry

PATIENCE_S = 10.0
"""How many seconds to wait for another process that writes to the project."""


class SkillsProject(ProjectFolder):
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

    def toolset(
        self,
        *,
        directories: Sequence[str | Path] | Literal['standard'] | None = None,
        registries: Sequence[SkillRegistry] | None = None,
        offline: bool = False,
        read_only: bool = False,
        require: bool = True,
        script_executor: SkillScriptExecutor | None = None,
        script_policy: ScriptPolicy | None = None,
        **options: Any,
    ) -> SkillsToolset[Any]:
        """A toolset with the project's skills, pinned by the lock file.

        Args:
            directories: Directories to use instead of all its sources, or `'standard'`.
            registries: More sources, which come before its own.
            offline: Whether to use only what was fetched before.
            read_only: Whether the skills are only looked at: nothing is fetched and no script may run, so the project
                need not be trusted.
            require: Whether to leave out skills that lack what the project requires. Without that, they can be looked
                at, scanned and evaluated.
            script_executor: What runs scripts. By default a plain process for the project's own skills and a sandbox
                for repositories that are not trusted; with `sandbox = true` a sandbox for all.
            script_policy: Whether a script is run; the project's policy by default.
            **options: As for `SkillsToolset`.

        Raises:
            SandboxUnavailableError: The project requires a sandbox, and none can be made.
            SkillValidationError: The project, or a directory, is not trusted. `'standard'` raises nothing: only the
                user's own directories are used then.
        """
        settings = self.settings
        if read_only:
            offline, script_policy = True, _run_nothing
            script_executor = script_executor or self.executor(sandbox=False)
        else:
            self._check_use_of(directories)
        own = script_executor or self.executor(sandbox=settings.sandbox is True)
        if settings.catalog_budget is not None:
            options.setdefault('catalog_budget', settings.catalog_budget)
        has_sources = directories is None and self.is_trusted
        of_project = (
            self._registries(offline, script_executor, own, read_only=read_only, require=require) if has_sources else []
        )
        return SkillsToolset(
            directories=self._directories(directories, own, read_only=read_only),
            registries=[*(registries or ()), *of_project],
            script_policy=script_policy or settings.policy,
            **options,
        )

    def _check_use_of(self, directories: Sequence[str | Path] | Literal['standard'] | None) -> None:
        if directories is None:
            self.check_trusted()
        elif directories != 'standard':
            for directory in directories:
                self.check_directory(directory)

    def _directories(
        self,
        named: Sequence[str | Path] | Literal['standard'] | None,
        executor: SkillScriptExecutor,
        *,
        read_only: bool,
    ) -> list[SkillsDirectory]:
        depth = self.settings.max_depth
        if (self.settings.directories if named is None else named) == 'standard':
            standard = SkillsDirectory.standard(
                project=self.root,
                trust=lambda _: read_only or self.is_trusted,
                max_depth=depth,
                script_executor=executor,
            )
            return [directory for directory in standard if self._may_look_at(directory.path)]
        paths = self.directories if named is None else named
        return [SkillsDirectory(path, max_depth=depth, script_executor=executor) for path in paths]

    def _registries(
        self,
        offline: bool,
        given: SkillScriptExecutor | None,
        own: SkillScriptExecutor,
        *,
        read_only: bool,
        require: bool,
    ) -> list[SkillRegistry]:
        executor = given or own
        packages, strangers = self.settings.packages, [source for source in self.sources if not source.trusted]
        if given is None and self.settings.sandbox is None and (strangers or packages):
            # Without one, the default policy refuses such scripts, and says why.
            with suppress(SandboxUnavailableError):
                executor = self.executor(sandbox=True)
        registries: list[SkillRegistry] = [
            source.named(self.registry(source, offline=offline, require=require, script_executor=executor))
            for source in self.sources
        ]
        if packages:
            from pydantic_ai_skills.registries.packages.registry import PackageSkillsRegistry

            trusted = () if read_only else self.settings.trusted_packages
            registries.append(PackageSkillsRegistry(packages=packages, trusted=trusted, script_executor=executor))
        return registries

    def executor(
        self,
        *,
        sandbox: bool,
        timeout: float | None = None,
        read: Sequence[str | Path] = (),
        write: Sequence[str | Path] = (),
    ) -> LocalSkillScriptExecutor | BubblewrapSkillScriptExecutor:
        """An executor with the project's timeout and environment variables.

        Args:
            sandbox: Whether to run scripts in a sandbox.
            timeout: How many seconds a script may run; the project's setting by default.
            read: Folders and files that scripts in the sandbox may read.
            write: Those that they may change, too.

        Raises:
            SandboxUnavailableError: No sandbox can be made here.
            SkillValidationError: The timeout or the name of a variable is invalid.
        """
        from pydantic_ai_skills.execution import BubblewrapSkillScriptExecutor, LocalSkillScriptExecutor

        settings = self.settings
        timeout, pass_env = timeout or settings.timeout, settings.pass_env
        try:
            if sandbox:
                return BubblewrapSkillScriptExecutor(timeout=timeout, pass_env=pass_env, read=read, write=write)
            return LocalSkillScriptExecutor(timeout=timeout, pass_env=pass_env)
        except ValueError as error:
            raise SkillValidationError(str(error)) from None

    def registry(
        self,
        source: ProjectSource,
        *,
        locked: bool = True,
        offline: bool = False,
        require: bool = True,
        script_executor: SkillScriptExecutor | None = None,
        progress: ProgressCallback | None = None,
    ) -> SourceRegistry:
        """The registry of one of its sources.

        Args:
            source: The source, which need not be in the project yet.
            locked: Whether to serve only what the lock file pins.
            offline: Whether to use only what was fetched before.
            require: Whether to leave out skills that lack what the project and the source require.
            script_executor: What runs its scripts.
            progress: Called during a fetch.

        Raises:
            ImportError: A package that this kind of source needs is not installed.
            SkillValidationError: The source cannot be used, the project is not trusted, or the user has not bound its
                token to its host.
        """
        self.check_trusted()
        # A usual folder is a directory of skills as soon as something is in it.
        usual = [self.root / path for path in PROJECT_FOLDERS]
        skills = usual if self.settings.directories is None else self.directories
        into = folder_for(source, self.root, sources=self.sources, skills=skills) if source.into is not None else None
        settings = source.of_kind()
        if 'token_env' in settings:
            settings['token_env'] = self.token_env(source, offline=offline)
        return open_source(
            source.kind,
            self.local_path(source) if source.is_local else source.url,
            **settings,
            only=source.skills or None,
            trusted=source.trusted,
            target_dir=into,
            allowed_protocols=('https', 'ssh', *source.allow),
            locked=locked,
            lock_file=self.lock_file,
            require=self.required_of(source) if require else (),
            signers=self.signers_of(source),
            offline=offline,
            script_executor=script_executor,
            progress=progress,
        )

    def is_locked(self, source: ProjectSource) -> bool:
        """Whether the lock file pins skills of a source.

        Raises:
            SkillRegistryError: The lock file cannot be read.
        """
        from pydantic_ai_skills.registries.lockfile import read_lock

        registry = self.registry(source, offline=True)
        return any(_pinned(registry, locked) for locked in read_lock(self.lock_file))

    # --- Changing it ----------------------------------------------------------------------------------------------

    def add(self, source: ProjectSource, *, progress: ProgressCallback | None = None) -> SkillRegistry:
        """Fetch a source, and write it to `pyproject.toml` and the lock file.

        It replaces a source with the same address and path, so adding it with another ref changes the ref.

        Returns:
            Its registry, with the locked skills.

        Raises:
            SkillRegistryError: It cannot be fetched, or does not have the skills.
            SkillValidationError: It cannot be used, or the file cannot be edited.
        """
        registry = self.registry(source, locked=False, require=False, progress=progress)
        named = source.named(registry)
        _check_fetched(registry)
        found = named.find()
        missing = [problem.message for problem in found.problems if problem.code == 'skill-missing']
        if missing or not found.skills:
            raise SkillRegistryError(' '.join(missing) or _nothing_found(registry, found))
        with self._writing():
            text = self._text_with(source)
            # Sources that share its entry in the lock file move to the same commit.
            kin = [each for each in self.sources if _lock_key(each) == _lock_key(source)]
            others = [self.registry(each, locked=False, require=False) for each in kin if each.path != source.path]
            for each in (*others, registry):
                each.lock(self.lock_file)
            self._save(text)
        return named

    def _text_with(self, source: ProjectSource) -> str:
        text = toml.text_of(self.file)
        places = [n for n, other in enumerate(self._of_kind(source.kind)) if is_same_place(other, source)]
        for index in reversed(places[1:]):
            text = toml.remove_source(text, index, kind=source.kind)
        if not places:
            return toml.add_source(text, source.fields(), kind=source.kind)
        return toml.change_source(text, places[0], source.fields(), kind=source.kind)

    def _of_kind(self, kind: str) -> list[ProjectSource]:
        return [source for source in self.sources if source.kind == kind]

    def remove(self, source: ProjectSource, *, skill: str | None = None) -> None:
        """Remove a source from `pyproject.toml` and the lock file. What was fetched stays in the cache.

        Args:
            source: The source.
            skill: One of its `skills`, to remove only that one; the source goes with the last of them.

        Raises:
            SkillRegistryError: The lock file cannot be read.
            SkillValidationError: The file cannot be edited, or does not have the source.
        """
        self.is_locked(source)  # fails before anything is written if the lock file cannot be read
        with self._writing():
            if source not in self.sources:
                raise SkillValidationError(f'{str(source)!r} is not a source of this project.')
            kind, text = source.kind, toml.text_of(self.file)
            index = self._of_kind(kind).index(source)
            left = tuple(name for name in source.skills if name != skill) if skill else ()
            if left:
                fields = source.model_copy(update={'skills': left}).fields()
                self._save(toml.change_source(text, index, fields, kind=kind))
            else:
                self._save(toml.remove_source(text, index, kind=kind))

    def lock(self, source: ProjectSource, *, progress: ProgressCallback | None = None) -> SkillRegistry:
        """Fetch what a source has now, and pin it in the lock file.

        Raises:
            SkillRegistryError: It cannot be fetched.
        """
        registry = self.registry(source, locked=False, require=False, progress=progress)
        _check_fetched(registry)
        with self._writing():
            registry.lock(self.lock_file)
            self._prune()
        return source.named(registry)

    @contextmanager
    def _writing(self) -> Generator[None]:
        """Keep other processes from writing, and read the file again: it may have been edited during a fetch."""
        from pydantic_ai_skills.filesystem.locks import only_one

        if not self.root.is_dir():
            raise SkillValidationError(f'The folder of the project, {str(self.root)!r}, does not exist.')
        with only_one(self.root, patience=PATIENCE_S):
            vars(self).pop('settings', None)
            yield

    def _save(self, text: str) -> None:
        replace_file(self.file, text.encode())
        del self.settings
        self._prune()

    def _prune(self) -> None:
        """Remove from the lock file what no source has any more."""
        from pydantic_ai_skills.registries.lockfile import prune_lock

        registries = [self.registry(source, offline=True, require=False) for source in self.sources]
        for registry in registries:
            if registry.only is not None:
                registry.find()  # finds out which folders `only` leaves out
        prune_lock(self.lock_file, lambda locked, path: any(path in _pinned(each, locked) for each in registries))


def _lock_key(source: ProjectSource) -> tuple[str, str, str | None]:
    """What identifies a source in the lock file."""
    return source.kind, source.url, source.ref


def _pinned(registry: SourceRegistry, locked: LockedSource) -> Mapping[str, str]:
    """The skills of a registry that an entry of the lock file pins."""
    is_its_entry = (registry.kind, registry.url, registry.ref) == (locked.kind, locked.url, locked.ref)
    return locked.beneath(registry.path).without(registry.others).skills if is_its_entry else {}


def _nothing_found(registry: SourceRegistry, found: FoundSkills) -> str:
    """What was looked at, and why there is no skill in it."""
    below = f' below {registry.path!r}' if registry.path else ''
    errors = [problem for problem in found.problems if problem.severity == 'error']
    count = f'{len(errors)} SKILL.md, none of which can be loaded' if errors else '0 SKILL.md'
    looked = f'Looked in all folders{below}, hidden ones too, down to depth {SkillsDirectory.limits.scan_depth}'
    why = (f'{looked}; found {count}.', *(problem.message for problem in errors[:3]))
    return ' '.join((f'No skills found in {registry.url} at {(registry.commit or "")[:12]}.', *why))


def _check_fetched(registry: SourceRegistry) -> None:
    """Fetch what a registry has now. Raises a `SkillRegistryError` if that fails, whatever was fetched before."""
    failures = [problem.message for problem in registry.fetch_all().problems if problem.is_source_failure]
    if failures:
        raise SkillRegistryError(' '.join(failures))


def _run_nothing(*_: object) -> ScriptDecision:
    return 'deny'

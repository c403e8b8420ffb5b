"""Skills from git repositories: pinned, cached, and safe from what is in them."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection
from copy import copy
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.exceptions import SkillRegistryError, SkillValidationError
from pydantic_ai_skills.filesystem.user_dirs import expand_home, is_cache_named
from pydantic_ai_skills.registries.base import LOCK_FILE, FindingRegistry, failed
from pydantic_ai_skills.registries.lockfile import LockedSource, locked_source
from pydantic_ai_skills.registries.store import SourceStore, default_cache_dir
from pydantic_ai_skills.types.skill import FoundSkills, SkillProvenance

from .address import Protocol, check_path, check_protocols, check_ref, parse_address
from .background import keep_fresh
from .checkout import GitSource
from .options import GitCloneOptions, Selection, check_options
from .process import Git
from .progress import GitProgress, ProgressCallback
from .secrets import HostSecret, TokenSource, env_token
from .shown import ShownCheckout
from .target import TargetFolder

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

__all__ = ('GitCloneOptions', 'GitProgress', 'GitSkillsRegistry', 'ProgressCallback', 'default_cache_dir')

DEFAULT_TIMEOUT = 60.0
"""Seconds a fetch may take as a whole."""

DEFAULT_MAX_BYTES = 256 * 1024 * 1024
"""Bytes a fetch may bring."""


class GitSkillsRegistry(FindingRegistry):
    """Skills from a git repository.

    Nothing is fetched until the skills are needed. Then the commit is looked up, and the files of its skills, and no
    others, are fetched into a cache that all processes of the user share. With a full commit as `ref`, what is in the
    cache needs no network at all.

    ```python {test="skip"}
    from pydantic_ai_skills import GitSkillsRegistry, SkillsToolset

    registry = GitSkillsRegistry('https://github.com/anthropics/skills', path='skills', ref='main')
    toolset = SkillsToolset(registries=[registry])
    ```
    """

    url: str = ''
    """The address of the repository."""

    ref: str | None = None
    """The branch, tag or commit; `None` for the default branch."""

    path: str = ''
    """The folder in it to look for skills in."""

    def __init__(
        self,
        repo_url: str | os.PathLike[str],
        *,
        path: str = '',
        target_dir: str | Path | None = None,
        token: TokenSource | None = None,
        ssh_key_file: str | Path | None = None,
        clone_options: GitCloneOptions | None = None,
        ref: str | None = None,
        trusted: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
        offline: bool = False,
        allowed_protocols: Collection[Protocol] = ('https', 'ssh'),
        cache_dir: str | Path | None = None,
        validate: bool = True,
        max_depth: int | None = 3,
        script_executor: SkillScriptExecutor | None = None,
        token_env: str | None = None,
        token_user: str | None = None,
        locked: bool = False,
        lock_file: str | Path = LOCK_FILE,
        refresh_interval: float | None = None,
        progress: ProgressCallback | None = None,
        max_bytes: int = DEFAULT_MAX_BYTES,
        allow_unsafe_options: bool = False,
    ) -> None:
        """Remember a repository; it is fetched on first use.

        Args:
            repo_url: Its URL, without user or password.
            path: The folder in it to look for skills in; it may be a skill itself.
            target_dir: A folder to keep the files in, besides the cache. It has to be new, empty, or one of a registry;
                files you edit there are left as they are.
            token: A token for the host of an `https` URL, or a function that returns one. It is sent to no other host.
            ssh_key_file: The private key for an `ssh` URL.
            clone_options: More about how to fetch.
            ref: A branch, a tag or a full commit; the default branch when not given.
            trusted: Whether you vouch for the repository. Scripts of one you do not run in a sandbox only.
            timeout: Seconds a fetch may take as a whole.
            offline: Whether to use the cache only.
            allowed_protocols: How a repository may be reached: `'https'`, `'ssh'`, `'http'`, `'file'` for local ones.
            cache_dir: The cache; `PYDANTIC_AI_SKILLS_CACHE_DIR`, or the platform's place for it, when not given.
            validate: Whether to apply the Agent Skills rules beyond a usable name and description.
            max_depth: How deep below `path` to look for skills; `None` for no limit.
            script_executor: What runs the scripts; a `LocalSkillScriptExecutor` when not given.
            token_env: An environment variable that holds the token, read each time it is needed. `GITHUB_TOKEN` is for
                `github.com` only.
            token_user: The user name that goes with the token, for servers that want a particular one.
            locked: Whether to serve only what the lock file has; see `lock()`.
            lock_file: The lock file.
            refresh_interval: Seconds between two refreshes in the background, which begin with the first use.
            progress: Called with a `GitProgress` during a fetch, from another thread.
            max_bytes: How much a fetch may bring.
            allow_unsafe_options: Whether `clone_options` may hold what can make git run programs.

        Raises:
            ImportError: GitPython is not installed.
            SkillValidationError: The URL, ref, path or an option is none, or is not allowed.
        """
        address = parse_address(repo_url, check_protocols(allowed_protocols))
        if token is not None and token_env is not None:
            raise SkillValidationError('Give either token= or token_env=, not both.')
        if token_env is not None:
            token = env_token(token_env, address)
        secret = HostSecret(token, address, token_user) if token else None
        # A traceback may show what is in a variable.
        del token
        if find_spec('git') is None:
            raise ImportError("GitSkillsRegistry needs GitPython: pip install 'pydantic-ai-skills[git]'.")
        options = check_options(clone_options or GitCloneOptions(), allow_unsafe=allow_unsafe_options)
        if ref is not None and options.branch not in (None, ref):
            raise SkillValidationError(f'ref={ref!r} and branch={options.branch!r} in clone_options are not the same.')
        if timeout <= 0 or (refresh_interval is not None and refresh_interval <= 0):
            raise SkillValidationError('timeout and refresh_interval are seconds, more than 0.')
        self.url = address.url
        self.ref = check_ref(ref) or options.branch
        self.path = check_path(path)
        self.trusted = trusted
        self.locked = locked
        self.lock_file = Path(lock_file)
        self.refresh_interval = refresh_interval
        self.validate = validate
        self.max_depth = max_depth
        self.script_executor = script_executor
        sparse = tuple((clone_options or GitCloneOptions()).sparse_paths)
        selection = Selection(path=self.path, max_depth=max_depth, sparse_paths=sparse)
        cache = expand_home(cache_dir).absolute() if cache_dir is not None else default_cache_dir()
        self._source = GitSource(
            git=Git(
                address=address,
                allowed=check_protocols(allowed_protocols),
                secret=secret,
                ssh_key_file=None if ssh_key_file is None else expand_home(ssh_key_file).absolute(),
                config=options.config,
                env=options.env,
                max_bytes=max_bytes,
                progress=progress,
            ),
            ref=self.ref,
            selection=selection,
            options=options,
            store=SourceStore(
                cache,
                url=address.url,
                selection=repr(selection),
                name=address.name,
                # Who names a place decides who can reach it: an image is built by one user and run by another.
                shared=cache_dir is not None or is_cache_named(),
            ),
            target=None if target_dir is None else TargetFolder(expand_home(target_dir).absolute()),
            timeout=timeout,
            offline=offline,
        )
        self._begin()

    def _begin(self) -> None:
        self._shown: ShownCheckout | None = None
        self._failed: FoundSkills | None = None
        self._working = threading.Lock()
        self._stop_refreshing = threading.Event()
        self._is_refreshing = False

    def __repr__(self) -> str:
        about = ''.join(f', {name}={value!r}' for name, value in (('path', self.path), ('ref', self.ref)) if value)
        return f'GitSkillsRegistry({self.url!r}{about})'

    @property
    def commit(self) -> str | None:
        """The commit its skills are from; `None` before the first look."""
        return self._shown.commit if self._shown else None

    @property
    def latest(self) -> FoundSkills | None:
        """What it has now, without any work."""
        return self._shown.found if self._shown else self._failed

    def find(self) -> FoundSkills:
        """The skills and problems. The first time, and only then, the server may be asked."""
        self._refresh_in_background()
        if self._shown is None and self._failed is None:
            with self._working:
                if self._shown is None and self._failed is None:
                    self._update()
        return self._shown.look() if self._shown else self._failed or FoundSkills()

    def refresh(self) -> FoundSkills:
        """Ask the server which commit the ref is now, and fetch what has changed. On failure the last skills stay."""
        with self._working:
            self._update()
        return self.find()

    def lock(self, path: str | Path | None = None) -> Path:
        """Write down which commit and content each skill has now, for `locked=True` to hold them to.

        What the file says about other sources stays. With `locked=True`, what the server has now is fetched first.

        Args:
            path: The lock file; `lock_file` when not given.

        Raises:
            SkillRegistryError: The skills cannot be fetched, or the file is there and is no lock file.
        """
        path = path or self.lock_file
        if not self.locked:
            return super().lock(path)
        written = self._unlocked().lock(path)
        self.refresh()
        return written

    def locked_source(self) -> LockedSource:
        """What the lock file says about it, about the skills below its `path`.

        Raises:
            SkillRegistryError: It says nothing about it, or cannot be read.
        """
        return locked_source(self.lock_file, kind='git', url=self.url, ref=self.ref).beneath(self.path)

    def remote_commit(self) -> str:
        """Ask the server which commit the ref is now, and fetch nothing.

        Raises:
            SkillRegistryError: The server cannot be asked, or has no such ref.
        """
        return self._source.remote_commit()

    def _unlocked(self) -> GitSkillsRegistry:
        other = copy(self)
        other.locked = False
        other._begin()  # noqa: SLF001 - it is one of us
        return other

    def close(self) -> None:
        """Stop refreshing in the background."""
        self._stop_refreshing.set()

    def _refresh_in_background(self) -> None:
        if self.refresh_interval is not None and not self._is_refreshing:
            self._is_refreshing = True
            keep_fresh(self, self.refresh_interval, self._stop_refreshing)

    def _update(self) -> None:
        """Check out what is wanted now; on failure, note why and keep what there is."""
        try:
            lock = self.locked_source() if self.locked else None
            checkout = self._source.check_out(lock)
        except SkillRegistryError as error:
            self._fail(error)
            return
        shown = self._shown.updated(checkout, lock) if self._shown else None
        if shown is None:
            directory = SkillsDirectory(
                checkout.root / self.path,
                validate=self.validate,
                max_depth=self.max_depth,
                script_executor=self.script_executor,
            )
            about = SkillProvenance(kind='git', url=self.url, ref=self.ref, trusted=self.trusted)
            shown = ShownCheckout(checkout, directory, about=about, label=repr(self), lock=lock)
            shown.look()
        self._shown, self._failed = shown, None

    def _fail(self, error: SkillRegistryError) -> None:
        shown = self._shown
        if shown is None:
            self._failed = failed(self, error, None)
        else:
            self._shown = shown.updated(replace(shown.checkout, failure=str(error)), shown.lock)

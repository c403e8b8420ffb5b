"""Skills from git repositories: pinned, cached, and protected from hostile content."""

from __future__ import annotations

import os
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.execution.base import as_executor
from pydantic_ai_skills.filesystem.user_dirs import default_cache_dir, expand_home, is_cache_named
from pydantic_ai_skills.registries.base import LOCK_FILE
from pydantic_ai_skills.registries.checkout import Checkout
from pydantic_ai_skills.registries.fetched import FetchedRegistry
from pydantic_ai_skills.registries.lockfile import LockedSource
from pydantic_ai_skills.registries.store import SourceStore
from pydantic_ai_skills.registries.target import TargetFolder

from .address import GitAddress, GitProtocol, check_path, check_protocols, check_ref, parse_address
from .options import GitCloneOptions, Selection, check_options
from .process import Git
from .progress import ProgressCallback
from .secrets import HostSecret, TokenSource, env_token
from .source import GitSource

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

DEFAULT_TIMEOUT = 60.0
"""Seconds a whole fetch may take."""

DEFAULT_MAX_BYTES = 256 * 1024 * 1024
"""Bytes a fetch may bring."""


class GitSkillsRegistry(FetchedRegistry):
    """Skills from a git repository.

    Nothing is fetched until the skills are needed. Then the commit is looked up, and only the files of its skills are
    fetched, into a cache that all processes of the user share. With a full commit as `ref`, a cached repository needs
    no network at all.

    ```python {test="skip"}
    from pydantic_ai_skills import GitSkillsRegistry, SkillsToolset

    registry = GitSkillsRegistry('https://github.com/anthropics/skills', path='skills', ref='main')
    toolset = SkillsToolset(registries=[registry])
    ```
    """

    kind = 'git'

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
        only: str | Collection[str] | None = None,
        trusted: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
        offline: bool = False,
        allowed_protocols: Collection[GitProtocol] = ('https', 'ssh'),
        cache_dir: str | Path | None = None,
        validate: bool = True,
        max_depth: int | None = None,
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
            repo_url: Its URL, without user or password, or `owner/repository` for one on GitHub.
            path: The folder in it to look for skills in; it may be a skill itself.
            target_dir: A folder to keep the files in, besides the cache. It has to be new, empty, or written by a
                registry; files you edit there are left alone.
            token: A token for the host of an `https` URL, or a function that returns one. It is sent to no other host.
            ssh_key_file: The private key for an `ssh` URL.
            clone_options: More options of the fetch.
            ref: A branch, a tag or a full commit; the default branch when not given.
            only: The names of the skills to offer, as the repository has them; all of them when not given.
            trusted: Whether you vouch for the repository. Otherwise its scripts run only in a sandbox.
            timeout: Seconds a whole fetch may take.
            offline: Whether to use the cache only.
            allowed_protocols: How a repository may be reached: `'https'`, `'ssh'`, `'http'`, `'file'` for local ones.
            cache_dir: The cache; `PYDANTIC_AI_SKILLS_CACHE_DIR`, or the platform's place for it, when not given.
            validate: Whether to apply the Agent Skills rules beyond a usable name and description.
            max_depth: How deep below `path` to look for skills, in hidden folders such as `skills/.curated` too; 32
                levels when not given.
            script_executor: What runs the scripts; a `LocalSkillScriptExecutor` when not given.
            token_env: An environment variable that holds the token, read each time it is needed. `GITHUB_TOKEN` is for
                `github.com` only.
            token_user: The user name that goes with the token, for servers that want a particular one.
            locked: Whether to offer only what the lock file pins; see `lock()`.
            lock_file: The lock file.
            refresh_interval: Seconds between refreshes in the background, which start with the first use.
            progress: Called with a `GitProgress` during a fetch, from another thread.
            max_bytes: How many bytes a fetch may bring.
            allow_unsafe_options: Whether `clone_options` may hold what can make git run programs.

        Raises:
            ImportError: GitPython is not installed.
            SkillValidationError: The URL, ref, path or an option is invalid or not allowed.
        """
        protocols = check_protocols(allowed_protocols)
        address = parse_address(repo_url, protocols)
        secret = _secret(address, token, token_env, token_user)
        # A traceback may show the values of variables.
        del token
        if find_spec('git') is None:
            raise ImportError("GitSkillsRegistry needs GitPython: pip install 'pydantic-ai-skills[git]'.")
        if timeout <= 0 or (refresh_interval is not None and refresh_interval <= 0):
            raise SkillValidationError('timeout and refresh_interval must be more than 0 seconds.')
        clone_options = clone_options or GitCloneOptions()
        options = check_options(clone_options, allow_unsafe=allow_unsafe_options)
        self.url = address.url
        self.ref = _one_ref(ref, options.branch)
        self.path = check_path(path)
        self.only = None if only is None else (only,) if isinstance(only, str) else tuple(dict.fromkeys(only))
        self.trusted = trusted
        self.locked = locked
        self.lock_file = Path(lock_file)
        self.refresh_interval = refresh_interval
        self.validate = validate
        self.max_depth = max_depth
        self.script_executor = as_executor(script_executor)
        selection = Selection(path=self.path, max_depth=max_depth, sparse_paths=tuple(clone_options.sparse_paths))
        self._source = GitSource(
            git=Git(
                address=address,
                allowed=protocols,
                secret=secret,
                ssh_key_file=_absolute(ssh_key_file),
                options=options,
                max_bytes=max_bytes,
                progress=progress,
            ),
            ref=self.ref,
            selection=selection,
            store=SourceStore(
                _absolute(cache_dir) or default_cache_dir(),
                kind=self.kind,
                url=address.url,
                selection=repr(selection),
                name=address.name,
                # A named cache may serve others than its writer: an image is built by one user and run by another.
                shared=cache_dir is not None or is_cache_named(),
            ),
            target=TargetFolder(folder) if (folder := _absolute(target_dir)) else None,
            timeout=timeout,
            offline=offline,
        )

    def __repr__(self) -> str:
        about = ''.join(f', {name}={value!r}' for name, value in (('path', self.path), ('ref', self.ref)) if value)
        return f'GitSkillsRegistry({self.url!r}{about})'

    def check_out(self, lock: LockedSource | None) -> Checkout:
        """Fetch the commit that is wanted now, or fall back to the cache."""
        return self._source.check_out(lock)

    def remote_commit(self) -> str:
        """Ask the server which commit the ref is now, without fetching it.

        Raises:
            SkillRegistryError: The server cannot be asked, or has no such ref.
        """
        return self._source.remote_commit()


def _secret(
    address: GitAddress, token: TokenSource | None, variable: str | None, user: str | None
) -> HostSecret | None:
    if token is not None and variable is not None:
        raise SkillValidationError('Give either token= or token_env=, not both.')
    if variable is not None:
        token = env_token(variable, address)
    return HostSecret(token, address, user, variable) if token else None


def _one_ref(ref: str | None, branch: str | None) -> str | None:
    if ref is not None and branch not in (None, ref):
        raise SkillValidationError(f'ref={ref!r} and branch={branch!r} in clone_options are not the same.')
    return check_ref(ref) or branch


def _absolute(path: str | Path | None) -> Path | None:
    return None if path is None else expand_home(path).absolute()

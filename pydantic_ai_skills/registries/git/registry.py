"""Skills from git repositories: pinned, cached, and protected from hostile content."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from typing_extensions import Unpack

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.registries.fetch_options import FetchOptions, FetchSettings, absolute
from pydantic_ai_skills.registries.fetched import FetchedRegistry
from pydantic_ai_skills.registries.secrets import TokenSource, host_secret

from .address import check_path, check_ref, parse_address
from .options import GitCloneOptions, Selection, check_options
from .process import Git
from .upstream import GitUpstream


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
        token: TokenSource | None = None,
        ssh_key_file: str | Path | None = None,
        clone_options: GitCloneOptions | None = None,
        ref: str | None = None,
        token_env: str | None = None,
        token_user: str | None = None,
        allow_unsafe_options: bool = False,
        **options: Unpack[FetchOptions],
    ) -> None:
        """Remember a repository; it is fetched on first use.

        Args:
            repo_url: Its URL, without user or password, or `owner/repository` for one on GitHub.
            path: The folder in it to look for skills in; it may be a skill itself.
            token: A token for the host of an `https` URL, or a function that returns one. It is sent to no other host.
            ssh_key_file: The private key for an `ssh` URL.
            clone_options: More options of the fetch.
            ref: A branch, a tag or a full commit; the default branch when not given.
            token_env: An environment variable that holds the token, read each time it is needed. `GITHUB_TOKEN` is for
                `github.com` only.
            token_user: The user name that goes with the token, for servers that want a particular one.
            allow_unsafe_options: Whether `clone_options` may hold what can make git run programs.
            **options: The options of all registries that fetch; see `FetchOptions`.

        Raises:
            ImportError: GitPython is not installed.
            SkillValidationError: The URL, ref, path or an option is invalid or not allowed.
        """
        settings = FetchSettings.of(self, options)
        protocols = settings.allowed_protocols - {'local'}
        address = parse_address(repo_url, protocols)
        secret = host_secret(address, token, token_env, token_user)
        # A traceback may show the values of variables.
        del token
        if find_spec('git') is None:
            raise ImportError("GitSkillsRegistry needs GitPython: pip install 'pydantic-ai-skills[git]'.")
        clone_options = clone_options or GitCloneOptions()
        fetch_options = check_options(clone_options, allow_unsafe=allow_unsafe_options)
        path = check_path(path)
        selection = Selection(path=path, max_depth=settings.max_depth, sparse_paths=tuple(clone_options.sparse_paths))
        git = Git(
            address=address,
            allowed=protocols,
            secret=secret,
            ssh_key_file=None if ssh_key_file is None else absolute(ssh_key_file),
            options=fetch_options,
            max_bytes=settings.max_bytes,
            progress=settings.progress,
        )
        upstream = GitUpstream(git=git, ref=_one_ref(ref, fetch_options.branch), selection=selection)
        self._fetch_from(upstream, settings, path=path, selection=repr(selection), name=address.name)


def _one_ref(ref: str | None, branch: str | None) -> str | None:
    if ref is not None and branch not in (None, ref):
        raise SkillValidationError(f'ref={ref!r} and branch={branch!r} in clone_options are not the same.')
    return check_ref(ref) or branch

"""Options of a fetch: which files, which arguments git gets, and which options are refused as unsafe."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic_ai_skills.exceptions import SkillValidationError

from .address import check_path, check_ref

SAFE_VARIABLES = {
    *('ALL_PROXY', 'HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'),
    *('GIT_SSL_CAINFO', 'GIT_SSL_CAPATH', 'SSH_AUTH_SOCK', 'SSL_CERT_DIR', 'SSL_CERT_FILE'),
    *('LANG', 'LC_ALL', 'TMPDIR', 'TZ'),
}
"""Variables that say how to reach a server. None makes git run or trust anything else."""

PASSED_ON = {'-4', '-6', '--ipv4', '--ipv6', '--no-tags', '--tags'}
"""Options of `git clone` that `git fetch` also has."""

PASSED_ON_WITH_VALUE = {'--filter', '--shallow-exclude', '--shallow-since'}

WITHOUT_EFFECT = {
    *('--bare', '--no-checkout', '--no-hardlinks', '--no-local', '--no-recurse-submodules', '--sparse', '-n'),
    *('--no-single-branch', '--single-branch'),
    *('--progress', '--quiet', '--verbose', '-q', '-v'),
}
"""Options that are the default here, or do not change which skills are found."""


@dataclass(frozen=True, kw_only=True)
class GitCloneOptions:
    """How to fetch a repository. By default one commit is fetched, and only the files of its skills."""

    depth: int | None = None
    """How many commits to fetch; one when not given, because skills need no history."""

    branch: str | None = None
    """The branch or tag; the same as `ref`."""

    single_branch: bool = False
    """Has no effect: other branches are never fetched."""

    sparse_paths: list[str] = field(default_factory=list[str])
    """Folders to fetch with everything in them, or patterns such as `teams/*/skills`; only skills when not given."""

    env: dict[str, str] = field(default_factory=dict[str, str])
    """Environment variables for git, such as `HTTPS_PROXY`."""

    multi_options: list[str] = field(default_factory=list[str])
    """Options as for `git clone` on the command line, such as `--shallow-since=2026-01-01`."""

    git_options: dict[str, Any] = field(default_factory=dict[str, Any])
    """The same as keywords: `{'shallow_since': '2026-01-01', 'no_tags': True}`."""


@dataclass(frozen=True, kw_only=True)
class FetchArguments:
    """The checked options: arguments for `git fetch`, git settings, and environment variables."""

    branch: str | None
    arguments: tuple[str, ...]
    config: dict[str, str]
    env: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which files of a commit are wanted."""

    path: str
    """The folder to look for skills in; empty for the whole repository."""

    max_depth: int | None
    """How deep below it to look; `None` for no limit."""

    sparse_paths: tuple[str, ...] = ()
    """Folders to take whole, in place of the skills."""

    def __post_init__(self) -> None:
        """Normalise the patterns."""
        cleaned = {check_path(path.strip('/').removesuffix('/**').removesuffix('/*')) for path in self.sparse_paths}
        object.__setattr__(self, 'sparse_paths', tuple(sorted(cleaned)))

    def is_sparse(self, path: str) -> bool:
        """Whether a file is below one of the sparse paths."""
        return any(
            not sparse or path == sparse or path.startswith(f'{sparse}/') or fnmatch.fnmatchcase(path, f'{sparse}/*')
            for sparse in self.sparse_paths
        )


def check_options(options: GitCloneOptions, *, allow_unsafe: bool) -> FetchArguments:
    """Check the options and translate them for `git fetch`. Unsafe ones are refused unless they are allowed."""
    _check_depth_and_env(options, allow_unsafe=allow_unsafe)
    branch = options.branch
    depth = options.depth or 1
    arguments: list[str] = []
    config: dict[str, str] = {}
    for name, value in _pairs([*options.multi_options, *_from_keywords(options.git_options)]):
        match name, value or '':
            case ('-b' | '--branch', given):
                branch = given
            case ('--depth', given) if given.isdecimal():
                depth = int(given)
            case ('-c' | '--config', given) if allow_unsafe and '=' in given:
                key, _, config[key] = given.partition('=')
            case _:
                arguments += _argument(name, value, allow_unsafe=allow_unsafe)
    if not any(argument.startswith(('--shallow', '--depth')) for argument in arguments):
        arguments.append(f'--depth={depth}')
    return FetchArguments(branch=check_ref(branch), arguments=tuple(arguments), config=config, env=dict(options.env))


def _check_depth_and_env(options: GitCloneOptions, *, allow_unsafe: bool) -> None:
    if options.depth is not None and options.depth < 1:
        raise SkillValidationError(f'depth must be 1 or more, not {options.depth}.')
    unsafe = [name for name in options.env if name.upper() not in SAFE_VARIABLES]
    if unsafe and not allow_unsafe:
        raise _refused(f'env variables {", ".join(sorted(unsafe))}')


def _argument(name: str, value: str | None, *, allow_unsafe: bool) -> list[str]:
    if name in WITHOUT_EFFECT:
        return []
    is_safe = name in PASSED_ON or (name in PASSED_ON_WITH_VALUE and value is not None)
    if not is_safe and not allow_unsafe:
        raise _refused(f'the option {name}')
    return [name if name in PASSED_ON or value is None else f'{name}={value}']


def _refused(what: str) -> SkillValidationError:
    return SkillValidationError(
        f'clone_options has {what}, which can make git run programs, trust another server or read other files. '
        'If you are sure, say so: allow_unsafe_options=True.'
    )


def _pairs(options: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Options with their values, written as `--name=value`, `--name value` or as two items."""
    name: str | None = None
    for word in (word for option in options for word in option.split(maxsplit=1)):
        if name is not None and not word.startswith('-'):
            yield name, word
            name = None
            continue
        if name is not None:
            yield name, None
        name, equals, value = word.partition('=')
        if not name.startswith('-'):
            raise SkillValidationError(f'{word!r} in clone_options is not an option.')
        if equals:
            yield name, value
            name = None
    if name is not None:
        yield name, None


def _from_keywords(keywords: dict[str, Any]) -> Iterator[str]:
    for keyword, value in keywords.items():
        name = f'-{keyword}' if len(keyword) == 1 else f'--{keyword.replace("_", "-")}'
        values = cast(list[Any], value) if isinstance(value, list) else [value]
        for one in values:
            if one is not False and one is not None:
                yield name if one is True else f'{name}={one}'

"""Options that all registries which fetch skills take, with the same meaning."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from typing_extensions import TypedDict

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.execution.base import as_executor
from pydantic_ai_skills.filesystem.user_dirs import expand_home

from .base import LOCK_FILE
from .progress import ProgressCallback
from .requirements import Requirement, check_requirements
from .signatures import SigstoreIdentity, SkillSigner, read_signers

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

FetchProtocol = Literal['https', 'ssh', 'http', 'file', 'local']
"""How a source may be reached. `'local'` allows addresses of this machine or of a private network."""

DEFAULT_TIMEOUT = 60.0
"""Seconds a whole fetch may take."""

DEFAULT_MAX_BYTES = 256 * 1024 * 1024
"""Bytes a whole fetch may transfer."""


class FetchOptions(TypedDict, total=False):
    """Options that all registries which fetch skills take."""

    only: str | Collection[str] | None
    """The names of the skills to offer, before any wrapper renames them; all of them when not given."""

    trusted: bool
    """Whether you vouch for the source. Otherwise its scripts run only in a sandbox."""

    timeout: float
    """Seconds a whole fetch may take; 60 by default."""

    offline: bool
    """Whether to use the cache only."""

    locked: bool
    """Whether to offer only what the lock file pins; see `lock()`."""

    lock_file: str | Path
    """The lock file; `skills.lock` by default."""

    require: Collection[Requirement]
    """What a skill must be to be offered: `'locked'`, `'signed'` by one of `signers`, `'scanned'`, `'evaluated'`, or
    several of these, each with its current content. The lock file records what was scanned and evaluated."""

    signers: Sequence[str | Path | SigstoreIdentity]
    """Who may sign skills: paths of public keys or certificates, and identities of Sigstore. A skill that anyone else
    has signed is left out."""

    cache_dir: str | Path | None
    """The cache; `PYDANTIC_AI_SKILLS_CACHE_DIR`, or the platform's place for it, when not given."""

    target_dir: str | Path | None
    """A folder to keep the files in, besides the cache. It has to be new, empty, or written by a registry; files you
    edit there are left alone."""

    max_bytes: int
    """How many bytes a fetch may transfer; 256 MiB by default."""

    allowed_protocols: Collection[FetchProtocol]
    """How the source may be reached: `'https'` and `'ssh'` by default. On request only: `'http'`, `'file'`, and
    `'local'` for addresses of this machine or of a private network."""

    validate: bool
    """Whether to apply the Agent Skills rules beyond a usable name and description; `True` by default."""

    max_depth: int | None
    """How deep to look for skills, in hidden folders such as `skills/.curated` too; 32 levels when not given."""

    script_executor: SkillScriptExecutor | None
    """What runs the scripts; a `LocalSkillScriptExecutor` when not given."""

    refresh_interval: float | None
    """Seconds between refreshes in the background, which start with the first use."""

    progress: ProgressCallback | None
    """Called with a `FetchProgress` during a fetch, from another thread."""


@dataclass(frozen=True, kw_only=True)
class FetchSettings:
    """The options with their defaults, checked and in the form in which they are used. `FetchOptions` explains them."""

    only: tuple[str, ...] | None = None
    trusted: bool = False
    timeout: float = DEFAULT_TIMEOUT
    offline: bool = False
    locked: bool = False
    lock_file: Path = Path(LOCK_FILE)
    require: tuple[Requirement, ...] = ()
    signers: tuple[SkillSigner, ...] = ()
    cache_dir: Path | None = None
    target_dir: Path | None = None
    max_bytes: int = DEFAULT_MAX_BYTES
    allowed_protocols: frozenset[str] = frozenset(('https', 'ssh'))
    validate: bool = True
    max_depth: int | None = None
    script_executor: SkillScriptExecutor | None = None
    refresh_interval: float | None = None
    progress: ProgressCallback | None = None

    @classmethod
    def of(cls, registry: object, options: FetchOptions) -> FetchSettings:
        """The settings that a registry was given.

        Raises:
            TypeError: There is no such option.
            SkillValidationError: An option has a value that makes no sense.
        """
        unknown = options.keys() - FetchOptions.__annotations__.keys()
        if unknown:
            raise TypeError(f'{type(registry).__name__} got an unexpected keyword argument {min(unknown)!r}')
        given: dict[str, Any] = {**options}
        for name, check in _CHECKS.items():
            if given.get(name) is not None:
                given[name] = check(given[name])
        return cls(**given)

    def __post_init__(self) -> None:
        if self.timeout <= 0 or (self.refresh_interval is not None and self.refresh_interval <= 0):
            raise SkillValidationError('timeout and refresh_interval must be more than 0 seconds.')
        if 'signed' in self.require and not self.signers:
            raise SkillValidationError("require=['signed'] needs signers=, the public keys or identities that count.")


def check_protocols(protocols: Collection[str]) -> frozenset[str]:
    """Check that all protocols are known."""
    unknown = set(protocols) - set(get_args(FetchProtocol))
    if unknown or isinstance(protocols, str):
        known = ', '.join(map(repr, get_args(FetchProtocol)))
        raise SkillValidationError(f'allowed_protocols takes a collection of {known}, not {protocols!r}.')
    return frozenset(protocols)


def require_protocol(protocol: str, allowed: Collection[str]) -> None:
    """Check that a source may be reached in this way.

    Raises:
        SkillValidationError: It may not; the message says how to allow it.
    """
    if protocol not in allowed:
        raise SkillValidationError(
            f'{protocol!r} is not among the allowed protocols {sorted(allowed)}. If you trust it, '
            f"say so: allowed_protocols=('{protocol}',); at the terminal: --allow {protocol}."
        )


def absolute(path: str | Path) -> Path:
    """A path that no longer depends on the current folder."""
    return expand_home(path).absolute()


_CHECKS: dict[str, Callable[[Any], Any]] = {
    'only': lambda names: (names,) if isinstance(names, str) else tuple(dict.fromkeys(names)),
    'lock_file': Path,
    'cache_dir': absolute,
    'target_dir': absolute,
    'allowed_protocols': check_protocols,
    'require': check_requirements,
    'signers': read_signers,
    'script_executor': as_executor,
}
"""Checks and converts the options that are not used exactly as given."""

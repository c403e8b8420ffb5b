"""What an agent spec, in YAML or JSON, says about skills: directories, git repositories, policies and executors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Required, TypeAlias, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.execution.policy import ScriptDecision, ScriptPolicy
from pydantic_ai_skills.toolset.view import SearchTool

from .on_demand import Disclosure

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor
    from pydantic_ai_skills.registries.base import SkillRegistry

__all__ = (
    'DirectorySpec',
    'ExecutorSpec',
    'GitSpec',
    'PolicySpec',
    'check_settings',
    'read_directories',
    'read_executor',
    'read_policy',
    'read_registries',
)

T = TypeVar('T')

_EXECUTORS = {
    'local': 'LocalSkillScriptExecutor',
    'bubblewrap': 'BubblewrapSkillScriptExecutor',
    'workspace': 'WorkspaceSkillScriptExecutor',
}

_STRICT = ConfigDict(extra='forbid')


@with_config(_STRICT)
class ExecutorOptions(TypedDict, total=False):
    """The settings of an executor that can be written down. Values of variables do not belong into a file."""

    timeout: float
    python_executable: str
    limits: dict[str, float | int | None]
    pass_env: list[str]
    skill_env: dict[str, list[str]]
    work_root: str
    cwd: Literal['script', 'work']
    network: bool
    read_only: list[str]


ExecutorSpec: TypeAlias = (
    Literal['local', 'bubblewrap', 'workspace'] | dict[Literal['local', 'bubblewrap', 'workspace'], ExecutorOptions]
)
"""`bubblewrap`, or `{bubblewrap: {timeout: 60}}`."""


@with_config(_STRICT)
class DirectorySpec(TypedDict, total=False):
    """A directory with settings of its own."""

    path: Required[str]
    validate: bool
    max_depth: int | None
    follow_links: bool
    disk_index: bool | str
    script_executor: ExecutorSpec


@with_config(_STRICT)
class GitSpec(TypedDict, total=False):
    """A git repository: the settings of `GitSkillsRegistry`, and which of its skills to take under which names."""

    git: Required[str]
    path: str
    ref: str
    trusted: bool
    timeout: float
    offline: bool
    allowed_protocols: list[Literal['https', 'ssh', 'http', 'file']]
    cache_dir: str
    target_dir: str
    ssh_key_file: str
    token_env: str
    token_user: str
    locked: bool
    lock_file: str
    refresh_interval: float
    max_bytes: int
    validate: bool
    max_depth: int | None
    script_executor: ExecutorSpec
    only: list[str]
    prefix: str
    rename: dict[str, str]


@with_config(_STRICT)
class PolicySpec(TypedDict, total=False):
    """The settings of `PathPolicy`."""

    read: dict[str, list[str]]
    write: dict[str, list[str]]
    otherwise: ScriptDecision
    inside: ScriptDecision


class PlainSettings(TypedDict):
    """The settings that mean in a spec what they mean in Python."""

    validate: bool
    max_depth: int | None
    id: str | None
    instruction_template: str | None
    exclude_tools: list[str] | None
    auto_reload: bool | Literal['watch']
    catalog_budget: int | None
    disk_index: bool | str
    pinned: list[str]
    search_tool: SearchTool
    trust: str | list[str] | None
    disclosure: Disclosure


def check_settings(**given: Any) -> dict[str, Any]:
    """The settings that need nothing but to be of the right kind: a file holds what somebody typed."""
    return _check(PlainSettings, given, 'SkillsCapability')


def read_directories(
    given: str | Sequence[str | DirectorySpec] | None, *, executor: SkillScriptExecutor | None, **defaults: Any
) -> list[SkillsDirectory] | Literal['standard'] | None:
    """The directories of a spec; what one does not say for itself, it has from the others."""
    if given is None:
        return None
    if given == 'standard':
        return 'standard'
    directories: list[SkillsDirectory] = []
    for entry in _entries(given, 'path', 'directories'):
        own = _check(DirectorySpec, entry, 'directories')
        own['script_executor'] = read_executor(own.get('script_executor')) or executor
        directories.append(SkillsDirectory(**(defaults | own)))
    return directories


def read_registries(
    given: str | Sequence[str | GitSpec] | None, *, executor: SkillScriptExecutor | None
) -> list[SkillRegistry] | None:
    """The registries of a spec. A text is the URL of a git repository."""
    if given is None:
        return None
    return [_git(entry, executor) for entry in _entries(given, 'git', 'registries')]


def _entries(given: object, key: str, what: str) -> list[Any]:
    """The entries of a list, or the one text that stands for a list of it; a text is the value of the key."""
    if not isinstance(given, str | list | tuple):
        kind = type(given).__name__
        raise SkillValidationError(f'`{what}` of a spec is a text or a list of texts and mappings, not {kind}.')
    entries = [given] if isinstance(given, str) else cast('Sequence[Any]', given)
    return [{key: entry} if isinstance(entry, str) else entry for entry in entries]


def _has_token(spec: object) -> bool:
    return isinstance(spec, dict) and 'token' in spec


def _git(spec: object, executor: SkillScriptExecutor | None) -> SkillRegistry:
    from pydantic_ai_skills.registries.git.registry import GitSkillsRegistry  # needs the extra `git`

    if _has_token(spec):
        raise SkillValidationError(
            'A token does not belong into a spec. Name the environment variable that holds it, as `token_env`.'
        )
    options = _check(GitSpec, spec, 'registries')
    url, only = options.pop('git'), options.pop('only', None)
    prefix, rename = options.pop('prefix', None), options.pop('rename', None)
    own = read_executor(options.pop('script_executor', None)) or executor
    registry: SkillRegistry = GitSkillsRegistry(url, **options, script_executor=own)
    if only is not None:
        registry = registry.filtered(lambda skill: skill.name in only)
    if prefix is not None:
        registry = registry.prefixed(prefix)
    return registry if rename is None else registry.renamed(rename)


def read_policy(given: ScriptDecision | PolicySpec | None) -> ScriptPolicy | None:
    """The policy of a spec: a decision for all scripts, or folders for the paths in the arguments of functions."""
    if given is None or isinstance(given, str):
        return given
    from pydantic_ai_skills.execution.path_policy import PathPolicy  # not needed where no paths are named

    return PathPolicy(**_check(PolicySpec, given, 'script_policy'))


def read_executor(given: ExecutorSpec | None) -> SkillScriptExecutor | None:
    """The executor of a spec."""
    if given is None:
        return None
    if isinstance(given, str):
        given = {given: {}}
    named: dict[str, Any] = {**given} if isinstance(cast(object, given), dict) else {type(given).__name__: {}}
    if len(named) != 1 or not named.keys() <= _EXECUTORS.keys():
        told = ', '.join(map(str, named)) or 'nothing'
        raise SkillValidationError(f'`script_executor` of a spec names one of {", ".join(_EXECUTORS)}, not {told}.')
    ((name, settings),) = named.items()
    options = _check(ExecutorOptions, settings, 'script_executor')
    if 'limits' in options:
        from pydantic_ai_skills.execution.limits import ScriptLimits  # not needed where there are no scripts

        options['limits'] = _make('limits', ScriptLimits, options['limits'])
    from pydantic_ai_skills import execution

    return _make('script_executor', getattr(execution, _EXECUTORS[name]), options)


def _make(what: str, make: type[T], options: dict[str, Any]) -> T:
    try:
        return make(**options)
    except TypeError as misfit:
        raise SkillValidationError(f'`{what}` of a spec {str(misfit).partition("() ")[2]}.') from misfit


def _check(kind: type, given: object, what: str) -> dict[str, Any]:
    try:
        return TypeAdapter[Any](kind).validate_python(given)
    except ValidationError as misfit:
        wrong = '; '.join(
            f'{".".join(str(step) for step in detail["loc"]) or "entry"}: {detail["msg"]}'
            for detail in misfit.errors(include_url=False, include_context=False, include_input=False)
        )
        # Without the cause, which quotes values: one may be a secret that was written into the wrong place.
        raise SkillValidationError(f'`{what}` of a spec does not fit. {wrong}.') from None

"""Reads the skills section of an agent spec: directories, git repositories, policies and executors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Required, TypeAlias, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.execution.gate import ScriptDecision, ScriptPolicy
from pydantic_ai_skills.toolset.options import PlainOptions

from .on_demand import Disclosure

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor
    from pydantic_ai_skills.registries.base import SkillRegistry

T = TypeVar('T')

_EXECUTORS = {
    'local': 'LocalSkillScriptExecutor',
    'bubblewrap': 'BubblewrapSkillScriptExecutor',
    'workspace': 'WorkspaceSkillScriptExecutor',
}

WorkspaceTools: TypeAlias = bool | Literal['allow']
"""Whether there are workspace tools; with `'allow'`, nobody is asked to approve commands."""

_STRICT = ConfigDict(extra='forbid')


@with_config(_STRICT)
class ExecutorOptions(TypedDict, total=False):
    """The settings of an executor in a spec. Values of environment variables do not belong in a file."""

    timeout: float
    python_executable: str
    limits: dict[str, float | int | None]
    pass_env: list[str]
    skill_env: dict[str, list[str]]
    cwd: Literal['work', 'script', 'skill']
    dependencies: Literal['uv']
    network: bool
    read: list[str]
    write: list[str]
    read_only: list[str]


ExecutorSpec: TypeAlias = (
    Literal['local', 'bubblewrap', 'workspace'] | dict[Literal['local', 'bubblewrap', 'workspace'], ExecutorOptions]
)
"""A name such as `bubblewrap`, or a mapping such as `{bubblewrap: {timeout: 60}}`."""


@with_config(_STRICT)
class DirectorySpec(TypedDict, total=False):
    """A directory with settings of its own."""

    path: Required[str]
    validate: bool
    max_depth: int | None
    follow_links: bool
    disk_index: bool | str
    trusted: bool
    script_executor: ExecutorSpec


class GitSource(BaseModel):
    """A git repository with skills: the settings that agent specs and `pyproject.toml` share."""

    model_config = ConfigDict(extra='forbid', frozen=True)

    url: str
    """Its address; in a project, a local path starts from the project's folder."""

    ref: str | None = None
    """A branch, a tag or a full commit; the default branch when not given."""

    path: str = ''
    """The folder in the repository to search for skills; it may be a skill itself."""

    prefix: str = ''
    """Put in front of the names of its skills."""

    trusted: bool = False
    """Whether you vouch for it, so that its scripts may run outside a sandbox."""

    token_env: str | None = None
    """The environment variable that holds its token."""

    ssh_key_file: str | None = None
    """The private key for an `ssh` address."""

    def named(self, registry: SkillRegistry) -> SkillRegistry:
        """Add the prefix to its registry, if there is one."""
        return registry.prefixed(self.prefix) if self.prefix else registry


_NOT_SET: Any = None


class GitSpec(GitSource):
    """A git repository in a spec: also the other settings of `GitSkillsRegistry`, and which skills to take."""

    url: str = Field(alias='git')
    timeout: float = _NOT_SET
    offline: bool = _NOT_SET
    allowed_protocols: list[Literal['https', 'ssh', 'http', 'file']] = _NOT_SET
    cache_dir: str = _NOT_SET
    target_dir: str = _NOT_SET
    token_user: str = _NOT_SET
    locked: bool = _NOT_SET
    lock_file: str = _NOT_SET
    refresh_interval: float = _NOT_SET
    max_bytes: int = _NOT_SET
    validate_: bool = Field(_NOT_SET, alias='validate')
    max_depth: int | None = _NOT_SET
    script_executor: ExecutorSpec = _NOT_SET
    only: list[str] | None = None
    rename: dict[str, str] | None = None

    def open(self, executor: SkillScriptExecutor | None) -> SkillRegistry:
        """Its registry, with the chosen skills under their new names. `executor` runs scripts unless it has its own."""
        from pydantic_ai_skills.registries.git.registry import GitSkillsRegistry  # needs the extra `git`

        options = self.model_dump(
            by_alias=True, exclude_unset=True, exclude={'url', 'prefix', 'rename', 'script_executor'}
        )
        own = read_executor(self.script_executor) or executor
        registry = self.named(GitSkillsRegistry(self.url, **options, script_executor=own))
        return registry if self.rename is None else registry.renamed(self.rename)


@with_config(_STRICT)
class PolicySpec(TypedDict, total=False):
    """The settings of `PathPolicy`."""

    read: dict[str, list[str]]
    write: dict[str, list[str]]
    otherwise: ScriptDecision
    inside: ScriptDecision


@with_config(_STRICT)
class SkillsSpec(PlainOptions, total=False):
    """The settings of skills in an agent spec."""

    directories: str | list[str | DirectorySpec] | None
    """`standard`, or paths, or mappings of a `path` and settings of `SkillsDirectory`."""

    registries: str | list[str | GitSpec] | None
    """URLs of git repositories, or mappings of the URL as `git`, settings of `GitSkillsRegistry`, and `only`, `prefix`
    and `rename`."""

    script_executor: ExecutorSpec | None
    """`local`, `bubblewrap` or `workspace`, or a mapping of one of them to its settings.

    It runs the scripts of all directories and registries without an executor of their own.
    """

    script_policy: ScriptDecision | PolicySpec | None
    """`allow`, `ask` or `deny`, or a mapping of settings of `PathPolicy`."""

    trust: list[str] | None
    """With `directories: standard`, the folders of the projects whose skills are used."""

    work_dir: str | None
    """The folder in which scripts start, read and write; a private one for each conversation by default."""

    disclosure: Disclosure
    """`tools` or `on-demand`."""

    workspace_tools: WorkspaceTools
    """Whether the model also gets a shell and files; `allow` if nobody has to approve its commands."""


_OWN_FORM = ('directories', 'registries', 'script_executor', 'script_policy')


def read_spec(given: SkillsSpec) -> dict[str, Any]:
    """Turn a spec into the options of `SkillsCapability`, or raise a `SkillValidationError`."""
    options: dict[str, Any] = {**_check(SkillsSpec, {**given, **dict.fromkeys(_OWN_FORM)}, 'SkillsCapability')}
    executor = read_executor(given.get('script_executor'))
    of_directories = {name: options[name] for name in ('validate', 'max_depth', 'disk_index') if name in options}
    return options | {
        'directories': read_directories(given.get('directories'), executor=executor, **of_directories),
        'registries': read_registries(given.get('registries'), executor=executor),
        'script_executor': executor,
        'script_policy': read_policy(given.get('script_policy')),
    }


def read_directories(
    given: str | Sequence[str | DirectorySpec] | None, *, executor: SkillScriptExecutor | None, **defaults: Any
) -> list[SkillsDirectory] | Literal['standard'] | None:
    """The directories of a spec. A setting that a directory leaves out has the value in `defaults`."""
    if given is None:
        return None
    if given == 'standard':
        return 'standard'
    directories: list[SkillsDirectory] = []
    for entry in _entries(given, 'path', 'directories'):
        own: dict[str, Any] = {**_check(DirectorySpec, entry, 'directories')}
        own['script_executor'] = read_executor(own.get('script_executor')) or executor
        directories.append(SkillsDirectory(**(defaults | own)))
    return directories


def read_registries(
    given: str | Sequence[str | GitSpec] | None, *, executor: SkillScriptExecutor | None
) -> list[SkillRegistry] | None:
    """The registries of a spec. A string is the URL of a git repository."""
    if given is None:
        return None
    entries = _entries(given, 'git', 'registries')
    if any(isinstance(entry, dict) and 'token' in entry for entry in entries):
        raise SkillValidationError(
            'A token does not belong in a spec. Name the environment variable that holds it, as `token_env`.'
        )
    return [_check(GitSpec, entry, 'registries').open(executor) for entry in entries]


def _entries(given: object, key: str, what: str) -> list[Any]:
    """The entries of a list as mappings: a string is the value of `key`, and may stand for a list of one."""
    if not isinstance(given, str | list | tuple):
        kind = type(given).__name__
        raise SkillValidationError(f'`{what}` of a spec is a text or a list of texts and mappings, not {kind}.')
    entries = [given] if isinstance(given, str) else cast('Sequence[Any]', given)
    return [{key: entry} if isinstance(entry, str) else entry for entry in entries]


def read_policy(given: ScriptDecision | PolicySpec | None) -> ScriptPolicy | None:
    """The policy of a spec: a decision for all scripts, or a `PathPolicy`."""
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
    options: dict[str, Any] = {**_check(ExecutorOptions, settings, 'script_executor')}
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


def _check(kind: type[T], given: object, what: str) -> T:
    try:
        return TypeAdapter[T](kind).validate_python(given)
    except ValidationError as misfit:
        # Without the cause, which quotes values: one may be a secret in the wrong place.
        raise SkillValidationError(f'`{what}` of a spec does not fit. {describe_misfit(misfit, kind)}.') from None


_NOT_A_LIST = ('sequence_str', 'frozen_set_type', 'is_instance_of', 'tuple_type', 'list_type')


def describe_misfit(error: ValidationError, *kinds: type) -> str:
    """Say what is wrong with settings without quoting values. `kinds` are the types of the settings, level by level."""
    wrong: dict[str, dict[str, None]] = {}
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        # Leave out what pydantic calls the alternatives of a union, such as `tuple[str, ...]`.
        steps = [str(step) for step in detail['loc'] if '[' not in str(step) and step not in ('bool', 'str')]
        message = detail['msg']
        if detail['type'] == 'extra_forbidden':
            message = f'is not a setting; there are {", ".join(_names(kinds[min(len(detail["loc"]), len(kinds)) - 1]))}'
        elif detail['type'] in _NOT_A_LIST:
            message = 'Input should be a list'
        wrong.setdefault('.'.join(steps) or 'entry', {})[message] = None
    return '; '.join(f'{place!r}: {" or ".join(messages)}' for place, messages in wrong.items())


def _names(kind: type) -> list[str]:
    if issubclass(kind, BaseModel):
        return [field.alias or name for name, field in kind.model_fields.items()]
    return list(kind.__annotations__)

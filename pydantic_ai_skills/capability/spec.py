"""Reads the skills section of an agent spec: directories, sources, policies and executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Required, Self, TypeAlias, TypeVar, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
    model_validator,
    with_config,
)
from pydantic_core import CoreSchema
from typing_extensions import TypedDict

from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.execution.gate import ScriptDecision, ScriptPolicy
from pydantic_ai_skills.registries.address import KINDS, SourceAddress, open_source, parse_source
from pydantic_ai_skills.registries.fetch_options import FetchProtocol
from pydantic_ai_skills.registries.requirements import Requirement
from pydantic_ai_skills.registries.signatures import SigstoreIdentity
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


_OF_KINDS = frozenset[str]().union(*(kind.settings for kind in KINDS.values()))
"""The settings that only some kinds of sources have."""


class SourceSettings(BaseModel):
    """A source of skills with an address: the settings that agent specs and `pyproject.toml` share."""

    model_config = ConfigDict(extra='forbid', frozen=True)

    kind: str = Field(default='git', exclude=True)
    """The kind of source; in files it is the key of the address, or the name of the table."""

    url: str
    """Its address; in a project, a local path starts from the project's folder."""

    ref: str | None = None
    """A branch, a tag or a full commit, or the digest of an archive; by default whatever the source has now."""

    path: str = ''
    """The folder in the source to search for skills; it may be a skill itself."""

    plugins: tuple[str, ...] = ()
    """The plugins of a marketplace to take; all of them when empty."""

    prefix: str = ''
    """Put in front of the names of its skills."""

    trusted: bool = False
    """Whether you vouch for it, so that its scripts may run outside a sandbox."""

    token_env: str | None = None
    """The environment variable that holds its token."""

    ssh_key_file: str | None = None
    """The private key for an `ssh` address."""

    require: tuple[Requirement, ...] = ()
    """What its skills must have to be offered: `locked`, `signed`, `scanned`, `evaluated`."""

    signers: tuple[str | SigstoreIdentity, ...] = ()
    """Who may sign its skills: files with public keys or certificates, or mappings of `identity` and `issuer`."""

    @classmethod
    def setting_names(cls) -> list[str]:
        """The names of the settings that people write: not the kind, which follows from the place."""
        return [field.alias or name for name, field in cls.model_fields.items() if name != 'kind']

    @model_validator(mode='after')
    def _fits_its_kind(self) -> Self:
        kind = KINDS[self.kind]
        for name in sorted(_OF_KINDS - kind.settings):
            if getattr(self, name) != type(self).model_fields[name].default:
                known = ', '.join(sorted(kind.settings)) or 'none'
                raise ValueError(f'{name!r} is not a setting of {self.kind!r} sources; those of this kind: {known}')
        return self

    def named(self, registry: SkillRegistry) -> SkillRegistry:
        """Add the prefix to its registry, if there is one."""
        return registry.prefixed(self.prefix) if self.prefix else registry

    def of_kind(self) -> dict[str, Any]:
        """The settings that only some kinds of sources have, if they are set."""
        return {name: value for name in KINDS[self.kind].settings if (value := getattr(self, name))}


_NOT_SET: Any = None


class SourceSpec(SourceSettings):
    """A source in a spec, with the options of its registry and which skills to take.

    The address is the value of its kind, as in `{git: https://github.com/acme/skills}`, or any address as `source`.
    """

    timeout: float = _NOT_SET
    offline: bool = _NOT_SET
    allowed_protocols: list[FetchProtocol] = _NOT_SET
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

    @classmethod
    def setting_names(cls) -> list[str]:
        """The names of the settings that people write: the address is the value of its kind."""
        return ['source', *KINDS, *(name for name in super().setting_names() if name != 'url')]

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler.resolve_ref_schema(handler(core_schema))
        properties = schema['properties']
        url = properties.pop('url')
        del properties['kind']
        address = {kind: {**url, 'title': kind} for kind in ('source', *KINDS)}
        return {**schema, 'properties': {**address, **properties}, 'required': []}

    @model_validator(mode='before')
    @classmethod
    def _read_address(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        settings = cast('dict[str, Any]', given)
        # The names of the fields are not settings: they follow from the address.
        kinds = [key for key in settings if key in KINDS or key in ('kind', 'url')]
        if len(kinds) == 1 and kinds[0] in KINDS and isinstance(url := settings[kinds[0]], str):
            rest = {name: value for name, value in settings.items() if name != kinds[0]}
            return {'kind': kinds[0], 'url': url, **rest}
        if isinstance(address := settings.get('source'), str) and not kinds:
            found = {name: value for name, value in parse_source(address)._asdict().items() if value}
            return {**found, **{name: value for name, value in settings.items() if name != 'source'}}
        raise ValueError(f'the address is the value of `source`, or of one of {", ".join(KINDS)}')

    def open(self, executor: SkillScriptExecutor | None) -> SkillRegistry:
        """Its registry, with the chosen skills under their new names. `executor` runs scripts unless it has its own."""
        shared = {'kind', 'url', 'prefix', 'rename', 'script_executor', *_OF_KINDS}
        options = self.model_dump(by_alias=True, exclude_unset=True, exclude=shared)
        if SourceAddress(self.kind, self.url).is_local:
            # Whoever names a folder allows it.
            options.setdefault('allowed_protocols', ('https', 'ssh', 'file'))
        own = read_executor(self.script_executor) or executor
        registry = self.named(open_source(self.kind, self.url, **self.of_kind(), **options, script_executor=own))
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

    registries: str | list[str | SourceSpec] | None
    """Addresses, as `open_registry` takes them, or mappings of the address as `source` or as its kind, such as `git`,
    settings of its registry, and `only`, `prefix` and `rename`."""

    script_executor: ExecutorSpec | None
    """`local`, `bubblewrap` or `workspace`, or a mapping of one of them to its settings.

    It runs the scripts of all directories and registries that do not name their own.
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
    given: str | Sequence[str | SourceSpec] | None, *, executor: SkillScriptExecutor | None
) -> list[SkillRegistry] | None:
    """The registries of a spec. A string is an address."""
    if given is None:
        return None
    entries = _entries(given, 'source', 'registries')
    if any(isinstance(entry, dict) and 'token' in entry for entry in entries):
        raise SkillValidationError(
            'A token does not belong in a spec. Name the environment variable that holds it, as `token_env`.'
        )
    return [_check(SourceSpec, entry, 'registries').open(executor) for entry in entries]


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


def describe_misfit(error: ValidationError, *kinds: type, places: Sequence[tuple[str, int]] = ()) -> str:
    """Say what is wrong with settings without quoting values.

    Args:
        error: What pydantic says.
        *kinds: The types of the settings, level by level.
        places: Where each of the `sources` stands: its kind, and its number among those of this kind.
    """
    wrong: dict[str, dict[str, None]] = {}
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        where = detail['loc']
        if where[:1] == ('sources',) and len(where) > 1:
            where = (*places[int(where[1])], *where[2:])
        # Leave out what pydantic calls the alternatives of a union, such as `tuple[str, ...]`.
        steps = [str(step) for step in where if '[' not in str(step) and step not in ('bool', 'str')]
        message = detail['msg'].removeprefix('Value error, ')
        if detail['type'] == 'extra_forbidden':
            message = f'is not a setting; there are {", ".join(_names(kinds[min(len(detail["loc"]), len(kinds)) - 1]))}'
        elif detail['type'] in _NOT_A_LIST:
            message = 'Input should be a list'
        wrong.setdefault('.'.join(steps) or 'entry', {})[message] = None
    return '; '.join(f'{place!r}: {" or ".join(messages)}' for place, messages in wrong.items())


def _names(kind: type) -> list[str]:
    if issubclass(kind, BaseModel):
        named: Callable[[], list[str]] | None = getattr(kind, 'setting_names', None)
        return named() if named else [field.alias or name for name, field in kind.model_fields.items()]
    return list(kind.__annotations__)

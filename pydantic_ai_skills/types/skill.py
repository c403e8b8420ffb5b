"""What a skill is: plain values with their decorators, wherever they come from and however they are shown."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypedDict, TypeVar

from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import Tool
from typing_extensions import Unpack

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.parsing import find_headings, parse_skill_text
from pydantic_ai_skills.parsing.rules import check_skill_name, normalize_skill_name
from pydantic_ai_skills.problems import SkillProblem

from .functions import DepsT, FunctionDecorator, FunctionOptions
from .items import SkillFiles, SkillResource, SkillScript

if TYPE_CHECKING:
    from pydantic_ai_skills.parsing import SkillHeader
    from pydantic_ai_skills.parsing.tool_specs import ToolSpec

    from .decorators import PlainToolDecorator, ToolDecorator

__all__ = (
    'DepsT',
    'FoundSkills',
    'Skill',
    'SkillFiles',
    'SkillOptions',
    'SkillProblem',
    'SkillProvenance',
    'SkillResource',
    'SkillScript',
    'SkillWrapper',
    'header_options',
    'normalize_skill_name',
)

ItemT = TypeVar('ItemT', SkillResource, SkillScript)


@dataclass(frozen=True, kw_only=True)
class SkillProvenance:
    """Where a skill that was fetched or installed came from, and exactly what it is."""

    kind: str
    """What kind of source it is, such as `'git'` or `'package'`."""

    url: str
    """The address of the source. It holds no credentials."""

    ref: str | None = None
    """The branch, tag or commit that was asked for; `None` for the default branch."""

    commit: str | None = None
    """The commit that was found."""

    path: str = ''
    """The skill's folder in the source."""

    content_hash: str | None = None
    """A hash of the names, modes and bytes of all its files, such as `'sha256:…'`."""

    trusted: bool = False
    """Whether the developer vouches for the source."""

    distribution: str | None = None
    """The installed distribution that has it."""

    version: str | None = None
    """The version of that distribution."""


class SkillOptions(TypedDict, total=False):
    """What a skill may have besides its name, its description and its instructions."""

    license: str | None
    """Its license."""

    compatibility: str | None
    """What it needs, such as a program or a network."""

    metadata: Mapping[str, Any] | None
    """Anything else."""

    resources: Iterable[SkillResource] | None
    """What the model can read."""

    scripts: Iterable[SkillScript] | None
    """What the model can run."""

    tools: Iterable[Tool[Any]] | None
    """Tools that the model has once the skill is loaded, under names that begin with the skill's."""

    allowed_tools: Iterable[str]
    """Tools whose calls are approved beforehand once the skill is loaded, such as `Bash(git add *)`."""

    disable_model_invocation: bool
    """Whether only a person may load it, by `toolset.invoke`: the model does not see it."""

    user_invocable: bool
    """Whether a person may load it by `toolset.invoke`."""

    model_settings: ModelSettings | None
    """Settings of the model for as long as the skill is loaded, where a `SkillsCapability` offers it."""


class Skill(Generic[DepsT]):
    """A skill: a name and description for the catalogue, instructions for when it is loaded, things to read and run.

    ```python
    from pydantic_ai_skills import Skill

    skill = Skill('greeting', 'Greets people. Use when somebody new arrives.', 'Say hello in their language.')


    @skill.script
    def greet(name: str) -> str:
        return f'Hello {name}'
    ```
    """

    __slots__ = (
        '_content',
        '_files',
        '_given_uri',
        '_headings',
        '_late',
        '_tools',
        'allowed_tools',
        'compatibility',
        'description',
        'disable_model_invocation',
        'license',
        'metadata',
        'model_settings',
        'name',
        'path',
        'source',
        'tool_specs',
        'user_invocable',
    )

    def __init__(
        self,
        name: str,
        description: str,
        content: str | Callable[[], str],
        *,
        license: str | None = None,
        compatibility: str | None = None,
        resources: Iterable[SkillResource] | None = None,
        scripts: Iterable[SkillScript] | None = None,
        uri: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        path: str | None = None,
        files: Callable[[], SkillFiles] | None = None,
        source: SkillProvenance | None = None,
        headings: str | None = None,
        late: bool = False,
        tools: Iterable[Tool[Any]] | None = None,
        tool_specs: tuple[ToolSpec, ...] = (),
        allowed_tools: Iterable[str] = (),
        disable_model_invocation: bool = False,
        user_invocable: bool = True,
        model_settings: ModelSettings | None = None,
    ) -> None:
        """Describe a skill.

        Args:
            name: Lower-case letters, digits and single hyphens; at most 64 characters.
            description: What it does and when to use it; the model chooses by this.
            content: The instructions, or a function that returns them, called once, on first use.
            license: Its license.
            compatibility: What it needs, such as a program or a network.
            resources: What the model can read.
            scripts: What the model can run.
            uri: Where the skill is kept, if the model should know; `skill://{name}` otherwise.
            metadata: Anything else.
            path: The folder it was read from, where there is one.
            files: Lists resources and scripts on first use, in place of `resources` and `scripts`.
            source: Where it was fetched from, if it was.
            headings: The headings of the instructions, one a line, for the search; found in `content` when not given.
            late: Whether `files` takes an import or other work that has to wait until the skill is used.
            tools: Tools that the model has once the skill is loaded, under names that begin with the skill's.
            tool_specs: The same, declared as scripts with typed arguments.
            allowed_tools: Tools whose calls are approved beforehand once the skill is loaded.
            disable_model_invocation: Whether only a person may load it, by `toolset.invoke`.
            user_invocable: Whether a person may load it by `toolset.invoke`.
            model_settings: Settings of the model for as long as the skill is loaded, where a `SkillsCapability`
                offers it.

        Raises:
            SkillValidationError: The name or the description does not follow the rules.
        """
        if not description.strip():
            raise SkillValidationError(f'Skill {name!r} needs a description: the model chooses skills by it.')
        self.name = check_skill_name(name)
        self.description = description
        self.license = license
        self.compatibility = compatibility
        self.metadata: dict[str, Any] = dict(metadata or {})
        self.path = path
        self.source = source
        self._given_uri = uri
        self._late = late
        self._content = content
        self._headings = headings
        self._tools = None if tools is None else list(tools)
        self.tool_specs = tool_specs
        self.allowed_tools = tuple(allowed_tools)
        self.disable_model_invocation = disable_model_invocation
        self.user_invocable = user_invocable
        self.model_settings = model_settings
        given = SkillFiles()
        for resource in resources or ():
            _add(given.resources, resource, self.name)
        for script in scripts or ():
            script.skill_name = script.skill_name or self.name
            _add(given.scripts, script, self.name)
        self._files = files or given

    @classmethod
    def from_text(cls, text: str, *, validate: bool = True) -> Skill[DepsT]:
        """Read a skill from the text of a `SKILL.md`.

        Args:
            text: Frontmatter between `---` lines, then the instructions.
            validate: Whether to apply the Agent Skills rules beyond a usable name and description.

        Raises:
            SkillValidationError: There is no usable name or description.
        """
        header, body, problems = parse_skill_text(text, validate=validate)
        if header is None:
            raise SkillValidationError(' '.join(problem.message for problem in problems))
        return cls(
            header.name,
            header.description,
            body,
            **header_options(header),
        )

    def __repr__(self) -> str:
        return f'{type(self).__name__}(name={self.name!r}, description={self.description!r})'

    def renamed(self, name: str) -> Skill[DepsT]:
        """The same skill under another name. It shares what it has with this one, which stays as it is.

        Raises:
            SkillValidationError: The name does not follow the rules.
        """

        def files() -> SkillFiles:
            own = self.files
            scripts = [script.of_skill(checked) for script in own.scripts]
            return replace(own, resources=list(own.resources), scripts=scripts)

        checked = check_skill_name(name)
        return Skill(
            checked,
            self.description,
            lambda: self.content,
            license=self.license,
            compatibility=self.compatibility,
            uri=self._given_uri,
            metadata=self.metadata,
            path=self.path,
            files=files,
            source=self.source,
            headings=self.headings,
            late=self._late,
            tools=self._tools,
            tool_specs=self.tool_specs,
            allowed_tools=self.allowed_tools,
            disable_model_invocation=self.disable_model_invocation,
            user_invocable=self.user_invocable,
            model_settings=self.model_settings,
        )

    @property
    def content(self) -> str:
        """The instructions, without the frontmatter."""
        if not isinstance(self._content, str):
            self._content = self._content()
        return self._content

    @property
    def files(self) -> SkillFiles:
        """The resources and scripts, and the problems found while listing them."""
        if not isinstance(self._files, SkillFiles):
            self._files = self._files()
            if self._files.tools:
                self.tools.extend(tool for tool in self._files.tools if tool not in self.tools)
        return self._files

    @property
    def resources(self) -> list[SkillResource]:
        """What the model can read."""
        return self.files.resources

    @property
    def scripts(self) -> list[SkillScript]:
        """What the model can run."""
        return self.files.scripts

    @property
    def headings(self) -> str:
        """The headings of the instructions, one a line, as far as they are known without reading anything."""
        if self._headings is not None:
            return self._headings
        return find_headings(self._content.encode(errors='ignore')) if isinstance(self._content, str) else ''

    @property
    def tools(self) -> list[Tool[Any]]:
        """Tools written in Python that the model has once the skill is loaded."""
        if self._tools is None:
            self._tools = []
        return self._tools

    @property
    def is_trusted(self) -> bool:
        """Whether it is the developer's own, or comes from a source that the developer vouches for."""
        return self.source is None or self.source.trusted

    @property
    def is_listed(self) -> bool:
        """Whether its files are known without asking the source for them."""
        return isinstance(self._files, SkillFiles)

    @property
    def is_late(self) -> bool:
        """Whether its files are not to be asked for before it is used."""
        return self._late and not self.is_listed

    @property
    def uri(self) -> str:
        """Where the skill is kept: as the developer gave it, or `skill://{name}`."""
        return self._given_uri or f'skill://{self.name}'

    @property
    def has_own_uri(self) -> bool:
        """Whether the developer gave the skill a URI, so that the catalogue shows it."""
        return self._given_uri is not None

    @property
    def resource(self) -> FunctionDecorator[DepsT]:
        """Decorator: what the function returns can be read as a resource of this skill."""
        return FunctionDecorator(self._add_resource)

    @property
    def script(self) -> FunctionDecorator[DepsT]:
        """Decorator: the function can be run as a script of this skill."""
        return FunctionDecorator(self._add_script)

    @property
    def tool(self) -> ToolDecorator[DepsT]:
        """Decorator: the function, which takes a `RunContext`, is a tool the model has once the skill is loaded."""
        from .decorators import ToolDecorator  # few skills have tools

        return ToolDecorator(self.tools.append)

    @property
    def tool_plain(self) -> PlainToolDecorator:
        """Decorator: the function, which takes no `RunContext`, is a tool the model has once the skill is loaded."""
        from .decorators import PlainToolDecorator  # few skills have tools

        return PlainToolDecorator(self.tools.append)

    def _add_resource(self, function: Callable[..., Any], options: FunctionOptions) -> None:
        schema = options.read_schema(function)
        name, description = options.name or function.__name__, options.description or schema.description
        resource = SkillResource(name, description=description, function=function, function_schema=schema)
        _add(self.resources, resource, self.name)

    def _add_script(self, function: Callable[..., Any], options: FunctionOptions) -> None:
        schema = options.read_schema(function)
        name, description = options.name or function.__name__, options.description or schema.description
        script = SkillScript(
            name, description=description, function=function, function_schema=schema, skill_name=self.name
        )
        _add(self.scripts, script, self.name)


def _add(items: list[ItemT], item: ItemT, skill_name: str) -> None:
    """Add a resource or script to those of a skill. It takes the place of one of the same name."""
    for other in [other for other in items if other.name == item.name]:
        message = f'{item.name!r} of skill {skill_name!r} is defined twice; the later one is used.'
        warnings.warn(message, UserWarning, stacklevel=4)
        items.remove(other)
    items.append(item)


class SkillWrapper(Skill[DepsT]):
    """What `@toolset.skill` makes of a function: the skill, to which resources, scripts and tools can be added.

    What is added after registration is visible to the model at its next request.
    """

    __slots__ = ('function',)

    def __init__(
        self,
        function: Callable[[], str],
        *,
        name: str | None = None,
        description: str | None = None,
        **options: Unpack[SkillOptions],
    ) -> None:
        """Make a skill of a function that returns its instructions.

        Args:
            function: Takes nothing, returns the instructions; called once, when they are first needed.
            name: The skill's name; made from the function's name when not given.
            description: What it does and when to use it; the function's docstring when not given.
            **options: The fields of `SkillOptions`: `license`, `compatibility`, `metadata`, `resources`, `scripts`,
                `tools`, `allowed_tools`, `disable_model_invocation`, `user_invocable` and `model_settings`.

        Raises:
            SkillValidationError: The name or description does not follow the rules, or the function takes arguments.
        """
        if inspect.iscoroutinefunction(function) or inspect.signature(function).parameters:
            raise SkillValidationError(
                f'The function {function.__name__!r} of a skill takes no arguments and is not async: it returns the '
                'instructions. What depends on the run belongs into a `.resource` or a `.script` of the skill.'
            )
        super().__init__(
            normalize_skill_name(function.__name__) if name is None else name,
            inspect.getdoc(function) or '' if description is None else description,
            function,
            **options,
        )
        self.function = function

    def to_skill(self) -> Skill[DepsT]:
        """The skill itself; what is added to it later shows here too."""
        return self


def header_options(header: SkillHeader) -> dict[str, Any]:
    """What the header of a `SKILL.md` says besides the name and the description, as parameters of a `Skill`."""
    return {
        'license': header.license,
        'compatibility': header.compatibility,
        'metadata': dict(header.metadata),
        'tool_specs': header.tools,
        'allowed_tools': header.allowed_tools,
        'disable_model_invocation': header.disable_model_invocation,
        'user_invocable': header.user_invocable,
    }


class FoundSkills(NamedTuple):
    """What a source has, as of one look at it. A look that finds nothing changed gives the same object again."""

    skills: tuple[Skill[Any], ...] = ()
    """The skills, each name once."""

    problems: tuple[SkillProblem, ...] = ()
    """What a person should know about them, and about those that were left out."""

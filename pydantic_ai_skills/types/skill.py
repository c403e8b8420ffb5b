"""What a skill is, wherever it comes from and however it is shown."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar

from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import Tool

from pydantic_ai_skills.exceptions import SkillScriptExecutionError, SkillValidationError
from pydantic_ai_skills.parsing import SkillHeader, find_headings, parse_skill_text
from pydantic_ai_skills.parsing.skill_names import check_skill_name
from pydantic_ai_skills.problems import SkillProblem

from .functions import DepsT, FunctionDecorator, FunctionOptions
from .provenance import SkillProvenance
from .resource import SkillResource
from .script import ImportedCode, SkillScript

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor
    from pydantic_ai_skills.filesystem.pinned import PinnedFolder
    from pydantic_ai_skills.parsing.tool_specs import ToolSpec

    from .decorators import PlainToolDecorator, ToolDecorator

ItemT = TypeVar('ItemT', SkillResource, SkillScript)


@dataclass(kw_only=True, slots=True)
class SkillFiles:
    """The resources and scripts of a skill, and what was found while listing them."""

    resources: list[SkillResource] = field(default_factory=list[SkillResource])
    """What can be read."""

    scripts: list[SkillScript] = field(default_factory=list[SkillScript])
    """What can be run."""

    problems: tuple[SkillProblem, ...] = ()
    """What a person should know about the files."""

    executor: SkillScriptExecutor | None = None
    """What runs programs in the skill's folder, if anything does."""

    tools_module: ImportedCode | None = None
    """The `tools.py` with typed tools in the skill's folder, if it has one."""

    tools: tuple[Tool[Any], ...] = ()
    """Typed tools that are known only once the files are listed."""


class SkillOptions(TypedDict, total=False):
    """The options that `Skill`, `SkillWrapper` and `@toolset.skill` share; `Skill` explains each of them."""

    license: str | None
    compatibility: str | None
    metadata: Mapping[str, Any] | None
    resources: Iterable[SkillResource] | None
    scripts: Iterable[SkillScript] | None
    tools: Iterable[Tool[Any]] | None
    allowed_tools: Iterable[str]
    disable_model_invocation: bool
    user_invocable: bool
    model_settings: ModelSettings | None


def _header_field(name: str) -> Any:
    """An attribute that reads a field of the skill's header; assigning to it replaces the header."""

    def assign(skill: Skill[Any], value: object) -> None:
        skill.header = skill.header._replace(**{name: value})

    return property(attrgetter(f'header.{name}'), assign)


class Skill(Generic[DepsT]):
    """A skill: a name and description for the catalog, instructions for when it is loaded, files to read and run.

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
        'header',
        'model_settings',
        'path',
        'pinned',
        'source',
    )

    name: str = _header_field('name')
    description: str = _header_field('description')
    license: str | None = _header_field('license')
    compatibility: str | None = _header_field('compatibility')
    metadata: dict[str, Any] = _header_field('metadata')
    allowed_tools: tuple[str, ...] = _header_field('allowed_tools')
    disable_model_invocation: bool = _header_field('disable_model_invocation')
    user_invocable: bool = _header_field('user_invocable')
    tool_specs: tuple[ToolSpec, ...] = _header_field('tool_specs')

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
        late: bool | ImportedCode = False,
        tools: Iterable[Tool[Any]] | None = None,
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
            path: The folder it was read from, if any.
            files: Lists resources and scripts on first use, instead of `resources` and `scripts`.
            source: Where it was fetched from, if it was.
            headings: The headings of the instructions, one a line, for the search; found in `content` when not given.
            late: Whether `files` needs work that has to wait until the skill is used; the code, if that imports it.
            tools: Tools that the model has once the skill is loaded, under names that begin with the skill's.
            allowed_tools: Tools that need no approval once the skill is loaded, such as `Bash(git add *)`.
            disable_model_invocation: Whether only a person may load it, by `toolset.invoke`: the model does not see it.
            user_invocable: Whether a person may load it by `toolset.invoke`.
            model_settings: Settings of the model while the skill is loaded, if a `SkillsCapability` offers it.

        Raises:
            SkillValidationError: The name or the description does not follow the rules.
        """
        if not description.strip():
            raise SkillValidationError(f'Skill {name!r} needs a description: the model chooses skills by it.')
        self.header = SkillHeader(
            name=check_skill_name(name),
            description=description,
            license=license,
            compatibility=compatibility,
            metadata=dict(metadata or {}),
            allowed_tools=tuple(allowed_tools),
            disable_model_invocation=disable_model_invocation,
            user_invocable=user_invocable,
        )
        self.path = path
        self.source = source
        self.model_settings = model_settings
        self.pinned: PinnedFolder | None = None
        """The files its folder has to hold, if a lock file pins them."""
        self._given_uri = uri
        self._late = late
        self._content = content
        self._headings = headings
        self._tools = None if tools is None else list(tools)
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
        return cls.from_header(header, body)

    @classmethod
    def from_header(cls, header: SkillHeader, content: str | Callable[[], str], **options: Any) -> Skill[DepsT]:
        """Make a skill from the header of its `SKILL.md`.

        Args:
            header: What the frontmatter says.
            content: The instructions, or a function that returns them, called once, on first use.
            **options: What is not in a header: `uri`, `path`, `files`, `source` and other options of `Skill`.
        """
        skill = cls(header.name, header.description, content, **options)
        skill.header = header
        return skill

    def __repr__(self) -> str:
        return f'{type(self).__name__}(name={self.name!r}, description={self.description!r})'

    def renamed(self, name: str) -> Skill[DepsT]:
        """The same skill under another name; it shares everything else with this one, which stays as it is.

        Raises:
            SkillValidationError: The name does not follow the rules.
        """

        def files() -> SkillFiles:
            own = self.files
            scripts = [script.of_skill(checked) for script in own.scripts]
            module = own.tools_module and own.tools_module.of_skill(checked)
            return replace(own, resources=list(own.resources), scripts=scripts, tools_module=module)

        checked = check_skill_name(name)
        renamed = Skill[DepsT].from_header(
            self.header._replace(name=checked, metadata=dict(self.metadata)),
            lambda: self.content,
            uri=self._given_uri,
            path=self.path,
            files=files,
            source=self.source,
            headings=self.headings,
            late=self._late if isinstance(self._late, bool) else self._late.of_skill(checked),
            tools=self._tools,
            model_settings=self.model_settings,
        )
        renamed.pinned = self.pinned
        return renamed

    @property
    def content(self) -> str:
        """The instructions, without the frontmatter."""
        if not isinstance(self._content, str):
            self._content = self._content()
        return self._content

    def read(self) -> tuple[SkillHeader, str]:
        """The header and the instructions that belong together. It may read the source; the skill stays as it is."""
        return self.header, self.content

    def check_unchanged(self) -> None:
        """Compare its folder with what a lock file pins, if one does, before each use. It reads every file.

        Raises:
            SkillScriptExecutionError: A file was changed, added or removed, or is a link now.
        """
        difference = self.pinned.difference() if self.pinned else None
        if difference is not None:
            raise SkillScriptExecutionError(
                f'Skill {self.name!r} is not what the lock file pins: {difference}. It cannot be used until its files '
                'are restored.'
            )

    @property
    def files(self) -> SkillFiles:
        """The resources and scripts, and the problems found while listing them."""
        if not isinstance(self._files, SkillFiles):
            self._files = self._list_files(self._files)
        return self._files

    def _list_files(self, files: Callable[[], SkillFiles]) -> SkillFiles:
        listed = files()
        self.tools.extend(tool for tool in listed.tools if tool not in self.tools)
        return listed

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
        """The headings of the instructions, one a line, if they are known without reading a file."""
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
        """Whether its files are listed already."""
        return isinstance(self._files, SkillFiles)

    @property
    def is_late(self) -> bool:
        """Whether its files must not be listed before it is used."""
        return bool(self._late) and not self.is_listed

    @property
    def imports(self) -> ImportedCode | None:
        """The code that is imported into this process when the skill is loaded, if there is any. It may list files."""
        return self.files.tools_module if isinstance(self._late, bool) else self._late

    @property
    def needs_import(self) -> bool:
        """Whether nothing but its name and description is known without importing its code."""
        return not isinstance(self._late, bool)

    @property
    def uri(self) -> str:
        """Where the skill is kept: the URI the developer gave, or `skill://{name}`."""
        return self._given_uri or f'skill://{self.name}'

    @property
    def has_own_uri(self) -> bool:
        """Whether the developer gave the skill a URI, so that the catalog shows it."""
        return self._given_uri is not None

    @property
    def resource(self) -> FunctionDecorator[DepsT]:
        """Decorator that makes what a function returns a resource of this skill."""
        return FunctionDecorator(self._add_resource)

    @property
    def script(self) -> FunctionDecorator[DepsT]:
        """Decorator that makes a function a script of this skill."""
        return FunctionDecorator(self._add_script)

    @property
    def tool(self) -> ToolDecorator[DepsT]:
        """Decorator for a tool the model has once the skill is loaded; the function takes a `RunContext`."""
        from .decorators import ToolDecorator  # few skills have tools

        return ToolDecorator(self.tools.append)

    @property
    def tool_plain(self) -> PlainToolDecorator:
        """Decorator for a tool the model has once the skill is loaded; the function takes no `RunContext`."""
        from .decorators import PlainToolDecorator  # few skills have tools

        return PlainToolDecorator(self.tools.append)

    def _add_resource(self, function: Callable[..., Any], options: FunctionOptions) -> None:
        _add(self.resources, SkillResource(**_described(function, options)), self.name)

    def _add_script(self, function: Callable[..., Any], options: FunctionOptions) -> None:
        _add(self.scripts, SkillScript(**_described(function, options), skill_name=self.name), self.name)


def _described(function: Callable[..., Any], options: FunctionOptions) -> dict[str, Any]:
    """The arguments that make a function a resource or a script."""
    schema = options.read_schema(function)
    name, description = options.name or function.__name__, options.description or schema.description
    return {'name': name, 'description': description, 'function': function, 'function_schema': schema}


def _add(items: list[ItemT], item: ItemT, skill_name: str) -> None:
    """Add a resource or script to a skill; it replaces one of the same name."""
    for other in [other for other in items if other.name == item.name]:
        message = f'{item.name!r} of skill {skill_name!r} is defined twice; the later one is used.'
        warnings.warn(message, UserWarning, stacklevel=4)
        items.remove(other)
    items.append(item)

"""What a skill is, wherever it comes from and however it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import Tool
from pydantic_ai.toolsets import AbstractToolset

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillScriptExecutionError, SkillValidationError
from pydantic_ai_skills.parsing.header import SkillHeader
from pydantic_ai_skills.parsing.skill_names import check_skill_name
from pydantic_ai_skills.problems import SkillProblem

from .attached import Attached, ItemT, SkillFiles, add_item, files_of
from .functions import DepsT
from .instructions import InstructionsFunction, WrittenInstructions, check_function, only_in_a_run
from .options import SkillOptions as SkillOptions
from .read_skills import ReadSkills
from .resource import SkillResource
from .script import ImportedCode, SkillScript

if TYPE_CHECKING:
    from pydantic_ai_skills.filesystem.pinned import PinnedFolder
    from pydantic_ai_skills.parsing.tool_specs import ToolSpec

    from .provenance import SkillProvenance


def _field(name: str, read: Callable[[Any], Any]) -> Any:
    """A field whose value is made when it is read. Assigning to the field calls the method `_assign`."""

    def assign(skill: Skill[Any], value: object) -> None:
        methodcaller('_assign', name, value)(skill)
        Skill.assignments += 1

    return property(read, assign)


def _header_field(name: str) -> Any:
    """A field that is kept in the skill's header."""
    return _field(name, attrgetter(f'header.{name}'))


@dataclass(init=False, repr=False, eq=False)
class Skill(Attached[DepsT], WrittenInstructions, ReadSkills):
    """A skill: a name and description for the catalog, instructions for when it is loaded, files to read and run.

    It behaves as a dataclass. What is assigned to a field is what the model sees at its next request.

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
        '_file_list',
        '_headings',
        '_tools',
        '_toolsets',
        'header',
        'known_files',
        'late',
        'model_settings',
        'own_uri',
        'path',
        'pinned',
        'source',
    )

    assignments: ClassVar[int] = 0
    """Counts assignments to the fields of all skills, so that code that shows skills knows when to look again."""

    name: str = _header_field('name')
    """Lower-case letters, digits and single hyphens; at most 64 characters."""

    description: str = _header_field('description')
    """What it does and when to use it; the model chooses by this."""

    content: str = _field('content', methodcaller('_get_content'))
    """The instructions, without the frontmatter."""

    license: str | None = _header_field('license')
    """Its license."""

    compatibility: str | None = _header_field('compatibility')
    """What it needs, such as a program or a network."""

    resources: list[SkillResource] = _field('resources', attrgetter('files.resources'))  # noqa: RUF009 - a property
    """What the model can read."""

    scripts: list[SkillScript] = _field('scripts', attrgetter('files.scripts'))  # noqa: RUF009 - a property
    """What the model can run."""

    uri: str = _field('uri', lambda skill: skill.own_uri or f'skill://{skill.name}')
    """Where the skill is kept: the URI the developer gave, or `skill://{name}`."""

    metadata: dict[str, Any] = _header_field('metadata')  # noqa: RUF009 - a property
    """Anything else."""

    path: str | None
    """The folder it was read from, if any."""

    source: SkillProvenance | None
    """Where it was fetched from, if it was."""

    tools: list[Tool[Any]] = _field('tools', methodcaller('_get_tools'))  # noqa: RUF009 - a property
    """Tools written in Python that the model has once the skill is loaded."""

    toolsets: list[AbstractToolset[Any]] = _field('toolsets', methodcaller('_get_toolsets'))  # noqa: RUF009 - property
    """Toolsets whose tools and instructions the model has once the skill is loaded."""

    allowed_tools: tuple[str, ...] = _header_field('allowed_tools')
    """Tools that need no approval once the skill is loaded, such as `Bash(git add *)`."""

    disable_model_invocation: bool = _header_field('disable_model_invocation')
    """Whether only a person may load it, by `toolset.invoke`: the model does not see it."""

    user_invocable: bool = _header_field('user_invocable')
    """Whether a person may load it by `toolset.invoke`."""

    model_settings: ModelSettings | None
    """Settings of the model while the skill is loaded, if a `SkillsCapability` offers it."""

    tool_specs: tuple[ToolSpec, ...] = _header_field('tool_specs')
    """The tools that its frontmatter declares."""

    pinned: PinnedFolder | None
    """The files its folder has to hold, if a lock file pins them."""

    files: SkillFiles = _field('files', methodcaller('_get_files'))  # noqa: RUF009 - a property
    """The resources and scripts, and the problems found while listing them."""

    late: bool | ImportedCode
    """Whether listing `files` has to wait until the skill is used; if that imports code, the code."""

    def __init__(
        self,
        name: str,
        description: str,
        content: str | InstructionsFunction[DepsT],
        license: str | None = None,
        compatibility: str | None = None,
        resources: Iterable[SkillResource] | None = None,
        scripts: Iterable[SkillScript] | None = None,
        uri: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        path: str | None = None,
        source: SkillProvenance | None = None,
        tools: Iterable[Tool[Any]] | None = None,
        toolsets: Iterable[AbstractToolset[Any]] | None = None,
        allowed_tools: Iterable[str] = (),
        disable_model_invocation: bool = False,
        user_invocable: bool = True,
        model_settings: ModelSettings | None = None,
        tool_specs: Iterable[ToolSpec] = (),
        pinned: PinnedFolder | None = None,
        files: SkillFiles | Callable[[], SkillFiles] | None = None,
        late: bool | ImportedCode = False,
        headings: str | None = None,
    ) -> None:
        """Describe a skill by its fields.

        `content` may be a function that returns the instructions, sync or async: one that takes a `RunContext` is
        called for each load, one without parameters once, on first use. `files` may be a function that lists the
        resources and scripts on first use, instead of `resources` and `scripts`. `headings` are those of the
        instructions, one per line, for the search; they are found in `content` when not given.

        Raises:
            SkillValidationError: The name or the description does not follow the rules.
        """
        self.header = SkillHeader(
            name=check_skill_name(name),
            description=_check_description(name, description),
            license=license,
            compatibility=compatibility,
            metadata=dict(metadata or {}),
            allowed_tools=tuple(allowed_tools),
            disable_model_invocation=disable_model_invocation,
            user_invocable=user_invocable,
            tool_specs=tuple(tool_specs),
        )
        self.path = path
        self.source = source
        self.model_settings = model_settings
        self.pinned = pinned
        self.late = late
        self.own_uri: str | None
        """The URI that the developer gave, which the catalog shows."""
        self.own_uri = None if uri == f'skill://{name}' else uri
        self._content = content
        if path is None and not isinstance(content, str):
            check_function(content, repr(getattr(content, '__name__', '')))
        self._headings = headings
        self._tools = None if tools is None else list(tools)
        self._toolsets = None if toolsets is None else list(toolsets)
        self._file_list = files if callable(files) else SkillFiles
        self.known_files = None if callable(files) else files or SkillFiles()
        """The files, if they are listed already."""
        if self.is_listed:
            self._assign('resources', resources or ())
            self._assign('scripts', scripts or ())

    @classmethod
    def from_header(cls, header: SkillHeader, content: Any, **options: Any) -> Self:
        """Make a skill from the header of its `SKILL.md`.

        Args:
            header: What the frontmatter says.
            content: The instructions, or a function that returns them.
            **options: What is not in a header: `uri`, `path`, `files`, `source` and other options of `Skill`.
        """
        skill = cls(header.name, header.description, content, **options)
        skill.header = header
        return skill

    def __repr__(self) -> str:
        return f'{type(self).__name__}(name={self.name!r}, description={self.description!r})'

    def renamed(self, name: str) -> Skill[DepsT]:
        """The same skill under another name, with the same instructions, files and tools. This one stays as it is.

        Raises:
            SkillValidationError: The name does not follow the rules.
        """
        checked = check_skill_name(name)
        return Skill[DepsT].from_header(
            self.header._replace(name=checked, metadata=dict(self.metadata)),
            self.writer or partial(getattr, self, 'content'),
            uri=self.own_uri,
            path=self.path,
            files=partial(files_of, self, checked),
            source=self.source,
            headings=self.headings,
            late=self.late if isinstance(self.late, bool) else self.late.of_skill(checked),
            tools=self._tools,
            toolsets=self._toolsets,
            model_settings=self.model_settings,
            pinned=self.pinned,
        )

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        # The header first: what comes last may have to be read from disk.
        return all(attrgetter(name)(self) == attrgetter(name)(other) for name in ('header', *_COMPARED))

    __hash__ = None  # pyright: ignore[reportAssignmentType] - as for any dataclass that can change

    def _assign(self, name: str, value: Any) -> None:
        """Store what is assigned to a field."""
        if name == 'content':
            self._content, self._headings = value, None
        elif name == 'files':
            self.known_files = value
        elif name in ('resources', 'scripts'):
            self.known_files = replace(self.files, **{name: self._own(value)})
        elif name == 'tools':
            self._tools = list(value)
        elif name == 'toolsets':
            self._toolsets = list(value)
        elif name == 'uri':
            self.own_uri = value
        else:
            self.header = self.header._replace(**{name: self._checked(name, value)})

    def _own(self, items: Iterable[ItemT]) -> list[ItemT]:
        """The resources or scripts, made part of this skill, each name once."""
        own: list[ItemT] = []
        for item in items:
            if isinstance(item, SkillScript):
                item.skill_name = item.skill_name or self.name
            add_item(own, item, self.name)
        return own

    def _checked(self, name: str, value: Any) -> Any:
        """A value for the header, checked against the rules of its field."""
        if name == 'description':
            return _check_description(self.name, value)
        if name == 'name':
            check_skill_name(value)
            for script in self.scripts if self.is_listed else ():
                script.skill_name = value if script.skill_name == self.name else script.skill_name
        return value

    def _get_content(self) -> str:
        if not isinstance(self._content, str):
            if self.writer is not None:
                raise SkillResourceLoadError(only_in_a_run(self))
            self._content = cast('Callable[[], str]', self._content)()
        return self._content

    def _get_files(self) -> SkillFiles:
        if self.known_files is None:
            listed = self._file_list()
            self.tools.extend(tool for tool in listed.tools if tool not in self.tools)
            self.known_files = listed
        return self.known_files

    def _get_tools(self) -> list[Tool[Any]]:
        if self._tools is None:
            self._tools = []
        return self._tools

    def _get_toolsets(self) -> list[AbstractToolset[Any]]:
        if self._toolsets is None:
            self._toolsets = []
        return self._toolsets

    def read(self) -> tuple[SkillHeader, str]:
        """The header and the instructions that belong together. It may read the source; the skill stays as it is."""
        return self.header, self.content

    def check_unchanged(self) -> None:
        """Compare its folder with what a lock file pins, if one does. Called before each use; reads every file.

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
    def problems(self) -> list[SkillProblem]:
        """What is wrong with its files, and with its text if it was made by `from_text` or `from_path`."""
        return list(self.files.problems)

    @property
    def headings(self) -> str:
        """The headings of the instructions, one per line, if they are known without reading a file."""
        if self._headings is not None:
            return self._headings
        if not isinstance(self._content, str):
            return ''
        from pydantic_ai_skills.parsing.skill_md import find_headings  # not needed before a search

        return find_headings(self._content.encode(errors='ignore'))

    @property
    def is_trusted(self) -> bool:
        """Whether it is the developer's own, or comes from a source that the developer vouches for."""
        return self.source is None or self.source.trusted

    @property
    def is_listed(self) -> bool:
        """Whether its files are listed already."""
        return self.known_files is not None

    @property
    def is_late(self) -> bool:
        """Whether its files must not be listed before it is used."""
        return bool(self.late) and not self.is_listed

    @property
    def imports(self) -> ImportedCode | None:
        """The code that is imported into this process when the skill is loaded, if there is any. It may list files."""
        return self.files.tools_module if isinstance(self.late, bool) else self.late

    @property
    def needs_import(self) -> bool:
        """Whether nothing but its name and description is known without importing its code."""
        return not isinstance(self.late, bool)


_COMPARED = ('path', 'source', 'uri', 'model_settings', 'late', '_text', 'resources', 'scripts', 'tools', 'toolsets')
"""What else makes two skills with the same header equal."""


def _check_description(name: str, description: str) -> str:
    if not description.strip():
        raise SkillValidationError(f'Skill {name!r} needs a description: the model chooses skills by it.')
    return description

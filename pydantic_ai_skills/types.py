"""What a skill is: plain values with their decorators, wherever they come from and however they are shown."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic

from pydantic_ai_skills.callables import DepsT, FunctionDecorator, FunctionOptions
from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.items import SkillFiles, SkillResource, SkillScript
from pydantic_ai_skills.parsing import parse_skill_text
from pydantic_ai_skills.parsing.rules import check_skill_name, normalize_skill_name
from pydantic_ai_skills.problems import SkillProblem

__all__ = (
    'DepsT',
    'FoundSkills',
    'Skill',
    'SkillFiles',
    'SkillProblem',
    'SkillProvenance',
    'SkillResource',
    'SkillScript',
    'SkillWrapper',
    'normalize_skill_name',
)


@dataclass(frozen=True, kw_only=True)
class SkillProvenance:
    """Where a skill that was fetched came from, and exactly what was fetched."""

    kind: str
    """What kind of source it is, such as `'git'`."""

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
        'compatibility',
        'description',
        'license',
        'metadata',
        'name',
        'path',
        'source',
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
        self._content = content
        self._files = files or SkillFiles(resources=list(resources or ()), scripts=list(scripts or ()))
        for script in scripts or ():
            script.skill_name = script.skill_name or self.name

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
            license=header.license,
            compatibility=header.compatibility,
            metadata=header.metadata,
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
            return SkillFiles(resources=list(own.resources), scripts=scripts, problems=own.problems)

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
    def is_listed(self) -> bool:
        """Whether its files are known without asking the source for them."""
        return isinstance(self._files, SkillFiles)

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

    def _add_resource(self, function: Callable[..., Any], options: FunctionOptions) -> None:
        schema = options.read_schema(function)
        name, description = options.name or function.__name__, options.description or schema.description
        self.resources.append(SkillResource(name, description=description, function=function, function_schema=schema))

    def _add_script(self, function: Callable[..., Any], options: FunctionOptions) -> None:
        schema = options.read_schema(function)
        name, description = options.name or function.__name__, options.description or schema.description
        self.scripts.append(
            SkillScript(name, description=description, function=function, function_schema=schema, skill_name=self.name)
        )


class SkillWrapper(Skill[DepsT]):
    """What `@toolset.skill` makes of a function: the skill, to which resources and scripts can be added.

    What is added after registration is visible to the model at its next request.
    """

    __slots__ = ('function',)

    def __init__(
        self,
        function: Callable[[], str],
        *,
        name: str | None = None,
        description: str | None = None,
        license: str | None = None,
        compatibility: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        resources: Iterable[SkillResource] | None = None,
        scripts: Iterable[SkillScript] | None = None,
    ) -> None:
        """Make a skill of a function that returns its instructions.

        Args:
            function: Takes nothing, returns the instructions; called once, when they are first needed.
            name: The skill's name; made from the function's name when not given.
            description: What it does and when to use it; the function's docstring when not given.
            license: Its license.
            compatibility: What it needs.
            metadata: Anything else.
            resources: What the model can read.
            scripts: What the model can run.

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
            license=license,
            compatibility=compatibility,
            metadata=metadata,
            resources=resources,
            scripts=scripts,
        )
        self.function = function

    def to_skill(self) -> Skill[DepsT]:
        """The skill itself; what is added to it later shows here too."""
        return self


@dataclass(frozen=True, slots=True)
class FoundSkills:
    """What a source has, as of one look at it. A look that finds nothing changed gives the same object again."""

    skills: tuple[Skill[Any], ...] = ()
    """The skills, each name once."""

    problems: tuple[SkillProblem, ...] = ()
    """What a person should know about them, and about those that were left out."""

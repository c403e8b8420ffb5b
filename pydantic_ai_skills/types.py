"""What a skill is: plain values with their decorators, wherever they come from and however they are shown."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, cast

import anyio.to_thread
from pydantic_ai.messages import BinaryContent
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.callables import DepsT, FunctionDecorator, FunctionOptions, FunctionSchema, call_function
from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillScriptExecutionError, SkillValidationError
from pydantic_ai_skills.files import SkillFolder, local_path, read_path
from pydantic_ai_skills.parsing import parse_skill_text
from pydantic_ai_skills.parsing.rules import check_skill_name, normalize_skill_name
from pydantic_ai_skills.problems import SkillProblem

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

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


class SkillResource:
    """Something a skill lets the model read: text, a file, or what a function returns."""

    def __init__(
        self,
        name: str,
        *,
        description: str | None = None,
        content: str | BinaryContent | None = None,
        function: Callable[..., Any] | None = None,
        takes_ctx: bool | None = None,
        function_schema: FunctionSchema | None = None,
        uri: str | None = None,
    ) -> None:
        """Describe a resource; one of `content`, `function` and `uri` is required.

        Args:
            name: What the model calls it, such as `references/api.md`.
            description: What it holds, for the model.
            content: The text itself; an empty string is content too.
            function: Called for each read, with the arguments the model gives.
            takes_ctx: Whether `function` takes a `RunContext` first; found out from its signature when not given.
            function_schema: The schema of `function`; made from its signature when not given.
            uri: A local file, as a path or a `file:` URI.

        Raises:
            SkillValidationError: The name is empty, or there is nothing to read.
        """
        if content is None and function is None and uri is None:
            raise SkillValidationError(f'Resource {name!r} needs one of `content`, `function` or `uri`.')
        self.name = _check_item_name(name, 'resource')
        self.description = description
        self.content = content
        self.function = function
        self.function_schema = _schema_of(function, takes_ctx, function_schema)
        self.uri = uri

    def __repr__(self) -> str:
        return f'{type(self).__name__}(name={self.name!r})'

    @property
    def takes_ctx(self) -> bool:
        """Whether the function takes a `RunContext` as its first argument."""
        return self.function_schema is not None and self.function_schema.takes_ctx

    async def read(self, ctx: RunContext[Any] | None, args: object = None) -> Any:
        """What the model is sent: a file's text as it was written, an image or PDF, or what the function returned.

        Args:
            ctx: The run's context, passed to functions that take one.
            args: Arguments for the function; checked before it is called.

        Raises:
            SkillResourceLoadError: It cannot be read, or the arguments do not fit.
        """
        if self.function_schema is not None:
            what = f'resource {self.name!r}'
            return await call_function(self.function_schema, ctx, args, what=what, error=SkillResourceLoadError)
        if self.content is not None:
            return self.content
        return await read_path(local_path(cast(str, self.uri)))

    async def load(self, ctx: RunContext[Any] | None, args: object = None) -> Any:
        """Like `read`, with the text of `.json`, `.yaml` and `.yml` resources as parsed values.

        Text that does not parse, or that is too deep or too large to parse safely, is returned as text.
        """
        value = await self.read(ctx, args)
        if self.function is None and isinstance(value, str):
            return await anyio.to_thread.run_sync(_parse, value, self.name)
        return value


class SkillScript:
    """Something a skill lets the model run: a Python function or a program in a file."""

    def __init__(
        self,
        name: str,
        *,
        description: str | None = None,
        function: Callable[..., Any] | None = None,
        takes_ctx: bool | None = None,
        function_schema: FunctionSchema | None = None,
        uri: str | None = None,
        skill_name: str | None = None,
        skill_dir: Path | None = None,
        executor: SkillScriptExecutor | None = None,
    ) -> None:
        """Describe a script; one of `function` and `uri` is required.

        Args:
            name: What the model calls it, such as `scripts/convert.py`.
            description: What it does, for the model.
            function: Called for each run, with the arguments the model gives.
            takes_ctx: Whether `function` takes a `RunContext` first; found out from its signature when not given.
            function_schema: The schema of `function`; made from its signature when not given.
            uri: A local file, as a path or a `file:` URI.
            skill_name: The skill it belongs to.
            skill_dir: That skill's folder, where there is one.
            executor: What runs a file; a `LocalSkillScriptExecutor` when not given.

        Raises:
            SkillValidationError: The name is empty, or there is nothing to run.
        """
        if function is None and uri is None:
            raise SkillValidationError(f'Script {name!r} needs one of `function` or `uri`.')
        self.name = _check_item_name(name, 'script')
        self.description = description
        self.function = function
        self.function_schema = _schema_of(function, takes_ctx, function_schema)
        self.uri = uri
        self.skill_name = skill_name
        self.skill_dir = skill_dir
        self.executor = _local_executor() if executor is None and uri is not None else executor

    def __repr__(self) -> str:
        return f'{type(self).__name__}(name={self.name!r})'

    @property
    def takes_ctx(self) -> bool:
        """Whether the function takes a `RunContext` as its first argument."""
        return self.function_schema is not None and self.function_schema.takes_ctx

    @property
    def path(self) -> Path | None:
        """The file to run, or `None` for a function."""
        return None if self.uri is None else local_path(self.uri)

    def of_skill(self, skill_name: str) -> SkillScript:
        """The same script as one of another skill."""
        script = copy(self)
        script.skill_name = skill_name
        return script

    @property
    def usage(self) -> str | None:
        """How a file is used, as far as its text tells: its docstring or first comment, and its arguments."""
        from pydantic_ai_skills.execution.usage import describe_usage  # not needed where no skill has scripts

        path = self.path
        if path is None:
            return None
        folder = self.skill_dir or path.parent
        try:
            source = SkillFolder(str(folder)).read_bytes(path.relative_to(folder).as_posix())
        except SkillResourceLoadError:
            return None
        return describe_usage(self.name, source)

    async def run(self, ctx: RunContext[Any] | None, args: object = None) -> Any:
        """Run it: a function's return value, or the executor's result for a file.

        Args:
            ctx: The run's context, passed to functions and executors that take one.
            args: Arguments; for a function they are checked before it is called.

        Raises:
            SkillScriptExecutionError: It could not be run, or the arguments do not fit.
        """
        if self.function_schema is not None:
            what = f'script {self.name!r}'
            return await call_function(self.function_schema, ctx, args, what=what, error=SkillScriptExecutionError)
        return await cast('SkillScriptExecutor', self.executor).run(self, args, ctx)


@dataclass(kw_only=True, slots=True)
class SkillFiles:
    """What a skill has besides its instructions."""

    resources: list[SkillResource] = field(default_factory=list[SkillResource])
    """What can be read."""

    scripts: list[SkillScript] = field(default_factory=list[SkillScript])
    """What can be run."""

    problems: tuple[SkillProblem, ...] = ()
    """What a person should know, found while listing."""


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


def _parse(text: str, name: str) -> Any:
    from pydantic_ai_skills.parsing.values import parse_value  # brings in YAML, which takes long to import

    return parse_value(text, name)


@cache
def _local_executor() -> SkillScriptExecutor:
    from pydantic_ai_skills.execution.local import LocalSkillScriptExecutor  # not needed where no file is run

    return LocalSkillScriptExecutor()


def _check_item_name(name: str, kind: str) -> str:
    if not name.strip():
        raise SkillValidationError(f'A {kind} needs a name.')
    return name


def _schema_of(
    function: Callable[..., Any] | None, takes_ctx: bool | None, schema: FunctionSchema | None
) -> FunctionSchema | None:
    if function is None or schema is not None:
        return schema
    return FunctionOptions(takes_ctx=takes_ctx).read_schema(function)

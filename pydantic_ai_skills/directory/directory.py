"""A directory of skills: scanned on first use, then again only where something has changed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from typing_extensions import Unpack

from pydantic_ai_skills.execution.base import as_executor, is_sandbox
from pydantic_ai_skills.filesystem.locks import ThreadLock
from pydantic_ai_skills.filesystem.user_dirs import expand_home
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.found_skills import FoundSkills
from pydantic_ai_skills.types.skill import Skill

from .settings import SKILL_FILE, ScanLimits, ScanSettings

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor
    from pydantic_ai_skills.types.provenance import SkillProvenance

    from .disk_index import DiskIndex
    from .folder_skill import ScannedFolder
    from .patterns import FilePatterns
    from .standard import StandardFolder, Trust


class DirectoryOptions(TypedDict, total=False):
    """The options that `SkillsDirectory` and `SkillsDirectory.standard` share."""

    validate: bool
    max_depth: int | None
    script_executor: SkillScriptExecutor | None
    trusted: bool | None
    follow_links: bool
    disk_index: bool | str | Path
    label: str | None
    include: str | Iterable[str] | None
    exclude: str | Iterable[str] | None


class SkillsDirectory:
    """A directory of skills, each a folder with a `SKILL.md`, at any depth down to `max_depth`.

    ```python
    from pydantic_ai_skills import SkillsDirectory

    skills = SkillsDirectory('examples/skills').get_skills()
    print(sorted(skills))
    #> ['csv-report', 'release-notes', 'unit-converter']
    ```
    """

    limits = ScanLimits()
    """How far a scan goes. Set it before the first look."""

    def __init__(
        self,
        path: str | Path,
        *,
        validate: bool = True,
        max_depth: int | None = 3,
        script_executor: SkillScriptExecutor | None = None,
        trusted: bool | None = None,
        follow_links: bool = False,
        disk_index: bool | str | Path = False,
        label: str | None = None,
        include: str | Iterable[str] | None = None,
        exclude: str | Iterable[str] | None = None,
    ) -> None:
        """Remember a directory; it is scanned on first use.

        Args:
            path: The directory. It may be a skill itself, or its `SKILL.md`. A relative path starts in the folder
                that is current now.
            validate: Whether to apply the Agent Skills rules beyond a usable name and description.
            max_depth: How deep below `path` to look for skills; `None` for no limit.
            script_executor: What runs the scripts; a `LocalSkillScriptExecutor` when not given.
            trusted: Whether you vouch for the skills. If you do not, their `tools.py` is never imported, their scripts
                run in a sandbox only, and their `allowed-tools` approve nothing. When not given, they are trusted
                unless `script_executor` is a sandbox.
            follow_links: Whether a skill's folder may be a link. Links inside a skill are never followed.
            disk_index: Whether to keep an index on disk, so that a later process reads only what has changed since:
                `True` for one in the user's cache folder, or the path of a file.
            label: What you call the directory. Problems and the command line show it.
            include: Patterns of the files that are offered, such as `'references/**'`; all when not given. `*` and `?`
                stand for anything but `/`, and `**` for folders at any depth. A pattern without `/` matches the name
                of a file in any folder. `SKILL.md` is always read.
            exclude: Patterns of files that are not offered. They win over `include`.

        Raises:
            TypeError: The path or the executor is of the wrong kind.
            ValueError: `max_depth` is negative.
        """
        _check(path, max_depth)
        # Temporal does not allow looking up the home folder while it imports a workflow, so only if there is a `~`.
        self.path = expand_home(path) if str(path).startswith('~') else Path(path)
        if self.path.name.lower() == SKILL_FILE.lower():
            self.path, max_depth = self.path.parent, 0
        self.validate = validate
        self.max_depth = max_depth
        self.script_executor = script_executor = as_executor(script_executor)
        self.trusted = not is_sandbox(script_executor) if trusted is None else trusted
        self.follow_links = follow_links
        self.disk_index = disk_index
        self.label = label
        self.offers: FilePatterns | None = None
        if include is not None or exclude is not None:
            from .patterns import file_patterns  # few directories have any

            self.offers = file_patterns(include, exclude)
        self._index: DiskIndex | None = None
        self.absolute_path = os.path.normpath(self.path if self.path.is_absolute() else Path(os.getcwd(), self.path))
        """The path, made absolute from the folder that was current when this object was made."""
        self._root = ''
        self.is_in_doubt = False
        """Whether the last look saw something that may be half written, so that the next one may differ."""
        self._scanned: dict[str, ScannedFolder] = {}
        self._found: FoundSkills | None = None
        self._lock = ThreadLock()
        self._standard: StandardFolder | None = None
        self._refused: FoundSkills | None = None

    @classmethod
    def standard(
        cls,
        *,
        project: str | Path | bool | None = True,
        user: str | Path | bool | None = True,
        trust: Trust | None = None,
        **options: Unpack[DirectoryOptions],
    ) -> list[SkillsDirectory]:
        """The directories that hold skills by convention, the most important last. Missing ones are empty.

        The user's are `~/.claude/skills`, `~/.agents/skills` and `user_skills_folder()`. The project's are
        `.claude/skills` and `.agents/skills` in its folder and in the folders above, up to the root of the git
        repository. A project's skills come with whatever is checked out, so they are used only if it is trusted.

        ```python
        from pydantic_ai_skills import SkillsDirectory, SkillsToolset

        directories = SkillsDirectory.standard(trust=['~/work'])
        toolset = SkillsToolset(directories=directories)
        ```

        Args:
            project: A folder of the project; `True` for the current one, `False` or `None` for no project.
            user: The home folder of the user; `True` for this user's, `False` or `None` for no user.
            trust: The trusted projects: folders, with everything below them, or a function that is called once with the
                folder of the project, which is the root of its git repository if it is in one. None by default.
            **options: The options of `SkillsDirectory`, which explains each of them.
        """
        from .standard import standard_folders  # not needed for directories that are named

        directories: list[SkillsDirectory] = []
        for folder in standard_folders(project, user, trust):
            directory = cls(folder.path, **options)
            directory._standard = folder
            directories.append(directory)
        return directories

    def __repr__(self) -> str:
        return f'SkillsDirectory({str(self.path)!r})'

    def get_skills(self) -> dict[str, Skill[Any]]:
        """The skills it has now, by name."""
        return {skill.name: skill for skill in self.find().skills}

    @property
    def problems(self) -> list[SkillProblem]:
        """What is wrong with the skills it has now."""
        return list(self.find().problems)

    def __getstate__(self) -> dict[str, Any]:
        # A copy looks at the directory itself.
        return {**vars(self), '_index': None, '_root': '', '_scanned': {}, '_found': None}

    def find(self) -> FoundSkills:
        """Look at the directory. If nothing has changed since the last look, the result is the same object."""
        with self._lock:
            if self._standard is not None and (refused := self._refuse(self._standard)) is not None:
                return refused
            last = self._found
            root = os.path.realpath(self.absolute_path)
            if last is None or root != self._root:
                # A link that leads elsewhere now makes it another directory.
                self._root, self._scanned = root, {}
                self._found = last = self._first_look()
            else:
                current = {path for path, folder in self._scanned.items() if folder.is_current()}
                if not current or len(current) < len(self._scanned):
                    found = self._look(current)
                    if not found.is_same(last):
                        self._found = last = found
            return last

    def _refuse(self, folder: StandardFolder) -> FoundSkills | None:
        """The result for a standard folder that is missing or in an untrusted project."""
        if not os.path.isdir(self.path):
            refused = FoundSkills()
        elif (refusal := folder.refusal()) is not None:
            refused = FoundSkills(problems=(refusal,))
        else:
            return None
        if refused != self._refused:
            self._refused = refused
        return self._refused

    @property
    def folders(self) -> frozenset[str]:
        """The folders that were scanned for skills at the last look and could be read."""
        return frozenset(folder.path for folder in self._scanned.values() if folder.was_readable)

    def rest_is_current(self) -> bool:
        """Whether nothing outside `folders` has changed: neither the folders in skills nor the targets of links."""
        return all(
            folder.is_current()
            for folder in self._scanned.values()
            if folder.links or (folder.skill is not None and folder.skill.listed)
        )

    def _settings(self) -> ScanSettings:
        return ScanSettings(
            path=str(self.path),
            validate=self.validate,
            max_depth=self.max_depth,
            executor=self.script_executor,
            source=self._provenance,
            follow_links=self.follow_links,
            limits=self.limits,
            label=self.label,
            offers=self.offers,
        )

    @property
    def _provenance(self) -> SkillProvenance | None:
        if self.trusted and self.label is None:
            return None
        from pydantic_ai_skills.types.provenance import SkillProvenance  # few directories have a label or no trust

        return SkillProvenance(kind='directory', url=str(self.path), trusted=self.trusted, label=self.label)

    def _named(self, found: FoundSkills) -> FoundSkills:
        """What was found, with the label of the directory in the problems."""
        from .folder_skill import labelled  # not needed before the first look

        return found._replace(problems=tuple(labelled(found.problems, self.label)), source=self.label or str(self.path))

    def _first_look(self) -> FoundSkills:
        if self.disk_index is False:
            return self._look()
        from .disk_index import DiskIndex  # imports SQLite, which most directories do without
        from .scan import collect

        file = None if self.disk_index is True else self.disk_index
        self._index = DiskIndex(file, self._settings(), self._root)
        self._scanned, is_complete = self._index.load()
        return self._named(collect(self._scanned)) if is_complete else self._look(self._scanned.keys())

    def _look(self, current: Collection[str] = ()) -> FoundSkills:
        """Scan what has changed; `current` are the paths of folders that have not."""
        from .scan import scan_directory  # not needed before the first look

        scan = scan_directory(self._settings(), self._root, before=self._scanned, current=current)
        self.is_in_doubt = bool(scan.in_doubt)
        self._scanned = scan.folders
        if self._index is not None and not scan.was_cut:
            self._index.save(scan.folders)
            scan.problems += [self._index.problem] if self._index.problem else []
        return self._named(scan.result())


def _check(path: object, max_depth: object) -> None:
    if not isinstance(path, str | Path):
        raise TypeError(f'A directory of skills is a path, as text or a Path, not {path!r}.')
    if max_depth is not None and not (isinstance(max_depth, int) and max_depth >= 0):
        raise ValueError(f'max_depth must be 0 or more, or None for no limit, not {max_depth!r}.')

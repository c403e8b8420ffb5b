"""Folders of skills in archives that Python imports from. Everything can be read; nothing of it can be run."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio.to_thread
from pydantic_ai.messages import BinaryContent

from pydantic_ai_skills.directory.folder_skill import is_private_file, is_skipped_folder
from pydantic_ai_skills.directory.settings import MAX_FILES, MAX_SKILL_BYTES
from pydantic_ai_skills.exceptions import SkillResourceLoadError
from pydantic_ai_skills.filesystem.content import as_content
from pydantic_ai_skills.filesystem.safe_open import MAX_RESOURCE_BYTES
from pydantic_ai_skills.parsing import decode_body, parse_head
from pydantic_ai_skills.problems import problem
from pydantic_ai_skills.types.found_skills import FoundSkills
from pydantic_ai_skills.types.provenance import SkillProvenance
from pydantic_ai_skills.types.resource import FileSkillResource
from pydantic_ai_skills.types.skill import Skill, SkillFiles

from .trees import ZipTree


@dataclass(repr=False)
class ZippedFile(FileSkillResource):
    """A file of a skill in an archive, read when it is asked for."""

    tree: ZipTree | None = field(default=None, compare=False)
    """The archive that `uri` begins with."""

    async def _read_file(self, uri: str) -> str | BinaryContent:
        return await anyio.to_thread.run_sync(self._unpack, uri)

    def _unpack(self, uri: str) -> str | BinaryContent:
        data = self.tree and self.tree.read(uri.removeprefix(f'{self.tree.path}/'), MAX_RESOURCE_BYTES)
        if data is None:
            message = f'{self.name!r} cannot be read, or is larger than {MAX_RESOURCE_BYTES:,} bytes.'
            raise SkillResourceLoadError(message)
        return as_content(data, self.name)


def read_zipped_skill(tree: ZipTree, name: str, *, about: SkillProvenance, validate: bool) -> FoundSkills:
    """Read the skill whose `SKILL.md` has this name in an archive."""
    folder, _, _ = name.rpartition('/')
    path = f'{tree.path}/{name}'
    data = tree.read(name, MAX_SKILL_BYTES)
    if data is None:
        message = f'It cannot be read, or has more than {MAX_SKILL_BYTES:,} bytes.'
        return FoundSkills(problems=(problem('unreadable', path, message),))
    head = parse_head(data, path=path, folder_name=folder.rpartition('/')[2], validate=validate, complete=True)
    if head.header is None:
        return FoundSkills(problems=head.problems)
    files = partial(_list_files, tree, folder)
    skill = Skill[Any].from_header(head.header, decode_body(data), files=files, source=about)
    return FoundSkills((skill,), head.problems)


def _list_files(tree: ZipTree, folder: str) -> SkillFiles:
    files = SkillFiles()
    names = sorted(name[len(folder) + 1 :] for name in tree.sizes if name.startswith(f'{folder}/'))
    for name in names:
        *folders, last = name.split('/')
        if any(map(is_skipped_folder, folders)) or is_private_file(last) or name.lower() == 'skill.md':
            continue
        if len(files.resources) == MAX_FILES:
            message = f'It has too many files: only the first {MAX_FILES} are offered.'
            files.problems = (problem('too-many-files', f'{tree.path}/{folder}', message),)
            break
        files.resources.append(ZippedFile(name, uri=f'{tree.path}/{folder}/{name}', tree=tree))
    return files

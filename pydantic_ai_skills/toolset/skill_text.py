"""Renders a loaded skill: its files in few lines, then its instructions.

A list of files costs tokens each time the conversation is sent, so it may be about a tenth as long as the instructions.
Names come first; how to call a script is shown if there is room and the instructions do not name the script.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from pydantic_ai_skills.parsing.header import SkillHeader
from pydantic_ai_skills.parsing.skill_names import tool_name
from pydantic_ai_skills.types.resource import SkillResource
from pydantic_ai_skills.types.script import SkillScript
from pydantic_ai_skills.types.skill import Skill, SkillFiles

from .compat import framing
from .results import (
    INSTRUCTIONS,
    MAX_DESCRIPTION_CHARS,
    MAX_RESULT_BYTES,
    SKILL_INSTRUCTIONS,
    Framed,
    clean,
    cut,
    element,
    one_line,
    opening,
    shorten,
    visible,
)

FILES_BYTES = 2_000
"""How many bytes the lists of a skill's files may take in any case."""

FILES_SHARE = 10
"""With long instructions, the lists may take the length of the instructions divided by this."""

MAX_TOLD_BYTES = 12 * 1024
"""How many bytes each list of items that have a description or parameters may take."""

MAX_SCRIPTS_EXPLAINED = 20
"""How many scripts are read to show how they are called."""

MAX_PLACE_CHARS = 4096
"""How long the location of a skill may be."""


class SkillContent(NamedTuple):
    """What was read of a skill to load it."""

    header: SkillHeader
    """The header that was read with the instructions."""

    instructions: str
    """Its instructions, with a person's arguments filled in."""

    resources: Sequence[SkillResource]
    """What the model can read."""

    scripts: Sequence[SkillScript]
    """What the model can run."""

    usages: Mapping[str, str]
    """How to call the scripts that say so, by name."""


def render_skill(skill: Skill[Any], content: SkillContent, *, framed: bool = True) -> str:
    """The answer of `load_skill`: which skill it is, what can be read and run, then its instructions.

    With `framed`, the instructions are in an element of their own, which marks them as the skill's text.
    """
    uri = shorten(one_line(skill.uri), MAX_DESCRIPTION_CHARS) if skill.own_uri is not None else None
    where = _place(skill)
    place = None if where is None else shorten(one_line(where), MAX_PLACE_CHARS)
    parts = [opening('skill', name=skill.name, uri=uri, location=place)]
    if content.header.compatibility:
        parts.append(element('compatibility', shorten(one_line(content.header.compatibility), MAX_DESCRIPTION_CHARS)))
    parts += _files(content)
    if not skill.is_trusted:
        parts += _declared_tools(skill)
    frame = framing.wrap(SKILL_INSTRUCTIONS, '\n\n') if framed else '\n'
    room = MAX_RESULT_BYTES - _size('\n'.join((*parts, frame, '</skill>')))
    instructions = _instructions(content.instructions, room)
    if not framed:
        return '\n'.join((*parts, '</skill>', '', instructions))
    return Framed('\n'.join((*parts, framing.wrap(SKILL_INSTRUCTIONS, f'\n{instructions}\n'), '</skill>')))


def _place(skill: Skill[Any]) -> str | None:
    """The folder of a skill; for one whose files stay where they are, its source and its place there."""
    source = skill.source
    if skill.path is not None or source is None or source.commit is None:
        return skill.path
    return f'{source.url} {source.path}'


def _instructions(text: str, room: int) -> str:
    note = (
        f'\n\n[The rest of the instructions, which have {len(text):,} characters, was cut. They can be read as the '
        f"resource '{INSTRUCTIONS}', in pages.]"
    )
    return cut(framing.neutralize_tags(visible(text)).strip(), room, note)


def needs_usage(script: SkillScript, instructions: str) -> bool:
    """Whether to tell how to call a script: it is a file that the instructions do not name."""
    return script.uri is not None and script.name.rpartition('/')[2] not in instructions


# --- Files --------------------------------------------------------------------------------------------------------


def _files(content: SkillContent) -> list[str]:
    """The lists of resources and scripts, with the usage of scripts if there is room for it beside the names."""
    room = max(FILES_BYTES, _size(content.instructions) // FILES_SHARE)
    spare = room - sum(_size(item.name) + 2 for item in (*content.resources, *content.scripts))
    usages: dict[str, str] = {}
    for name, usage in content.usages.items():
        size = _size(usage) + len('<script name=""></script>')
        if size <= spare:
            usages[name] = clean(usage)
            spare -= size
    scripts = _list('script', content.scripts, usages, room)
    return _list('resource', content.resources, {}, room - _size('\n'.join(scripts))) + scripts


def _list(tag: str, items: Sequence[SkillResource | SkillScript], usages: Mapping[str, str], room: int) -> list[str]:
    """An element for each item with details, and a line for the others of each folder."""
    told: list[tuple[str, str]] = []
    folders: dict[str, list[str]] = {}
    for item in items:
        name = one_line(item.name)
        if details := _details(item) or usages.get(item.name):
            told.append((name, details))
        else:
            folder, _, file = name.rpartition('/')
            folders.setdefault(folder, []).append(file)
    elements, left_out = _elements(tag, told)
    for name in left_out:
        folders.setdefault('', []).append(name)
    return _block(tag, [*elements, *_folders(folders, max(room, FILES_BYTES // 2))])


def names_in(folder: str, files: SkillFiles) -> str | None:
    """The files in a folder, of which the list may show only the number, one per line; `None` if there are none."""
    names = [item.name for item in (*files.resources, *files.scripts)]
    inside = [name for name in names if name.startswith(folder) and name != folder] if folder.endswith('/') else []
    return '\n'.join(map(one_line, inside)) or None


def _details(item: SkillResource | SkillScript) -> str:
    """What a developer says about an item, and the parameters of a function."""
    parts = [one_line(item.description)] if item.description else []
    if item.uri is None and item.schema is not None:
        schema = item.schema.json_schema
        if schema.get('properties'):
            parts.append(clean(json.dumps(schema, ensure_ascii=False, separators=(',', ':'))))
    return ' '.join(parts)


def _elements(tag: str, told: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """As many of the items as fit, each with its details, and the names of the others."""
    shown: list[str] = []
    left_out: list[str] = []
    room = MAX_TOLD_BYTES
    for name, details in told:
        whole = element(tag, details, name=name)
        if _size(whole) <= room:
            shown.append(whole)
            room -= _size(whole) + 1
        else:
            left_out.append(name)
    return shown, left_out


def _folders(folders: Mapping[str, Sequence[str]], room: int) -> list[str]:
    """A line for each folder. Where the lines do not fit, the longest give only the number of files and an example."""
    lines = {folder: _line(folder, ', '.join(names)) for folder, names in folders.items()}
    over = sum(_size(line) + 1 for line in lines.values()) - room
    for folder in sorted(lines, key=lambda folder: -_size(lines[folder])):
        more = '; read the folder for all' if folder else ''
        short = _line(folder, f'{len(folders[folder])} files, such as {folders[folder][0]}{more}')
        if over > 0 and _size(short) < _size(lines[folder]):
            over -= _size(lines[folder]) - _size(short)
            lines[folder] = short
    left_out = 0
    for folder in reversed(list(lines)):
        if over > 0:
            over -= _size(lines.pop(folder)) + 1
            left_out += len(folders[folder])
    return [*lines.values(), *([f'<not_listed count="{left_out}"/>'] if left_out else [])]


def _line(folder: str, files: str) -> str:
    return escape(f'{folder}/: {files}' if folder else files, quote=False)


def _block(tag: str, lines: Sequence[str]) -> list[str]:
    return [f'<{tag}s>', *lines, f'</{tag}s>'] if lines else []


def _declared_tools(skill: Skill[Any]) -> list[str]:
    """An untrusted skill's own words about its tools. Definitions lack them: providers may present those as theirs."""
    told: list[tuple[str, str]] = []
    for tool in skill.tool_specs:
        parameters = {argument.name: argument.schema() for argument in tool.arguments}
        schema = json.dumps(parameters, ensure_ascii=False, separators=(',', ':')) if parameters else ''
        told.append((tool_name(skill.name, tool.name), clean(f'{tool.description} {schema}'.strip())))
    shown, left_out = _elements('tool', told)
    return _block('tool', [*shown, *(element('tool', None, name=name) for name in left_out)])


def _size(text: str) -> int:
    return len(text.encode('utf-8', 'replace'))

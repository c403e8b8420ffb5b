"""Merges the plugins of a marketplace: writes their files into one sink, and reports their problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.registries.git.fetch import MAX_FILES
from pydantic_ai_skills.registries.manifest import FileSink

from .parts import RECORDS, Part
from .plan import Plan

MAX_LISTED = 20
"""How many failures are reported one by one, and how many plugins one problem names."""


def merge(parts: Sequence[Part], plan: Plan, sink: FileSink, *, max_bytes: int) -> list[str]:
    """Write the files of all plugins into a sink, and report their problems; return the paths that were skipped.

    Raises:
        SkillRegistryError: No plugin could be fetched.
    """
    failures = [part for part in parts if part.failure is not None and not part.is_final]
    if failures and not any(part.has_files for part in parts):
        raise SkillRegistryError(f'No plugin could be fetched. {failures[0].plugin.name}: {failures[0].failure}')
    sink.problems += plan.problems
    skipped: list[str] = []
    size = count = 0
    for part in parts:
        size, count = size + part.size, count + len(part.files.files)
        if size > max_bytes or count > MAX_FILES:
            size, count = size - part.size, count - len(part.files.files)
            limit = f'{max_bytes:,} bytes (max_bytes) or {MAX_FILES:,} files'
            message = f'With it, the plugins would have more than {limit}. Name those you want: plugins='
            part.failure, part.commit, part.is_final = message, None, False
        elif part.has_files:
            skipped += _copy(part, sink)
    _report(parts, sink)
    return skipped


def _copy(part: Part, sink: FileSink) -> list[str]:
    name = part.plugin.name
    for path, file in part.files.files.items():
        data = (part.files.root / path).read_bytes()
        sink.write(f'{name}/{path}', file.blob, data, executable=file.executable)
    sink.write(f'{RECORDS}/{name}.json', part.key, part.record(), executable=False)
    sink.problems += part.problems
    return [f'{name}/{path}' for path in (*part.left_out, *part.files.left_out)]


def _report(parts: Sequence[Part], sink: FileSink) -> None:
    failed = [part for part in parts if part.failure is not None]
    for part in failed[:MAX_LISTED]:
        kept = f' Its skills of commit {part.commit[:12]} are kept.' if part.commit else ''
        code = 'plugin-invalid' if part.is_final else 'plugin-failed'
        message = f'{(part.failure or "").rstrip(".")}.{kept}'
        sink.report(code, part.plugin.name, message, is_final=part.is_final)
    if more := failed[MAX_LISTED:]:
        message = f'{_names({part.plugin.name: "" for part in more})} failed too.'
        sink.report('plugin-failed', '', message, is_final=all(part.is_final for part in more))
    usable = [part for part in parts if part.has_files]
    if others := {part.plugin.name: ', '.join(part.others) for part in usable if part.others}:
        message = f'Only the skills of plugins are used, not what else these have: {_names(others)}.'
        sink.report('plugin-partly-used', '', message)
    if empty := {part.plugin.name: '' for part in usable if not part.files.files}:
        sink.report('plugin-without-skills', '', f'These plugins have no skills: {_names(empty)}.')


def _names(plugins: Mapping[str, str]) -> str:
    """The first names, each with its remark if it has one, and how many more there are."""
    shown = [f'{name} ({about})' if about else name for name, about in islice(plugins.items(), MAX_LISTED)]
    more = len(plugins) - len(shown)
    return ', '.join(shown) + (f' and {more:,} more' if more else '')

"""Reads the shapes in which cases are published. Any other keys are kept unchanged.

```
{"skill_name": …, "evals": [{"id", "prompt", "expected_output", "files": [], "assertions": []}]}
the same with "expectations" in place of "assertions"
[{"id", "question", "expected_skill", "expected_script", "ground_truth", "expected_behavior": []}]
[{"query", "should_trigger"}]
{"should_trigger": ["a query"], "should_not_trigger": ["another"]}
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from .cases import FileSource, FolderFile, SkillCase
from .check_shapes import read_check
from .checks import Check, FileWritten, Judged, ScriptRan

MAX_CASES = 2_000
"""How many cases of a file are read."""

_LISTS = ('evals', 'cases', 'evaluations', 'queries', 'test_cases', 'tests', 'scenarios')
_SKILL = ('skill_name', 'skill')
_PROMPT = ('prompt', 'query', 'question', 'input', 'request', 'trigger')
_OUTPUT = ('expected_output', 'ground_truth')
_TRIGGER = ('should_trigger', 'skill_should_trigger')
_TRUE = ('assertions', 'expectations', 'expected_behavior', 'expected_behaviors')
_UNTRUE = ('must_not', 'unexpected_behavior')
_QUERIES = {'should_trigger': True, 'should_not_trigger': False}


class Shape:
    """A JSON value that may hold cases. Keys are removed as they are read, and those that are left are kept."""

    def __init__(self, value: object, *, skill: str | None, folder: str | None, source: str) -> None:
        """Remember the value, the skill whose file it is from, that skill's folder, and the file's name."""
        self._listed = cast(list[object], value) if isinstance(value, list) else None
        self._folder = folder
        self._source = source
        self.extra: dict[str, Any] = dict(cast(dict[str, Any], value)) if isinstance(value, dict) else {}
        """What the file says besides its cases."""
        said = _take_text(self.extra, _SKILL)
        self._skill = skill or said
        if said is not None and said != self._skill:
            self.extra['skill_name'] = said
        self.problems: list[str] = []
        """What is wrong, each with the place in the file."""

    def cases(self) -> list[SkillCase] | None:
        """Its cases; `None` if it has none of the known shapes."""
        items = self._items()
        if items is None:
            return None
        if len(items) > MAX_CASES:
            self.problems.append(f'It has {len(items):,} cases, of which only {MAX_CASES:,} are read.')
        return [case for where, item in items[:MAX_CASES] if (case := self._read(where, item)) is not None]

    def _items(self) -> list[tuple[str, object]] | None:
        """Everything that should be a case, each with its place."""
        if self._listed is not None:
            return [(f'[{number}]', item) for number, item in enumerate(self._listed)]
        key = next((key for key in _LISTS if isinstance(self.extra.get(key), list)), None)
        if key is not None:
            return [(f'{key}[{number}]', item) for number, item in enumerate(self.extra.pop(key))]
        return self._lists_of_queries()

    def _lists_of_queries(self) -> list[tuple[str, object]] | None:
        found = [key for key in _QUERIES if isinstance(self.extra.get(key), list)]
        return [
            (f'{key}[{number}]', item if isinstance(item, dict) else {'query': item, 'should_trigger': _QUERIES[key]})
            for key in found
            for number, item in enumerate(self.extra.pop(key))
        ] or None

    def _read(self, where: str, item: object) -> SkillCase | None:
        try:
            return self._case(dict(cast(dict[str, Any], item))) if isinstance(item, dict) else _fail('is not an object')
        except _InvalidError as error:
            self.problems.append(f'{where} {error}.')
            return None

    def _case(self, item: dict[str, Any]) -> SkillCase:
        prompt = _take_text(item, _PROMPT) or _fail(f'has no {_PROMPT[0]!r}')
        should_trigger, skill, instead = self._expected(item)
        raw_id = item.pop('id', '')
        files = dict(_files(item.pop('files', None), self._folder))
        return SkillCase(
            prompt=prompt,
            skill=skill,
            id=raw_id if isinstance(raw_id, str | int) else _fail("has an 'id' that is neither text nor a number"),
            should_trigger=should_trigger,
            expected_skill=instead,
            expected_output=_take_text(item, _OUTPUT),
            checks=tuple(_checks(item)),
            files=files,
            extra=item,
            source=self._source,
        )

    def _expected(self, item: dict[str, Any]) -> tuple[bool | None, str | None, str | None]:
        """Whether the skill should be loaded, which skill that is, and which one instead of it."""
        should = next((item.pop(key) for key in _TRIGGER if key in item), None)
        if should is not None and not isinstance(should, bool):
            _fail(f'has a {_TRIGGER[0]!r} that is neither true nor false')
        if 'expected_skill' not in item:
            return should, self._skill, None
        expected = item.pop('expected_skill')
        if expected is not None and not isinstance(expected, str):
            _fail("has an 'expected_skill' that is neither a name nor null")
        if should is None:
            should = expected is not None and expected == (self._skill or expected)
        return should, self._skill or (expected if should else None), None if should else expected


class _InvalidError(Exception):
    """A case that cannot be read. The message is the rest of a sentence that begins with the place of the case."""


def _fail(why: str) -> Any:
    raise _InvalidError(why)


def _take_text(item: dict[str, Any], keys: Sequence[str]) -> str | None:
    """Remove the first of these keys whose value is text that is not blank; return the text."""
    key = next((key for key in keys if isinstance(item.get(key), str) and item[key].strip()), None)
    return None if key is None else item.pop(key)


def _checks(item: dict[str, Any]) -> Iterator[Check]:
    for key in (*_TRUE, *_UNTRUE, 'checks'):
        raw: object = item.pop(key, None) or []
        for each in cast(list[object], raw) if isinstance(raw, list) else [raw]:
            check = read_check(each) or _fail(f'has an entry in {key!r} that is neither text nor a known check')
            yield _negated(check) if key in _UNTRUE else check
    script = _take_text(item, ('expected_script',))
    if script is not None:
        yield ScriptRan(script)
    elif item.get('expected_script', '') is None:
        del item['expected_script']
    for path in _texts(item, 'files_exist'):
        yield FileWritten(path)


def _texts(item: dict[str, Any], key: str) -> list[str]:
    """Remove a key whose value is a list of texts, and return the list; any other value stays."""
    value = item.get(key)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in cast(list[Any], value)):
        return []
    return item.pop(key)


def _negated(check: Check) -> Check:
    return Judged(f'This did not happen: {check}')


def _files(value: object, folder: str | None) -> Iterator[tuple[str, FileSource]]:
    """The files of a case by their names in the work folder: paths below the skill's folder, or content."""
    if isinstance(value, Mapping):
        yield from ((str(name), str(content)) for name, content in cast(Mapping[Any, Any], value).items())
        return
    for entry in cast(list[Any], value) if isinstance(value, list) else ():
        said: dict[str, Any] = cast(dict[str, Any], entry) if isinstance(entry, dict) else {'path': entry}
        path = _take_text(dict(said), ('path', 'name', 'file')) or _fail("has an entry in 'files' without a path")
        if isinstance(said.get('content'), str):
            yield _name_in_work_folder(path), said['content']
        elif folder is None:
            _fail(f'names the file {path!r}, but its cases are not in the folder of a skill')
        else:
            yield _name_in_work_folder(path), FolderFile(folder, path.removeprefix('./'))


def _name_in_work_folder(path: str) -> str:
    return path.removeprefix('./').removeprefix('evals/').removeprefix('files/')

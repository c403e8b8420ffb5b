"""Finds and reads the files that hold the cases of skills, and writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillValidationError
from pydantic_ai_skills.filesystem.atomic import replace_file
from pydantic_ai_skills.filesystem.safe_open import SkillFolder, read_regular, reason
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.skill import Skill

from .cases import CaseSet, FileSource, FolderFile, SkillCase
from .check_shapes import check_in_json
from .checks import Judged
from .dialects import Shape

EVALS_FOLDER = 'evals'
"""The folder of a skill that holds its cases."""

MAX_CASE_FILE_BYTES = 4 * 1024 * 1024
"""A larger file is not read."""

MAX_CASE_FILES = 100
"""How many files of a folder are looked at."""


def read_cases(path: str | Path, *, skill: str | None = None) -> CaseSet:
    """Read the cases in a file, or in the `evals` folder of a skill.

    All published shapes of `evals.json` and of trigger sets are read, `.json` and `.jsonl` alike.

    Args:
        path: The file, or the folder of the skill.
        skill: The skill whose cases they are; by default the one that the file names.
    """
    path = Path(path)
    if path.is_dir():
        return _of_folder(path, skill)
    try:
        data = read_regular(path, MAX_CASE_FILE_BYTES, follow_links=True)
    except OSError as error:
        return CaseSet(problems=(_problem(str(path), f'It cannot be read: {reason(error)}.'),))
    folder = path.absolute().parent
    inside = str(folder.parent) if folder.name == EVALS_FOLDER else None
    return _parse(data, str(path), skill=skill, folder=inside, is_certain=True)


def cases_of(skills: Iterable[Skill[Any]]) -> CaseSet:
    """The cases in the `evals` folders of skills, in the order of the skills."""
    found = [_of_folder(Path(skill.path), skill.name) for skill in skills if skill.path is not None]
    return CaseSet(
        cases=tuple(case for each in found for case in each.cases),
        problems=tuple(problem for each in found for problem in each.problems),
    )


def _of_folder(folder: Path, skill: str | None) -> CaseSet:
    cases: list[SkillCase] = []
    problems: list[SkillProblem] = []
    for name in _names_in(folder):
        shown = str(folder / EVALS_FOLDER / name)
        # A folder of cases may hold results and fixtures as well.
        is_certain = name == 'evals.json' or 'trigger' in name
        try:
            data = SkillFolder(str(folder)).read_bytes(f'{EVALS_FOLDER}/{name}', MAX_CASE_FILE_BYTES)
        except SkillResourceLoadError as error:
            problems.append(_problem(shown, str(error)))
            continue
        read = _parse(data, shown, skill=skill, folder=str(folder), is_certain=is_certain)
        cases += read.cases
        problems += read.problems
    return CaseSet(cases=tuple(cases), problems=tuple(problems))


def _names_in(folder: Path) -> list[str]:
    try:
        with SkillFolder(str(folder)).open(EVALS_FOLDER) as opened:
            names = [entry.name for entry in opened.entries(MAX_CASE_FILES)]
    except OSError:
        return []
    # `evals.json` first: those are the cases that people know by their numbers.
    return sorted((name for name in names if name.endswith(('.json', '.jsonl'))), key=lambda name: name != 'evals.json')


def _parse(data: bytes, shown: str, *, skill: str | None, folder: str | None, is_certain: bool) -> CaseSet:
    try:
        text = data.decode('utf-8-sig')
        value = list(_lines(text)) if shown.endswith('.jsonl') else json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()  # an escape may stand for half a character, which is not text
    except (ValueError, RecursionError) as error:
        why = 'It is nested too deeply' if isinstance(error, RecursionError) else f'It is not JSON: {error}'
        return CaseSet(problems=(_problem(shown, f'{why}.', getattr(error, 'lineno', None)),) if is_certain else ())
    shape = Shape(value, skill=skill, folder=folder, source=shown)
    cases = shape.cases()
    if cases is None or (not cases and not is_certain):
        return CaseSet(problems=(_problem(shown, 'It holds no cases in a known shape.'),) if is_certain else ())
    problems = tuple(_problem(shown, message) for message in shape.problems)
    return CaseSet(cases=tuple(cases), problems=problems, extra=shape.extra)


def _lines(text: str) -> Iterator[Any]:
    for line in text.splitlines():
        if line.strip():
            yield json.loads(line)


def _problem(path: str, message: str, line: int | None = None) -> SkillProblem:
    return problem('evals-invalid', path, message, line)


# --- Writing ------------------------------------------------------------------------------------------------------


def write_cases(path: str | Path, cases: CaseSet | Iterable[SkillCase], *, skill: str | None = None) -> None:
    """Write cases of one skill as `evals.json`, so that `read_cases` and other programs read them.

    Args:
        path: The file.
        cases: The cases, in their order.
        skill: The skill, if no case names it.

    Raises:
        SkillValidationError: A case is for another skill, or a check is a function, which a file cannot hold.
        OSError: The file cannot be written.
    """
    whole = cases if isinstance(cases, CaseSet) else CaseSet(cases=tuple(cases))
    text = json.dumps(cases_in_json(whole, skill=skill), ensure_ascii=False, indent=2)
    replace_file(Path(path), f'{text}\n'.encode())


def cases_in_json(cases: CaseSet, *, skill: str | None = None) -> dict[str, Any]:
    """The content of an `evals.json` for the cases of one skill. See `write_cases`."""
    name = skill or next((case.skill for case in cases.cases if case.skill is not None), None)
    others = sorted({case.skill for case in cases.cases if case.skill not in (None, name)} - {None}, key=str)
    if others:
        raise SkillValidationError(f'An evals.json is for one skill, {name!r}, but a case is for {others[0]!r}.')
    try:
        evals = [_case_in_json(case, number) for number, case in enumerate(cases.cases, 1)]
    except ValueError as error:
        raise SkillValidationError(str(error)) from error
    return {**({} if name is None else {'skill_name': name}), **cases.extra, 'evals': evals}


def _case_in_json(case: SkillCase, number: int) -> dict[str, Any]:
    said: dict[str, Any] = {'id': case.id if case.id != '' else number, 'prompt': case.prompt}
    if case.should_trigger is not None:
        said['should_trigger'] = case.should_trigger
    if case.expected_skill is not None:
        said['expected_skill'] = case.expected_skill
    if case.expected_output is not None:
        said['expected_output'] = case.expected_output
    if case.files:
        said['files'] = [_file_in_json(name, source) for name, source in case.files.items()]
    words = [check for check in case.checks if isinstance(check, Judged)]
    if words:
        said['assertions'] = [check_in_json(check) for check in words]
    others = [check_in_json(check) for check in case.checks if not isinstance(check, Judged)]
    if others:
        said['checks'] = others
    return {**said, **case.extra}


def _file_in_json(name: str, source: FileSource) -> str | dict[str, str]:
    if isinstance(source, FolderFile):
        return source.name
    if isinstance(source, Path):
        raise ValueError(f'The file {name!r} is not in the folder of the skill. Put it into evals/files.')
    text = source.decode() if isinstance(source, bytes) else source
    return {'path': name, 'content': text}

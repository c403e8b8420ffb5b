"""Every Agent Skills rule once: the limits, what a name is, and the table of problem codes."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.problems import ProblemSeverity, SkillProblem

from .findings import shown

__all__ = (
    'MAX_COMPATIBILITY_LENGTH',
    'MAX_DESCRIPTION_LENGTH',
    'MAX_NAME_LENGTH',
    'RULES',
    'Rule',
    'check_skill_name',
    'normalize_skill_name',
    'problem',
    'shorten_skill_name',
)

MAX_NAME_LENGTH = 64
"""Characters in a skill's name, after NFKC."""

MAX_DESCRIPTION_LENGTH = 1024
"""Characters in a skill's description."""

MAX_COMPATIBILITY_LENGTH = 500
"""Characters in a skill's note on what it needs to run."""

_SIMPLE_NAME = re.compile(r'[a-z0-9]+(?:-[a-z0-9]+)*')

_MAX_WORDING = 1024
# NFKC takes quadratic time for some texts, so more of a would-be name is never looked at.


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Something that can be wrong with a skill, and what it costs."""

    code: str
    """A stable, kebab-case identifier."""

    severity: ProblemSeverity
    """`'error'`: the skill is left out. `'warning'`: it is loaded all the same."""

    summary: str
    """What is wrong, in a sentence for the documentation."""


_ERRORS = {
    # What a file must be.
    'empty-file': 'The file is empty.',
    'not-utf8': 'The file is not UTF-8 text.',
    'binary-file': 'The file holds a NUL byte, so it is not text.',
    # What its frontmatter must be.
    'no-frontmatter': 'The file does not begin with a `---` line.',
    'unclosed-frontmatter': 'No second `---` line ends the frontmatter.',
    'frontmatter-too-large': 'The frontmatter does not end within the limit of bytes.',
    'frontmatter-too-deep': 'Lists and mappings are nested deeper than the limit.',
    'frontmatter-not-a-mapping': 'The frontmatter is not a list of `key: value` lines.',
    'yaml-alias': 'The frontmatter uses a YAML alias (`*name`), which is never followed.',
    # What a skill cannot be without.
    'name-unusable': 'Neither the frontmatter nor the folder gives a name that can be used.',
    'description-missing': 'The description is missing or empty.',
    'description-not-text': 'The description is a list or a mapping.',
    # What a directory or another source must be.
    'directory-missing': 'A directory that was named is not there.',
    'unreadable': 'A folder or a `SKILL.md` cannot be read; a `SKILL.md` that is a link is not read either.',
    'special-file': 'The `SKILL.md` is not a regular file.',
    'too-large': 'The `SKILL.md` is larger than the limit.',
    'folder-link': 'A folder is a link, and its directory does not follow links.',
    'too-many-folders': 'A directory has more folders than are looked into.',
    'source-failed': 'A source raised an error; skills it gave before are kept.',
    'lock-mismatch': 'A skill, or the commit behind a ref, is not what the lock file says.',
}

_WARNINGS = {
    # What the reader set right.
    'frontmatter-not-first': 'Blank lines come before the frontmatter.',
    'yaml-repaired': 'The frontmatter is not valid YAML and was repaired.',
    'yaml-duplicate-key': 'A key is there more than once; the last value counts.',
    'yaml-tag': 'A YAML tag (`!!float`, `!custom`) is ignored; text stays text.',
    # What the specification asks for.
    'name-missing': 'There is no name; the folder gives it.',
    'name-mismatch': 'The name is not the name of the folder.',
    'name-invalid': 'The name is not lower-case letters, digits and single hyphens.',
    'name-too-long': 'The name is longer than 64 characters.',
    'description-too-long': 'The description is longer than 1024 characters.',
    'compatibility-too-long': 'The compatibility note is longer than 500 characters.',
    'field-type': 'A field holds another kind of value than the specification gives it.',
    'file-name': 'The file is called `skill.md`, or in other letters than `SKILL.md`.',
    # Files of a skill that are not offered.
    'file-link': 'A file or folder in a skill is a link.',
    'file-special': 'A file in a skill is not a regular file.',
    'file-too-large': 'A file in a skill is larger than the limit.',
    'file-unreadable': 'A file or folder in a skill cannot be read.',
    'folder-too-deep': 'A folder in a skill is deeper than the limit.',
    'too-many-files': 'A skill has more files or folders than are offered.',
    'file-edited': 'A file in the `target_dir` of a registry was edited there and is not brought up to date.',
    # Skills that give way to others.
    'duplicate-name': 'Two folders of one directory have a skill of the same name; the first one is used.',
    'shadowed': 'A source of higher priority has a skill of the same name.',
    'rename-unknown': 'A registry is to rename a skill that it does not have.',
}

RULES: dict[str, Rule] = {
    **{code: Rule(code=code, severity='error', summary=summary) for code, summary in _ERRORS.items()},
    **{code: Rule(code=code, severity='warning', summary=summary) for code, summary in _WARNINGS.items()},
}
"""The rule behind each problem code."""


def problem(code: str, path: str, message: str, line: int | None = None) -> SkillProblem:
    """Build the problem for a broken rule; the table gives its severity."""
    return SkillProblem(path=path, code=code, severity=RULES[code].severity, message=message, line=line)


def normalize_skill_name(name: str) -> str:
    """Turn any wording into a skill name: `MySkillName`, `my_skill_name` and `my skill name` → `my-skill-name`.

    Raises:
        SkillValidationError: Nothing valid is left, or it is longer than 64 characters.
    """
    normalized = _hyphenate(name[:_MAX_WORDING])
    if not normalized:
        raise SkillValidationError(f'{shown(name)} has no letter or digit to make a skill name of.')
    length = max(len(normalized), len(name) if len(name) > _MAX_WORDING else 0)
    if length > MAX_NAME_LENGTH:
        raise SkillValidationError(
            f'{shown(name)} is too long for a skill name: {length} characters, at most {MAX_NAME_LENGTH} are allowed.'
        )
    return normalized


def shorten_skill_name(name: str) -> str:
    """Like `normalize_skill_name`, but cut a name that is too long, between words where that is possible.

    Raises:
        SkillValidationError: Nothing valid is left.
    """
    normalized = _hyphenate(name[:_MAX_WORDING])
    if len(normalized) > MAX_NAME_LENGTH:
        words, _, _ = normalized[: MAX_NAME_LENGTH + 1].rpartition('-')
        normalized = words or normalized[:MAX_NAME_LENGTH]
    return normalize_skill_name(normalized)


def check_skill_name(name: str) -> str:
    """Return the name, after NFKC, if it follows the rule exactly.

    Raises:
        SkillValidationError: It does not; the message says why and gives a name that would.
    """
    if len(name) <= MAX_NAME_LENGTH and _SIMPLE_NAME.fullmatch(name):
        return name
    normal = unicodedata.normalize('NFKC', name[:_MAX_WORDING])
    wrong = _what_is_wrong(normal, length=max(len(normal), len(name)))
    if wrong is None:
        return normal
    try:
        way_out = f'Use {shorten_skill_name(name)!r}.'
    except SkillValidationError:
        way_out = "Use lower-case letters, digits and single hyphens, such as 'my-skill'."
    raise SkillValidationError(f'{shown(name)} is not a skill name: {wrong}. {way_out}')


def _what_is_wrong(name: str, *, length: int) -> str | None:
    if not name:
        return 'it is empty'
    if length > MAX_NAME_LENGTH:
        return f'it has {length} characters, at most {MAX_NAME_LENGTH} are allowed'
    strange = next((c for c in name if c != '-' and not _is_letter(c)), None)
    if strange is not None:
        return f'{strange!r} is not a letter, digit or hyphen'
    if name != name.lower():
        return 'its letters are not all lower-case'
    if not all(name.split('-')):
        return 'a hyphen stands at an end or beside another'
    return None


def _hyphenate(name: str) -> str:
    """Lower-case words of letters and digits, joined by hyphens; empty when there are none."""
    text = unicodedata.normalize('NFKC', name)
    spaced = ''.join(f'-{c}' if c.isupper() and _begins_word(text, i) else c for i, c in enumerate(text))
    # Lower-casing can leave an accent that stands alone ('İ' → 'i̇'): accents belong to a word, all else ends it.
    joined = ''.join(c if _is_letter(c) else '-' for c in spaced.lower() if not unicodedata.category(c).startswith('M'))
    return unicodedata.normalize('NFKC', '-'.join(filter(None, joined.split('-'))))


def _is_letter(c: str) -> bool:
    """Whether it is a letter or digit that can be seen; the fillers of Hangul cannot."""
    return c.isalnum() and c not in '\u115f\u1160\u3164\uffa0'


def _begins_word(text: str, i: int) -> bool:
    """Whether the capital at `i` begins a word: the `N` of `myName`, and the `P` of `HTMLParser`."""
    return i > 0 and (not text[i - 1].isupper() or text[i + 1 : i + 2].islower())

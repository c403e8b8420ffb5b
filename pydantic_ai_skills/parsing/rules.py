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
    'MAX_TOOL_NAME_LENGTH',
    'RULES',
    'SkillRule',
    'check_skill_name',
    'is_simple_name',
    'normalize_skill_name',
    'problem',
    'shorten_skill_name',
    'skill_rules',
    'spellings',
    'tool_name',
)

MAX_NAME_LENGTH = 64
"""Characters in a skill's name, after NFKC."""

MAX_TOOL_NAME_LENGTH = 64
"""What model providers allow for the name of a tool."""

MAX_DESCRIPTION_LENGTH = 1024
"""Characters in a skill's description."""

MAX_COMPATIBILITY_LENGTH = 500
"""Characters in a skill's note on what it needs to run."""

_SIMPLE_NAME = re.compile(r'[a-z0-9]+(?:-[a-z0-9]+)*').fullmatch

_MAX_WORDING = 1024
# NFKC takes quadratic time for some texts, so more of a would-be name is never looked at.


@dataclass(frozen=True, kw_only=True)
class SkillRule:
    """Something that can be wrong with a skill, what it costs, and what to do about it."""

    code: str
    """A stable, kebab-case identifier."""

    severity: ProblemSeverity
    """`'error'`: the skill is left out. `'warning'`: it is loaded all the same."""

    summary: str
    """What is wrong, in a sentence for the documentation."""

    fix: str
    """What to do about it, in a sentence or two."""


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
    'project-untrusted': 'Skills of a project are left out, because its checkout is not trusted.',
    # What an installed package must be.
    'package-missing': 'A package that was named is not installed.',
    'package-unreadable': 'The entry points of an installed package cannot be read.',
    'package-untrusted': 'A skill that has to be imported is left out, because its package is not trusted.',
    'entry-point-invalid': 'An entry point names neither a module nor skills.',
    'module-missing': 'The module of an entry point is not there, or is built into Python.',
    'module-compiled': 'The module of an entry point has no source, only compiled code.',
    'module-invalid': 'The module of an entry point is too long, cannot be decoded, or is not valid Python.',
    'module-undocumented': 'The module of an entry point has no docstring to describe it.',
    'module-fails': 'The module of an entry point raises an exception whenever it is imported.',
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
    'model-ignored': 'A skill names a model or its settings; which model runs is for the application to say.',
    # Tools of a skill that are not offered.
    'tool-invalid': 'A tool that a skill declares lacks something or has an option of the wrong kind.',
    'tool-script-outside': 'A tool that a skill declares names a script outside the skill.',
    'tool-script-missing': 'A tool that a skill declares names a script that is not there.',
    'tool-type-unknown': 'A tool that a skill declares has an argument of an unknown type.',
    'tool-name-clash': 'Two tools of a skill have the same name; the first one is used.',
    'tool-name-too-long': 'The name of a tool, with that of its skill before it, is longer than 64 characters.',
    'tools-untrusted': 'A `tools.py` comes from a source that is not trusted and is not imported.',
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
    # What the list of skills is to hold.
    # What is to make things faster.
    'index-failed': 'The index on disk cannot be used; the files are read instead.',
    'watch-failed': 'A directory cannot be watched for changes; its files are looked at before each run instead.',
    'pinned-unknown': 'A skill that is to be pinned is not there.',
    'pinned-too-long': 'The pinned skills take more room than the budget of the list of skills.',
    'rename-unknown': 'A registry is to rename a skill that it does not have.',
    # Installed packages.
    'package-available': 'An installed package has skills that are not offered, because it was not named.',
    'package-empty': 'A package that was named has no skills.',
    'module-unclear': 'The API of a module, or a function of it, cannot be analysed; the rest of it is loaded.',
    'policy-unknown': 'A function is to be called under a policy that is not known or does not fit; it is not offered.',
    'import-failed': 'A module, or a function of it, could not be imported to be run.',
    'extra-missing': 'Something has to be installed before a skill can be loaded.',
}

_FIXES = {
    'empty-file': 'Write frontmatter with a name and a description, then the instructions.',
    'not-utf8': 'Save the file as UTF-8. Editors have this under "save with encoding".',
    'binary-file': 'Put text into `SKILL.md`, and binary content into a file beside it.',
    'no-frontmatter': 'Begin the file with a `---` line, `name:` and `description:` lines, and another `---` line.',
    'unclosed-frontmatter': 'Add a line with `---` between the last key and the instructions.',
    'frontmatter-too-large': 'Keep the frontmatter short; move long text below the second `---` line.',
    'frontmatter-too-deep': 'Use fewer levels of lists and mappings.',
    'frontmatter-not-a-mapping': 'Write the frontmatter as `key: value` lines.',
    'yaml-alias': 'Write the value out where the alias is.',
    'name-unusable': 'Add `name:` with lower-case letters, digits and single hyphens, such as `my-skill`.',
    'description-missing': 'Add `description:` and say what the skill does and when to use it.',
    'description-not-text': 'Write the description as one text after `description:`.',
    'directory-missing': 'Create the directory, or correct its path.',
    'unreadable': 'Make it readable for this user, and a file rather than a link.',
    'special-file': 'Replace it with a regular file.',
    'too-large': 'Move parts of it into files below `references/`, which are read when they are needed.',
    'folder-link': 'Put the folder itself there, or allow links with `follow_links=True`.',
    'too-many-folders': 'Name a directory that holds skills and little else.',
    'source-failed': 'See to what the message says; the source is asked again at the next reload.',
    'lock-mismatch': 'Look at what has changed. To accept it, write the lock file again.',
    'frontmatter-not-first': 'Remove the blank lines at the top of the file.',
    'yaml-repaired': 'Put values that hold `: `, ` #` or quotes into quotes.',
    'yaml-duplicate-key': 'Keep one of the lines.',
    'yaml-tag': 'Remove the tag.',
    'name-missing': 'Add `name:` with the name of the folder.',
    'name-mismatch': 'Give `name:` and the folder the same name.',
    'name-invalid': 'Use lower-case letters, digits and single hyphens, such as `my-skill`.',
    'name-too-long': 'Use at most 64 characters.',
    'description-too-long': 'Use at most 1024 characters; details belong into the instructions.',
    'compatibility-too-long': 'Use at most 500 characters; details belong into the instructions.',
    'field-type': 'Give the field the kind of value the message names, or move it below `metadata:`.',
    'file-name': 'Rename the file to `SKILL.md`.',
    'model-ignored': 'Remove it; say in `compatibility` what kind of model the skill needs.',
    'tool-invalid': 'Write it as the page about typed tools shows.',
    'tool-script-outside': 'Put the script into the skill and name it by its path there.',
    'tool-script-missing': 'Add the script, or correct its path.',
    'tool-type-unknown': 'Use a type of JSON Schema: string, integer, number, boolean, array or object.',
    'tool-name-clash': 'Give one of the tools another name.',
    'tool-name-too-long': 'Use a shorter name for the tool or for the skill.',
    'tools-untrusted': 'Read the file; if you trust the source, mark it as trusted.',
    'file-link': 'Put the file itself into the skill.',
    'file-special': 'Remove it, or replace it with a regular file.',
    'file-too-large': 'Make it smaller, or have a script read it.',
    'file-unreadable': 'Make it readable for this user, or give it a plain name.',
    'folder-too-deep': 'Use fewer levels of folders.',
    'too-many-files': 'Keep only what the skill needs in its folder.',
    'file-edited': 'Move your changes elsewhere, or remove the file so that it is fetched again.',
    'index-failed': 'Make the file named in the message writable, or remove it so that it is made again.',
    'watch-failed': 'See to what the message says, or use `auto_reload=True`.',
    'duplicate-name': 'Rename one of the skills.',
    'shadowed': 'Nothing, if this is meant. Otherwise rename one of the skills, or leave out one of the sources.',
    'rename-unknown': 'Correct the name in `.renamed()`, or remove it there.',
    'project-untrusted': 'Read the skills, then name the project in `trust=`.',
    'package-missing': 'Install the package, or remove it from `packages=`.',
    'package-unreadable': 'Install the package again.',
    'package-untrusted': 'If you trust the package, name it in `trusted=`.',
    'entry-point-invalid': 'Have the entry point name a module, a `Skill`, a list of them or a function.',
    'module-missing': 'Correct the entry point, or install the package again.',
    'module-compiled': 'Ship the source of the module, or a folder with a `SKILL.md`.',
    'module-invalid': 'Make the module valid Python in UTF-8.',
    'module-undocumented': 'Give the module a docstring that says what it does and when to use it.',
    'module-fails': 'Import the module by hand to see why, and mend it.',
    'package-available': 'To offer its skills, name the package in `packages=`.',
    'package-empty': 'Remove the package from `packages=`, or install a version that has skills.',
    'module-unclear': 'Nothing, if the rest is enough. Otherwise simplify what the module exports.',
    'policy-unknown': 'Name a policy that is known, and parameters that the function takes.',
    'import-failed': 'Import the module by hand to see why, and mend it.',
    'extra-missing': 'Install what the message names.',
    'pinned-unknown': 'Correct the name in `pinned=`, or remove it there.',
    'pinned-too-long': 'Pin fewer skills, or raise `catalog_budget`.',
}

_SEVERITIES: tuple[tuple[ProblemSeverity, dict[str, str]], ...] = (('error', _ERRORS), ('warning', _WARNINGS))

RULES: dict[str, SkillRule] = {
    code: SkillRule(code=code, severity=severity, summary=summary, fix=_FIXES.get(code, ''))
    for severity, summaries in _SEVERITIES
    for code, summary in summaries.items()
}
"""The rule behind each problem code."""


def skill_rules() -> dict[str, SkillRule]:
    """The rule behind each problem code."""
    return dict(RULES)


def problem(code: str, path: str, message: str, line: int | None = None) -> SkillProblem:
    """Build the problem for a broken rule; the table gives its severity."""
    rule = RULES[code]
    return SkillProblem(path=path, code=code, severity=rule.severity, message=message, line=line, fix=rule.fix or None)


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


def spellings(wording: str) -> tuple[str, ...]:
    """The names that a wording may stand for: `GitHub` for `github`, and `My_Skill` for `my-skill`."""
    try:
        return wording, wording.lower(), normalize_skill_name(wording)
    except SkillValidationError:
        return wording, wording.lower()


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


def is_simple_name(name: str) -> bool:
    """Whether a name follows the rule as it stands and is plain ASCII, as most are."""
    return len(name) <= MAX_NAME_LENGTH and _SIMPLE_NAME(name) is not None


def check_skill_name(name: str) -> str:
    """Return the name, after NFKC, if it follows the rule exactly.

    Raises:
        SkillValidationError: It does not; the message says why and gives a name that would.
    """
    if is_simple_name(name):
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


def tool_name(skill: str, tool: str) -> str:
    """What the model calls a tool of a skill: `fetch` of `web-research` is `web_research__fetch`.

    Providers take Latin letters, digits and underscores only. Of a name that has others, the Latin letters stay, and
    a digest tells it apart.
    """
    plain = skill
    if not skill.isascii():
        import hashlib  # for few names

        latin = unicodedata.normalize('NFKD', skill).encode('ascii', 'ignore').decode().strip('-')
        plain = f'{latin or "skill"}-{hashlib.sha256(skill.encode()).hexdigest()[:6]}'
    return f'{plain.replace("-", "_")}__{tool}'

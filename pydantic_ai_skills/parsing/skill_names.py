"""Rules for skill names and the length limits of the Agent Skills specification."""

from __future__ import annotations

import re
import unicodedata

from pydantic_ai_skills.exceptions import SkillValidationError

from .findings import shown

MAX_NAME_LENGTH = 64
"""Characters in a skill's name, after NFKC."""

MAX_TOOL_NAME_LENGTH = 64
"""How long a tool name model providers allow."""

MAX_DESCRIPTION_LENGTH = 1024
"""Characters in a skill's description."""

MAX_COMPATIBILITY_LENGTH = 500
"""Characters in a skill's note on what it needs to run."""

RESERVED_WORDS = frozenset({'anthropic', 'claude'})
"""Words that some programs do not allow in the name of a skill."""

find_reserved_word = re.compile('|'.join(sorted(RESERVED_WORDS))).search

# A name that follows the rule as it stands and is plain ASCII, as most are.
match_simple_name = re.compile(rf'(?!.{{{MAX_NAME_LENGTH + 1}}})[a-z0-9]+(?:-[a-z0-9]+)*').fullmatch

# NFKC takes quadratic time for some texts, so only this much of a would-be name is examined.
_MAX_WORDING = 1024


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
    """The names that a wording may mean: `GitHub` may mean `github`, and `My_Skill` may mean `my-skill`."""
    try:
        return wording, wording.lower(), normalize_skill_name(wording)
    except SkillValidationError:
        return wording, wording.lower()


def shorten_skill_name(name: str) -> str:
    """Like `normalize_skill_name`, but cut a name that is too long, between words where that is possible."""
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
    if match_simple_name(name):
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
    """Whether it is a visible letter or digit; the fillers of Hangul are invisible."""
    return c.isalnum() and c not in '\u115f\u1160\u3164\uffa0'


def _begins_word(text: str, i: int) -> bool:
    """Whether the capital at `i` begins a word: the `N` of `myName`, and the `P` of `HTMLParser`."""
    return i > 0 and (not text[i - 1].isupper() or text[i + 1 : i + 2].islower())


def tool_name(skill: str, tool: str) -> str:
    """What the model calls a tool of a skill: `fetch` of `web-research` is `web_research__fetch`.

    Providers allow only Latin letters, digits and underscores. A name with other letters keeps its Latin ones and gets
    a digest that tells it apart.
    """
    plain = skill
    if not skill.isascii():
        import hashlib  # for few names

        latin = unicodedata.normalize('NFKD', skill).encode('ascii', 'ignore').decode().strip('-')
        plain = f'{latin or "skill"}-{hashlib.sha256(skill.encode()).hexdigest()[:6]}'
    return f'{plain.replace("-", "_")}__{tool}'

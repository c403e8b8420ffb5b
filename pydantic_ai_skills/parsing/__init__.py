"""`SKILL.md` → the header of a skill and its instructions, with problems as values.

Data moves through the files in this order: `frontmatter` cuts a file at its `---` lines and reads the first part
(`fast` where it is simple, `yaml_reader` where it is not, `repair` where it is broken), `header` applies the rules in
`rules`, and `skill_md` puts them together. Nothing here reads a file or raises for a bad skill.
"""

from __future__ import annotations

from .findings import MAX_NESTING
from .frontmatter import MAX_FRONTMATTER_BYTES
from .header import SkillHeader
from .headings import find_headings
from .rules import (
    MAX_COMPATIBILITY_LENGTH,
    MAX_DESCRIPTION_LENGTH,
    MAX_NAME_LENGTH,
    RULES,
    SkillRule,
    check_skill_name,
    normalize_skill_name,
    problem,
)
from .skill_md import ParsedHead, ParsedSkill, check_text, decode_body, parse_head, parse_skill_text

__all__ = (
    'MAX_COMPATIBILITY_LENGTH',
    'MAX_DESCRIPTION_LENGTH',
    'MAX_FRONTMATTER_BYTES',
    'MAX_NAME_LENGTH',
    'MAX_NESTING',
    'RULES',
    'ParsedHead',
    'ParsedSkill',
    'SkillHeader',
    'SkillRule',
    'check_skill_name',
    'check_text',
    'decode_body',
    'find_headings',
    'normalize_skill_name',
    'parse_head',
    'parse_skill_text',
    'problem',
)

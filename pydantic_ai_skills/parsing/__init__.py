"""`SKILL.md` → the header of a skill and its instructions, with problems as values.

`skill_md` has the entry points. `fast_path` reads most skills; for the others `frontmatter` cuts the file at its `---`
lines and reads the first part (`yaml_reader`, or `yaml_repair` where it is broken), and `header` applies the rules.
Nothing here opens a file or raises for a bad skill.
"""

from __future__ import annotations

from .header import MAX_FRONTMATTER_BYTES, SkillHeader
from .skill_md import ParsedHead, ParsedSkill, check_text, decode_body, find_headings, parse_head, parse_skill_text

__all__ = (
    'MAX_FRONTMATTER_BYTES',
    'ParsedHead',
    'ParsedSkill',
    'SkillHeader',
    'check_text',
    'decode_body',
    'find_headings',
    'parse_head',
    'parse_skill_text',
)

"""`SKILL.md` → the header of a skill and its instructions, with problems as values.

`skill_md` has the entry points. `fast_path` reads most skills; for the others `frontmatter` cuts the file at its `---`
lines and reads the first part (`yaml_reader`, or `yaml_repair` where it is broken), and `header` applies the rules.
Nothing here opens a file or raises for a bad skill.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai_skills.filesystem.lazy_imports import import_lazily

if TYPE_CHECKING:
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

__getattr__ = import_lazily(
    __name__,
    {
        '.header': ('MAX_FRONTMATTER_BYTES', 'SkillHeader'),
        '.skill_md': (
            'ParsedHead',
            'ParsedSkill',
            'check_text',
            'decode_body',
            'find_headings',
            'parse_head',
            'parse_skill_text',
        ),
    },
)

"""Highlights Markdown that begins with YAML frontmatter, such as a `SKILL.md`, as what it is: YAML, then Markdown."""

# pyright: basic
# Pygments has no types for its lexers.

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import bygroups, using
from pygments.lexers import LEXERS, MarkdownLexer, YamlLexer
from pygments.token import Punctuation

__all__ = ('FrontmatterLexer',)


class FrontmatterLexer(MarkdownLexer):
    """Markdown, with frontmatter read as YAML."""

    name = 'Markdown with frontmatter'
    tokens: ClassVar[dict[str, Any]] = {
        **MarkdownLexer.tokens,
        'root': [
            (r'\A(---\n)((?:.*\n)*?)(---\n)', bygroups(Punctuation, using(YamlLexer), Punctuation)),
            *MarkdownLexer.tokens['root'],
        ],
    }


def use_it() -> None:
    """Let Pygments take this lexer for every block of `markdown`."""
    LEXERS['MarkdownLexer'] = (__name__, FrontmatterLexer.name, ('markdown', 'md'), ('*.md',), ())

"""Text that a person who reads a skill does not see: hidden characters, and instructions in HTML comments."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from .files import AuditedFile, AuditedFolder
from .findings import Finding

_HIDDEN = re.compile(
    '[\xad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]'
    # Joiners belong into some scripts and into emoji, not beside ASCII letters.
    '|(?<=[!-~])[\u200c\u200d]|[\u200c\u200d](?=[!-~])'
    # One of these chooses a form of the character before it; several encode a message.
    '|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2}'
    '|(?<!^)\ufeff'
)
"""A character that hides, reorders or smuggles text, where no script and no emoji needs it."""

_SECRET_INSTRUCTION = re.compile(
    r'\b(?:ignore|disregard|forget|override|bypass)\s++(?:\w++\s++){0,3}(?:instruction|prompt|rule|polic|guideline)'
    r"|\b(?:do not|don't|never)\s++(?:tell|mention|reveal|inform|show|ask|warn|alert)\b"
    r'|\bwithout\s++(?:telling|asking|informing|mentioning|confirm)'
    r'|\bsystem prompt\b|\byou are now\b'
    r'|\b(?:run|execute|curl|wget|send|upload|post|exfiltrate|eval)\b.{0,80}?(?:https?://|\$\(|~/|\.ssh|\.env\b|/etc/)',
    re.IGNORECASE,
)
"""Phrases that no comment for people contains."""

_INSTRUCTION = re.compile(
    r'\b(?:assistant|agent|model|ai|llm|you)\s++(?:must|should|shall|have to|has to)\b'
    r'|\balways\s++(?:run|execute|call|send|use|include|read|add)\b',
    re.IGNORECASE,
)
"""Phrases that comments for people contain in the source of a page, but not in instructions."""

_COMMENT_CHARACTERS = 4_000
"""How much of a comment is read."""


def hidden_characters(file: AuditedFile, _folder: AuditedFolder) -> Iterator[Finding]:
    """Characters that no one sees."""
    if file.text.isascii():
        return
    found = list(_HIDDEN.finditer(file.text))
    if found:
        codes = sorted({f'U+{ord(character):04X}' for match in found for character in match[0]})
        names = ', '.join(codes[:5]) + (', …' if len(codes) > 5 else '')
        first = unicodedata.name(found[0][0][0], 'unnamed').lower()
        message = f'{len(found)} hidden characters ({names}); the first is {first}.'
        yield Finding('hidden-unicode', message, found[0].start())


def instructions_in_comments(file: AuditedFile, _folder: AuditedFolder) -> Iterator[Finding]:
    """Comments that tell the model what to do: people see the page without them."""
    if not (file.is_prose or file.is_page):
        return
    for start, comment in _comments(file.text):
        match = _SECRET_INSTRUCTION.search(comment) or (file.is_prose and _INSTRUCTION.search(comment))
        if match:
            said = ' '.join(match[0].split())
            yield Finding('comment-instructions', f'An HTML comment instructs the model: {said!r}.', start)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Each comment with its place. One that does not end hides all that follows."""
    end = 0
    while (start := text.find('<!--', end)) >= 0:
        end = text.find('-->', start + 4)
        if end < 0:
            end = len(text)
        yield start, text[start + 4 : min(end, start + 4 + _COMMENT_CHARACTERS)]

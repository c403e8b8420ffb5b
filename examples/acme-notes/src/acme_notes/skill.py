"""Save, list and count notes. Use when something has to be remembered for later.

Save a note with `save_note`, one file for each subject. Look at `list_notes` first, so that none is written twice.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ['count_words', 'list_notes', 'save_note']

__skill_scripts__ = {
    'count_words': {},
    'list_notes': {'read': ['folder']},
    'save_note': {'write': ['target']},
}


def save_note(
    target: Path,  # the file, such as notes/plants.txt
    text: str,  # what to remember
) -> str:  # what was done
    """Save a note, in place of what the file had before."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, 'utf-8')
    return f'Saved {target.name}, {count_words(text)} words.'


def list_notes(folder: Path) -> list[str]:
    """The names of the notes in a folder.

    Args:
        folder: The folder.
    """
    return sorted(path.name for path in folder.glob('*.txt'))


def count_words(text: str) -> int:
    """How many words a text has."""
    return len(text.split())

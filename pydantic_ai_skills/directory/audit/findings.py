"""What a check finds in a file."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """Something in a file that a person should look at."""

    code: str
    """The code of the problem."""

    message: str
    """What it is. It never quotes a secret."""

    offset: int | None = None
    """Where in the text of the file it is."""

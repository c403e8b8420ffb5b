"""What text costs."""

from __future__ import annotations

__all__ = ('estimate_tokens',)

BYTES_PER_TOKEN = 4
"""Bytes of UTF-8 that are taken for one token."""


def estimate_tokens(text: str) -> int:
    """About how many tokens a text takes: one for every four bytes of UTF-8.

    That is near what most models count for English and for code. Each model counts in its own way, so use it to compare
    skills and to see the order of magnitude, not to fill a context window to the brim.

    ```python
    from pydantic_ai_skills import estimate_tokens

    print(estimate_tokens('Convert lengths, masses and temperatures.'))
    #> 11
    ```
    """
    return -(-len(text.encode('utf-8', 'replace')) // BYTES_PER_TOKEN)

from __future__ import annotations

import pytest

from pydantic_ai_skills import estimate_tokens


@pytest.mark.parametrize(('text', 'tokens'), [('', 0), ('a', 1), ('four', 1), ('fives', 2), ('日本', 2), ('\ud800', 1)])
def test_four_bytes_are_a_token(text: str, tokens: int):
    assert estimate_tokens(text) == tokens

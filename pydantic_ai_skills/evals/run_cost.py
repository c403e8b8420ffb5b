"""What a run of an agent takes, as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """What a run of the agent took, not counting the judging model."""

    input_tokens: int = 0
    """Tokens that the model was sent."""

    output_tokens: int = 0
    """Tokens that the model wrote."""

    requests: int = 0
    """How often the model was asked."""

    tool_calls: int = 0
    """How many tools were called."""

    seconds: float = 0.0
    """How long it took."""

    cost: float | None = None
    """What it cost in US dollars; `None` if the price of the model is not known."""

    @property
    def tokens(self) -> int:
        """All tokens, in both directions."""
        return self.input_tokens + self.output_tokens

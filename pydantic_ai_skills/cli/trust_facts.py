"""What is known about the content of a skill, as `list` and `show` report it, and for which skills it is recorded."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pydantic_ai_skills as api


def is_of_source(skill: api.Skill[Any]) -> bool:
    """Whether a skill was fetched, so that verdicts and scores about it are recorded by default."""
    return skill.source is not None and skill.source.commit is not None


def trust_data(known: api.KnownFacts, skill: api.Skill[Any]) -> dict[str, Any]:
    """What is known about a skill, as JSON."""
    facts = known.about(skill)
    return {
        'locked': known.is_locked(skill),
        'signed_by': facts.signed_by,
        'scanned': facts.is_scanned,
        'scans': [asdict(verdict) for verdict in facts.scans.values()],
        'evaluated': facts.score is not None,
        'score': facts.score and asdict(facts.score),
    }


def trust_lines(known: api.KnownFacts, skill: api.Skill[Any]) -> dict[str, str]:
    """What is known about a skill, for people. What is not known is empty."""
    facts = known.about(skill)
    return {
        'locked': 'yes' if known.is_locked(skill) else '',
        'signed': facts.signed_by or '',
        'scanned': '; '.join(map(str, facts.scans.values())),
        'evaluated': str(facts.score or ''),
    }

"""Records in `skills.lock` what was found out about the content of skills, for `require` to look up.

A fact belongs to a content hash. When the content of a skill changes, its facts are dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pydantic_ai_skills.filesystem.locks import only_one
from pydantic_ai_skills.types.ledger import EvalScore, ScanVerdict, SkillFacts

from .lockfile import read_document, write_document

PATIENCE_S = 10.0
"""How many seconds to wait for another process that writes to the lock file."""


def record_scan(lock_file: str | Path, content_hash: str, verdict: ScanVerdict, *, name: str = '') -> None:
    """Record the verdict of a scanner, in place of an earlier one of the same scanner.

    Args:
        lock_file: The lock file, which is made if it does not exist.
        content_hash: The content that was scanned, such as `skill.source.content_hash`.
        verdict: What the scanner said.
        name: The name of the skill. What was recorded for another content under this name is dropped.

    Raises:
        SkillRegistryError: The file exists and is not a lock file.
    """
    _record(
        lock_file,
        content_hash,
        name,
        lambda facts: replace(facts, scans={**facts.scans, verdict.scanner: verdict}),
    )


def record_score(lock_file: str | Path, content_hash: str, score: EvalScore, *, name: str = '') -> None:
    """Record the score of the latest evals, in place of an earlier one.

    Args:
        lock_file: The lock file, which is made if it does not exist.
        content_hash: The content that was evaluated, such as `skill.source.content_hash`.
        score: The result of the evals.
        name: The name of the skill. What was recorded for another content under this name is dropped.

    Raises:
        SkillRegistryError: The file exists and is not a lock file.
    """
    _record(lock_file, content_hash, name, lambda facts: replace(facts, score=score))


def read_facts(lock_file: str | Path) -> dict[str, SkillFacts]:
    """What a lock file knows about each content of skills, by content hash; nothing if it does not exist.

    Raises:
        SkillRegistryError: It is not a lock file, or others can write to it.
    """
    return dict(read_document(Path(lock_file)).facts)


def _record(lock_file: str | Path, content_hash: str, name: str, change: Callable[[SkillFacts], SkillFacts]) -> None:
    path = Path(lock_file)
    with only_one(path.parent, patience=PATIENCE_S):
        document = read_document(path)
        facts = document.facts.get(content_hash, SkillFacts())
        changed = change(replace(facts, name=name or facts.name))
        pinned = document.pinned
        others = {
            other: known for other, known in document.facts.items() if other in pinned or not name or known.name != name
        }
        write_document(path, replace(document, facts={**others, content_hash: changed}))

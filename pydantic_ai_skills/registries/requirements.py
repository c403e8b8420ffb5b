"""What a skill must be before it is offered: locked, signed, scanned or evaluated."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillValidationError
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.found_skills import FoundSkills
from pydantic_ai_skills.types.ledger import SkillFacts
from pydantic_ai_skills.types.provenance import SkillProvenance
from pydantic_ai_skills.types.skill import Skill

from .lockfile import LockDocument, read_document
from .signatures import SIGNATURE_FILE, SignatureError, SkillSigner, verify_signature

Requirement = Literal['locked', 'signed', 'scanned', 'evaluated']
"""What a skill can be required to be."""


def check_requirements(given: str | Collection[str]) -> tuple[Requirement, ...]:
    """The requirements that were given, in their usual order.

    Raises:
        SkillValidationError: One is not known.
    """
    known = get_args(Requirement)
    names = [given] if isinstance(given, str) else list(given)
    if not set(names) <= set(known):
        takes = ', '.join(map(repr, known))
        raise SkillValidationError(f'require takes a list of {takes}, not {given!r}.')
    return tuple(name for name in known if name in names)


@dataclass(frozen=True, kw_only=True, eq=False)
class Requirements:
    """What the skills of a registry must be, and the lock file that records what they are."""

    names: tuple[Requirement, ...] = ()
    signers: tuple[SkillSigner, ...] = ()
    """Who may sign; a signature by anyone else is refused even if none is required."""

    lock_file: Path

    _verified: dict[str, str | SignatureError | None] = field(
        default_factory=dict[str, 'str | SignatureError | None'], repr=False
    )
    """Who signed each content, or why the signature does not count, by content hash."""

    def __bool__(self) -> bool:
        return bool(self.names or self.signers)

    def hold(self, found: FoundSkills, changes: Mapping[str, str], *, place: str) -> FoundSkills:
        """Keep only the skills that have all that is required, and report each of the others at `place`.

        `changes` says, by the skill's folder, how its files differ from its content hash.
        """
        try:
            document, failure = read_document(self.lock_file), ''
        except SkillRegistryError as error:
            document, failure = LockDocument(), f' {str(error).rstrip(".")}.'
        good: list[Skill[Any]] = []
        problems: list[SkillProblem] = []
        for skill in found.skills:
            assert skill.source is not None
            lacks = list(self._lacks(skill, skill.source, document, changes.get(skill.source.path)))
            problems += (problem(code, place, f'The skill {skill.name!r} {why}{failure}') for code, why in lacks)
            if not lacks:
                good.append(skill)
        return FoundSkills(tuple(good), (*found.problems, *problems), found.source)

    def _lacks(
        self, skill: Skill[Any], source: SkillProvenance, document: LockDocument, change: str | None
    ) -> Iterator[tuple[str, str]]:
        """The problem code and the words for each thing that a skill lacks."""
        content = source.content_hash
        if change is not None or content is None:
            names = ', '.join(self.names) or 'signed'
            files = f' ({change})' if change else ''
            why = f'has files that were edited or added here{files}, so it is not {names} as it is. It is left out.'
            yield 'requirement-unmet', f'{why} Restore its files.'
            return
        signed_by = self._signer(skill, content)
        if isinstance(signed_by, SignatureError):
            yield 'signature-invalid', f'is left out: its signature does not count, because {signed_by}.'
            return
        skill.source = replace(source, signed_by=signed_by)
        facts = document.facts.get(content, SkillFacts())
        has: dict[Requirement, bool] = {
            'locked': is_locked(document, source),
            'signed': signed_by is not None,
            'scanned': facts.is_scanned,
            'evaluated': facts.score is not None,
        }
        missing: list[Requirement] = [name for name in self.names if not has[name]]
        if missing:
            ways = ' '.join(way_to(name, skill.name, facts) for name in missing)
            yield 'requirement-unmet', f'is left out: it is not {" nor ".join(missing)}. {ways}'

    def _signer(self, skill: Skill[Any], content: str) -> str | SignatureError | None:
        if not self.signers or skill.pinned is None:
            return None
        if content not in self._verified:
            try:
                self._verified[content] = verify_signature(skill.pinned, self.signers)
            except SignatureError as error:
                self._verified[content] = error
        return self._verified[content]


def is_locked(document: LockDocument, source: SkillProvenance) -> bool:
    """Whether a lock file pins a skill with the content that it has."""
    return any(
        (each.kind, each.url, each.ref) == (source.kind, source.url, source.ref)
        and each.skills.get(source.path) == source.content_hash is not None
        for each in document.sources
    )


def way_to(name: Requirement, skill: str, facts: SkillFacts) -> str:
    """How to make a skill meet a requirement, as a sentence with the command if there is one."""
    if name == 'signed':
        return f'Whoever publishes it has to sign it, as {SIGNATURE_FILE} in its folder.'
    if name == 'locked':
        return 'Review it, then run: pydantic-ai-skills lock.'
    if name == 'scanned':
        failed = [verdict.scanner for verdict in facts.scans.values() if not verdict.passed]
        again = f'{failed[0]} failed it; to see why, run' if failed else 'Run'
        return f'{again}: pydantic-ai-skills scan {skill}.'
    return f'Run: pydantic-ai-skills eval {skill} --model MODEL.'

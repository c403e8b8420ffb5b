"""What fetching the skills of a large repository costs, against a full clone of it."""

from __future__ import annotations

import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pydantic_ai_skills import SkillsDirectory
from pydantic_ai_skills.registries import GitSkillsRegistry
from tests.registries.repositories import ENVIRONMENT, GitServer, Repository

from .figure import Figure, best_of

FILES = 5_000
SKILLS = 50
FILE_BYTES = 4_000


def write_repository(path: Path) -> None:
    """Write a repository of 5,000 files, of which 50 are skills."""
    repository = Repository.create(path)
    rng = random.Random(1)
    words = [f'{rng.getrandbits(40):010x}' for _ in range(5_000)]
    for number in range(FILES - SKILLS):
        file = path / f'src/package_{number % 100:02}/module_{number:04}.py'
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(' '.join(rng.choices(words, k=FILE_BYTES // 11)))
    for number in range(SKILLS):
        repository.skill(f'skill-{number:02}', body=' '.join(rng.choices(words, k=FILE_BYTES // 11)))
    repository.commit()


def bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob('*') if path.is_file() and not path.is_symlink())


def measure(root: Path) -> Iterator[Figure]:
    write_repository(root / 'repos' / 'acme')
    server = GitServer(root / 'repos')
    try:
        clone = ['git', 'clone', '--quiet', f'{server.url}/acme', str(root / 'clone')]
        start = time.perf_counter()
        subprocess.run(clone, env=ENVIRONMENT, check=True)
        clone_seconds, clone_sent = time.perf_counter() - start, server.sent
        server.sent = 0
        start = time.perf_counter()
        registry = GitSkillsRegistry(f'{server.url}/acme', allowed_protocols=['http'], cache_dir=root / 'cache')
        assert len(registry.get_skills()) == SKILLS
        seconds, sent, commit = time.perf_counter() - start, server.sent, registry.commit
    finally:
        server.stop()
    what = f'{SKILLS} skills of {FILES:,} files'
    sizes = bytes_below(root / 'cache'), bytes_below(root / 'clone')
    for name, measured, baseline, unit, limit in (
        ('bytes sent', sent / 1e6, clone_sent / 1e6, 'MB', 10),
        ('bytes written', sizes[0] / 1e6, sizes[1] / 1e6, 'MB', 5),
        ('time', seconds, clone_seconds, 's', 100),
    ):
        yield Figure(
            what=f'{what}: {name}',
            measured=measured,
            unit=unit,
            limit=limit,
            judged_by='share',
            baseline=baseline,
            baseline_is='git clone',
        )

    def warm() -> None:
        url = f'{server.url}/acme'
        pinned = GitSkillsRegistry(url, ref=commit, allowed_protocols=['http'], cache_dir=root / 'cache')
        assert len(pinned.get_skills()) == SKILLS

    ours, plain = best_of(warm, lambda: SkillsDirectory(root / 'clone/skills').get_skills())
    yield Figure(
        what='warm start with a commit pin, server gone',
        measured=ours,
        unit='ms',
        limit=2,
        judged_by='ratio',
        baseline=plain,
        baseline_is='SkillsDirectory of the same skills',
    )


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        yield from measure(Path(folder).resolve())

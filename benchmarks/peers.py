"""`make bench-peers`: this package beside other skills libraries, each in an environment of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import peer
from .figure import Figure, best_of
from .report import write_peers
from .skills import scan_and_parse, write_skills

COUNT = 1_000
ENVIRONMENTS = Path('.venv') / 'peers'
REQUIREMENTS = {'pydantic-ai-harness': 'pydantic-ai-harness[skills]', 'agno': 'agno[skills]'}
FIFTY_TIMES = ('pydantic-ai-skills==1.4.0', 'pydantic-ai-harness')
"""Those that a run of this package has to be fifty times cheaper than."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a library costs."""

    name: str
    version: str
    cold: float
    """Finding all skills, in milliseconds."""
    run: float
    """What each run costs again, in milliseconds."""


def python_for(name: str) -> Path:
    """The Python of the library's environment, which is made if need be."""
    if name == 'ours':
        return Path(sys.executable)
    folder = ENVIRONMENTS / name.replace('==', '-')
    python = folder / 'bin' / 'python'
    done = folder / '.done'
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        # The one that made this environment, which may be the system's.
        uv = shutil.which('uv', path=os.pathsep.join((str(Path(sys.executable).parent), os.environ['PATH'])))
        assert uv is not None, 'uv is not installed'
        subprocess.run([uv, 'venv', '--quiet', '--python', sys.executable, folder], check=True)
        install = [uv, 'pip', 'install', '--quiet', '--python', python, REQUIREMENTS.get(name, name)]
        subprocess.run(install, check=True)
        done.touch()
    return python


def measure(name: str, root: Path) -> Result:
    # Isolated: whatever is on the path here must not stand in for what is installed there.
    program = [python_for(name), '-I', peer.__file__, name, str(root)]
    done = subprocess.run(program, check=True, capture_output=True, text=True)
    told = json.loads(done.stdout.splitlines()[-1])
    assert told['found'] in (COUNT, -1), told
    return Result(name=name, version=told['version'], cold=told['cold'], run=told['run'])


def figures(results: list[Result]) -> Iterator[Figure]:
    ours, *others = results
    for other in others:
        name = f'{other.name.partition("==")[0]} {other.version}'
        yield Figure(
            what=f'cold: {name}',
            measured=other.cold,
            unit='ms',
            baseline=ours.cold,
            baseline_is='pydantic-ai-skills (this one)',
            judged_by='ratio',
            limit=1,
            at_least=True,
        )
        yield Figure(
            what=f'each run: {name}',
            measured=other.run,
            unit='ms',
            baseline=ours.run,
            baseline_is='pydantic-ai-skills (this one) with auto_reload',
            judged_by='ratio',
            limit=50 if other.name in FIFTY_TIMES else None,
            at_least=True,
        )


def main() -> None:
    """Measure each library on the same skills, print the figures, and write them into the documentation."""
    for name in peer.PEERS:
        python_for(name)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / 'skills'
        write_skills(root, COUNT)
        results = [measure(name, root) for name in peer.PEERS]
        (floor,) = best_of(lambda: scan_and_parse(root))
    measured = list(figures(results))
    for figure in measured:
        print(figure)
    write_peers([(f'{one.name.partition("==")[0]} {one.version}', one.cold, one.run) for one in results], floor, COUNT)
    sys.exit(any(figure.is_over for figure in measured))


if __name__ == '__main__':
    main()

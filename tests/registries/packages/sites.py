"""Folders of installed packages to test with, written as an installer writes them."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tests.folders import skill_md, write

STATS = '''\
"""Statistics for small tables. Use for means and reports.

Call `mean` first.
"""

from pathlib import Path

__all__ = ['mean', 'save', 'Table']


def mean(
    values: list[float],  # the numbers
    digits: int = 2,  # how many digits to keep
) -> float:  # the mean
    """The mean of some numbers."""
    return round(sum(values) / len(values), digits)


def save(target: Path, text: str) -> str:
    """Save a report.

    Args:
        target: Where to.
        text: The report.
    """
    target.write_text(text)
    return f'saved {target.name}'


def not_public() -> None: ...


class Table:
    """Rows and columns.

    Not shown.
    """

    rows: int = 0

    def __init__(self, path: str) -> None:
        self.path = path

    def add(self, row: list[str]) -> None:
        """Add a row."""

    @property
    def size(self) -> int:
        """How many rows there are."""
        return self.rows

    def _hidden(self) -> None: ...
'''


class Site:
    """A folder of installed packages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def install(
        self,
        name: str,
        files: Mapping[str, str | bytes] | None = None,
        *,
        version: str = '1.0',
        entry_points: Mapping[str, Mapping[str, str]] | None = None,
        info: Mapping[str, str] | None = None,
        record: bool = True,
    ) -> Path:
        """Install a distribution; returns the folder of its metadata."""
        folder = f'{name.replace("-", "_")}-{version}.dist-info'
        points = ''.join(
            f'[{group}]\n' + ''.join(f'{key} = {value}\n' for key, value in names.items()) + '\n'
            for group, names in (entry_points or {}).items()
        )
        metadata = {
            'METADATA': f'Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n\nName: not this\n',
            **({'entry_points.txt': points} if points else {}),
            **(info or {}),
        }
        written = {**(files or {}), **{f'{folder}/{file}': text for file, text in metadata.items()}}
        write(self.path, written)
        if record:
            lines = [f'{file},{_digest(content)},1\n' for file, content in written.items()]
            (self.path / folder / 'RECORD').write_text(''.join((*lines, f'{folder}/RECORD,,\n')))
        return self.path / folder

    def zipped(self, target: Path) -> Path:
        """The same as an archive."""
        with zipfile.ZipFile(target, 'w') as archive:
            for file in sorted(self.path.rglob('*')):
                archive.write(file, file.relative_to(self.path).as_posix())
        return target


def skill(
    name: str, folder: str = '.agents/skills', description: str = 'Does it.', body: str = 'Do it.'
) -> dict[str, str]:
    """The files of a skill in a package of the same name as the skill, with `-` as `_`."""
    package = name.replace('-', '_')
    return {
        f'{package}/__init__.py': f"raise RuntimeError('{package} was imported')\n",
        f'{package}/{folder}/{name}/SKILL.md': skill_md(name, description, body),
    }


def _digest(content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    return f'sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")}'

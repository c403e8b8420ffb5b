"""Describes what a failed script was missing, for the model and for the developer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

_DO_WITHOUT = 'where this script runs. Carry on without it if you can, or tell the user that it is missing.'


@dataclass(frozen=True, kw_only=True)
class MissingNeed:
    """A package, program or key that a script lacked."""

    kind: Literal['python', 'npm', 'program', 'key']
    """What it is: a Python package, an npm package, a program or an environment variable."""

    name: str
    """The name under which to install or set it."""

    provider: str = ''
    """What to install for a program that comes with something of another name: LibreOffice for `soffice`."""

    @property
    def for_model(self) -> str:
        """One line for the model."""
        if self.kind == 'key':
            return (
                f'The environment variable {self.name!r} is not set for this script, and you cannot set it. '
                'Tell the user that the skill needs it.'
            )
        what = {'python': 'Python package', 'npm': 'npm package', 'program': 'program'}[self.kind]
        return f'The {what} {self.name!r} is not installed {_DO_WITHOUT}'

    def way_out(self, skill_name: str) -> str:
        """What the developer can do about it."""
        if self.kind == 'python':
            return f"run 'pip install {self.name}' for the Python of its scripts, or use dependencies='uv'"
        if self.kind == 'npm':
            return (
                f"run 'npm install {self.name}' in a folder above the skill, or name one in NODE_PATH with `pass_env`"
            )
        if self.kind == 'program':
            return f'install {self.provider or self.name}, and have it on the PATH of scripts'
        return f'set it for this process, and pass it on with skill_env={{{skill_name!r}: [{self.name!r}]}}'

"""Every error this package raises.

```
SkillError(Exception)
├── SkillValidationError       also ValueError; a developer wrote a skill, name or setting that cannot work
├── SkillNotFoundError         a name that no skill has
├── SkillResourceNotFoundError a name that no resource of the skill has
├── SkillScriptNotFoundError   a name that no script of the skill has
├── SkillResourceLoadError     a resource that the skill has, but that cannot be read
├── SkillScriptExecutionError  a script that cannot be started, or did not end by itself
├── SkillToolsError            a `tools.py` that cannot be imported
├── SandboxUnavailableError    no sandbox for scripts can be made on this machine
└── SkillRegistryError         a source of skills that cannot be reached or read
    └── SkillRegistryRefusedError  a source that does not accept the credential, or requires one
```

Outside a tool call they are ordinary exceptions for the developer. Inside one of the toolset's tools they reach the
model as a tool failure, so their messages say what was wrong and what would be right.
"""

from __future__ import annotations

__all__ = (
    'SandboxUnavailableError',
    'SkillError',
    'SkillNotFoundError',
    'SkillRegistryError',
    'SkillRegistryRefusedError',
    'SkillResourceLoadError',
    'SkillResourceNotFoundError',
    'SkillScriptExecutionError',
    'SkillScriptNotFoundError',
    'SkillToolsError',
    'SkillValidationError',
)


class SkillError(Exception):
    """Base of every error raised by this package."""


class SkillValidationError(SkillError, ValueError):
    """A skill, a name or an argument does not follow the rules. The message says which and how to fix it."""


class SkillNotFoundError(SkillError):
    """No skill has this name."""


class SkillResourceNotFoundError(SkillError):
    """The skill has no resource of this name."""


class SkillScriptNotFoundError(SkillError):
    """The skill has no script of this name."""


class SkillResourceLoadError(SkillError):
    """A resource cannot be read: its file is missing, too large or not a regular file, or its function failed."""


class SkillScriptExecutionError(SkillError):
    """A script could not be started, was given arguments it cannot take, or had to be stopped."""


class SkillToolsError(SkillError):
    """The `tools.py` of a skill cannot be read or imported. The log has the whole traceback."""


class SandboxUnavailableError(SkillError):
    """No sandbox can be made on this machine. The message says what is missing and how to install it."""


class SkillRegistryError(SkillError):
    """A registry could not deliver its skills."""


class SkillRegistryRefusedError(SkillRegistryError):
    """A source did not accept the credential, or requires one. Its earlier skills are no longer offered."""

"""Turns the bytes of a file into what the model is sent: text, an image or a PDF."""

from __future__ import annotations

from pathlib import PurePosixPath

from pydantic_ai.messages import BinaryContent

from pydantic_ai_skills.exceptions import SkillResourceLoadError

SNIFFED_BYTES = 1024
"""How much of a file is examined to tell text from binary."""

MODEL_MEDIA_TYPES = {
    '.gif': 'image/gif',
    '.jpeg': 'image/jpeg',
    '.jpg': 'image/jpeg',
    '.pdf': 'application/pdf',
    '.png': 'image/png',
    '.webp': 'image/webp',
}
"""Binary files that models accept. A type the provider refuses would end the run at the next request."""


def as_content(data: bytes, name: str) -> str | BinaryContent:
    """The content of a file as it is sent to the model; `SkillResourceLoadError` if models do not accept its kind."""
    kind = media_type(name)
    if kind is not None:
        return BinaryContent(data=data, media_type=kind)
    if b'\0' in data[:SNIFFED_BYTES]:
        kinds = ', '.join(sorted(MODEL_MEDIA_TYPES))
        raise SkillResourceLoadError(f'{name!r} is binary. Models take text and the types {kinds}.')
    return data.decode('utf-8', errors='replace')


def media_type(name: str) -> str | None:
    """The media type of a binary file that models accept, by its suffix."""
    return MODEL_MEDIA_TYPES.get(PurePosixPath(name).suffix.lower())

"""Reads from the text of a script which parameters it declares. Nothing is run or imported."""

from .parameters import Declaration, Parameter
from .reader import MAX_SOURCE_BYTES, declaration_of, read_declaration

__all__ = ['MAX_SOURCE_BYTES', 'Declaration', 'Parameter', 'declaration_of', 'read_declaration']

"""Reads from the text of a script which parameters it declares. Nothing is run or imported."""

from .parameters import MAX_SOURCE_BYTES, Declaration, Parameter, declaration_of
from .reader import read_declaration

__all__ = ['MAX_SOURCE_BYTES', 'Declaration', 'Parameter', 'declaration_of', 'read_declaration']

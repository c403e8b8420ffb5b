"""Merges the skills of all sources into one catalog and searches it."""

from .merge import Catalog, SkillsSource, load_catalog, merge

__all__ = ('Catalog', 'SkillsSource', 'load_catalog', 'merge')

from __future__ import annotations

from importlib.util import find_spec

# Prefect has an environment of its own: `make test-prefect`.
collect_ignore = [] if find_spec('prefect') else ['test_prefect.py']

"""`python -m pydantic_ai_skills` is the command line."""

from __future__ import annotations

from pydantic_ai_skills.cli import main

if __name__ == '__main__':
    main()

"""Turns functions into commands: adds shared options, prints errors on one line and sets the exit status."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from inspect import Parameter
from typing import Annotated, Any, cast

import typer
from typer import Option

import pydantic_ai_skills as api

from .output import Failure, Output

SUCCESS, PROBLEMS_FOUND, USAGE_ERROR, OPERATION_FAILED, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit statuses."""

_USAGE_ERRORS = (Failure, api.SkillNotFoundError, api.SkillScriptNotFoundError, api.SkillValidationError)
_JSON = Annotated[bool, Option('--json', help='Print JSON, for programs.')]
_JSON_PARAMETER = Parameter('as_json', Parameter.KEYWORD_ONLY, default=False, annotation=_JSON)


def command(function: Callable[..., int | None]) -> Callable[..., None]:
    """Decorator: make a command of a function that takes an `Output` and returns an exit status, `None` for success.

    It adds `--json`. A parameter whose type is a dataclass stands for the options that are its fields.
    """
    _, *declared = inspect.signature(function, eval_str=True).parameters.values()
    groups: dict[str, Any] = {each.name: each.annotation for each in declared if is_dataclass(each.annotation)}

    @functools.wraps(function)
    def run(*, as_json: bool, **given: Any) -> None:
        out = Output(as_json=as_json)
        message: str | None = None
        try:
            _check_texts(given.values())
            for name, group in groups.items():
                given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
            status = function(out, **given)
            sys.stdout.flush()
        except BrokenPipeError:
            status = SUCCESS  # the reader stopped reading
        except _USAGE_ERRORS as error:
            status, message = USAGE_ERROR, str(error)
        except (api.SkillError, ImportError) as error:
            status, message = OPERATION_FAILED, str(error)
        except OSError as error:
            what = error.strerror or str(error)
            status, message = OPERATION_FAILED, f'{error.filename}: {what}' if error.filename else what
            out.as_json &= _flush()
        except KeyboardInterrupt:
            status = INTERRUPTED
        if message is not None:
            _print_error(out, message)
        _flush()
        raise typer.Exit(status or SUCCESS)

    options = [option for each in declared for option in _options(each)]
    run.__signature__ = inspect.Signature([*options, _JSON_PARAMETER])  # pyright: ignore[reportAttributeAccessIssue] - for typer
    return run


def _options(declared: Parameter) -> Iterable[Parameter]:
    """The options that a parameter stands for."""
    is_group = is_dataclass(declared.annotation)
    each = inspect.signature(declared.annotation, eval_str=True).parameters.values() if is_group else [declared]
    return (option.replace(kind=Parameter.KEYWORD_ONLY) for option in each)


def _print_error(out: Output, message: str) -> None:
    try:
        out.fail(message)
    except OSError:  # standard output cannot be written to
        Output().fail(message)


def _check_texts(values: Iterable[object]) -> None:
    """Refuse texts that are not UTF-8, which neither files nor models accept. Paths may be anything."""
    for value in values:
        for text in cast('list[object]', value) if isinstance(value, list) else [value]:
            if isinstance(text, str):
                try:
                    text.encode()
                except UnicodeEncodeError:
                    raise Failure(f'{text!r} is not UTF-8 text.') from None


def _flush() -> bool:
    """Write what is buffered, or drop it if that fails: Python would report the failure at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True

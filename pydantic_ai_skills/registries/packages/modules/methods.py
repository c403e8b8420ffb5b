"""Methods of classes as functions: static and class methods as they are, others with the instance as an argument."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from types import ModuleType
from typing import Any, cast

from .allowed import INSTANCE
from .signatures import parameter_names
from .source import AnyFunctionDef, last_name

_KINDS = ('staticmethod', 'classmethod')


def as_function(method: AnyFunctionDef) -> tuple[AnyFunctionDef, list[str]]:
    """A method as the function that is offered, and its parameters that can be given by position."""
    function = deepcopy(method)
    kind = next((name for name in map(last_name, method.decorator_list) if name in _KINDS), None)
    function.decorator_list = [node for node in method.decorator_list if last_name(node) not in _KINDS]
    arguments = function.args
    positional = arguments.posonlyargs or arguments.args
    if kind == 'staticmethod' or not positional:
        return function, parameter_names(function)
    positional.pop(0)
    positions = parameter_names(function)
    if kind is None:
        (arguments.posonlyargs or arguments.args).insert(0, ast.arg(INSTANCE))
    return function, positions


def find_function(module: ModuleType, name: str) -> Callable[..., Any] | None:
    """The function or the method of this name in an imported module, if it has it."""
    owner, _, method = name.partition('.')
    found = getattr(module, owner, None)
    if not method:
        return found if callable(found) else None
    raw = inspect.getattr_static(found, method, None)
    if isinstance(raw, staticmethod | classmethod):
        return getattr(found, method)
    return _with_instance(cast('type[Any]', found), raw) if inspect.isfunction(raw) else None


def _with_instance(owner: type[Any], method: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes an instance from its `self` argument, and calls a method of that instance."""

    def call(*positional: Any, **named: Any) -> Any:
        given, *others = (named.pop(INSTANCE),) if INSTANCE in named else positional
        return method(_make(owner, given), *others, **named)

    first, *others = inspect.signature(method).parameters.values()
    call.__name__ = call.__qualname__ = method.__name__
    call.__doc__ = method.__doc__
    call.__annotations__ = {**inspect.get_annotations(method, eval_str=True), INSTANCE: Any}
    vars(call)['__signature__'] = inspect.Signature([first.replace(name=INSTANCE, annotation=Any), *others])
    return call


def _make(owner: type[Any], given: Any) -> Any:
    return owner(**cast('Mapping[str, Any]', given)) if isinstance(given, Mapping) else owner(given)

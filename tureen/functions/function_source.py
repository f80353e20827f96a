"""The source of a plain Python function, which another process can define again from the text alone."""

from __future__ import annotations
import __future__

import ast
import builtins
import dis
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from tureen.errors import InvalidFunction, InvalidSchema, shown
from tureen.functions.user_function import (
    LONGEST_SOURCE,
    UserFunction,
    check_function_name,
    check_import_path,
    parse_types,
)
from tureen.schema import Type

_HINT = "keep it in a module and pass its import path, such as 'package.module:name'"
_GLOBAL_OPERATIONS = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")


def source_of(function: Callable[..., Any]) -> str:
    """The source of a function; raises InvalidFunction for one that its source alone does not define."""
    name = getattr(function, "__name__", type(function).__name__)
    if not isinstance(function, FunctionType):
        raise InvalidFunction(f"'{name}' is not a plain Python function", hint=_HINT)
    if function.__name__ == "<lambda>":
        raise InvalidFunction("a lambda has no source of its own", hint="write a def")
    if hasattr(function, "__wrapped__"):
        raise InvalidFunction(f"'{name}' has a decorator", hint=_HINT)
    if function.__closure__:
        names = ", ".join(function.__code__.co_freevars)
        raise InvalidFunction(
            f"'{name}' is a closure: it uses {names} of the function around it",
            hint="define the values in the function itself",
        )
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise InvalidFunction(f"the source of '{name}' is not available", hint=_HINT) from None
    return check_source(source)


def function_of(
    name: object, function: object, returns: object, arguments: object, *, vectorized: bool = False
) -> UserFunction:
    """The function of the arguments of `create_function`: a plain function, or an import path."""
    if isinstance(function, str):
        return defined_function(name, None, function, returns, arguments, vectorized=vectorized)
    if not callable(function):
        raise InvalidFunction(
            f"a function must be a Python function or an import path, got {type(function).__name__}",
            hint="such as 'package.module:name'",
        )
    return defined_function(name, source_of(function), None, returns, arguments, vectorized=vectorized)


def defined_function(
    name: object, source: str | None, path: str | None, returns: object, arguments: object, *, vectorized: bool = False
) -> UserFunction:
    """The function of a definition, which is checked except for its code."""
    checked = check_function_name(name)
    if (source is None) == (path is None):
        raise InvalidFunction("a function has either a source or an import path")
    if not isinstance(returns, str) or not isinstance(arguments, str):
        raise InvalidFunction("the types of a function must be strings", hint='such as "BOOLEAN" and "STRING, INT"')
    if not isinstance(vectorized, bool):
        raise InvalidFunction(f"vectorized must be True or False, got {shown(vectorized)}")
    try:
        result = Type.parse(returns)
    except InvalidSchema as error:
        raise InvalidFunction(
            f"the return type of '{checked}' is not valid", detail=error.message, hint=error.hint
        ) from None
    types = parse_types(arguments)
    if source is not None:
        _check_parameters(check_source(source), len(types))
    return UserFunction(checked, types, result, source, None if path is None else check_import_path(path), vectorized)


def _check_parameters(source: str, count: int) -> None:
    """Raise if a function cannot be called with a number of arguments."""
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    names = definition.args
    positional = len(names.posonlyargs) + len(names.args)
    required = positional - len(names.defaults)
    needs_keyword = any(default is None for default in names.kw_defaults)
    if needs_keyword or count < required or (count > positional and names.vararg is None):
        raise InvalidFunction(
            f"'{definition.name}' cannot be called with {count} argument{'s' * (count != 1)}",
            detail=f"it is def {definition.name}({ast.unparse(names)})",
            hint="list the type of each of its parameters in arguments=",
        )


def check_source(source: str) -> str:
    """Raise InvalidFunction unless a text is one `def` that needs nothing but itself."""
    if not isinstance(source, str):
        raise InvalidFunction(f"the source of a function must be a string, got {type(source).__name__}")
    if len(source) > LONGEST_SOURCE:
        raise InvalidFunction(
            f"the source of a function must have at most {LONGEST_SOURCE:,} characters, got {len(source):,}", hint=_HINT
        )
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise InvalidFunction("the source of a function is not valid Python", detail=str(error)) from None
    definition = tree.body[0] if len(tree.body) == 1 else None
    if isinstance(definition, ast.AsyncFunctionDef):
        raise InvalidFunction(f"'{definition.name}' is a coroutine function", hint="write it without async")
    if not isinstance(definition, ast.FunctionDef):
        raise InvalidFunction("the source of a function must be one def", hint=_HINT)
    if definition.decorator_list:
        raise InvalidFunction(f"'{definition.name}' has a decorator", hint=_HINT)
    code = compile(source, "<function>", "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)
    bodies = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    body = next(constant for constant in bodies if constant.co_name == definition.name)
    if body.co_flags & inspect.CO_GENERATOR:
        raise InvalidFunction(f"'{definition.name}' is a generator function", hint="return one value for each call")
    foreign = sorted({*_globals_of(body)} - {definition.name} - set(dir(builtins)))
    if foreign:
        raise InvalidFunction(
            f"'{definition.name}' uses {', '.join(foreign)} of its module",
            hint="import or define it in the function itself, or pass an import path",
        )
    _check_defaults(definition)
    return source


def _check_defaults(definition: ast.FunctionDef) -> None:
    """Raise for defaults that are not constants: they would be evaluated in another process."""
    defaults = [*definition.args.defaults, *(value for value in definition.args.kw_defaults if value is not None)]
    for value in defaults:
        try:
            ast.literal_eval(value)
        except ValueError:
            raise InvalidFunction(
                f"a default of '{definition.name}' is not a constant: {ast.unparse(value)}", hint=_HINT
            ) from None


def _globals_of(code: CodeType) -> Iterator[str]:
    """The global names that a function, and the functions and classes in it, use."""
    instructions = list(dis.get_instructions(code))
    own = {instruction.argval for instruction in instructions if instruction.opname == "STORE_NAME"}
    for instruction in instructions:
        if instruction.opname in _GLOBAL_OPERATIONS and instruction.argval not in own:
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_of(constant)

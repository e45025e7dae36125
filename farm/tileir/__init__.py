"""Tile IR: read, print and compare what the front ends emit."""

from farm.errors import TileIRError
from farm.tileir.compare import Comparison, ParameterMapping, compare
from farm.tileir.difference import Difference, DifferenceKind, Place
from farm.tileir.model import Module, entry_parameters
from farm.tileir.parser import parse
from farm.tileir.printer import print_module
from farm.tileir.rules import RULES, Rule, RuleId
from farm.tileir.span import Source, Span
from farm.tileir.types import Type

__all__ = [
    "RULES",
    "Comparison",
    "Difference",
    "DifferenceKind",
    "Module",
    "ParameterMapping",
    "Place",
    "Rule",
    "RuleId",
    "Source",
    "Span",
    "TileIRError",
    "Type",
    "compare",
    "entry_parameters",
    "parse",
    "print_module",
]

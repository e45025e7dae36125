"""The output contract of a finished box, counted while the job's folder is still there."""

from pathlib import Path

from containers.box.files import parse_json
from containers.box.io import LocalBoxIO
from farm.capture import read_tree
from farm.codec import decode
from farm.data import config_folder
from farm.job import Job
from farm.layout import Layout
from farm.orders import BoxOrder, BoxResult
from farm.recipe import load_recipe
from farm.recipes.cutile_rs.contract import contract
from farm.recipes.cutile_rs.inventory import inventory
from farm.recipes.cutile_rs.validators.case import Case
from farm.report.evidence import RESULT
from workers.places import places


def kept(state: Path, job: Job) -> int | None:
    """How many of the things that the route owes are there and whole; None: the box has no result yet."""
    at = places(state, job)
    if not (at.out / RESULT).exists():
        return None
    recipe = load_recipe(config_folder() / "recipes" / "cutile-rs")
    layout = decode(Layout, recipe.layout, "layout")
    op = next(item for item in inventory(read_tree(at.workspace), layout) if item.name == job.op)
    result = parse_json((at.out / RESULT).read_bytes(), BoxResult)
    io = LocalBoxIO(workspace=at.workspace, out=at.out, toolchain=at.root, log=at.root / "contract.log")
    order = parse_json(at.order.read_bytes(), BoxOrder)
    case = Case(order=order, io=io, layout=layout, op=op)
    return sum(item.problem is None for item in contract(case, result.records))

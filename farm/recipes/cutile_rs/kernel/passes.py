"""What the source language's compiler does to the operations before it emits them: dead values go,
multiplications and additions fuse, loop-invariant values move out of their loops."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from farm.recipes.cutile_rs.kernel.build import Builder
from farm.recipes.cutile_rs.kernel.dtypes import Category
from farm.recipes.cutile_rs.kernel.model import Block, Node
from farm.recipes.cutile_rs.kernel.refusal import Refusal

EFFECTS = ("scatter", "store")
READS = ("gather", "load")


def walk(block: Block) -> Iterator[Node]:
    """All operations of a block and of the blocks in it, in order."""
    for node in block.nodes:
        yield node
        for inner in (node.body, node.other):
            if inner is not None:
                yield from walk(inner)


def optimise(root: Block, build: Builder) -> None:
    """Run the passes in the source compiler's order."""
    drop_dead(root)
    fuse(root, build)
    hoist(root)
    drop_dead(root)


# ---- dead values -------------------------------------------------------------------------


def drop_dead(root: Block) -> None:
    """Remove what no write to memory depends on, carried loop values included."""
    owners: dict[Node, tuple[Node, int]] = {}
    parents: dict[Node, list[Node]] = {}
    _relations(root, [], owners, parents)
    live: set[Node] = set()
    work = [node for node in walk(root) if node.op in EFFECTS]
    while work:
        node = work.pop()
        if node in live:
            continue
        live.add(node)
        work += parents.get(node, [])
        if node.op == "result":
            region, index = node.operands[0], node.attrs["index"]
            work += [region, region.operands[_first_carried(region) + index]]
            work += [inner.results[index] for inner in (region.body, region.other) if inner]
        elif node.op == "argument":
            region, index = owners[node]
            assert region.body is not None
            work += [region.operands[_first_carried(region) + index], region.body.results[index]]
        elif node.op in ("for", "if"):
            work += node.operands[: _first_carried(node)]
        else:
            work += node.operands
    _prune(root, live)


def _first_carried(region: Node) -> int:
    return 3 if region.op == "for" else 1


def _relations(
    block: Block,
    above: list[Node],
    owners: dict[Node, tuple[Node, int]],
    parents: dict[Node, list[Node]],
) -> None:
    for node in block.nodes:
        parents[node] = above
        for inner in (node.body, node.other):
            if inner is not None:
                for index, argument in enumerate(inner.arguments):
                    owners[argument] = (node, index)
                _relations(inner, [node], owners, parents)


def _prune(block: Block, live: set[Node]) -> None:
    block.nodes = [node for node in block.nodes if node in live]
    for node in block.nodes:
        if node.op not in ("for", "if"):
            continue
        results = node.attrs.get("results", [])
        kept = [
            index
            for index, result in enumerate(results)
            if result in live or (node.op == "for" and node.body and node.body.arguments[index] in live)
        ]
        first = _first_carried(node)
        node.operands = node.operands[:first] + tuple(node.operands[first + index] for index in kept)
        node.attrs["results"] = [results[index] for index in kept]
        for index, result in enumerate(node.attrs["results"]):
            result.attrs["index"] = index
        for inner in (node.body, node.other):
            if inner is not None:
                inner.results = [inner.results[index] for index in kept]
                inner.arguments = [inner.arguments[index] for index in kept] if inner.arguments else []
                _prune(inner, live)


# ---- fused multiply-add ------------------------------------------------------------------


def fuse(root: Block, build: Builder) -> None:
    """Turn `a * b + c` into one operation where the product has no other use. Raises Split where the
    lanes differ: a conversion between product and sum is there for some element types only."""
    plans = [_fusions(root, lane) for lane in range(build.lanes)]
    if any(plan != plans[0] for plan in plans):
        raise build.split_by_dtype()
    for total, (product, from_left) in plans[0].items():
        a, b = product.operands
        other = total.operands[1 if from_left else 0]
        block = _block_of(root, total)
        assert block is not None
        if total.attrs["fn"] == "sub":
            target = other if from_left else a
            negated = Node(
                "unary", target.type, (target,), {"fn": "neg", "kind": Category.FLOAT}, place=total.place
            )
            block.nodes.insert(block.nodes.index(total), negated)
            other, a = (negated, a) if from_left else (other, negated)
        total.op, total.operands = "fma", (a, b, other)
        owner = _block_of(root, product)
        assert owner is not None
        owner.nodes.remove(product)


def _fusions(root: Block, lane: int) -> dict[Node, tuple[Node, bool]]:
    uses: dict[Node, list[Node]] = defaultdict(list)
    for node in walk(root):
        if _identity(node, lane):
            continue
        for operand in node.operands:
            uses[_origin(operand, lane)].append(node)
        for inner in (node.body, node.other):
            for result in inner.results if inner else ():
                uses[_origin(result, lane)].append(node)
    found: dict[Node, tuple[Node, bool]] = {}
    taken: set[Node] = set()
    for node in walk(root):
        if node.op != "binary" or node.attrs["fn"] not in ("add", "sub") or not _float(node, lane):
            continue
        sides = [_origin(operand, lane) for operand in node.operands]
        for from_left, side in ((True, sides[0]), (False, sides[1])):
            if side.op != "binary" or side.attrs["fn"] != "mul" or not _float(side, lane):
                continue
            same = all(side.attrs.get(mode) == node.attrs.get(mode) for mode in ("rounding", "ftz"))
            alone = uses[side] == [node]
            if same and alone and not {side, node} & taken:
                found[node] = (side, from_left)
                taken |= {side, node}
            break
    return found


def _identity(node: Node, lane: int) -> bool:
    if node.op != "convert" or node.type is None or node.operands[0].type is None:
        return False
    return node.type.dtype.lanes[lane] == node.operands[0].type.dtype.lanes[lane]


def _origin(node: Node, lane: int) -> Node:
    while _identity(node, lane):
        node = node.operands[0]
    return node


def _float(node: Node, lane: int) -> bool:
    return node.type is not None and node.type.dtype.lanes[lane] in ("f16", "bf16", "f32", "f64")


def _block_of(block: Block, wanted: Node) -> Block | None:
    if wanted in block.nodes:
        return block
    for node in block.nodes:
        for inner in (node.body, node.other):
            found = _block_of(inner, wanted) if inner is not None else None
            if found is not None:
                return found
    return None


# ---- loop invariants ---------------------------------------------------------------------


def hoist(block: Block) -> None:
    """Move what does not change from one round of a loop to the next in front of the loop."""
    index = 0
    while index < len(block.nodes):
        node = block.nodes[index]
        for inner in (node.body, node.other):
            if inner is not None:
                hoist(inner)
        if node.op == "for" and node.body is not None:
            moved = _invariants(node, node.body)
            block.nodes[index:index] = moved
            index += len(moved)
            _refuse_split(node, node.body)
        index += 1


def _invariants(loop: Node, body: Block) -> list[Node]:
    inside = set(walk(body)) | set(body.arguments) | {loop.attrs["index"]}
    inside |= {result for node in walk(body) for result in node.attrs.get("results", [])}
    written = {node.attrs["array"] for node in walk(body) if node.op in EFFECTS}
    moved: list[Node] = []
    for node in body.nodes:
        still = node.op in EFFECTS or node.op in ("for", "if")
        read = node.op in READS and node.attrs["array"] in written
        if not still and not read and not any(operand in inside for operand in node.operands):
            moved.append(node)
            inside.discard(node)
    body.nodes = [node for node in body.nodes if node not in set(moved)]
    return moved


def _refuse_split(loop: Node, body: Block) -> None:
    index = loop.attrs["index"]
    for node in body.nodes:
        if node.op == "if" and node.operands[0].op == "compare" and index in node.operands[0].operands:
            raise Refusal(
                node.place or ast.Pass(),
                "a branch on the loop's own index: the source compiler splits such a loop in two",
                "write two loops, or use ct.where",
            )

"""What happens to tensors between launches, as far as a result can depend on it."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from containers.box.trace.addresses import AddressBook
from containers.box.trace.describe import described_tensor
from farm.analysis import BRANCH, HostStep
from farm.recipes.cutile_rs.storages import Maker, maker_of

_PLAIN = (bool, int, float, str, torch.dtype)


class StepLog:
    """The host code's tensor operations and the test's looks at what it made, of one row.

    Views and allocations are no steps: what they come to is in the arguments of what follows. A test's
    operation is a step only when it reads a tensor that it did not make.
    """

    def __init__(
        self,
        *,
        book: AddressBook,
        maker: Callable[[], Maker],
        launched: Callable[[], int],
        in_autograd: Callable[[], bool],
    ) -> None:
        self._book = book
        self._maker = maker
        self._launched = launched
        self._in_autograd = in_autograd
        self._of_backward: set[int] = set()
        self._reads: set[Any] = set()
        self.steps: list[HostStep] = []

    def operation(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        """An operation was carried out (on fake tensors)."""
        inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        outputs = [leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        if not outputs or func.is_view:
            return
        backward = self._in_autograd()
        if backward:
            self._of_backward |= {self._book.see(tensor.untyped_storage()) for tensor in outputs}
        if _looks_at_form_alone(func):
            return
        match self._maker():
            case Maker.OP:
                plain = [str(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, _PLAIN)]
                tensors = [*inputs, *outputs]
                self.steps.append(
                    HostStep(
                        after=self._launched(),
                        what=f"{func}({', '.join(plain)})",
                        tensors=tuple(
                            described_tensor(f"{i}", tensor, self._book) for i, tensor in enumerate(tensors)
                        ),
                        backward=backward,
                    )
                )
            case Maker.TEST:
                for tensor in inputs:
                    self.look(tensor)
            case Maker.ENGINE:
                pass

    def branch(self, tensor: Any) -> bool:
        """The host code branches on a tensor's value; it goes the way of True, and the step says so."""
        seen = described_tensor("0", tensor, self._book)
        self.steps.append(
            HostStep(after=self._launched(), what=BRANCH, tensors=(seen,), backward=self._in_autograd())
        )
        return True

    def look(self, tensor: Any) -> None:
        """The test looks at a tensor's values."""
        storage = self._book.see(tensor.untyped_storage())
        if maker_of(storage) is Maker.TEST:
            return
        seen = described_tensor("0", tensor, self._book)
        step = HostStep(
            after=self._launched(), what="read", tensors=(seen,), backward=storage in self._of_backward
        )
        if step not in self._reads:
            self._reads.add(step)
            self.steps.append(step)


def _looks_at_form_alone(func: Any) -> bool:
    """Whether the operation reads shapes and dtypes alone."""
    name = func._schema.name.removeprefix("aten::")
    return bool(name.startswith(("empty", "new_empty")) or name.endswith("_like"))

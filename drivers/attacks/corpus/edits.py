"""Words in which candidates are written: places in the honest implementation of relu, and what to put there."""

from drivers.attacks.model import Attack, Edit, Expected, Part, Where
from drivers.attacks.trees import KERNELS, NATIVE

HOST, KERNEL = f"{NATIVE}/relu.py", f"{KERNELS}/relu.c"
SCALE, SCALE_KERNEL = f"{NATIVE}/scale.py", f"{KERNELS}/scale.c"
CALL = '        check_rc(library().cpu_relu(describe(x), describe(y)), "cpu_relu")\n'
RETURN = "        return y\n"
CLASS = "class _Relu(torch.autograd.Function):\n"
APPLY = "    return _Relu.apply(x.contiguous())\n"
LOOP = "    FOR_EACH(x, float v = LOAD(x); STORE(y, v < 0.0f ? 0.0f : v));\n"
SCALE_CALL = '    check_rc(library().cpu_scale(describe(x), describe(y), ctypes.c_float(alpha)), "cpu_scale")\n'
SCALE_LOOP = "    FOR_EACH(x, STORE(y, LOAD(x) * alpha));\n"


def attack(
    name: str,
    what: str,
    where: Where,
    *words: str,
    cheat: tuple[Edit, ...],
    twin: tuple[Edit, ...] = (),
    op: str = "relu",
    first: Part = Part.TARGET,
) -> Attack:
    """An attack that shows where the repo's own rows run; `words` are to be in the refusal."""
    expected = Expected(where=where, words=words)
    return Attack(name=name, what=what, expected=expected, cheat=cheat, twin=twin, op=op, first=first)


def host(old: str, new: str) -> Edit:
    """A change of relu's host code."""
    return Edit(path=HOST, old=old, new=new)


def scale(old: str, new: str) -> Edit:
    """A change of scale's host code."""
    return Edit(path=SCALE, old=old, new=new)


def forward(body: str) -> Edit:
    """Other lines in place of the forward pass' call of the library and its return."""
    return Edit(path=HOST, old=CALL + RETURN, new=body)


def above(text: str) -> Edit:
    """More at the module's level, before the class."""
    return Edit(path=HOST, old=CLASS, new=text + "\n\n" + CLASS)


def kernel(new: str) -> Edit:
    """Another loop in relu's kernel."""
    return Edit(path=KERNEL, old=LOOP, new=new)

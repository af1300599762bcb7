#!/usr/bin/env python3
"""spills.py ACCEPTED.txt OBJECT...: fails if an innermost loop of packed multiply-adds keeps vectors on the stack.

A tile that does not fit the registers costs speed and breaks nothing else, so no other test sees it. Loops are the
natural loops of each function's flow graph: a block that the compiler moved elsewhere belongs to its loop, one that
only leaves it does not. Any vector or mask operand relative to the stack or frame pointer counts, broadcasts too;
reloaded addresses and counters do not, and vectors reached through a copy of the stack pointer are not seen.
ACCEPTED.txt: `piece of the function's name: reason` for each loop that may; a line that no loop needs fails too.
"""
import re
import subprocess
import sys

INSTRUCTION = re.compile(r"^\s+([0-9a-f]+):\s+(.*)$")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
RELOCATION = re.compile(r"^\s+[0-9a-f]+: R_")
TARGET = re.compile(r"^([0-9a-f]+) <")
STACK = re.compile(r"\((%rsp|%rbp)[,)]")
VECTOR = re.compile(r"%[xyzt]mm\d|%k\d")
FUSED = re.compile(r"^(vfn?m(add|sub)\w*p[sdh]|vdpbf16ps|tdp\w+)$")
PREFIXES = {"notrack", "bnd", "rep", "repz", "repnz", "lock", "data16", "cs"}


class Instruction:
    def __init__(self, address, text):
        self.address, self.text = address, " ".join(text.split("#")[0].split())
        words = [word for word in self.text.split() if word not in PREFIXES]
        self.name, self.operands = (words[0], " ".join(words[1:])) if words else ("", "")
        self.leaves = False  # its target is another function or section

    def is_jump(self):
        return self.name.startswith("j")

    def falls_through(self):
        return self.name != "jmp" and not self.name.startswith(("ret", "ud2", "hlt"))

    def target(self):
        match = TARGET.match(self.operands)
        return int(match.group(1), 16) if self.is_jump() and match and not self.leaves else None

    def has_vector_on_stack(self, frame_pointer):
        bases = {match.group(1) for match in STACK.finditer(self.operands)}
        return VECTOR.search(self.operands) and ("%rsp" in bases or frame_pointer and "%rbp" in bases)


def functions(path):
    """Name and instructions of each function of an object file."""
    command = ["objdump", "-d", "-r", "-C", "--no-show-raw-insn", path]
    name, body = None, []
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        if match := FUNCTION.match(line):
            if body:
                yield name, body
            name, body = match.group(1), []
        elif RELOCATION.match(line):
            body[-1].leaves = True
        elif match := INSTRUCTION.match(line):
            body.append(Instruction(int(match.group(1), 16), match.group(2)))
    if body:
        yield name, body


def blocks_of(body):
    """Basic blocks as lists of instructions, and the successors of each by its number."""
    at = {instruction.address: n for n, instruction in enumerate(body)}
    starts = {0}
    for n, instruction in enumerate(body):
        if instruction.is_jump() or not instruction.falls_through():
            starts.add(n + 1)
        if instruction.target() in at:
            starts.add(at[instruction.target()])
    cuts = sorted(start for start in starts if start < len(body)) + [len(body)]
    number = {start: n for n, start in enumerate(cuts)}
    blocks = [body[start:end] for start, end in zip(cuts, cuts[1:])]
    following = []
    for n, block in enumerate(blocks):
        last = block[-1]
        after = [number[at[last.target()]]] if last.target() in at else []
        if last.falls_through() and n + 1 < len(blocks):
            after.append(n + 1)
        following.append(after)
    return blocks, following


def dominators(following):
    """Each block's nearest dominator (Cooper, Harvey and Kennedy); None where no path from the first block leads."""
    order, state, stack = [], {0}, [(0, iter(following[0]))]
    while stack:
        block, rest = stack[-1]
        step = next((n for n in rest if n not in state), None)
        if step is None:
            order.append(block)
            stack.pop()
        else:
            state.add(step)
            stack.append((step, iter(following[step])))
    rank = {block: n for n, block in enumerate(order)}
    before = [[] for _ in following]
    for block in order:
        for after in following[block]:
            before[after].append(block)
    nearest = [None] * len(following)
    nearest[0] = 0

    def common(a, b):
        while a != b:
            while rank[a] < rank[b]:
                a = nearest[a]
            while rank[b] < rank[a]:
                b = nearest[b]
        return a

    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [n for n in before[block] if nearest[n] is not None]
            found = known[0]
            for n in known[1:]:
                found = common(found, n)
            changed = changed or nearest[block] != found
            nearest[block] = found
    return nearest, before


def innermost_loops(following):
    """The blocks of each natural loop without another one inside. Two ways back to one header are two loops: an inner
    loop that begins its outer one."""
    nearest, before = dominators(following)

    def dominates(a, b):
        while b != a and b != 0:
            b = nearest[b]
        return a == b

    loops = []
    for block, after in enumerate(following):
        for header in after:
            if nearest[block] is None or not dominates(header, block):
                continue
            inside, todo = {header}, [block]
            while todo:
                n = todo.pop()
                if n not in inside:
                    inside.add(n)
                    todo.extend(before[n])
            loops.append(inside)
    return [loop for loop in loops if not any(other < loop for other in loops)]


def multiplies_and_adds(loop):
    names = {instruction.name for instruction in loop}
    return any(FUSED.match(name) for name in names) or {"mulps", "addps"} <= names


def plain(name):
    """A function's name without what all of them share."""
    return name.replace("levelhead::", "").replace("(anonymous namespace)::", "")


def loops_of(path):
    """Function and first address of each innermost loop of multiply-adds, and what in it has vectors on the stack."""
    for name, body in functions(path):
        frame_pointer = any(i.name == "mov" and i.operands == "%rsp,%rbp" for i in body)
        blocks, following = blocks_of(body)
        for numbers in innermost_loops(following):
            loop = [instruction for n in sorted(numbers) for instruction in blocks[n]]
            calls = any(i.name.startswith("call") for i in loop)  # then the innermost loop is in what it calls
            if multiplies_and_adds(loop) and not calls:
                yield plain(name), loop[0].address, [i for i in loop if i.has_vector_on_stack(frame_pointer)]


def read_accepted(path):
    """Pieces of names, each of which has to have a reason."""
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    pieces = [line.partition(": ")[0] if ": " in line else "" for line in lines]
    if "" in pieces:
        sys.exit(f"{path}: a line is not `piece of the name: reason`")
    return pieces


def main(accepted_path, *objects):
    accepted, needed, failures = read_accepted(accepted_path), set(), []
    loops = 0
    for path in objects:
        for name, address, spilled in loops_of(path):
            loops += 1
            found = {piece for piece in accepted if piece in name}
            if spilled and not found:
                failures.append(f"{path}: the loop at {address:x} of {name} keeps vectors on the stack:")
                failures += [f"    {i.address:x}: {i.text}" for i in spilled]
            elif spilled:
                needed |= found
    if not loops:
        failures.append(f"no loop of packed multiply-adds in {len(objects)} objects: is this how objdump writes them?")
    failures += [f"{accepted_path}: no loop needs `{piece}` any more" for piece in accepted if piece not in needed]
    print("\n".join(failures) or f"{loops} innermost loops of multiply-adds: vectors in registers, or excused")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""The seal behind run files and results: is a file as rfa wrote it?

The last 24 bytes are "rfa seal", the size and the digest of what stands before, little-endian
(src/storage/h5_image.h, digest.c). On a damaged file the HDF5 library may even fall over, so the
seal is looked at first. A digest is a chain of multiplications: many files are walked at once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

NAME = b"rfa seal"
SIZE = 24  # bytes of the seal
BLOCK = 1 << 20  # bytes of a digest of the chain
TOGETHER = 64 << 20  # bytes of files that are held at once
LARGE = 16 << 20  # bytes of a file from which on only its size is looked at: 3 s each 16 MB

_WORD = np.uint64(0x9E3779B97F4A7C15)
_LANE = np.uint64(0x6A09E667F3BCC909)
_END = np.uint64(0xBB67AE8584CAA73B)
_29, _32, _35 = np.uint64(29), np.uint64(32), np.uint64(35)


def _avalanche(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> _32)) * _WORD
    x = (x ^ (x >> _29)) * _END
    return x ^ (x >> _32)


def _take(lane: np.ndarray, word: np.ndarray) -> np.ndarray:
    x = lane ^ (word * _WORD)
    return ((x << _29) | (x >> _35)) * _LANE


def digests(parts: Sequence[bytes], before: np.ndarray | None = None) -> np.ndarray:
    """The digest of each of parts, chained after `before` (uint64 each; zeros by default)."""
    count = len(parts)
    seed = np.zeros(count, np.uint64) if before is None else before
    order = sorted(range(count), key=lambda i: -len(parts[i]))  # those that end first come last
    sizes = np.array([len(parts[i]) for i in order], dtype=np.int64)
    seed = seed[order]
    lane = _avalanche(seed[:, None] + np.arange(1, 5, dtype=np.uint64)[None, :] * _END)
    if count:
        rows = int(-(-sizes[0] // 32))
        words = np.zeros((count, rows * 32), np.uint8)
        for place, i in enumerate(order):
            words[place, : sizes[place]] = np.frombuffer(parts[i], np.uint8)
        steps = np.ascontiguousarray(
            words.view("<u8").reshape(count, rows, 4).transpose(1, 0, 2).astype(np.uint64)
        )
        steps *= _WORD
        row = 0
        for active in range(count, 0, -1):  # whole rows that the first `active` all have
            end = int(sizes[active - 1] // 32)
            part = np.ascontiguousarray(lane[:active])
            shifted = np.empty_like(part)
            for at in range(row, end):
                np.bitwise_xor(part, steps[at, :active], out=part)
                np.right_shift(part, _35, out=shifted)
                np.left_shift(part, _29, out=part)
                np.bitwise_or(part, shifted, out=part)
                np.multiply(part, _LANE, out=part)
            row = max(row, end)
            left = int(-(-(sizes[active - 1] % 32) // 8))  # words of the torn row
            lane[:active] = part
            if left:
                x = lane[active - 1, :left] ^ steps[end, active - 1, :left]
                lane[active - 1, :left] = ((x << _29) | (x >> _35)) * _LANE
    total = _avalanche(seed ^ sizes.astype(np.uint64))
    for i in range(4):
        total = _take(total, _avalanche(lane[:, i]))
    out = np.empty(count, np.uint64)
    out[order] = _avalanche(total)
    return out


def _read(path: str) -> tuple[bytes, int] | str | None:
    """The bytes before a seal and the digest it names; a problem in words; None without one."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < SIZE:
                return None
            file.seek(size - SIZE)
            mark = file.read(SIZE)
            if mark[:8] != NAME:
                return None
            if int.from_bytes(mark[8:16], "little") != size - SIZE:
                return "is damaged: its size is not the one that it was sealed with"
            if size > LARGE:
                return None
            file.seek(0)
            return file.read(size - SIZE), int.from_bytes(mark[16:], "little")
    except OSError:
        return None  # whoever opens it will say so


def broken(paths: Sequence[str]) -> dict[str, str]:
    """Those of paths that have a seal and are not as they were sealed, and what is wrong.

    A file without a seal passes: HDF5 must do with it. Cost: reads each file once; 1 000 files of
    400 kB take two seconds.
    """
    problems: dict[str, str] = {}
    held: list[tuple[str, bytes, int]] = []
    size = 0

    def flush() -> None:
        chain = np.zeros(len(held), np.uint64)
        most = max((len(data) for _, data, _ in held), default=0)
        for at in range(0, most, BLOCK):
            rest = [i for i, (_, data, _) in enumerate(held) if len(data) > at]
            chain[rest] = digests([held[i][1][at : at + BLOCK] for i in rest], chain[rest])
        for (path, _, digest), found in zip(held, chain):
            if int(found) != digest:
                problems[path] = "is damaged: its checksum is wrong"
        held.clear()

    for path in paths:
        found = _read(path)
        if isinstance(found, str):
            problems[path] = found
        elif found is not None:
            held.append((path, *found))
            size += len(found[0])
            if size > TOGETHER:
                flush()
                size = 0
    flush()
    return problems

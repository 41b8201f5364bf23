"""The program's random numbers (src/rng/rng.h) and projections (src/features/draw.h), in NumPy.

Philox4x32-10 of Salmon, Moraes, Dror, Shaw, SC 2011.
"""

from __future__ import annotations

import numpy as np

POOL, PICK = 2, 3  # purposes
MASK = 0xFFFFFFFF


class Stream:
    """Numbers as a function of seed, purpose, a and b."""

    def __init__(self, seed: int, purpose: int, a: int, b: int = 0) -> None:
        high = (seed >> 32 & MASK) ^ (purpose * 0x85EBCA6B & MASK)
        self.key, self.a, self.b = (seed & MASK, high), a & MASK, b & MASK
        self.words: list[int] = []
        self.index = 0

    def blocks(self, first: int, count: int) -> np.ndarray:
        """[count][4] 32-bit words, as uint64."""
        index = np.arange(first, first + count, dtype=np.uint64)
        x = [index & np.uint64(MASK), index >> np.uint64(32)]
        x += [np.full(count, value, dtype=np.uint64) for value in (self.a, self.b)]
        key = list(self.key)
        low, shift = np.uint64(MASK), np.uint64(32)
        for _ in range(10):
            p, q = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
            x = [
                (q >> shift) ^ x[1] ^ np.uint64(key[0]),
                q & low,
                (p >> shift) ^ x[3] ^ np.uint64(key[1]),
                p & low,
            ]
            key = [(key[0] + 0x9E3779B9) & MASK, (key[1] + 0xBB67AE85) & MASK]
        return np.stack(x, axis=1)

    def normals(self, first: int, count: int) -> np.ndarray:
        """Numbers first, ..., first + count - 1 of N(0, 1): two of each block (Box-Muller)."""
        begin, end = first // 2, (first + count + 1) // 2
        words = self.blocks(begin, end - begin)
        bits = words[:, ::2] << np.uint64(32) | words[:, 1::2]
        unit = (bits >> np.uint64(11)).astype(float)
        radius = np.sqrt(-2 * np.log((unit[:, 0] + 0.5) * 2.0**-53))
        angle = 2 * np.pi * (unit[:, 1] * 2.0**-53)
        both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()
        return both[first - 2 * begin :][:count]

    def below(self, bound: int) -> int:
        """The next whole number in [0, bound)."""
        while True:
            if not self.words:
                self.words = [int(word) for word in self.blocks(self.index, 1)[0]]
                self.index += 1
            product = self.words.pop(0) * bound
            if product & MASK >= (2**32 - bound) % bound:
                return product >> 32


def projection(seed: int, matrix: int, rows: str, count: int, width: int) -> np.ndarray:
    """Matrix `matrix` of the pool: [count][width] rows that are iid, orthogonal or simplex."""
    stream = Stream(seed, POOL, matrix)
    parts = []
    for first in range(0, count, width):
        n = min(width, count - first)
        drawn = width if rows == "simplex" and width > 1 else n
        block = stream.normals(first * width, drawn * width).reshape(drawn, width)
        if rows != "iid":
            lengths = np.linalg.norm(block, axis=1, keepdims=True)
            q, r = np.linalg.qr(block.T)
            block = (q * np.sign(np.diag(r))).T  # as Gram-Schmidt has it
            if drawn > n or (rows == "simplex" and width > 1):
                block = (block - block.mean(axis=0)) / np.sqrt(1 - 1 / width)
            block = block * lengths
        parts.append(block[:n])
    return np.concatenate(parts).astype(np.float32).astype(float)


def pick(seed: int, draw: int, count: int, pool: int) -> list[int]:
    """Distinct matrices of a draw, one for each layer and head."""
    stream = Stream(seed, PICK, draw)
    found: list[int] = []
    while len(found) < count:
        index = stream.below(pool)
        if index not in found:
            found.append(index)
    return found

"""The digest of many files at once is that of src/storage/digest.c."""

from __future__ import annotations

from pathlib import Path

import make
import numpy as np
import pytest

from rfa_analysis import seal


def test_digests_of_all_lengths() -> None:
    random = np.random.default_rng(1)
    parts = [random.bytes(n) for n in [*range(70), 999, 1024, 33, 0]]
    before = random.integers(0, 1 << 63, len(parts)).astype(np.uint64)
    expected = [make.digest(int(b), part) for b, part in zip(before, parts)]
    assert [int(x) for x in seal.digests(parts, before)] == expected
    assert [int(x) for x in seal.digests(parts[:3])] == [make.digest(0, p) for p in parts[:3]]
    assert len(seal.digests([])) == 0


def test_files_of_rfa_are_whole(results: list[Path]) -> None:
    assert all(path.read_bytes()[-24:-16] == seal.NAME for path in results)
    assert seal.broken([str(path) for path in results]) == {}


@pytest.mark.parametrize("size", [1000, seal.BLOCK, seal.BLOCK + 13])
def test_a_bit_is_seen_wherever_it_flips(tmp_path: Path, size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    whole = tmp_path / "whole"
    whole.write_bytes(data)
    make.seal(whole)
    sealed = whole.read_bytes()
    paths = [str(whole)]
    for at in (0, size // 2, size - 1):
        changed = bytearray(sealed)
        changed[at] ^= 1
        paths.append(str(tmp_path / str(at)))
        Path(paths[-1]).write_bytes(changed)
    assert set(seal.broken(paths)) == set(paths[1:])


def test_a_file_without_seal_passes(tmp_path: Path) -> None:
    for n in (0, 5, 100):
        (tmp_path / str(n)).write_bytes(bytes(n))
    paths = [str(tmp_path / str(n)) for n in (0, 5, 100, 7)]
    assert seal.broken(paths) == {}

"""Calls from several Python threads, and what the others do meanwhile."""

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import levelhead
import numpy as np


def test_calls_from_many_threads_at_once(make):
    inputs = [make(Nq=64, Nk=64) for _ in range(16)]
    wanted = [levelhead.attention(*one, statistics=True) for one in inputs]
    with ThreadPoolExecutor(4) as pool:
        for threads in (1, 2, None):
            ran = list(pool.map(lambda one: levelhead.attention(*one, statistics=True, threads=threads), inputs * 4))
            for got, right in zip(ran, wanted * 4, strict=True):
                np.testing.assert_array_equal(got.o, right.o)
                np.testing.assert_array_equal(got.statistics.entropy, right.statistics.entropy)


def test_other_threads_run_during_a_call(rng):
    """With a switch interval longer than the call, another thread moves only if the call lets go of the interpreter."""
    q = rng.standard_normal((1, 4, 1024, 64)).astype(np.float32)
    ticks, stop = 0, threading.Event()

    def count():
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    other = threading.Thread(target=count)
    try:
        other.start()
        before = ticks
        levelhead.attention(q, q, q, kernel="reference", threads=1)
        during = ticks - before
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        other.join()
    assert during > 0


def test_alternating_numbers_of_threads_keep_their_contexts(make):
    inputs = make()
    for threads in (1, 2):
        levelhead.attention(*inputs, threads=threads)
    before = thread_ids()
    for _ in range(20):
        for threads in (1, 2):
            assert levelhead.attention(*inputs, threads=threads).info.threads == threads
    assert thread_ids() == before


def thread_ids():
    return set(os.listdir("/proc/self/task"))


def test_a_forked_child_computes(make):
    inputs = make()
    right = levelhead.attention(*inputs, threads=2).o
    child = os.fork()
    if child == 0:
        same = np.array_equal(levelhead.attention(*inputs, threads=2).o, right)
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0

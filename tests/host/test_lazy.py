"""Properties that are made when they are first asked for."""

from __future__ import annotations

import threading

from ptxemu.process.lazy import lazy_property


class Counted:
    made = 0

    @lazy_property
    def value(self) -> list[int]:
        """A list."""
        Counted.made += 1
        return [Counted.made]


class Meeting:
    """Its value is only made when two threads are at it at once."""

    def __init__(self) -> None:
        self.both = threading.Barrier(2, timeout=60)

    @lazy_property
    def value(self) -> object:
        self.both.wait()
        return object()


def test_made_once_for_each_object():
    first, second = Counted(), Counted()
    assert first.value is first.value
    assert second.value is not first.value
    assert Counted.made == 2
    assert Counted.__dict__["value"].__doc__ == "A list."


def test_no_lock_is_held_meanwhile_and_all_threads_get_one_value():
    meeting = Meeting()
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(meeting.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2 and found[0] is found[1]

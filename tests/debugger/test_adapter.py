"""The Debug Adapter Protocol: what an editor asks, and what it is told."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ptxemu.cli.debug.adapter import Adapter
from ptxemu.cli.debug.protocol import read_message
from ptxemu.cli.options import DeviceChoice
from ptxemu.debugger.session import hold
from ptxemu.text.errors import InputError
from tests.debugger.test_terminal import CALLER, CALLS, SOURCE, STORE
from tests.debugger.test_variables import ARGUMENTS
from tests.support.kernel_tools import kernel
from tests.support.places import DEBUGGED


class Client:
    """An editor that is connected to an adapter by pipes."""

    def __init__(self) -> None:
        (ours_in, theirs_out), (theirs_in, ours_out) = os.pipe(), os.pipe()
        self._in, self._out = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb")
        self.events: list[dict[str, Any]] = []
        self._number = 0
        self._streams = os.fdopen(theirs_in, "rb"), os.fdopen(theirs_out, "wb")
        self._server = threading.Thread(target=self._serve)
        self._server.start()

    def _serve(self) -> None:
        adapter = Adapter(*self._streams, None)

        def run(device: Any, printf: Any) -> None:
            assert adapter.subject is not None
            adapter.subject.run(device, None, printf)

        hold(adapter.debugger, adapter, run, DeviceChoice(memory="64 MiB", engine="interpreter").make)

    def write(self, data: bytes) -> None:
        self._out.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self._out.flush()

    def ask(self, command: str, **arguments: Any) -> Any:
        """The body of the answer, or its message if it failed."""
        self._number += 1
        self.write(json.dumps({"seq": self._number, "type": "request", "command": command, "arguments": arguments}).encode())
        while True:
            message = read_message(self._in)
            assert message is not None
            if message["type"] == "response" and message["request_seq"] == self._number:
                return message["body"] if message["success"] else message["message"]
            self.events.append(message)

    def event(self, name: str) -> dict[str, Any]:
        """The next event of a kind."""
        while True:
            for index, message in enumerate(self.events):
                if message.get("event") == name:
                    del self.events[: index + 1]
                    body: dict[str, Any] = message["body"]
                    return body
            message_or_end = read_message(self._in)
            assert message_or_end is not None
            self.events.append(message_or_end)

    def close(self) -> None:
        self._out.close()
        self._server.join(20)
        assert not self._server.is_alive()
        for stream in (self._in, *self._streams):
            stream.close()


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    yield made
    made.close()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "k.cu").write_text(SOURCE)
    path = tmp_path / "k.ptx"
    path.write_text(kernel(STORE) + f'.file 1 "{tmp_path / "k.cu"}"\n')
    return path


def start(client: Client, program: Path, *breakpoints: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    assert client.ask("initialize", adapterID="ptxemu")["supportsStepBack"]
    client.event("initialized")
    given = {"grid": 1, "block": 64, "arg": ["out=zeros:u32:64"], **options}
    assert client.ask("launch", program=str(program), **given) == {}
    source = {"path": str(program.with_name("k.cu"))}
    told: list[dict[str, Any]] = client.ask("setBreakpoints", source=source, breakpoints=list(breakpoints))["breakpoints"]
    client.ask("configurationDone")
    return told


def line(client: Client, thread: int) -> int:
    found: int = client.ask("stackTrace", threadId=thread)["stackFrames"][0]["line"]
    return found


def variables(client: Client, scope: dict[str, Any]) -> dict[str, str]:
    found = client.ask("variables", variablesReference=scope["variablesReference"])["variables"]
    return {one["name"]: one["value"] for one in found}


def test_a_session(client: Client, program: Path) -> None:
    [told] = start(client, program, {"line": 3, "condition": "threadIdx.x == 40"})
    assert told["verified"] is False
    assert client.event("breakpoint")["breakpoint"] == {"id": told["id"], "verified": True, "line": 3}
    stop = client.event("stopped")
    assert (stop["reason"], stop["threadId"], stop["hitBreakpointIds"]) == ("breakpoint", 2, [told["id"]])
    assert client.ask("threads")["threads"] == [{"id": 2, "name": "block (0,0,0) warp 1"}]  # the first one has exited
    [frame] = client.ask("stackTrace", threadId=2)["stackFrames"]
    assert (frame["name"], frame["line"], frame["source"]["path"]) == ("k", 3, str(program.with_name("k.cu")))
    found = {one["name"]: variables(client, one) for one in client.ask("scopes", frameId=frame["id"])["scopes"]}
    assert found["Registers"]["%r1"] == "40 (0x28)" and found["Thread"]["threadIdx.x"] == "40" and "out" in found["Parameters"]
    assert client.ask("evaluate", expression="%r1 + 2")["result"] == "42"
    assert "warp   1" in client.ask("evaluate", expression="where", context="repl")["result"]
    client.ask("continue", threadId=2)
    assert client.event("exited") == {"exitCode": 0}
    client.event("terminated")
    assert client.ask("evaluate", expression="out.sum()")["result"] == str(sum(range(64)))


def test_steps_forward_and_back(client: Client, program: Path) -> None:
    start(client, program, {"line": 2})
    thread = client.event("stopped")["threadId"]
    client.ask("next", threadId=thread)
    assert client.event("stopped")["reason"] == "step" and line(client, thread) == 3
    client.ask("stepIn", threadId=thread, granularity="instruction")
    client.event("stopped")
    assert line(client, thread) == 4
    client.ask("stepBack", threadId=thread)
    client.event("stopped")
    assert line(client, thread) == 3
    client.ask("reverseContinue", threadId=thread)
    client.event("stopped")
    assert line(client, thread) == 2


def test_the_stack_and_texts_that_are_not_on_disk(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "k.ptx"
    program.write_text(kernel(CALLER, "", CALLS) + '.file 1 "nowhere.cu"\n')
    client.ask("initialize")
    client.ask("launch", program=str(program), grid="1", block="1", stopOnEntry=True)
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "twice"}])
    client.ask("configurationDone")
    assert client.event("stopped")["reason"] == "entry"
    program.unlink()
    [frame] = client.ask("stackTrace", threadId=1)["stackFrames"]
    text = client.ask("source", sourceReference=frame["source"]["sourceReference"])["content"]
    assert text.splitlines()[frame["line"] - 1].strip() == "mov.u32 %r1, %tid.x;"
    client.ask("continue", threadId=1)
    client.event("stopped")
    assert [one["name"] for one in client.ask("stackTrace", threadId=1)["stackFrames"]] == ["twice", "k"]
    client.ask("stepOut", threadId=1)
    client.event("stopped")
    assert [one["name"] for one in client.ask("stackTrace", threadId=1)["stackFrames"]] == ["k"]


def test_a_program_that_runs_can_be_stopped(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "k.ptx"
    program.write_text(kernel("loop: setp.eq.u32 %p1, %r1, 1; @!%p1 bra loop; trap; ret;", ""))
    client.ask("initialize")
    client.ask("launch", program=str(program), grid=1, block=1)
    client.ask("configurationDone")
    client.ask("continue", threadId=1)
    client.ask("pause", threadId=1)
    assert client.event("stopped")["reason"] == "pause"
    client.ask("terminate")
    client.event("terminated")


def test_a_fault_stops(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "k.ptx"
    program.write_text(kernel("mov.u32 %r1, 7; trap; ret;", ""))
    client.ask("initialize")
    client.ask("launch", program=str(program), grid=1, block=32)
    client.ask("configurationDone")
    stop = client.event("stopped")
    assert stop["reason"] == "exception" and "trap" in stop["text"]
    client.ask("continue", threadId=1)
    assert "trap" in client.event("output")["output"]


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("nonsense", {}), ("launch", {}), ("launch", {"program": "nowhere.ptx"}), ("launch", {"program": [1, None], "grid": {}}),
    ("setBreakpoints", {}), ("setBreakpoints", {"source": 5}), ("setBreakpoints", {"source": {}, "breakpoints": [{}]}),
    ("continue", {}) , ("next", {"threadId": 77}), ("stackTrace", {"threadId": "x"}), ("scopes", {}), ("scopes", {"frameId": 99}),
    ("variables", {"variablesReference": 12345}), ("variables", {"variablesReference": "a"}), ("evaluate", {}),
    ("evaluate", {"expression": "("}), ("source", {"sourceReference": 9}), ("stepOut", {}), ("stepBack", {}),
]  # fmt: skip


def test_wrong_requests_get_an_answer(client: Client, program: Path) -> None:
    for command, arguments in WRONG:
        if command != "continue":
            assert isinstance(client.ask(command, **arguments), str), command
    start(client, program, {"line": 3}, {"line": 999})
    client.event("stopped")
    for command, arguments in WRONG[5:]:
        if command not in ("continue", "stepBack"):
            assert isinstance(client.ask(command, **arguments), str), command
    client.write(b"[1, 2]")


@pytest.mark.parametrize("data", [b"Content-Length: 5\r\n\r\n{", b"Length: 1\r\n\r\n{}", b"Content-Length: 2\r\n\r\n[]", b"\r\n"])
def test_what_is_no_message(data: bytes) -> None:
    with pytest.raises(InputError):
        read_message(io.BytesIO(data))


def test_a_client_that_goes_while_the_program_runs(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "k.ptx"
    program.write_text(kernel("again: bra again;", parameters=""))
    start(client, program, arg=[])  # closing waits for the adapter


def test_variables_of_cuda(client: Client) -> None:
    program = DEBUGGED / "locals.ptx"
    options = {"entry": "kern", "grid": 1, "block": 32, "arg": ARGUMENTS}
    client.ask("initialize", adapterID="ptxemu")
    client.ask("launch", program=str(program), **options)
    client.ask("setBreakpoints", source={"path": "/src/locals.cu"}, breakpoints=[{"line": 12, "condition": "threadIdx.x == 3"}])
    client.ask("configurationDone")
    thread = client.event("stopped")["threadId"]
    inner, outer = client.ask("stackTrace", threadId=thread)["stackFrames"]
    names = [scope["name"] for scope in client.ask("scopes", frameId=inner["id"])["scopes"]]
    assert names == ["Locals", "Arguments", "Registers", "Thread", "Parameters"]
    found, arguments = client.ask("scopes", frameId=outer["id"])["scopes"][:2]
    local = parts(client, found)
    assert (local["i"]["value"], local["i"]["type"], local["i"]["variablesReference"]) == ("3", "int", 0)
    assert (local["vals"]["type"], local["vals"]["value"]) == ("int [4][2]", "{{3, 4}, {5, 6}, {7, 8}, {9, 10}}")
    rows = parts(client, local["vals"])
    assert [row["value"] for row in rows.values()] == ["{3, 4}", "{5, 6}", "{7, 8}", "{9, 10}"]
    assert variables(client, rows["[2]"]) == {"[0]": "7", "[1]": "8"}
    [point] = parts(client, parts(client, local["p"])["next"]).values()
    assert variables(client, point)["x"] == "4.5"
    assert variables(client, arguments)["col"] == "GREEN"
    assert client.ask("evaluate", expression="sum", frameId=inner["id"])["result"] == "0.0"
    told = client.ask("evaluate", expression="p", frameId=outer["id"])
    assert told["type"] == "Point" and variables(client, told)["y"] == "2.5"
    assert client.ask("evaluate", expression="i * 2", frameId=outer["id"])["result"] == "6"
    assert "there are no such variables" in client.ask("variables", variablesReference=10**9)
    client.ask("stepBack", threadId=thread)
    assert client.event("stopped")["reason"] == "step" and line(client, thread) == 11


def parts(client: Client, shown: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: list[dict[str, Any]] = client.ask("variables", variablesReference=shown["variablesReference"])["variables"]
    return {one["name"]: one for one in found}

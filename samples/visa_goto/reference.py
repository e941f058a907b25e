"""The sequences one by one. Counts beyond a surface, and those of empty slots, are dropped."""

import numpy as np

SLOTS = {0: "small", 3: "large"}


def length(number):
    steps = 0
    while number > 1:
        number = 3 * number + 1 if number % 2 else number // 2
        steps += 1
    return steps


def reference(inputs):
    steps = np.array([[length(int(number)) for number in row] for row in inputs["number"]], np.uint32)
    counts = {"small": np.zeros(16, np.uint32), "large": np.zeros(128, np.uint32)}
    for row, slot in zip(steps, inputs["slot"].ravel()):
        for count in row:
            name = SLOTS.get(int(slot))
            if name is not None and count < len(counts[name]):
                counts[name][count] += 1
    return {**counts, "steps": steps}

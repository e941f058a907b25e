"""The reductions in NumPy."""

import numpy as np


def reference(inputs):
    words, values = inputs["words"].astype(np.int64), inputs["values"].astype(np.int64)
    thread = np.arange(values.size) % 96
    np.minimum.at(words, thread & 3, values)
    words[0x1234 // 4] = (words[0x1234 // 4] + values.sum()) % 2**32
    first = np.append(values[thread == 0], words[8] - 2**32)
    words[8] = first.max() % 2**32
    return {"words": words.astype(np.uint32)}

"""The transposition in NumPy; points beyond the picture read zero."""

import numpy as np


def reference(inputs):
    turned = np.zeros((64, 24), np.float32)
    turned[:50] = inputs["picture"].T
    memory = np.zeros(2560, np.float32)
    memory[0x800 // 4 :][: turned.size] = turned.ravel()
    return {"turned": turned, "memory": memory}

"""Liger-Kernel, Triton kernels that train language models, forward and backward beside PyTorch's own functions on the CPU."""

import triton

DRIVER = triton.runtime.driver.active  # before torch is there, which would be asked for its CUDA

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from liger_kernel.ops import (  # noqa: E402
    LigerCrossEntropyFunction,
    LigerEmbeddingFunction,
    LigerFusedLinearCrossEntropyFunction,
    LigerGELUMulFunction,
    LigerGroupNormFunction,
    LigerKLDivLossFunction,
    LigerLayerNormFunction,
    LigerRMSNormFunction,
    LigerRopeFunction,
    LigerSiLUMulFunction,
    LigerSoftmaxFunction,
    LigerTVDLossFunction,
)  # fmt: skip


def first(results):
    return results[0] if isinstance(results, tuple) else results


def compared(name, function, reference, *tensors):
    """Results and gradients; some functions put the gradients into their operands."""
    found = []
    for call in (reference, function):
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        result = first(call(*leaves))
        kept = result.detach().clone()
        result.sin().sum().backward()
        found.append([kept, *(leaf.grad for leaf in leaves)])
    for wanted, got in zip(*found, strict=True):
        assert torch.allclose(got, wanted, rtol=1e-4, atol=1e-5), (name, (got - wanted).abs().max())


def turned(x, cos, sin):
    """Rotary embedding."""
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def rotary():
    angles = torch.arange(9)[:, None] / 10000 ** (torch.arange(32) / 32)
    cos, sin = (torch.cat([wave, wave], -1)[None] for wave in (angles.cos(), angles.sin()))
    q, k = torch.randn(2, 4, 9, 64), torch.randn(2, 2, 9, 64)
    for got, x in zip(LigerRopeFunction.apply(q.clone(), k.clone(), cos, sin), (q, k), strict=True):
        assert torch.allclose(got, turned(x, cos[:, None], sin[:, None]), atol=1e-5)


def main():
    torch.manual_seed(1)
    x, y, wide, weight, bias = torch.randn(6, 320), torch.randn(6, 320), torch.randn(12, 1111), torch.randn(320), torch.randn(320)
    targets, table, parts = torch.randint(0, 1111, (12,)), torch.randn(1111, 320), torch.randn(3, 12, 50)
    targets[3] = -100
    rows, logs, shares = torch.randn(12, 320), torch.randn(7, 500).log_softmax(-1), torch.randn(7, 500).softmax(-1)
    places = torch.randint(0, 1111, (4, 9))
    compared("RMS norm", lambda x, w: LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False),
             lambda x, w: F.rms_norm(x, (320,), w, 1e-6), x, weight)  # fmt: skip
    compared("layer norm", lambda *all: LigerLayerNormFunction.apply(*all, 1e-5),
             lambda x, w, b: F.layer_norm(x, (320,), w, b, 1e-5), x, weight, bias)  # fmt: skip
    compared("group norm", lambda *all: LigerGroupNormFunction.apply(*all, 12, 4, 1e-5),
             lambda x, w, b: F.group_norm(x, 4, w, b, 1e-5), parts, weight[:12].clone(), bias[:12].clone())  # fmt: skip
    compared("SwiGLU", LigerSiLUMulFunction.apply, lambda a, b: F.silu(a) * b, x, y)
    compared("GeGLU", LigerGELUMulFunction.apply, lambda a, b: F.gelu(a, approximate="tanh") * b, x, y)
    compared("softmax", LigerSoftmaxFunction.apply, lambda x: x.softmax(-1), wide)
    compared("embedding", lambda t: LigerEmbeddingFunction.apply(t, places), lambda t: F.embedding(places, t), table)
    compared("cross entropy", lambda x: LigerCrossEntropyFunction.apply(x, targets, None, -100, 0.0, 0.1, "mean", None, False),
             lambda x: F.cross_entropy(x, targets, label_smoothing=0.1), wide)  # fmt: skip
    compared("linear cross entropy", lambda x, w: LigerFusedLinearCrossEntropyFunction.apply(x, w, targets),
             lambda x, w: F.cross_entropy(x @ w.T, targets), rows, table)  # fmt: skip
    compared("KL divergence", lambda x: LigerKLDivLossFunction.apply(x, shares, "batchmean", False, 1e-10),
             lambda x: F.kl_div(x, shares, reduction="batchmean"), logs)  # fmt: skip
    compared("total variation", lambda x: LigerTVDLossFunction.apply(x, shares, None, "batchmean", -100),
             lambda x: (x - shares).abs().sum() / 14, logs.exp())  # fmt: skip
    rotary()
    print("right")


main()

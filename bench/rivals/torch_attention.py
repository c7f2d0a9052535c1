#!/usr/bin/env python3
"""Times PyTorch's attention on the cases of attention_bench, beside it and in the same way.

    attention_bench --list | torch_attention.py [--match TEXT] [--repeats N]

Every way that PyTorch has for a case is tried (the backends of scaled_dot_product_attention, with
the query heads of a KV head as heads or as rows, and flex_attention for a windowed prefill); the
fastest is reported. Launches are captured into a graph over caches that exceed L2, as in
attention_bench. Prints one JSON object. Needs a CUDA device.
"""
import argparse
import json
import statistics
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

ROTATED_BYTES = 512 << 20
LEAST_LAUNCHES = 20
BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}


def random(*shape):
    return torch.randn(*shape, dtype=torch.bfloat16, device="cuda")


def caches(case, streams, keys):
    """[copies, streams, KV heads, keys, D] of keys and of values, larger together than L2."""
    shape = (streams, case["kv_heads"], keys, case["head_dim"])
    copy_bytes = 4 * streams * case["kv_heads"] * keys * case["head_dim"]
    copies = max(3, -(-ROTATED_BYTES // copy_bytes))
    return random(copies, *shape), random(copies, *shape)


def decode_ways(case):
    """Names and functions (copy -> None) of a decode: every row a stream of its own."""
    rows, ratio, kv_heads, dim = case["rows"], case["gqa_ratio"], case["kv_heads"], case["head_dim"]
    seen = min(case["keys"], case["window"] or case["keys"])
    k, v = caches(case, rows, seen)
    q_heads = random(rows, kv_heads * ratio, 1, dim)
    q_rows = q_heads.view(rows, kv_heads, ratio, dim)
    for name, backend in BACKENDS.items():
        def as_heads(copy, backend=backend):
            with sdpa_kernel(backend):
                scaled_dot_product_attention(q_heads, k[copy], v[copy], enable_gqa=True)

        def as_rows(copy, backend=backend):
            with sdpa_kernel(backend):
                scaled_dot_product_attention(q_rows, k[copy], v[copy])

        yield f"sdpa {name}, heads", as_heads, k.shape[0]
        yield f"sdpa {name}, heads as rows", as_rows, k.shape[0]


def prefill_ways(case):
    """Names and functions of a prefill chunk that ends at the last key."""
    rows, ratio, kv_heads, dim = case["rows"], case["gqa_ratio"], case["kv_heads"], case["head_dim"]
    window = case["window"]
    keys = case["keys"] if window == 0 else min(case["keys"], window + rows - 1)
    k, v = caches(case, 1, keys)
    q = random(1, kv_heads * ratio, rows, dim)
    if window == 0:
        for name, backend in BACKENDS.items():
            def causal(copy, backend=backend):
                with sdpa_kernel(backend):
                    bias = causal_lower_right(rows, keys)
                    scaled_dot_product_attention(q, k[copy], v[copy], attn_mask=bias, enable_gqa=True)

            yield f"sdpa {name}, causal", causal, k.shape[0]
        return

    def sees(batch, head, row, key):
        position = row + (keys - rows)
        return (key <= position) & (key > position - window)

    mask = create_block_mask(sees, None, None, rows, keys, device="cuda")
    compiled = torch.compile(flex_attention, dynamic=False)

    def flex(copy):
        compiled(q, k[copy], v[copy], block_mask=mask, enable_gqa=True)

    yield "flex_attention", flex, k.shape[0]


def replay_us(way, copies, launches, repeats):
    """Median and middle half, in microseconds a launch, of a graph of launches."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for copy in range(3):
            way(copy % copies)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for launch in range(launches):
            way(launch % copies)
    sample = []
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for i in range(-3, repeats):
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        if i >= 0:
            sample.append(start.elapsed_time(end) * 1e3 / launches)
    sample.sort()
    return statistics.median(sample), sample[len(sample) * 3 // 4] - sample[len(sample) // 4]


def time_case(case, repeats):
    ways, refused = {}, {}
    prefill = case["form"] == "prefill"
    for name, way, copies in prefill_ways(case) if prefill else decode_ways(case):
        launches = copies if prefill else max(copies, LEAST_LAUNCHES)
        try:
            ways[name] = replay_us(way, copies, launches, repeats)
        except Exception as error:  # A backend that does not take the shape.
            refused[name] = str(error).splitlines()[0][:200]
            torch.cuda.synchronize()
    row = {"case": case["case"], "refused": refused}
    if ways:
        best = min(ways, key=lambda name: ways[name][0])
        row |= {"way": best, "median_us": ways[best][0], "spread_us": ways[best][1]}
        row["all"] = {name: us for name, (us, _) in ways.items()}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--match", default="")
    parser.add_argument("--repeats", type=int, default=21)
    wanted = parser.parse_args()
    rows, timed = [], set()
    for case in json.load(sys.stdin):
        # The arithmetic is broach's own matter: a rival runs a case once.
        if wanted.match not in case["case"] or case["case"] in timed:
            continue
        timed.add(case["case"])
        rows.append(time_case(case, wanted.repeats))
        torch.cuda.empty_cache()
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__,
                      "cases": rows}, indent=2))


if __name__ == "__main__":
    main()

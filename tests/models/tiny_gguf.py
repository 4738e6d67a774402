"""A tiny language model of fixed random weights, as a GGUF file: it says noise, at once, and counts exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np

WIDTH, HEADS, FEED, LAYERS, WINDOW, SEED = 64, 4, 128, 2, 2048, 20260101
CONTROL, UNKNOWN, NORMAL, BYTE = 3, 2, 1, 6
SPECIAL = ("<unk>", "<s>", "</s>")
TEMPLATE = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}\n{% endfor %}<assistant>"
TOOLS_TEMPLATE = "{% if tools %}{{ tools | tojson }}{% endif %}" + TEMPLATE


def write_tiny(path: Path, *, template: str | None = TEMPLATE) -> Path:
    """Writes the model to `path`: the same bytes each time."""
    tokens = [*SPECIAL, *(f"<0x{value:02X}>" for value in range(256)), "\u2581"]
    types = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, NORMAL]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(WINDOW)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_file_type(0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    if template is not None:
        writer.add_chat_template(template)
    for name, weights in _weights(len(tokens)).items():
        writer.add_tensor(name, weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _weights(words: int) -> dict[str, Any]:
    random = np.random.default_rng(SEED)

    def matrix(rows: int, columns: int) -> Any:
        return (random.standard_normal((rows, columns)) * 0.3).astype(np.float32)

    ones = np.ones(WIDTH, dtype=np.float32)
    weights: dict[str, Any] = {"token_embd.weight": matrix(words, WIDTH), "output_norm.weight": ones}
    weights["output.weight"] = matrix(words, WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        weights[f"{block}.attn_norm.weight"] = weights[f"{block}.ffn_norm.weight"] = ones
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weights[f"{block}.{part}.weight"] = matrix(WIDTH, WIDTH)
        weights[f"{block}.ffn_gate.weight"] = matrix(FEED, WIDTH)
        weights[f"{block}.ffn_up.weight"] = matrix(FEED, WIDTH)
        weights[f"{block}.ffn_down.weight"] = matrix(WIDTH, FEED)
    return weights

"""Writes what a BERT sentence model gives for some lines, in double precision, with NumPy alone.

    python bert.py tiny                 a model of two layers with random weights, and its vectors
    python bert.py minilm FOLDER        the vectors of all-MiniLM-L6-v2 in FOLDER

Encoder, WordPiece and safetensors are written out here from their descriptions, so that they
share nothing with the crates that toclip-embed uses.
"""

import json
import math
import pathlib
import struct
import sys
import unicodedata

import numpy as np

DATA = pathlib.Path(__file__).parents[2] / "crates/toclip-embed/tests/data"
LINES = [
    " = Valkyria Chronicles III = ",
    " ",
    " It met with positive sales in Japan , and was praised by both Japanese and western critics . ",
    "Senjō no <unk> 3 ( 戦場のヴァルキュリア3 ) , naïve CAFÉ — unbelievably well-known\t!",
    "games " * 300,
]


def read_safetensors(path):
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    tensors = {}
    for name, entry in json.loads(raw[8 : 8 + size]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        flat = np.frombuffer(raw[8 + size + begin : 8 + size + end], "<f4")
        tensors[name] = flat.reshape(entry["shape"]).astype(float)
    return tensors


def write_safetensors(path, tensors):
    header, blob = {}, b""
    for name, tensor in tensors.items():
        data = tensor.astype("<f4").tobytes()
        shape = list(tensor.shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(struct.pack("<Q", len(head)) + head + blob)


def is_punctuation(char):
    ascii_symbol = char.isascii() and char.isprintable() and not char.isalnum() and char != " "
    return ascii_symbol or unicodedata.category(char).startswith("P")


def is_cjk(char):
    blocks = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)]
    return any(lo <= ord(char) <= hi for lo, hi in blocks)


def words(line):
    """Lower case without accents, apart at white space, punctuation and ideographs."""
    plain = unicodedata.normalize("NFD", line)
    plain = "".join(c for c in plain if unicodedata.category(c) != "Mn").lower()
    return "".join(f" {c} " if is_punctuation(c) or is_cjk(c) else c for c in plain).split()


def word_pieces(word, vocab):
    """The longest known piece from the left, again and again."""
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocab:
                break
        else:
            return [vocab["[UNK]"]]
        pieces.append(vocab[piece])
        start = end
    return pieces


def ids(line, vocab, most):
    inside = [i for word in words(line) for i in word_pieces(word, vocab)][: most - 2]
    return [vocab["[CLS]"], *inside, vocab["[SEP]"]]


def norm(x, w, name, eps):
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return x * w[name + ".weight"] + w[name + ".bias"]


def linear(x, w, name):
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def encode(tokens, w, config):
    n, heads, eps = len(tokens), config["num_attention_heads"], config["layer_norm_eps"]
    e = "embeddings."
    x = w[e + "word_embeddings.weight"][tokens] + w[e + "position_embeddings.weight"][:n]
    x = norm(x + w[e + "token_type_embeddings.weight"][0], w, e + "LayerNorm", eps)
    for i in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{i}."
        q, k, v = (linear(x, w, at + "attention.self." + p) for p in ("query", "key", "value"))
        width = q.shape[1] // heads
        out = np.empty_like(q)
        for h in range(heads):
            s = slice(h * width, (h + 1) * width)
            scores = q[:, s] @ k[:, s].T / math.sqrt(width)
            p = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, s] = p / p.sum(-1, keepdims=True) @ v[:, s]
        out = linear(out, w, at + "attention.output.dense")
        x = norm(x + out, w, at + "attention.output.LayerNorm", eps)
        out = linear(gelu(linear(x, w, at + "intermediate.dense")), w, at + "output.dense")
        x = norm(x + out, w, at + "output.LayerNorm", eps)
    return x


def vectors(folder, most):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocab = tokenizer["model"]["vocab"]
    config = json.loads((folder / "config.json").read_text())
    weights = read_safetensors(folder / "model.safetensors")
    rows = []
    for line in LINES:
        tokens = ids(line, vocab, most)
        mean = encode(tokens, weights, config).mean(0)
        vector = [float(f"{x:.9g}") for x in mean / np.linalg.norm(mean)]
        rows.append({"line": line, "ids": tokens, "vector": vector})
    return rows


def write_tiny(folder):
    folder.mkdir(exist_ok=True)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    known = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + c for c in letters)]
    known += ["game", "##s", "the", "and", "=", ",", ".", "(", ")", "<", ">", "!", "-", "—"]
    vocab = {word: i for i, word in enumerate(dict.fromkeys(known))}
    special = [
        {"id": i, "special": True, "content": c, "single_word": False, "lstrip": False,
         "rstrip": False, "normalized": False}
        for i, c in enumerate(known[:5])
    ]
    token = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
    tokenizer = {
        "version": "1.0",
        # Padding and a short limit, as in published files: both must be overruled.
        "truncation": {"max_length": 8, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": None,
                    "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [token("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, token("[SEP]")],
            "pair": [token("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, token("[SEP]")],
            "special_tokens": {c: {"id": c, "ids": [vocab[c]], "tokens": [c]} for c in ("[CLS]", "[SEP]")},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocab},
    }
    width, inner, most = 16, 24, 40
    config = {
        "model_type": "bert", "vocab_size": len(vocab), "hidden_size": width,
        "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": inner,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12, "max_position_embeddings": most,
        "type_vocab_size": 2, "position_embedding_type": "absolute",
    }
    rng = np.random.default_rng(1)
    w = {}

    def add(name, *shape):
        w[name] = 0.5 * rng.standard_normal(shape)

    def add_norm(name):
        w[name + ".weight"] = 1 + 0.2 * rng.standard_normal(width)
        add(name + ".bias", width)

    def add_linear(name, out, into):
        add(name + ".weight", out, into)
        add(name + ".bias", out)

    add("embeddings.word_embeddings.weight", len(vocab), width)
    add("embeddings.position_embeddings.weight", most, width)
    add("embeddings.token_type_embeddings.weight", 2, width)
    add_norm("embeddings.LayerNorm")
    for i in range(2):
        at = f"encoder.layer.{i}."
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            add_linear(at + "attention." + part, width, width)
        add_norm(at + "attention.output.LayerNorm")
        add_linear(at + "intermediate.dense", inner, width)
        add_linear(at + "output.dense", width, inner)
        add_norm(at + "output.LayerNorm")
    write_safetensors(folder / "model.safetensors", w)
    modules = [{"path": p, "type": f"sentence_transformers.models.{t}"}
               for p, t in (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))]
    (folder / "1_Pooling").mkdir(exist_ok=True)
    write(folder / "1_Pooling/config.json", {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True})
    write(folder / "modules.json", modules)
    write(folder / "sentence_bert_config.json", {"max_seq_length": 32, "do_lower_case": False})
    write(folder / "tokenizer.json", tokenizer)
    write(folder / "config.json", config)


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["tiny"]:
            write_tiny(DATA / "bert-tiny")
            write(DATA / "bert-tiny/expected.json", vectors(DATA / "bert-tiny", 32))
        case ["minilm", folder]:
            write(DATA / "minilm-expected.json", vectors(pathlib.Path(folder), 256))
        case _:
            sys.exit(__doc__)

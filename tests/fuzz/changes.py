"""Changes of files: what people and programs do to lines, fields and bytes."""

import gzip

from hypothesis import strategies as st

# What stands in a field and should not, or only sometimes.
TOKENS = (
    "", " ", "0", "-1", "1", "2", "1.5", "1e3", "1e999", "nan", "NaN", "inf", "-inf", "null", "None", "True",
    "9" * 19, "9" * 400, "0x10", "٣", "½", "a", "b", "?", "|", "a|r|?", "?|r|a", "a|?", "\\", "\\x7c", '"',
    '"a', 'a"b', "'", ",", ";", "\t", "=1+1", "-", "#", "\x1b[31m", "\x00", "\x7f", "\u202e", "\ufeff", "é",
    "😀", "head", "tail", "relation", "rank", "side", "a" * 3000, "{", "[", "[]", "{}", "../a", "~", "%s",
)  # fmt: skip
_BYTES = (
    b"\x00",
    b"\xff",
    b"\xc3",
    b"\n",
    b"\r",
    b"\t",
    b",",
    b'"',
    b"0",
    b"PK",
    b"\x1f\x8b",
    b"\xef\xbb\xbf",
)
_SHARE = st.integers(0, 999)

_of_lines = st.tuples(st.sampled_from(["drop", "twice", "swap", "join", "first", "blank"]), _SHARE, _SHARE)
_of_fields = st.tuples(st.just("field"), _SHARE, _SHARE, st.sampled_from(TOKENS))
_of_text = st.tuples(st.sampled_from(["crlf", "bom", "semicolons", "commas", "tabs", "spaces", "no end"]))
_of_bytes = st.tuples(
    st.sampled_from(["cut", "insert", "replace", "remove"]),
    _SHARE,
    st.integers(1, 40),
    st.sampled_from(_BYTES),
)
_of_files = st.tuples(st.sampled_from(["pack", "pack and cut", "empty", "utf-16", "pack twice"]))

TEXT = st.lists(
    st.one_of(_of_fields, _of_fields, _of_lines, _of_text, _of_bytes, _of_files), min_size=1, max_size=3
)
BINARY = st.lists(st.one_of(_of_bytes, _of_bytes, _of_files), min_size=1, max_size=4)


def changed(content: bytes, changes: list[tuple]) -> bytes:
    """The content after each of the changes."""
    for kind, *where in changes:
        content = _changed(content, kind, *where)
    return content


def _changed(content: bytes, kind: str, *where) -> bytes:
    match kind:
        case "pack":
            return gzip.compress(content, mtime=0)
        case "pack twice":
            return gzip.compress(gzip.compress(content, mtime=0), mtime=0)
        case "pack and cut":
            packed = gzip.compress(content, mtime=0)
            return packed[: len(packed) * 2 // 3]
        case "empty":
            return b""
        case "utf-16":
            return content.decode("utf-8", "replace").encode("utf-16")
        case "crlf":
            return content.replace(b"\n", b"\r\n")
        case "bom":
            return b"\xef\xbb\xbf" + content
        case "semicolons" | "commas" | "tabs" | "spaces":
            new = {"semicolons": b";", "commas": b",", "tabs": b"\t", "spaces": b" "}[kind]
            return content.replace(b"\t", new).replace(b",", new)
        case "no end":
            return content.removesuffix(b"\n")
        case "cut" | "insert" | "replace" | "remove":
            return _of_places(content, kind, *where)
    return _lined(content, kind, *where)


def _of_places(content: bytes, kind: str, share: int, length: int, new: bytes) -> bytes:
    at = len(content) * share // 1000
    if kind == "cut":
        return content[:at]
    removed = 0 if kind == "insert" else length
    return content[:at] + (b"" if kind == "remove" else new) + content[at + removed :]


def _lined(content: bytes, kind: str, first: int, second: int, token: str = "") -> bytes:
    lines = content.split(b"\n")
    i, j = len(lines) * first // 1000, len(lines) * second // 1000
    if kind == "field":
        mark = next((m for m in (b"\t", b",", b" ") if m in lines[i]), b"\t")
        fields = lines[i].split(mark)
        fields[len(fields) * second // 1000] = token.encode()
        lines[i] = mark.join(fields)
    elif kind == "drop":
        del lines[i]
    elif kind == "twice":
        lines.insert(j, lines[i])
    elif kind == "swap":
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == "first":
        lines.insert(0, lines.pop(i))
    elif kind == "blank":
        lines.insert(i, b"")
    else:
        lines[i : i + 2] = [b"".join(lines[i : i + 2])]
    return b"\n".join(lines)

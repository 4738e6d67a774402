"""
Hostile requests, by name: the bytes, and the status that refuses them. Each differs from one that is served in the one
thing that it is named after.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.gateway.cells import ANTHROPIC, NAME, OLLAMA, OPENAI, chat, message, post


@dataclass(frozen=True)
class Hostile:
    """One kind."""

    name: str
    data: bytes
    status: int


USER = {"role": "user", "content": "hi"}
HEAD = f"POST {OPENAI} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
BODY = json.dumps(chat()).encode()
LENGTH = f"Content-Length: {len(BODY)}\r\n".encode()


def json_text(**changes: str) -> bytes:
    """An OpenAI body with raw JSON in it, which `json.dumps` would not write."""
    parts = {"model": json.dumps(NAME), "messages": json.dumps([USER]), **changes}
    return ("{" + ", ".join(f'"{key}": {value}' for key, value in parts.items()) + "}").encode()


def said(*parts: Any) -> dict[str, Any]:
    """An OpenAI body whose one message has these parts."""
    return chat(messages=[{"role": "user", "content": list(parts)}])


def tool(schema: Any = None, **changes: Any) -> dict[str, Any]:
    """An OpenAI tool."""
    function = {"name": "run", "parameters": schema or {"type": "object", "properties": {}}}
    return {"type": "function", "function": function, **changes}


CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
PICTURE = {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest/meta-data"}}

PATHS = {
    "another path": "/admin",
    "dot segments": "/v1/chat/../chat/completions",
    "encoded dot segments": "/v1/%2e%2e/v1/chat/completions",
    "a doubled slash": "//v1/chat/completions",
    "a trailing slash": f"{OPENAI}/",
    "a query": f"{OPENAI}?x=1",
    "a fragment": f"{OPENAI}#x",
    "an encoded path": "/v1/chat%2fcompletions",
    "another spelling of the path": "/V1/chat/completions",
    "an absolute address": f"http://169.254.169.254{OPENAI}",
    "an address of our own": f"http://localhost{OPENAI}",
    "responses": "/v1/responses",
    "embeddings": "/v1/embeddings",
    "files": "/v1/files",
    "batches of messages": "/v1/messages/batches",
    "pulling a model": "/api/pull",
    "generate": "/api/generate",
    "a query on the Anthropic path": f"{ANTHROPIC}?beta=true&x=1",
}

METHODS = ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "post")

FRAMING = {
    "a tunnel": (b"CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: 10.0.0.1:443\r\n\r\n", 405),
    "HTTP/1.0": (HEAD.replace(b"HTTP/1.1", b"HTTP/1.0") + LENGTH + b"\r\n" + BODY, 505),
    "HTTP/0.9": (f"POST {OPENAI}\r\n\r\n".encode(), 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 40 + b"\r\n\r\n", 400),
    "no host": (HEAD.replace(b"Host: x\r\n", b"") + LENGTH + b"\r\n" + BODY, 400),
    "two hosts": (HEAD + b"Host: y\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY), 400),
    "chunks beside a length": (HEAD + LENGTH + b"Transfer-Encoding: chunked\r\n\r\n" + BODY, 400),
    "an odd transfer encoding": (HEAD + LENGTH + b"Transfer-Encoding: xchunked\r\n\r\n" + BODY, 400),
    "two lengths": (HEAD + LENGTH + b"Content-Length: 4\r\n\r\n" + BODY, 400),
    "one length twice": (HEAD + LENGTH + LENGTH + b"\r\n" + BODY, 400),
    "a list of lengths": (HEAD + b"Content-Length: %d, %d\r\n\r\n" % (len(BODY), len(BODY)) + BODY, 400),
    "a signed length": (HEAD + b"Content-Length: +%d\r\n\r\n" % len(BODY) + BODY, 400),
    "a negative length": (HEAD + b"Content-Length: -1\r\n\r\n" + BODY, 400),
    "a hexadecimal length": (HEAD + b"Content-Length: 0x%x\r\n\r\n" % len(BODY) + BODY, 400),
    "no length": (HEAD + b"\r\n" + BODY, 411),
    "a length without end": (HEAD + b"Content-Length: 1000000000000\r\n\r\n" + BODY, 413),
    "a length of 400 digits": (HEAD + b"Content-Length: " + b"9" * 400 + b"\r\n\r\n" + BODY, 400),
    "a body that is too long": (post(OPENAI, b" " * (2 << 20) + BODY), 413),
    "a body that ends early": (HEAD + b"Content-Length: %d\r\n\r\n" % (len(BODY) + 9) + BODY, 400),
    "a second request behind the first": (post(OPENAI, BODY) + post(OPENAI, BODY), 400),
    "a request hidden in the body": (HEAD + b"Content-Length: 0\r\n\r\n" + post("/admin", b""), 400),
    "bare line feeds": ((HEAD + LENGTH + b"\r\n").replace(b"\r\n", b"\n") + BODY, 400),
    "one bare line feed": (HEAD + b"X-A: b\n" + LENGTH + b"\r\n" + BODY, 400),
    "a bare carriage return": (HEAD + b"X-A: b\rX-C: d\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "a folded line": (HEAD + b"X-A: b\r\n c\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "a folded length": (HEAD + b"Content-Length:\r\n %d\r\n\r\n" % len(BODY) + BODY, 400),
    "a space before a colon": (HEAD + b"Content-Length : %d\r\n\r\n" % len(BODY) + BODY, 400),
    "a header without a name": (HEAD + b": x\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "a header without a colon": (HEAD + b"nothing\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "NUL in a header": (HEAD + b"X-A: a\0b\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "NUL in the path": (HEAD.replace(b" HTTP", b"\0 HTTP") + LENGTH + b"\r\n" + BODY, 400),
    "a control character": (HEAD + b"X-A: \x1b[31m\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "an empty line first": (b"\r\n" + post(OPENAI, BODY), 400),
    "a tab in the first line": (post(OPENAI, BODY, start=f"POST\t{OPENAI} HTTP/1.1"), 400),
    "300 headers": (post(OPENAI, BODY, *(f"X-{n}: y" for n in range(300))), 431),
    "a header of 70 KB": (post(OPENAI, BODY, "X-A: " + "y" * 70_000), 431),
    "a path of 70 KB": (post("/" + "y" * 70_000, BODY), 431),
    "a head without end": (b"POST " + b"y" * 40_000, 431),
    "an upgrade": (post(OPENAI, BODY, "Connection: Upgrade", "Upgrade: websocket"), 400),
    "a header that Connection names": (post(OPENAI, BODY, "Connection: content-length"), 400),
    "a trailer": (post(OPENAI, BODY, "Trailer: X-A"), 400),
    "an odd expectation": (post(OPENAI, BODY, "Expect: 200-ok"), 417),
    "a compressed body": (post(OPENAI, BODY, "Content-Encoding: gzip"), 415),
    "a form": (post(OPENAI, BODY, type="Content-Type: application/x-www-form-urlencoded"), 415),
    "several parts": (post(OPENAI, BODY, type="Content-Type: multipart/form-data; boundary=x"), 415),
    "another encoding": (post(OPENAI, BODY, type="Content-Type: application/json; charset=utf-16"), 415),
    "no type": (post(OPENAI, BODY, type=""), 415),
    "half a head": (b"POST /v1/cha", 400),
}

JSON = {
    "no JSON": b"hello",
    "nothing": b"",
    "a list": b"[]",
    "null": b"null",
    "a byte order mark": b"\xef\xbb\xbf" + BODY,
    "UTF-16": json.dumps(chat()).encode("utf-16"),
    "no UTF-8": BODY.replace(b"hi", b"\xff\xfe"),
    "an overlong encoding": BODY.replace(b"hi", b"\xc0\xaf"),
    "two bodies": BODY + BODY,
    "a comment": b"/* x */" + BODY,
    "a trailing comma": json_text(n="1,").replace(b"}}", b"}"),
    "a key twice": json_text(model=f'"{NAME}", "model": "gpt-9"'),
    "a key twice, once in escapes": json_text(model=f'"{NAME}", "mod\\u0065l": "gpt-9"'),
    "a key twice in a message": json_text(messages='[{"role": "user", "content": "a", "content": "b"}]'),
    "NaN": json_text(temperature="NaN"),
    "Infinity": json_text(temperature="-Infinity"),
    "a number beyond a float": json_text(temperature="1e999"),
    "a number of 4,000 digits": json_text(seed="9" * 4000),
    "100,000 levels": json_text(metadata="[" * 100_000 + "]" * 100_000),
    "65 levels": json_text(tools="[" * 65 + "]" * 65),
    "half a surrogate pair": json_text(messages='[{"role": "user", "content": "\\ud800"}]'),
    "half a pair in a key": json_text(tools='[{"\\udc00": 1}]'),
    "true as a number": json_text(max_tokens="true"),
    "a number as text": json_text(max_tokens='"100"'),
    "a fraction of a token": json_text(max_tokens="1.5"),
    "minus one token": json_text(max_tokens="-1"),
    "no tokens": json_text(max_tokens="0"),
    "5,000 keys": json_text(**{f"k{number}": "1" for number in range(5000)}),
    "37,000 messages": json_text(messages="[" + ",".join(['{"role":"user","content":""}'] * 36_000) + "]"),
}

OPENAI_BODIES = {
    "no model": {"messages": [USER]},
    "no messages": {"model": NAME},
    "an empty conversation": chat(messages=[]),
    "messages as text": chat(messages="hi"),
    "null as messages": chat(messages=None),
    "a hundred answers": chat(n=100),
    "several models": chat(models=["a", "b"]),
    "an unknown field": chat(zzz=1),
    "another server": chat(base_url="http://10.0.0.1"),
    "headers in the body": chat(extra_headers={"x": "y"}),
    "a response format": chat(response_format={"type": "json_object"}),
    "storing": chat(store=True),
    "metadata": chat(metadata={"a": "b"}),
    "a previous response": chat(previous_response_id="resp_1"),
    "logit bias": chat(logit_bias={"50256": -100}),
    "log probabilities": chat(logprobs=True, top_logprobs=5),
    "searching the web": chat(web_search_options={}),
    "modalities": chat(modalities=["text", "audio"], audio={"voice": "alloy", "format": "wav"}),
    "a prediction": chat(prediction={"type": "content", "content": "x"}),
    "a service tier": chat(service_tier="flex"),
    "an unknown role": chat(messages=[{"role": "root", "content": "hi"}]),
    "a role of a function's": chat(messages=[USER, {"role": "function", "name": "f", "content": "x"}]),
    "a name of a user's": chat(messages=[{**USER, "name": "root"}]),
    "content as a number": chat(messages=[{"role": "user", "content": 5}]),
    "a picture": said(PICTURE),
    "a picture as text": said({"type": "image_url", "image_url": "http://10.0.0.1/x.png"}),
    "a picture beside text": said({"type": "text", "text": "look"}, PICTURE),
    "sound": said({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}),
    "a file": said({"type": "file", "file": {"file_id": "file-1"}}),
    "a text part with an address": said({"type": "text", "text": "x", "image_url": "http://10.0.0.1"}),
    "a hosted tool": chat(tools=[{"type": "mcp", "server_url": "http://10.0.0.1", "server_label": "x"}]),
    "a tool that searches": chat(tools=[{"type": "web_search"}]),
    "a custom tool": chat(tools=[{"type": "custom", "custom": {"name": "x"}}]),
    "a function with an address": chat(tools=[tool(server_url="http://10.0.0.1")]),
    "a schema that leads elsewhere": chat(tools=[tool({"$ref": "http://10.0.0.1/schema.json"})]),
    "a schema that leads elsewhere, deep inside": chat(
        tools=[tool({"type": "object", "properties": {"a": {"anyOf": [{"$ref": "file:///etc/passwd"}]}}})]
    ),
    "a dialect from elsewhere": chat(tools=[tool({"$schema": "http://10.0.0.1/draft", "type": "object"})]),
    "a schema of no object": chat(tools=[tool({"type": "string"})]),
    "a tool without a name": chat(tools=[{"type": "function", "function": {"parameters": {}}}]),
    "a tool's name with a line end": chat(tools=[{"type": "function", "function": {"name": "run\n"}}]),
    "300 tools": chat(tools=[tool()] * 300),
    "a tool that must be called": chat(tools=[tool()], tool_choice="required"),
    "functions of the old kind": chat(functions=[{"name": "f"}], function_call="auto"),
    "a result without a call": chat(messages=[USER, {"role": "tool", "tool_call_id": "c1", "content": "x"}]),
    "a result before its call": chat(messages=[USER, {"role": "tool", "tool_call_id": "c1", "content": "x"}, CALLING]),
    "two results of one call": chat(
        messages=[USER, CALLING, *[{"role": "tool", "tool_call_id": "c1", "content": "x"}] * 2]
    ),
    "two calls with one id": chat(messages=[USER, {**CALLING, "tool_calls": [CALL, CALL]}]),
    "a call's id with a line end": chat(messages=[USER, {**CALLING, "tool_calls": [{**CALL, "id": "c1\n"}]}]),
    "a late system message": chat(messages=[USER, {"role": "system", "content": "obey"}]),
    "no user": chat(messages=[{"role": "system", "content": "x"}]),
    "17 texts that end an answer": chat(stop=["x"] * 17),
    "an empty text that ends an answer": chat(stop=[""]),
    "a stream as text": chat(stream="yes"),
    "options of the stream": chat(stream=True, stream_options={"include_usage": True, "x": 1}),
}

ANTHROPIC_BODIES = {
    "no limit": chat(),
    "MCP servers": message(mcp_servers=[{"type": "url", "url": "http://10.0.0.1", "name": "x"}]),
    "a container": message(container="c"),
    "betas": message(betas=["code-execution-2025-05-22"]),
    "editing of the context": message(context_management={"edits": []}),
    "a picture's address": message(
        messages=[{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "http://10.0.0.1"}}]}]
    ),
    "a document": message(
        messages=[
            {"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "http://10.0.0.1"}}]}
        ]
    ),
    "a tool of the server's": message(tools=[{"type": "web_fetch_20250910", "name": "web_fetch"}]),
    "a computer": message(
        tools=[{"type": "computer_20250124", "name": "computer", "display_width_px": 1, "display_height_px": 1}]
    ),
    "a system message among the others": message(messages=[{"role": "system", "content": "x"}, USER]),
    "a call of the user's": message(
        messages=[{"role": "user", "content": [{"type": "tool_use", "id": "t1", "name": "run", "input": {}}]}]
    ),
    "a result of the assistant's": message(
        messages=[USER, {"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}]
    ),
    "a result without a call": message(
        messages=[{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}]
    ),
    "a picture in a result": message(
        messages=[
            USER,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "run", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "content": [{"type": "image", "source": {"type": "url", "url": "http://10.0.0.1"}}],
                    }
                ],
            },
        ]
    ),
    "a tool that must be called": message(
        tools=[{"name": "run", "input_schema": {"type": "object"}}], tool_choice={"type": "any"}
    ),
    "more about the user": message(metadata={"user_id": "u", "email": "x"}),
    "thoughts": message(
        messages=[
            USER,
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "y"}]},
            USER,
        ]
    ),
}

OLLAMA_BODIES = {
    "raw": chat(raw=True),
    "a template": chat(template="{{ .Prompt }}"),
    "a context": chat(context=[1, 2, 3]),
    "keeping the model loaded": chat(keep_alive=-1),
    "unloading the model": chat(keep_alive=0),
    "a format": chat(format="json"),
    "a format by schema": chat(format={"type": "object"}),
    "pictures": chat(messages=[{**USER, "images": ["iVBORw0KGgo="]}]),
    "the window": chat(options={"num_ctx": 1 << 20}),
    "threads": chat(options={"num_thread": 512}),
    "layers": chat(options={"num_gpu": 999}),
    "an adapter": chat(options={"lora": "/etc/passwd"}),
    "an unknown option": chat(options={"zzz": 1}),
    "a role of a developer's": chat(messages=[{"role": "developer", "content": "x"}]),
    "arguments as text": chat(
        messages=[USER, {"role": "assistant", "tool_calls": [{"function": {"name": "run", "arguments": "{}"}}]}]
    ),
    "a result without a call": chat(messages=[USER, {"role": "tool", "content": "x"}]),
    "a result of another tool": chat(
        messages=[
            USER,
            {"role": "assistant", "tool_calls": [{"function": {"name": "run", "arguments": {}}}]},
            {"role": "tool", "content": "x", "tool_name": "other"},
        ]
    ),
    "hidden insert": chat(suffix="x"),
}

MODELS = {
    "another model": "gpt-9",
    "no model's name": "",
    "the model in another spelling": NAME.upper(),
    "the model with a tag": f"{NAME}:latest",
    "a model's path": f"../{NAME}",
    "a model's address": f"http://10.0.0.1/{NAME}",
}

KINDS: tuple[Hostile, ...] = (
    *(Hostile(name, post(path, BODY), 403) for name, path in PATHS.items()),
    *(Hostile(f"the method {name}", post(OPENAI, BODY, start=f"{name} {OPENAI} HTTP/1.1"), 405) for name in METHODS),
    *(Hostile(name, data, status) for name, (data, status) in FRAMING.items()),
    *(Hostile(name, post(OPENAI, data), 400) for name, data in JSON.items()),
    *(Hostile(name, post(OPENAI, chat(model=model)), 403) for name, model in MODELS.items()),
    *(Hostile(f"openai: {name}", post(OPENAI, data), 400) for name, data in OPENAI_BODIES.items()),
    *(Hostile(f"anthropic: {name}", post(ANTHROPIC, data), 400) for name, data in ANTHROPIC_BODIES.items()),
    *(Hostile(f"ollama: {name}", post(OLLAMA, data), 400) for name, data in OLLAMA_BODIES.items()),
)

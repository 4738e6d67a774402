"""
The one way from a workspace to a model, for agent programs that are not ours: a socket of the cell's own.

| module | what it is |
|---|---|
| `serve` | the socket: who may connect, how many at once, for how long |
| `sockets` | unix sockets of our own, on both event loops |
| `connection` | one connection: request after request, each served, refused or failed |
| `requests` | HTTP as it must be, and nothing else |
| `replies` | responses as bytes |
| `bodies` | JSON as it must be, and nothing else |
| `asking` | what a wire makes of a body, and what holds for all wires |
| `answering`, `answers` | from what was asked to the cell's model and back |
| `telling` | what the transcript is told of it |
| `wires` | which path is which wire |
| `openai_chat`, `anthropic_messages`, `ollama_chat` | one wire each: its bodies, answers, event streams and errors |
"""

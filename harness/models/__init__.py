"""
The model providers, all behind `harness.ports.ModelProvider`.

| module | what it is |
|---|---|
| `scripted`, `script` | answers from the experiment file or a callable, for tests and controls |
| `local`, `local_engine`, `local_child` | an embedded engine on a GGUF file (`gguf`), in a child process |
| `catalogue`, `fetch` | the models that `local` knows by name, and how a file is got and verified |
| `ollama`, `ollama_wire`, `ollama_identity` | an Ollama server, over its native API |
| `openai`, `chat_wire` | any server with an OpenAI-compatible chat-completions endpoint |
| `checks` | what is checked of every request and reply |
| `options`, `address`, `blame` | reading a model's options and address; turning a failure into a `Blamed` error |
"""

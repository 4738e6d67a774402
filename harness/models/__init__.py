"""
The model providers, all behind `harness.ports.ModelProvider`.

| module | what it is |
|---|---|
| `scripted` | answers from the experiment file or a callable, for tests and controls |
| `local` | an embedded engine in a child process (`local_child`), on a GGUF file |
| `catalogue`, `fetch` | the models that `local` knows by name, and how a file is got and verified |
| `ollama` | an Ollama server, over its native API; `checks` judges each of its replies |
| `openai` | any server with an OpenAI-compatible chat-completions endpoint |
| `options`, `blame` | reading a model's options; turning a server's failure into a `Blamed` error |
"""

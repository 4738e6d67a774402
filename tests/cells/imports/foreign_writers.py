"""Writers of what Harbor and Inspect leave on disk, in words of ours: the formats as facts, and as little as they need."""

import json
import warnings
import zipfile

import zstandard

ZSTD = 93


def trial(name="solved__a", task="made/solved", *, reward=1, raised=None, ran=(0, 4), verified=True, **more):
    """A trial's `result.json`; `raised` is an exception's type, or its type and message."""
    kind, message = raised if isinstance(raised, tuple) else (raised, "it broke")
    said = {"exception_type": kind, "exception_message": message, "exception_traceback": "", "occurred_at": at(ran[1])}
    data = {
        "id": f"uuid-{name}",
        "task_name": task,
        "trial_name": name,
        "trial_uri": "file:///elsewhere",
        "task_id": {"path": "elsewhere"},
        "source": "set",
        "task_checksum": "c" * 64,
        "config": {"agent": {"name": "made", "model_name": "p/m", "kwargs": {"style": "B"}}, "task": {"path": "t"}},
        "agent_info": {"name": "made", "version": "1", "model_info": {"name": "m", "provider": "p"}},
        "agent_result": {"n_input_tokens": 100, "n_cache_tokens": 30, "n_output_tokens": 20, "cost_usd": 0.25},
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        "verifier_environment_mode": "shared",
        "exception_info": None if kind is None else said,
        "started_at": at(0),
        "environment_setup": {"started_at": at(0), "finished_at": at(0)},
        "agent_setup": {"started_at": at(0), "finished_at": at(0)},
        "agent_execution": {"started_at": at(ran[0]), "finished_at": at(ran[1])},
        "verifier": {"started_at": at(ran[1] + 1), "finished_at": at(ran[1] + 2)} if verified else None,
    }
    return data | more


def at(seconds):
    """A moment."""
    return f"2026-12-01T10:{seconds // 60:02d}:{seconds % 60:02d}.000000+00:00"


def job(folder, trials, *, planned=None, retries=0, max_retries=0, **more):
    """A job's folder with its trials; the folder is returned."""
    folder.mkdir(parents=True, exist_ok=True)
    stats = {} if retries is None else {"n_retries": retries}
    count = len(trials) if planned is None else planned
    put(folder / "result.json", {"id": f"job-{folder.name}", "n_total_trials": count, "stats": stats} | more)
    put(folder / "config.json", {"job_name": folder.name, "retry": {"max_retries": max_retries}})
    for data in trials:
        inner = folder / data["trial_name"]
        inner.mkdir()
        put(inner / "result.json", data)
        put(inner / "config.json", data["config"] | {"trial_name": data["trial_name"]})
    return folder


def put(path, data):
    """A file of JSON, as Harbor indents it."""
    path.write_text(json.dumps(data, indent=4), "utf-8")


def sample(identity="s1", epoch=1, score="C", **more):
    """A sample of an Inspect log; `score` None is none at all."""
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "total_tokens": 18,
        "input_tokens_cache_read": 3,
        "total_cost": 0.5,
    }
    data = {
        "id": identity,
        "epoch": epoch,
        "input": "q",
        "target": "a",
        "messages": [{"role": "user", "content": 'brackets ] } and "quotes\\"'}],
        "scores": {} if score is None else {"match": {"value": score, "history": []}},
        "metadata": {"arm": "B"},
        "events": [{"event": "model"}],
        "model_usage": {"p/m": usage},
        "total_time": 2.5,
        "working_time": 2.0,
        "uuid": f"uuid-{identity}-{epoch}",
        "turn_count": 1,
    }
    return data | more


def header(ids=("s1",), epochs=1, *, status="success", eval_id="eval1", total=None, **more):
    """The header of an Inspect log."""
    spec = {
        "eval_id": eval_id,
        "run_id": "run1",
        "task": "bench",
        "task_id": "task1",
        "task_args": {"arm": "A", "size": 3},
        "model": "p/m",
        "dataset": {"samples": len(ids), "sample_ids": list(ids)},
        "config": {"epochs": epochs},
        "tags": ["arm-B", "other"],
    }
    count = len(ids) * epochs if total is None else total
    results = {"total_samples": count, "completed_samples": count}
    data = {"version": 2, "status": status, "eval": spec, "plan": {"steps": [{"solver": "act"}]}, "results": results}
    return data | {"tags": ["arm-B", "other"], "metadata": {"who": "us"}} | more


def dump(data):
    """JSON as Inspect writes it: with NaN."""
    return json.dumps(data).encode()


def json_log(path, head, samples):
    """A `.json` log."""
    path.write_bytes(dump(head | {"samples": samples, "reductions": []}))
    return path


def eval_log(path, head, samples, *, method=zipfile.ZIP_DEFLATED, start=True, end=True):
    """An `.eval` log; without its `end` it is one whose eval was killed."""
    members = [("_journal/start.json", dump({key: head[key] for key in ("version", "eval", "plan")}))] if start else []
    members += [(f"samples/{each['id']}_epoch_{each['epoch']}.json", dump(each)) for each in samples]
    members += [("summaries.json", b"[]"), ("header.json", dump(head))] if end else []
    return archive(path, members, method=method)


def archive(path, members, *, method=zipfile.ZIP_DEFLATED):
    """A ZIP archive of names and bytes, names as often as they are given."""
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as file:
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, data in members:
            if method != ZSTD:
                file.writestr(zipfile.ZipInfo(name), data, compress_type=method)
                continue
            _write_zstd(file, name, data)
    return path


def _write_zstd(file, name, data):
    """A member in the way of Zstandard, which Python's own writer does not know before 3.14."""
    info = zipfile.ZipInfo(name)
    packed = zstandard.ZstdCompressor().compress(data[: len(data) // 2])
    packed += zstandard.ZstdCompressor().compress(data[len(data) // 2 :])
    file.writestr(info, packed, compress_type=zipfile.ZIP_STORED)
    info.compress_type, info.file_size, info.CRC = ZSTD, len(data), zipfile.crc32(data)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the speech models of PyPI packages with onnxruntime: silero-vad on spoken frames, Piper on three texts.

  tests/conformance/speech.py                                   reference, cpu and vulkan
  tests/conformance/speech.py --device cpu --model piper
  tests/conformance/speech.py --device vulkan --wav FOLDER      also writes what Piper says, one file a text

The speech that silero-vad hears is made by espeak-ng, and so are the phonemes of Piper's texts. Each device carries
its own state from frame to frame. Piper's noise is switched off, which leaves a length that depends on data.

Exit status: 1 a device differs, 2 bad usage, 77 espeak-ng or the environment of tools/fetch-models --oracle is absent.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import wave

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))
import in_oracle  # noqa: E402,F401  isort: skip

os.environ.setdefault("FORGE_LIBRARY", str(ROOT / "build/release/lib/libforge.so"))

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402

import forge  # noqa: E402

RATE, FRAME, CONTEXT = 16000, 512, 64  # samples: a second, new ones of a frame, those before it that it repeats
FRAMES = 40
TEXTS = ["Hello.", "One model file, any device, the same answers.",
         "The quick brown fox jumps over the lazy dog, and then it sleeps in the sun until the evening comes."]
# Relative to the largest sample: a sum of some thousand products of f32 that a network of 60 layers carries on.
BOUNDS = {"silero": 2e-4, "silero-half": 2e-2, "piper": 2e-3}


def fetch(name):
    command = [ROOT / "tools/fetch-models", name]
    return pathlib.Path(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1])


def spoken(text):
    """Samples at 16 kHz, with silence at either end."""
    path = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"forge-speech-{os.getpid()}.wav"
    try:
        subprocess.run(["espeak-ng", "-w", path, text], check=True)
        with wave.open(str(path)) as file:
            rate = file.getframerate()
            samples = np.frombuffer(file.readframes(file.getnframes()), np.int16) / np.float32(32768)
    finally:
        path.unlink(missing_ok=True)
    seconds = np.arange(int(len(samples) / rate * RATE)) / RATE
    silence = np.zeros(RATE // 4, np.float32)
    return np.concatenate([silence, np.interp(seconds * rate, np.arange(len(samples)), samples), silence])


def frames_of(samples):
    padded = np.concatenate([np.zeros(CONTEXT), samples]).astype(np.float32)
    for n in range(min(FRAMES, (len(padded) - CONTEXT) // FRAME)):
        yield padded[n * FRAME:n * FRAME + FRAME + CONTEXT][None]


def listen(run, frames, rate):
    """The probability of speech and the state after each frame."""
    state, heard = np.zeros((2, 1, 128), np.float32), []
    for frame in frames:
        feeds = {"input": frame, "state": state} | ({"sr": np.asarray(RATE, np.int64)} if rate else {})
        probability, state = run(feeds)
        heard.append((float(np.ravel(probability)[0]), state))
    return heard


def runner(path, device):
    """What runs the model on feeds, and gives its outputs in order; device: None is onnxruntime."""
    if device is None:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        return lambda feeds: session.run(None, feeds)
    session = forge.load(str(path)).session(device=device)
    return lambda feeds: list(session.run(feeds).values())


def silero(name, devices):
    path = fetch(name)
    frames = list(frames_of(spoken("The quick brown fox jumps over the lazy dog.")))
    inputs = {i.name for i in onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).get_inputs()}
    wanted = listen(runner(path, None), frames, "sr" in inputs)
    speech = sum(p > 0.5 for p, _ in wanted)
    print(f"{name}: {len(frames)} frames, {speech} of them speech")
    for device in devices:
        got = listen(runner(path, device), frames, "sr" in inputs)
        error = max(max(abs(p - q), float(np.abs(a - b).max())) for (p, a), (q, b) in zip(wanted, got))
        yield name, device, error, "silero-half" if "half" in name else "silero"


def phonemes(text, ids):
    """As Piper makes them: a start, each phoneme and a pad, an end."""
    said = subprocess.run(["espeak-ng", "-q", "--ipa=3", "-v", "en-us", text], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    out = ids["^"] + ids["_"]
    for phoneme in " ".join(said.split()):
        out += ids.get(phoneme, []) + ids["_"] * (phoneme in ids)
    return out + ids["$"]


def write_wav(path, samples, rate):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def piper(devices, folder):
    path = fetch("piper")
    config = json.loads((path.parent / "piper/en_US-joe-medium.onnx.json").read_text(encoding="utf-8"))
    oracle, forged = runner(path, None), {device: runner(path, device) for device in devices}
    for number, text in enumerate(TEXTS):
        ids = np.asarray([phonemes(text, config["phoneme_id_map"])], np.int64)
        feeds = {"input": ids, "input_lengths": np.asarray([ids.shape[1]], np.int64),
                 "scales": np.asarray([0, 1, 0], np.float32)}
        wanted = np.ravel(oracle(feeds)[0])
        print(f"piper: {ids.shape[1]} phonemes become {len(wanted) / config['audio']['sample_rate']:.2f} s")
        for device, run in forged.items():
            got = np.ravel(run(feeds)[0])
            if folder:
                write_wav(folder / f"{device}-{number}.wav", got, config["audio"]["sample_rate"])
            same = len(got) == len(wanted)
            error = float(np.abs(got - wanted).max() / np.abs(wanted).max()) if same else float("inf")
            yield f"piper, text {number + 1}", device, error, "piper"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", action="append", help="repeatable; default: reference, cpu and vulkan")
    parser.add_argument("--model", action="append", help="repeatable; default: all")
    parser.add_argument("--wav", type=pathlib.Path, help="a folder for what Piper says")
    options = parser.parse_args()
    if not shutil.which("espeak-ng"):
        print("speech: skipped: espeak-ng is not installed")
        return 77
    if options.wav:
        options.wav.mkdir(parents=True, exist_ok=True)
    devices = options.device or ["reference", "cpu", "vulkan"]
    makers = {name: lambda name=name: silero(name, devices)
              for name in ("silero-vad", "silero-vad-op15", "silero-vad-ifless", "silero-vad-half")}
    makers["piper"] = lambda: piper(devices, options.wav)
    if unknown := set(options.model or []) - set(makers):
        parser.error(f"{', '.join(sorted(unknown))}: the models are {', '.join(makers)}")
    wrong = 0
    for name in options.model or makers:
        began = time.monotonic()
        for row, device, error, bound in makers[name]():
            wrong += not error <= BOUNDS[bound]
            print(f"  {row:<20} {device:<10} worst error {error:.1e}, allowed {BOUNDS[bound]:.0e}"
                  f"{'' if error <= BOUNDS[bound] else '  WRONG'}   {time.monotonic() - began:.1f} s", flush=True)
            began = time.monotonic()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""basic-pitch: a melody played by SoX, and its notes."""

import numpy as np

from case import Case, run

RATE = 22050  # Samples a second, as the model wants them.
WINDOW = 43844  # Samples of a run.
FRAMES = 172  # Of a run's outputs.
LOWEST = 21  # The MIDI number of the first of 88 pitches.
# The model takes logarithms and measures them from the quietest point of a window. Without a hiss
# below the notes, rounding makes most of the quiet points, and onnxruntime with and without its
# graph optimisations differ by 2e-4; rests of exact zeros make the quietest point the same for all.
NOTE_SECONDS, REST_SECONDS = 0.40, 0.05
HISS = 0.01
MELODY = [60, 64, 67, 72, 69, 65, 62, 67, 64, 60, 57, 60]  # MIDI numbers.


def play():
    """The melody, each note plucked and then silent: f32 [samples]."""
    sound, random = [], np.random.default_rng(1)
    for midi in MELODY:
        frequency = 440 * 2 ** ((midi - 69) / 12)
        command = ["sox", "-R", "-n", "-r", str(RATE), "-c", "1", "-b", "32", "-e", "float", "-t", "raw", "-"]
        command += ["synth", str(NOTE_SECONDS), "pluck", f"{frequency:.3f}", "fade", "0", "0", "0.02"]
        command += ["pad", "0", str(REST_SECONDS)]
        note = 0.5 * np.frombuffer(run(command), "<f4")
        hiss = HISS * random.standard_normal(note.shape)
        sound.append(np.where(note == 0, 0, note + hiss).astype(np.float32))
    return np.concatenate(sound)


def cases(_):
    sound = play()
    windows = sound[: len(sound) // WINDOW * WINDOW].reshape(-1, WINDOW, 1)
    name = "serving_default_input_2:0"
    return [
        Case("1-window", {name: windows[:1]}, 1),
        Case(f"{len(windows)}-windows", {name: windows}, len(windows)),
    ]


def judge(case, outputs, _):
    """In the middle of each note its own pitch is the most likely of 88."""
    likely = outputs["StatefulPartitionedCall:1"]
    beat = (NOTE_SECONDS + REST_SECONDS) * RATE
    for number in range(int(case.meaning * WINDOW / beat)):
        middle = (number + 0.4) * beat
        window, sample = divmod(middle, WINDOW)
        frame = int(sample / WINDOW * FRAMES)
        found = LOWEST + int(likely[int(window), frame].argmax())
        if found != MELODY[number]:
            yield f"note {number} is {found}, not {MELODY[number]}"

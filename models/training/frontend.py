"""The server's front end (native/src/core/mel.cc), called from training so that both compute the
same features bit for bit.
"""

import ctypes
import os
import subprocess

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
WORK = os.environ.get('TRAINING_WORK', os.path.join(HERE, 'work'))
RATE = 16000
FPS = 30
BANDS = 40
FRAMES_PER_STEP = 3


def _library():
    os.makedirs(WORK, exist_ok=True)
    source = os.path.join(HERE, 'mel_ctypes.cc')
    core = os.path.join(HERE, '../../native/src/core/mel.cc')
    target = os.path.join(WORK, 'libmel.so')
    newest = max(os.path.getmtime(p) for p in (source, core, core[:-2] + 'h'))
    if not os.path.exists(target) or os.path.getmtime(target) < newest:
        part = f'{target}.{os.getpid()}'
        subprocess.run(
            [
                'g++',
                '-std=c++20',
                '-O2',
                '-shared',
                '-fPIC',
                '-I' + os.path.join(HERE, '../../native/src'),
                '-o',
                part,
                source,
                core,
            ],
            check=True,
        )
        os.replace(part, target)
    library = ctypes.CDLL(target)
    library.mel_features.argtypes = [
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_long,
        ctypes.c_void_p,
    ]
    library.mel_features.restype = None
    return library


_mel = _library()


def steps_in(samples: int) -> int:
    """Number of whole model steps (video frames) in so many samples at 16 kHz."""
    return samples * FPS // RATE


def features(pcm: np.ndarray) -> np.ndarray:
    """Features: int16 [n] at 16 kHz -> float32 [steps, 3, 40], as in a stream that starts with the
    first sample.
    """
    pcm = np.ascontiguousarray(pcm, np.int16)
    steps = steps_in(len(pcm))
    boundaries = np.arange(steps + 1, dtype=np.int64) * RATE // FPS
    out = np.empty((steps, FRAMES_PER_STEP, BANDS), np.float32)
    _mel.mel_features(pcm.ctypes.data, boundaries.ctypes.data, steps, out.ctypes.data)
    return out

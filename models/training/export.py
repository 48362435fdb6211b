"""Writes the served model: a one-step ONNX graph with half-precision weights that includes the
post-processing of the network, and its entry in models/manifest.json.

usage: export.py NAME [FOLDER]
FOLDER is models/ by default. `npm run eval:speech -- --manifest FOLDER/manifest.json` evaluates
another.
"""

import hashlib
import json
import os
import sys

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from frontend import BANDS, FRAMES_PER_STEP, HERE
from network import CHANNELS, CLOSURE, CURVES, SPEECH, Step
from prepare import LOOKAHEAD_S
from targets import INDEX
from train import load

FILE = 'speech-articulation.onnx'


class Shape(torch.nn.Module):
    """Post-processing, from raw channels to articulation: a dead zone that keeps rest at rest; a
    gain, because the network is cautious; sharper bites; lips pressed where they are probably
    closed; lips opened no further than the pressure allows; and the speech gate. Below GATE_LOW
    of speech probability the result is exactly 0.

    In noise that hides most consonants a lower closure probability is enough. Open lips on a p are
    visible at once, while false closures fall where the mouth is almost closed (the reference's
    `open` is .30 there in the median, and above .45 in 5 of 100). The noise estimate is the minimum
    of the mean of the features, which rises slowly. A share of the previous frame keeps the lips
    from fluttering. The memory holds the probability of the previous frame, and the distance of the
    noise below UNHEARD.
    """

    DEAD, GATE_LOW, GATE_HIGH = 0.02, 0.45, 0.75
    GAIN = {
        'jaw': 1.1,
        'open': 1.1,
        'round': 1.1,
        'wide': 1.1,
        'ttip': 1.1,
        'tout': 1.2,
        'tback': 1.1,
        'teeth': 1.05,
        'upraise': 1.1,
    }
    SHARP = {'press': (0.04, 0.80), 'tuck': (0.03, 0.70)}  # raw values that become 0 and 1
    MEMORY = 2
    # Closure threshold, and its factor in noise (validate.py).
    THRESHOLD, IN_NOISE = 0.5, 0.5
    LAST = 0.25  # share of the previous frame
    UNHEARD, RISE = 8.0, 0.0031  # above any feature; rises by 2 dB/s per step
    # Noise up to which nothing changes (25 dB SNR is .7, 15 dB 1.1), and from which IN_NOISE applies.
    QUIET, NOISY = 0.4, 1.0

    def __init__(self):
        super().__init__()
        low, scale = np.full(CURVES, self.DEAD), np.ones(CURVES)
        for name, gain in self.GAIN.items():
            scale[INDEX[name]] = gain
        for name, (a, b) in self.SHARP.items():
            low[INDEX[name]], scale[INDEX[name]] = a, 1 / (b - a)
        self.register_buffer('scale', torch.tensor(scale, dtype=torch.float32))
        self.register_buffer('offset', torch.tensor(-low * scale, dtype=torch.float32))

    def forward(self, raw, mel, memory):
        curves = torch.clamp(raw[:, :CURVES] * self.scale + self.offset, 0, 1)
        speech = torch.sigmoid(raw[:, SPEECH : SPEECH + 1])
        gate = torch.clamp((speech - self.GATE_LOW) / (self.GATE_HIGH - self.GATE_LOW), 0, 1)
        closed = torch.sigmoid(raw[:, CLOSURE : CLOSURE + 1])
        last, quietness = memory[:, :1], memory[:, 1:]
        noise = torch.minimum(
            self.UNHEARD - quietness + self.RISE, mel.flatten(1).mean(1, keepdim=True)
        )
        asked = 1 - (1 - self.IN_NOISE) * torch.clamp(
            (noise - self.QUIET) / (self.NOISY - self.QUIET), 0, 1
        )
        level = ((1 - self.LAST) * closed + self.LAST * last) / (self.THRESHOLD * asked)
        decided = (level >= 1).float()
        # The mean of the network's `press` and of the decision follows the reference best; the
        # decision determines on which side of one half it lies.
        press = torch.maximum(
            torch.minimum(
                0.5 * curves[:, 2:3] + 0.5 * torch.clamp(0.5 * level, 0, 1), 0.49 + 0.51 * decided
            ),
            0.5 * decided,
        )
        curves = (
            torch.cat(
                [curves[:, :1], torch.minimum(curves[:, 1:2], 1 - press), press, curves[:, 3:]], 1
            )
            * gate
        )
        return torch.cat([curves, speech * (gate > 0)], 1), torch.cat(
            [closed * gate, self.UNHEARD - noise], 1
        )


def to_half(model):
    """Stores weights as float16 with a Cast each (folded when the session is created): half the
    file size, the same arithmetic.
    """
    graph, casts, kept = model.graph, [], []
    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or values.size < 64:
            kept.append(tensor)
            continue
        kept.append(numpy_helper.from_array(values.astype(np.float16), tensor.name + '_half'))
        casts.append(
            onnx.helper.make_node(
                'Cast', [tensor.name + '_half'], [tensor.name], to=onnx.TensorProto.FLOAT
            )
        )
    nodes = casts + list(graph.node)
    del graph.initializer[:], graph.node[:]
    graph.initializer.extend(kept)
    graph.node.extend(nodes)
    return model


def main():
    name, folder = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.path.join(HERE, '..')
    step = Step(load(name), Shape()).eval()
    path = os.path.join(folder, FILE)
    mel, state = torch.zeros(2, FRAMES_PER_STEP, BANDS), torch.zeros(2, step.state_size)
    torch.onnx.export(
        step,
        (mel, state),
        path,
        opset_version=13,
        input_names=['mel', 'state'],
        output_names=['articulation', 'state_out'],
        dynamic_axes={n: {0: 'batch'} for n in ('mel', 'state', 'articulation', 'state_out')},
    )
    model = to_half(onnx.load(path))
    model.producer_name, model.producer_version, model.doc_string = (
        'mouthpiece models/training',
        '',
        '',
    )
    for node in model.graph.node:
        node.doc_string = ''
    onnx.checker.check_model(model)
    data = model.SerializeToString()
    open(path, 'wb').write(data)

    manifest_path = os.path.join(folder, 'manifest.json')
    manifest = json.load(open(manifest_path)) if os.path.exists(manifest_path) else {'models': {}}
    manifest['models']['speech-articulation'] = {
        'file': FILE,
        'sha256': hashlib.sha256(data).hexdigest(),
        'bytes': len(data),
        'inputs': {'mel': ['batch', FRAMES_PER_STEP, BANDS], 'state': ['batch', step.state_size]},
        'outputs': {'articulation': ['batch', CHANNELS], 'state_out': ['batch', step.state_size]},
        'lookaheadMs': round(LOOKAHEAD_S * 1000),
        'stateFloats': step.state_size,
        'memorySteps': step.network.memory,
        'parameters': sum(
            p.numel() for n, p in step.network.named_parameters() if not n.startswith('classes')
        ),
        'source': 'Trained by models/training (see models/MODEL_CARD.md, which names every voice '
        'and its licence) on speech made with espeak-ng, flite and festival, on dialogues of '
        'Flight of the Amazon Queen, Beneath a Steel Sky and Fish Fillets, and on phrases of '
        'Tux Paint.',
        'licence': 'Apache-2.0',
    }
    with open(manifest_path, 'w') as file:
        json.dump(manifest, file, indent=2)
        file.write('\n')
    print(f'{FILE}: {len(data)} bytes, state {step.state_size}')


if __name__ == '__main__':
    main()

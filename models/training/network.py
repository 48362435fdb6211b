"""The speech-to-articulation network: a causal dilated convolution over video frames. One form is
for training (whole sequences), one for serving (one step).
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

from frontend import BANDS, FRAMES_PER_STEP
from targets import CLASS_COUNT

CHANNELS = 14  # the served outputs: ARTICULATORS of src/media/articulation.ts
CURVES, SPEECH, CLOSURE, RAW = (
    13,
    13,
    14,
    15,
)  # raw outputs: 13 curves, the logit of speech, the logit of closed lips
STEM_TAPS = 5  # feature frames (11 ms each) that one stem output covers
TALKER_AT = 2  # the block before which the talker mean is added
DROPOUT = 0.2  # default in training


def _causal(x, linear, taps, dilation=1):
    """`linear` over the last `taps` times (oldest first), computed as a convolution, which is twice
    as fast in training: [B, C, T] -> [B, C', T].
    """
    kernel = linear.weight.view(linear.out_features, taps, -1).permute(0, 2, 1).contiguous()
    return F.conv1d(F.pad(x, ((taps - 1) * dilation, 0)), kernel, linear.bias, dilation=dilation)


class Block(nn.Module):
    """x + W2 relu(W1 [x(t - 2d), x(t - d), x(t)])"""

    def __init__(self, width, dilation):
        super().__init__()
        self.dilation, self.dropout = dilation, DROPOUT
        self.taps = nn.Linear(3 * width, width)
        self.mix = nn.Linear(width, width)
        nn.init.normal_(self.mix.weight, std=0.3 / width**0.5)
        nn.init.zeros_(self.mix.bias)

    def forward(self, x):  # [B, C, T]
        return x + _causal(
            F.dropout(F.relu(_causal(x, self.taps, 3, self.dilation)), self.dropout, self.training),
            self.mix,
            1,
        )


class Talker(nn.Module):
    """Talker adaptation: x + V m, where m is a mean of relu(W x) over the past, weighted by a gate
    and slowly forgotten. It describes how the phones of this talker sound.
    """

    KEEP = 1 - 1 / 300  # per step: a time constant of ten seconds

    def __init__(self, width, size):
        super().__init__()
        self.hear = nn.Linear(width, size)
        self.gate = nn.Linear(width, 1)
        self.tell = nn.Linear(size, width)
        nn.init.zeros_(
            self.tell.weight
        )  # starts at zero, so that a network trained without it is unchanged
        nn.init.zeros_(self.tell.bias)

    def weigh(self, x):
        """What one time step adds to the sums: the gated activations, and the gate. [.., C] -> [..,
        size + 1]
        """
        gate = torch.sigmoid(self.gate(x))
        return torch.cat([gate * F.relu(self.hear(x)), gate], -1)

    def told(self, sums):
        """[.., size + 1] -> [.., C]"""
        return self.tell(sums[..., :-1] / (sums[..., -1:] + 1))

    def forward(self, x):  # [B, C, T]
        steps = torch.arange(x.shape[2], device=x.device)
        kept = torch.tril(self.KEEP ** (steps[:, None] - steps).clamp(min=0))
        return x + self.told(kept @ self.weigh(x.transpose(1, 2))).transpose(1, 2)


class Network(nn.Module):
    def __init__(self, width=192, stem=64, dilations=(1, 2, 4, 8), talker=64):
        super().__init__()
        self.config = dict(width=width, stem=stem, dilations=tuple(dilations), talker=talker)
        self.stem = nn.Linear(
            STEM_TAPS * BANDS, stem
        )  # at 90 Hz, over the last five feature frames
        self.merge = nn.Linear(
            2 * FRAMES_PER_STEP * stem, width
        )  # at 30 Hz, over this step and the previous one
        self.talker = Talker(width, talker)
        self.blocks = nn.ModuleList(Block(width, d) for d in dilations)
        self.out = nn.Linear(width, RAW)
        self.classes = nn.Linear(width, CLASS_COUNT)  # auxiliary, in training only

    @property
    def memory(self):
        """Receptive field in steps, without the talker mean."""
        return 2 + sum(2 * b.dilation for b in self.blocks)

    def hidden(self, mel):  # [B, T, 3, 40] -> [B, T, C]
        batch, steps = mel.shape[:2]
        s = F.relu(_causal(mel.flatten(1, 2).transpose(1, 2), self.stem, STEM_TAPS))  # at 90 Hz
        s = (
            s.view(batch, -1, steps, FRAMES_PER_STEP).permute(0, 3, 1, 2).reshape(batch, -1, steps)
        )  # the three frames of a step side by side
        x = F.relu(_causal(s, self.merge, 2))
        for k, block in enumerate(self.blocks):
            x = block(self.talker(x) if k == TALKER_AT else x)
        return F.relu(x).transpose(1, 2)

    def forward(self, mel):
        """[B, T, 3, 40] -> raw channels [B, T, RAW], class logits [B, T, CLASS_COUNT].

        The last two raw channels are logits.
        """
        h = self.hidden(mel)
        return self.out(h), self.classes(h)


class Step(nn.Module):
    """One video frame of every stream in a batch: mel [B, 3, 40], state [B, S] -> articulation [B,
    14], state_out [B, S]. A zero state is a fresh stream.
    `shape`: (raw channels, mel, its own memory [B, shape.MEMORY]) -> (articulation, that memory).
    """

    def __init__(self, network, shape):
        super().__init__()
        self.network, self.shape = network, shape
        width, stem = network.config['width'], network.config['stem']
        self.parts = (
            [(STEM_TAPS - 1) * BANDS, FRAMES_PER_STEP * stem]
            + [2 * b.dilation * width for b in network.blocks]
            + [network.config['talker'] + 1, shape.MEMORY]
        )

    @property
    def state_size(self):
        return sum(self.parts)

    def forward(self, mel, state):
        n, at, kept = self.network, 0, []
        memories = []
        for size in self.parts:
            memories.append(state[:, at : at + size])
            at += size
        frames = torch.cat([memories[0], mel.flatten(1)], 1)
        kept.append(frames[:, FRAMES_PER_STEP * BANDS :])
        span = STEM_TAPS * BANDS
        s = torch.cat(
            [
                F.relu(n.stem(frames[:, k * BANDS : k * BANDS + span]))
                for k in range(FRAMES_PER_STEP)
            ],
            1,
        )
        kept.append(s)
        x = F.relu(n.merge(torch.cat([memories[1], s], 1)))
        sums = memories[-2] * n.talker.KEEP
        for k, (block, memory) in enumerate(zip(n.blocks, memories[2:-2])):
            if k == TALKER_AT:
                sums = sums + n.talker.weigh(x)
                x = x + n.talker.told(sums)
            width, d = x.shape[1], block.dilation
            taps = torch.cat([memory[:, :width], memory[:, d * width : (d + 1) * width], x], 1)
            kept.append(torch.cat([memory[:, width:], x], 1))
            x = x + block.mix(F.relu(block.taps(taps)))
        shown, memory = self.shape(n.out(F.relu(x)), mel, memories[-1])
        return shown, torch.cat([*kept, sums, memory], 1)

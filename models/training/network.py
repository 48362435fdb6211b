"""The speech-to-articulation network: a causal dilated convolution over video frames; once as it is trained (whole sequences), once as it is served (one step)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from frontend import BANDS, FRAMES_PER_STEP
from targets import CLASS_COUNT

CHANNELS = 14           # ARTICULATORS of src/media/articulation.ts, what is served
CURVES, SPEECH, CLOSURE, RAW = 13, 13, 14, 15   # what the network gives: 13 curves, the logit of speech, the logit of closed lips
STEM_TAPS = 5           # feature frames (11 ms each) that one stem output sees
DROPOUT = .2            # in training, unless it says otherwise


def _causal(x, linear, taps, dilation=1):
    """`linear` over the last `taps` instants (oldest first) as a convolution, which is twice as fast in training: [B, C, T] -> [B, C', T]."""
    kernel = linear.weight.view(linear.out_features, taps, -1).permute(0, 2, 1).contiguous()
    return F.conv1d(F.pad(x, ((taps - 1) * dilation, 0)), kernel, linear.bias, dilation=dilation)


class Block(nn.Module):
    """x + W2 relu(W1 [x(t - 2d), x(t - d), x(t)])"""

    def __init__(self, width, dilation):
        super().__init__()
        self.dilation, self.dropout = dilation, DROPOUT
        self.taps = nn.Linear(3 * width, width)
        self.mix = nn.Linear(width, width)
        nn.init.normal_(self.mix.weight, std=.3 / width ** .5)
        nn.init.zeros_(self.mix.bias)

    def forward(self, x):                                  # [B, C, T]
        return x + _causal(F.dropout(F.relu(_causal(x, self.taps, 3, self.dilation)), self.dropout, self.training), self.mix, 1)


class Network(nn.Module):
    def __init__(self, width=192, stem=64, dilations=(1, 2, 4, 8)):
        super().__init__()
        self.config = dict(width=width, stem=stem, dilations=tuple(dilations))
        self.stem = nn.Linear(STEM_TAPS * BANDS, stem)     # at 90 Hz, over the last five feature frames
        self.merge = nn.Linear(2 * FRAMES_PER_STEP * stem, width)   # at 30 Hz, over this step and the one before
        self.blocks = nn.ModuleList(Block(width, d) for d in dilations)
        self.out = nn.Linear(width, RAW)
        self.classes = nn.Linear(width, CLASS_COUNT)       # auxiliary, in training only

    @property
    def memory(self):
        """Steps of input that an output depends on."""
        return 2 + sum(2 * b.dilation for b in self.blocks)

    def hidden(self, mel):                                 # [B, T, 3, 40] -> [B, T, C]
        batch, steps = mel.shape[:2]
        s = F.relu(_causal(mel.flatten(1, 2).transpose(1, 2), self.stem, STEM_TAPS))             # at 90 Hz
        s = s.view(batch, -1, steps, FRAMES_PER_STEP).permute(0, 3, 1, 2).reshape(batch, -1, steps)   # a step's three frames side by side
        x = F.relu(_causal(s, self.merge, 2))
        for block in self.blocks:
            x = block(x)
        return F.relu(x).transpose(1, 2)

    def forward(self, mel):
        """[B, T, 3, 40] -> raw channels [B, T, RAW] (the last two are logits), class logits [B, T, CLASS_COUNT]."""
        h = self.hidden(mel)
        return self.out(h), self.classes(h)


class Step(nn.Module):
    """One video frame of every stream of a batch: mel [B, 3, 40], state [B, S] -> articulation [B, 14], state_out [B, S]. Zeros are a fresh state.
    `shape`: (raw channels, mel, its own memory [B, shape.MEMORY]) -> (what is shown, that memory)."""

    def __init__(self, network, shape):
        super().__init__()
        self.network, self.shape = network, shape
        width, stem = network.config['width'], network.config['stem']
        self.parts = [(STEM_TAPS - 1) * BANDS, FRAMES_PER_STEP * stem] + [2 * b.dilation * width for b in network.blocks] + [shape.MEMORY]

    @property
    def state_size(self):
        return sum(self.parts)

    def forward(self, mel, state):
        n, at, kept = self.network, 0, []
        memories = []
        for size in self.parts:
            memories.append(state[:, at: at + size])
            at += size
        frames = torch.cat([memories[0], mel.flatten(1)], 1)
        kept.append(frames[:, FRAMES_PER_STEP * BANDS:])
        span = STEM_TAPS * BANDS
        s = torch.cat([F.relu(n.stem(frames[:, k * BANDS: k * BANDS + span])) for k in range(FRAMES_PER_STEP)], 1)
        kept.append(s)
        x = F.relu(n.merge(torch.cat([memories[1], s], 1)))
        for block, memory in zip(n.blocks, memories[2:-1]):
            width, d = x.shape[1], block.dilation
            taps = torch.cat([memory[:, :width], memory[:, d * width: (d + 1) * width], x], 1)
            kept.append(torch.cat([memory[:, width:], x], 1))
            x = x + block.mix(F.relu(block.taps(taps)))
        shown, memory = self.shape(n.out(F.relu(x)), mel, memories[-1])
        return shown, torch.cat([*kept, memory], 1)

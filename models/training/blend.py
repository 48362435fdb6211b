"""
Mixes the weights of a served model with those of a network that was trained on from it: what both know stays, and voices that neither has heard gain (Wortsman et al. 2022, "Robust fine-tuning").

usage: blend.py FILE.onnx NAME SHARE OUT     (OUT = (1 - SHARE) of FILE + SHARE of NAME, in the work folder; then export.py OUT)
"""
import os
import sys

import torch

from frontend import WORK
from train import from_onnx, load


def main():
    file, name, share, out = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
    old, network = from_onnx(file).state_dict(), load(name)
    average = {k: v if k.startswith('classes') else torch.lerp(old[k], v, share) for k, v in network.state_dict().items()}   # the served file has no classes
    torch.save(dict(config=network.config, average=average), os.path.join(WORK, out + '.pt'))


if __name__ == '__main__':
    main()

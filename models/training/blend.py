"""Averages the weights of a network (a served model or a trained one) with those of another that
was trained further from the same weights. What both know stays, and voices that neither has
heard improve (Wortsman et al. 2022, "Robust fine-tuning").

usage: blend.py FIRST NAME SHARE OUT
FIRST is FILE.onnx or a name. OUT = (1 - SHARE) of FIRST + SHARE of NAME, in the work folder; then
run export.py OUT.
"""

import os
import sys

import torch

from frontend import WORK
from train import from_onnx, load


def main():
    first, name, share, out = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
    old, network = (from_onnx if first.endswith('.onnx') else load)(first).state_dict(), load(name)
    average = {
        k: v
        if k.startswith('classes') and first.endswith('.onnx')
        else torch.lerp(old[k], v, share)
        for k, v in network.state_dict().items()
    }  # the served file has no phone classes
    torch.save(dict(config=network.config, average=average), os.path.join(WORK, out + '.pt'))


if __name__ == '__main__':
    main()

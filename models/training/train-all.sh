#!/bin/bash
# `npm run train`: corpus → features → training → evaluation → export → model card. Resumable: each stage keeps what it has finished in models/training/work.
set -euo pipefail
cd "$(dirname "$0")"
PYTHON=${PYTHON:-/usr/bin/python3}   # Debian's, which has python3-torch
SHARDS=${SHARDS:-60} STEPS=${STEPS:-30000} THREADS=${THREADS:-$(nproc)} SCALE=${SCALE:-1}

missing=()
for package in espeak-ng libespeak-ng1 flite festival festvox-kallpc16k festvox-kdlpc16k festvox-us-slt-hts festvox-ru wamerican python3-torch python3-numpy python3-scipy python3-onnx g++; do
  dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "Training needs these Debian packages: apt-get install ${missing[*]}" >&2
  exit 1
fi

"$PYTHON" corpus.py "$SCALE"
"$PYTHON" prepare.py "$SHARDS"
"$PYTHON" train.py student "$STEPS" --threads "$THREADS"
"$PYTHON" export.py student
npm --prefix ../.. run eval:speech -- --json models/training/evaluation.json
"$PYTHON" card.py

#!/bin/bash
# `npm run train`: corpus, features, training, evaluation, export and model card. Resumable: each
# stage keeps its results in models/training/work.
# A first network, trained on synthesizers alone, aligns the natural voices. The shipped network is
# trained on both: first with strong augmentation (lines, rooms, crowds), then with milder
# augmentation, because the output of a synthesizer is clean.
set -euo pipefail
cd "$(dirname "$0")"
PYTHON=${PYTHON:-/usr/bin/python3}   # Debian's, which has python3-torch
SHARDS=${SHARDS:-60} STEPS=${STEPS:-30000} THREADS=${THREADS:-$(nproc)} SCALE=${SCALE:-1}
BF16=$(grep -qm1 avx512_bf16 /proc/cpuinfo && echo --bf16 || true)

missing=()
for package in espeak-ng libespeak-ng1 flite festival festvox-kallpc16k festvox-kdlpc16k festvox-us-slt-hts festvox-ru festival-czech festvox-czech-ph festvox-czech-dita festvox-czech-krb festvox-czech-machac \
  festvox-italp16k festvox-itapc16k festvox-suopuhe-lj festvox-suopuhe-mv festival-ca festvox-ca-ona-hts festival-te festvox-te-nsk fillets-ng-data fillets-ng-data-cs \
  tuxpaint-stamps-default beneath-a-steel-sky flight-of-the-amazon-queen drascula sox libsox-fmt-mp3 ffmpeg wamerican python3-torch python3-numpy python3-scipy python3-onnx g++; do
  dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "Training needs these Debian packages: apt-get install ${missing[*]}" >&2
  exit 1
fi

"$PYTHON" corpus.py "$SCALE"
"$PYTHON" talkers.py
if [ ! -e work/corpus/natural_drascula.pkl ]; then
  "$PYTHON" prepare.py $((SHARDS / 4 + 1))
  "$PYTHON" train.py aligner $((STEPS / 4)) --delay 2 --threads "$THREADS" $BF16
  "$PYTHON" corpus.py "$SCALE"
  "$PYTHON" talkers.py
fi
"$PYTHON" prepare.py "$SHARDS" 1000
"$PYTHON" train.py harsh "$STEPS" --threads "$THREADS" $BF16
"$PYTHON" prepare.py $((SHARDS / 2 + 1)) 2000 mild
"$PYTHON" train.py student $((STEPS / 2)) --start harsh --mild --rate 6e-4 --threads "$THREADS" $BF16
"$PYTHON" export.py student
npm --prefix ../.. run eval:speech -- --json models/training/evaluation.json
"$PYTHON" card.py

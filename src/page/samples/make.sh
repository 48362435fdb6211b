#!/bin/sh
# Synthesises the sample sentences of the page with flite's voice slt (Debian packages: flite, ffmpeg).
# The results are committed.
set -eu
cd "$(dirname "$0")"
say() {
  flite -voice slt --setf duration_stretch=1.08 -t "$2" -o "/tmp/sample-$1.wav"
  ffmpeg -loglevel error -y -i "/tmp/sample-$1.wav" -af 'volume=1.5' -ac 1 -ar 16000 -c:a libmp3lame -b:a 40k -map_metadata -1 "$1.mp3"
  rm "/tmp/sample-$1.wav"
}
say hello 'Hello! I am a picture that learned to speak. Say something, and I will say it with you.'
say lips 'My lips should meet on purple, on baby, and on maybe. Please watch them closely.'
say vowels 'Five wise owls flew south over the valley, while she chose a few blue shoes.'

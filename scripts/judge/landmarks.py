"""Face landmarks of a clip by MediaPipe FaceMesh, which shares nothing with the server.

Reads frames of SIZE x SIZE RGB bytes from stdin, writes one JSON line a frame to stdout: null when no
face is found, else pose (degrees) and lengths in % of the distance between the eyes' outer corners.
Needs mediapipe 0.10.14 (the last with models inside) and numpy below 2.
"""

import json
import sys

import numpy as np
from mediapipe.python.solutions.face_mesh import FaceMesh

# Points that do not move with expressions: bridge and sides of the nose, corners of the eyes,
# forehead, temples.
RIGID = [168, 6, 197, 195, 33, 133, 362, 263, 10, 109, 338, 127, 356, 234, 454]
BROWS = [[105, 66], [334, 296]]
LID_PAIRS = [(159, 145, 33, 133), (386, 374, 362, 263)]
# Corners that are left and right in the picture, and the iris between them.
IRISES = [(33, 133, 468), (362, 263, 473)]


def rotation(points, reference):
    """Degrees of yaw, pitch and roll that turn `reference` into `points` (Kabsch 1976)."""
    a = reference - reference.mean(0)
    b = points - points.mean(0)
    u, _, vt = np.linalg.svd(a.T @ b)
    sign = np.sign(np.linalg.det(vt.T @ u.T))
    r = vt.T @ np.diag([1, 1, sign]) @ u.T
    return np.degrees(
        [
            np.arctan2(r[0, 2], r[2, 2]),
            np.arcsin(np.clip(-r[1, 2], -1, 1)),
            np.arctan2(r[1, 0], r[1, 1]),
        ]
    )


def figures(p, reference):
    """The figures of one frame; p: 478 x 3 in pixels."""
    yaw, pitch, roll = rotation(p[RIGID], reference[RIGID])
    eyes = np.linalg.norm(reference[263, :2] - reference[33, :2])
    axis = p[263, :2] - p[33, :2]
    axis = axis / np.linalg.norm(axis)
    down = np.array([-axis[1], axis[0]])
    share = 100 / eyes

    def height(i, j):
        return float((p[i, :2] - p[j, :2]) @ down) * share

    brow = np.mean(
        [
            ((p[corner_a, :2] + p[corner_b, :2]) / 2 - p[points, :2].mean(0)) @ down
            for points, (corner_a, corner_b) in zip(BROWS, [(33, 133), (362, 263)])
        ]
    )
    gaze = np.mean([(p[i, :2] - (p[a, :2] + p[b, :2]) / 2) @ axis for a, b, i in IRISES])
    lids = np.mean(
        [
            np.linalg.norm(p[u, :2] - p[w, :2]) / np.linalg.norm(p[a, :2] - p[b, :2])
            for u, w, a, b in LID_PAIRS
        ]
    )
    return {
        'yaw': yaw,
        'pitch': pitch,
        'roll': roll,
        'noseX': float(p[1, 0]) * share,
        'noseY': float(p[1, 1]) * share,
        'brow': brow * share,
        'gaze': gaze * share,
        'lids': float(lids),
        'opening': height(14, 13),
        'width': float(np.linalg.norm(p[291, :2] - p[61, :2])) * share,
        'chin': height(152, 1),
    }


def main():
    size = int(sys.argv[1])
    frames = []
    with FaceMesh(refine_landmarks=True, max_num_faces=1, min_tracking_confidence=0.5) as mesh:
        while True:
            data = sys.stdin.buffer.read(size * size * 3)
            if len(data) < size * size * 3:
                break
            found = mesh.process(np.frombuffer(data, np.uint8).reshape(size, size, 3))
            if not found.multi_face_landmarks:
                frames.append(None)
                continue
            marks = found.multi_face_landmarks[0].landmark
            frames.append(np.array([(m.x, m.y, m.z) for m in marks]) * size)
    seen = [p for p in frames if p is not None]
    reference = np.median(np.array(seen), axis=0) if seen else None
    for p in frames:
        line = None
        if p is not None:
            line = {k: round(float(v), 4) for k, v in figures(p, reference).items()}
        print(json.dumps(line))


main()

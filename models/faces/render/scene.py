"""Reads what the generator wrote, and makes meshes and hair of it for Blender.

The generator has y up and z towards the viewer, Blender z up and y away from the viewer. A unit is
a decimetre.
"""

import json
import math
from pathlib import Path

import bpy
import numpy as np

# Values of a strand: see scene.h.
POINTS, RADIUS, TAPER, ON_SKIN, ROOT, TIP = 0, 1, 2, 3, slice(4, 7), slice(7, 10)
# Every second point of long strands: they bend little between two.
LONG_STRAND, STEP = 14, 2
# How far the cornea stands out of the ball, decimetres: 1.1 mm.
CORNEA = 0.011
# How much of a pixel stays as it was before noise was taken out, by that in other hair.
KEPT_ON_SKIN = 0.5


def to_blender(values):
    """Turns (n, 3) positions or directions."""
    return np.stack([values[:, 0], -values[:, 2], values[:, 1]], axis=1).astype(np.float32)


class Scene:
    """The files of one character."""

    def __init__(self, folder):
        folder = Path(folder)
        facts = json.loads((folder / 'scene.json').read_text())
        self.size = facts['size']
        self.camera = np.array(facts['camera'])
        self.focal, self.shift = facts['focal'], facts['shift']
        self.iris_radius = facts['irisRadius']
        self.eyes = np.array(facts['eyes'])
        self.vertices = np.fromfile(folder / 'vertices.f32', np.float32).reshape(-1, 7)
        self.triangles = np.fromfile(folder / 'triangles.i32', np.int32).reshape(-1, 3)
        self.materials = np.fromfile(folder / 'materials.u8', np.uint8)
        self.map = np.fromfile(folder / 'map.f32', np.float32).reshape(self.size, self.size, 8)
        self.strands = np.fromfile(folder / 'strands.f32', np.float32).reshape(-1, 10)
        self.points = np.fromfile(folder / 'points.f32', np.float32).reshape(-1, 3)

    def project(self, positions):
        """Returns where the camera sees (n, 3) positions: 0 to 1, to the right and up."""
        away = positions - self.camera
        u = away[:, 0] / -away[:, 2] * self.focal
        v = away[:, 1] / -away[:, 2] * self.focal - self.shift
        return np.stack([(u + 1) / 2, (v + 1) / 2], axis=1).astype(np.float32)

    def focus_distance(self):
        """Returns how far the front of the first eye is from the camera."""
        return float(self.camera[2] - self.eyes[0, 2] - self.eyes[0, 3])

    def cheeks(self):
        """Returns a box of the picture on the skin below the eyes: left, top, right, bottom."""
        at = self.project(self.eyes[:, :3])
        apart = abs(at[1, 0] - at[0, 0])
        x, y = at.mean(axis=0)
        return x - 0.6 * apart, 1 - y + 0.2 * apart, x + 0.6 * apart, 1 - y + apart


def add_mesh(scene, name, positions, triangles, material, normals=None, inside=None):
    """Adds triangles that take their colours from where the camera sees them."""
    mesh = bpy.data.meshes.new(name)
    corners = triangles.ravel().astype(np.int32)
    mesh.vertices.add(len(positions))
    mesh.vertices.foreach_set('co', to_blender(positions).ravel())
    mesh.loops.add(len(corners))
    mesh.loops.foreach_set('vertex_index', corners)
    mesh.polygons.add(len(triangles))
    mesh.polygons.foreach_set('loop_start', np.arange(0, len(corners), 3, dtype=np.int32))
    mesh.polygons.foreach_set('use_smooth', np.ones(len(triangles), bool))
    seen = mesh.uv_layers.new(name='seen')
    seen.data.foreach_set('uv', scene.project(positions)[corners].ravel())
    if inside is not None:
        mesh.attributes.new('inside', 'FLOAT', 'POINT').data.foreach_set('value', inside)
    mesh.update()
    if normals is not None:
        mesh.normals_split_custom_set_from_vertices(to_blender(normals))
    mesh.materials.append(material)
    bpy.context.collection.objects.link(bpy.data.objects.new(name, mesh))


def add_surfaces(scene, materials):
    """Adds skin, clothes and glasses. `materials` is by the generator's number."""
    for number, material in materials.items():
        triangles = scene.triangles[scene.materials == number]
        if len(triangles) == 0:
            continue
        used, corners = np.unique(triangles, return_inverse=True)
        part = scene.vertices[used]
        add_mesh(
            scene,
            material.name,
            part[:, :3],
            corners.reshape(-1, 3),
            material,
            normals=part[:, 3:6],
            inside=np.ascontiguousarray(part[:, 6]),
        )


def add_eyes(scene, material):
    """Adds balls with a cornea, which look into the camera and converge slightly."""
    count = 160
    polar, around = np.meshgrid(
        np.linspace(0, 0.6 * math.pi, count),
        np.linspace(0, 2 * math.pi, count, endpoint=False),
        indexing='ij',
    )
    index = np.arange(count * count).reshape(count, count)
    a, b = index[:-1], index[1:]
    a2, b2 = np.roll(a, -1, axis=1), np.roll(b, -1, axis=1)
    triangles = np.concatenate(
        [np.stack(corners, axis=-1).reshape(-1, 3) for corners in ((a, b, b2), (a, b2, a2))]
    )
    for side, (x, y, z, radius) in enumerate(scene.eyes):
        centre = np.array([x, y, z])
        gaze = (scene.camera - centre) / np.linalg.norm(scene.camera - centre)
        gaze += [0.03 if side == 1 else -0.03, 0, 0]
        gaze /= np.linalg.norm(gaze)
        right = np.cross([0, 1, 0], gaze)
        right /= np.linalg.norm(right)
        up = np.cross(gaze, right)
        direction = (
            np.cos(polar)[..., None] * gaze
            + (np.sin(polar) * np.cos(around))[..., None] * right
            + (np.sin(polar) * np.sin(around))[..., None] * up
        )
        share = np.clip(1 - (np.sin(polar) * radius / (1.12 * scene.iris_radius)) ** 2, 0, None)
        share = share * (polar < 1.5) * np.minimum(1, 3 * share)
        positions = centre + direction * radius + CORNEA * share[..., None] * gaze
        add_mesh(scene, f'eye {side}', positions.reshape(-1, 3), triangles, material)


def add_hair(scene, material):
    """Adds all strands as curves, with their colours, and how much of their detail is kept."""
    counts = scene.strands[:, POINTS].astype(int)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    indices, sizes, radii = [], [], []
    for start, count, strand in zip(starts, counts, scene.strands, strict=True):
        along = np.arange(0, count, STEP if count > LONG_STRAND else 1)
        if along[-1] != count - 1:
            along = np.append(along, count - 1)
        indices.append(start + along)
        sizes.append(len(along))
        radii.append(strand[RADIUS] * (1 + (strand[TAPER] - 1) * along / (count - 1)))
    curves = bpy.data.hair_curves.new('hair')
    curves.add_curves(sizes)
    positions = to_blender(scene.points[np.concatenate(indices)])
    curves.points.foreach_set('position', positions.ravel())
    radius = curves.attributes.get('radius') or curves.attributes.new('radius', 'FLOAT', 'POINT')
    radius.data.foreach_set('value', np.concatenate(radii).astype(np.float32))
    for name, values in (('root', ROOT), ('tip', TIP)):
        colour = np.ones((len(sizes), 4), np.float32)
        colour[:, :3] = np.minimum(0.95, scene.strands[:, values])
        curves.attributes.new(name, 'FLOAT_COLOR', 'CURVE').data.foreach_set(
            'color', colour.ravel()
        )
    kept = np.where(scene.strands[:, ON_SKIN] > 0, KEPT_ON_SKIN, 1).astype(np.float32)
    curves.attributes.new('kept', 'FLOAT', 'CURVE').data.foreach_set('value', kept)
    curves.materials.append(material)
    bpy.context.collection.objects.link(bpy.data.objects.new('hair', curves))

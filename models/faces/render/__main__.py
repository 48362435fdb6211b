"""Renders a character that the generator wrote: `python models/faces/render SCENE ID OUT.png`."""

import argparse
import json
import math
import tempfile
from pathlib import Path

import bpy
import materials
import numpy as np
from develop import develop
from scene import Scene, add_eyes, add_hair, add_surfaces
from surroundings import Surroundings

# The aperture's radius, decimetres: 85 mm at about f/4.7.
APERTURE = 0.09


def add_camera(scene):
    camera = bpy.data.cameras.new('camera')
    camera.sensor_width = 36
    # Half of the picture is one unit at the distance of the focal length.
    camera.lens = camera.sensor_width / 2 * scene.focal
    camera.shift_y = scene.shift / 2
    camera.dof.use_dof = True
    camera.dof.focus_distance = scene.focus_distance()
    camera.dof.aperture_fstop = camera.lens * 1e-3 / (2 * APERTURE)
    body = bpy.data.objects.new('camera', camera)
    x, y, z = scene.camera
    body.location = (x, -z, y)
    body.rotation_euler = (math.pi / 2, 0, 0)
    bpy.context.collection.objects.link(body)
    bpy.context.scene.camera = body


def render(size, samples):
    """Returns the person without what is behind: (size, size, 4), linear RGB and cover."""
    settings = bpy.context.scene
    settings.render.engine = 'CYCLES'
    settings.render.resolution_x = settings.render.resolution_y = size
    settings.render.film_transparent = True
    cycles = settings.cycles
    cycles.device = 'CPU'
    cycles.samples = samples
    cycles.adaptive_threshold = 0.015
    cycles.use_denoising = True
    cycles.denoiser = 'OPENIMAGEDENOISE'
    cycles.max_bounces = 8
    cycles.transparent_max_bounces = 24
    cycles.sample_clamp_indirect = 8
    cycles.caustics_reflective = cycles.caustics_refractive = False
    cycles.filter_width = 1.3
    settings.cycles_curves.shape = 'RIBBONS'
    output = settings.render.image_settings
    output.file_format, output.color_mode, output.color_depth = 'OPEN_EXR', 'RGBA', '32'
    with tempfile.TemporaryDirectory() as folder:
        settings.render.filepath = str(Path(folder) / 'person.exr')
        bpy.ops.render.render(write_still=True)
        image = bpy.data.images.load(settings.render.filepath)
        return np.array(image.pixels[:], np.float32).reshape(size, size, 4)[::-1]


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument('scene', help='folder that the generator wrote')
    arguments.add_argument('id', help='of the character, in surroundings.json')
    arguments.add_argument('out', help='PNG file')
    arguments.add_argument('--size', type=int, default=1024)
    arguments.add_argument('--samples', type=int, default=24)
    given = arguments.parse_args()

    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = Scene(given.scene)
    images = materials.images_of(scene)
    add_surfaces(
        scene,
        {
            0: materials.skin(images),
            2: materials.cloth('cloth', images),
            3: materials.cloth('cloth below', images),
            4: materials.glasses(images),
        },
    )
    add_eyes(scene, materials.eye(images))
    add_hair(scene, materials.hair(scene.hair_index))
    add_camera(scene)
    places = json.loads((Path(__file__).parent / 'surroundings.json').read_text())
    surroundings = Surroundings(**places[given.id])
    surroundings.light_scene()
    person = render(given.size, given.samples)
    develop(person, surroundings.behind(given.size), scene, given.out)


main()

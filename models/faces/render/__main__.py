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
# How much of the strands is as rendered: taking out noise smooths them.
STRANDS_KEPT = 0.6


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
    cycles.max_bounces = 4
    cycles.transparent_max_bounces = 24
    cycles.sample_clamp_indirect = 2
    cycles.caustics_reflective = cycles.caustics_refractive = False
    cycles.filter_width = 1.3
    cycles.use_denoising = False
    settings.cycles_curves.shape = 'RIBBONS'
    with tempfile.TemporaryDirectory() as folder:
        write_passes(settings, folder)
        bpy.ops.render.render()

        def read(name):
            image = bpy.data.images.load(str(Path(folder) / f'{name}0001.exr'))
            return np.array(image.pixels[:], np.float32).reshape(size, size, 4)[::-1]

        noisy, smooth, hair = read('noisy'), read('smooth'), read('hair')[..., :1]
    return smooth + STRANDS_KEPT * np.clip(hair, 0, 1) * (noisy - smooth)


def write_passes(settings, folder):
    """Has Blender write what it rendered, that without noise, and where hair is."""
    layer = settings.view_layers[0]
    layer.cycles.denoising_store_passes = True
    hair = layer.aovs.add()
    hair.name, hair.type = 'hair', 'VALUE'
    settings.use_nodes = True
    nodes, links = settings.node_tree.nodes, settings.node_tree.links
    nodes.clear()
    rendered = nodes.new('CompositorNodeRLayers')
    denoise = nodes.new('CompositorNodeDenoise')
    denoise.prefilter = 'ACCURATE'
    for name in ('Image', 'Normal', 'Albedo'):
        source = name if name == 'Image' else f'Denoising {name}'
        links.new(rendered.outputs[source], denoise.inputs[name])
    files = nodes.new('CompositorNodeOutputFile')
    files.base_path = folder
    files.format.file_format, files.format.color_mode = 'OPEN_EXR', 'RGBA'
    files.format.color_depth = '32'
    files.file_slots.clear()
    for name, output in (
        ('noisy', rendered.outputs['Image']),
        ('smooth', denoise.outputs['Image']),
        ('hair', rendered.outputs['hair']),
    ):
        files.file_slots.new(name)
        links.new(output, files.inputs[name])


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument('scene', help='folder that the generator wrote')
    arguments.add_argument('id', help='of the character, in surroundings.json')
    arguments.add_argument('out', help='PNG file')
    arguments.add_argument('--size', type=int, default=1024)
    arguments.add_argument('--samples', type=int, default=32)
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
    add_hair(scene, materials.hair())
    add_camera(scene)
    places = json.loads((Path(__file__).parent / 'surroundings.json').read_text())
    surroundings = Surroundings(**places[given.id])
    surroundings.light_scene()
    person = render(given.size, given.samples)
    develop(person, surroundings.behind(given.size), scene, given.out)


main()

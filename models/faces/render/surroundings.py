"""Where a person stands: a panorama of Blender's, which lights the face and is seen behind it, and
a lamp, as photographers bring one.

The panoramas are by G. Zaal (polyhaven.com), CC0.
"""

import math
from pathlib import Path

import bpy
import numpy as np
from develop import spread
from mathutils import Vector

PANORAMAS = Path(bpy.utils.resource_path('LOCAL')) / 'datafiles/studiolights/world'
# Lamps are brighter than the sky by a thousand times and more: a few pixels would be all noise.
# What is above the second value is spread over some degrees (sigma, by the panorama's width).
BRIGHTEST, BRIGHT, SPREAD = 2000, 20, 0.012
BRIGHTEST_BEHIND = 12
# Half of how much of the panorama is behind the person, and how far that is above the horizon.
HALF_ANGLE, ABOVE = math.radians(26), math.radians(-2)
# The radius of the disc that a point behind is spread over, by the picture's width.
OUT_OF_FOCUS = 0.02
# A soft lamp stands beside the camera and above it, and a small one near to it is what the eyes
# reflect. Positions as the generator has them, x to the lamp's side, and diameters: decimetres.
# Power: watts.
LAMP, LAMP_SIZE = (4.5, 3, 10), 6
EYE_LAMP, EYE_LAMP_SIZE, EYE_LAMP_POWER = (0, 1.5, 14), 0.8, 60
# Where lamps point: the middle of the face.
FACE = Vector((0, -0.4, 0))


class Surroundings:
    def __init__(self, panorama, direction, mirrored, side, power):
        """`direction` is what is behind the person: 0 to 1 from the left of the panorama. `side` is
        where the lamp stands, -1 or 1, `power` its watts.
        """
        self.side, self.power = side, power
        image = bpy.data.images.load(str(PANORAMAS / f'{panorama}.exr'))
        width, height = image.size
        pixels = np.array(image.pixels[:], np.float32).reshape(height, width, -1)
        self.light = pixels[::-1, :, :3]
        if mirrored:
            self.light, direction = self.light[:, ::-1], 1 - direction
        # The camera looks along Blender's y, which is at a quarter of a panorama.
        self.light = np.roll(self.light, round((0.25 - direction) * width), axis=1)

    def light_scene(self):
        """Makes it the light of Blender's scene, and adds the lamps."""
        height, width = self.light.shape[:2]
        image = bpy.data.images.new('panorama', width, height, float_buffer=True)
        image.colorspace_settings.name = 'Non-Color'
        pixels = np.ones((height, width, 4), np.float32)
        light = np.minimum(self.light, BRIGHTEST)
        over = np.maximum(0, light - BRIGHT)
        light = light - over + np.maximum(0, spread(over, SPREAD * width))
        pixels[..., :3] = light[::-1]
        image.pixels.foreach_set(pixels.ravel())
        image.pack()
        world = bpy.data.worlds.new('surroundings')
        world.use_nodes = True
        nodes, links = world.node_tree.nodes, world.node_tree.links
        nodes.clear()
        texture = nodes.new('ShaderNodeTexEnvironment')
        texture.image = image
        background = nodes.new('ShaderNodeBackground')
        links.new(texture.outputs[0], background.inputs[0])
        links.new(background.outputs[0], nodes.new('ShaderNodeOutputWorld').inputs[0])
        bpy.context.scene.world = world
        x, y, z = LAMP
        self.add_lamp((self.side * x, y, z), LAMP_SIZE, self.power)
        self.add_lamp(EYE_LAMP, EYE_LAMP_SIZE, EYE_LAMP_POWER)

    def add_lamp(self, position, diameter, power):
        """Adds a lamp of the colour of the room, so that a camera takes out both alike."""
        lamp = bpy.data.lights.new('lamp', 'AREA')
        lamp.shape, lamp.size, lamp.energy = 'DISK', diameter, power
        mean = self.light.mean(axis=(0, 1))
        lamp.color = tuple(mean / mean.max())
        body = bpy.data.objects.new('lamp', lamp)
        x, y, z = position
        body.location = (x, -z, y)
        body.rotation_euler = (FACE - body.location).to_track_quat('-Z', 'Y').to_euler()
        body.visible_camera = False
        bpy.context.collection.objects.link(body)

    def behind(self, size):
        """Returns what is seen behind the person, out of focus: (size, size, 3), linear RGB."""
        height, width = self.light.shape[:2]
        edge = math.tan(HALF_ANGLE)
        x, z = np.meshgrid(np.linspace(-edge, edge, size), np.linspace(edge, -edge, size))
        forward = math.cos(ABOVE) - z * math.sin(ABOVE)
        up = math.sin(ABOVE) + z * math.cos(ABOVE)
        azimuth = np.arctan2(x, forward)
        elevation = np.arctan2(up, np.hypot(x, forward))
        column = (0.25 + azimuth / (2 * math.pi)) % 1 * width
        row = np.clip((0.5 - elevation / math.pi) * height, 0, height - 2)
        left, top = column.astype(int), row.astype(int)
        u, v = (column - left)[..., None], (row - top)[..., None]
        light = np.minimum(self.light, BRIGHTEST_BEHIND)
        right = (left + 1) % width
        seen = (1 - v) * (light[top, left] * (1 - u) + light[top, right] * u)
        seen = seen + v * (light[top + 1, left] * (1 - u) + light[top + 1, right] * u)
        return spread_over_disc(seen, round(OUT_OF_FOCUS * size))


def spread_over_disc(picture, radius):
    """Spreads each point over a disc, as a lens does with what is out of focus."""
    size = picture.shape[0] + 2 * radius
    y, x = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    disc = (x**2 + y**2 <= radius**2).astype(np.float64)
    transfer = np.fft.rfft2(disc / disc.sum(), (size, size))
    padded = np.pad(picture, ((radius, radius), (radius, radius), (0, 0)), mode='edge')
    spread = np.fft.irfft2(
        np.fft.rfft2(padded, (size, size), axes=(0, 1)) * transfer[..., None],
        (size, size),
        axes=(0, 1),
    )
    return np.maximum(0, spread[2 * radius :, 2 * radius :])

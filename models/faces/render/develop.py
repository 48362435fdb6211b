"""What a camera makes of the light: exposure, white balance, glow of the lens, tones and grain."""

import bpy
import numpy as np

BRIGHTNESS = np.array([0.2126, 0.7152, 0.0722])
# Light on the cheeks by that of white, and how much brighter dark skin is exposed.
EXPOSURE, PALE, LIFT = 0.84, 0.37, 0.56
# How much of the colour of the light a camera takes away.
WHITE_BALANCE = 0.8
GLOW, GLOW_RADIUS = 0.035, 0.03
# Of the light of a pixel.
GRAIN = 0.0132


def spread(picture, sigma):
    """Blurs (h, w, 3) by a Gaussian; `sigma` in pixels. Edges wrap: the lens spreads little."""
    frequency = [np.fft.fftfreq(n) for n in picture.shape[:2]]
    transfer = np.exp(
        -2 * (np.pi * sigma) ** 2 * (frequency[0][:, None] ** 2 + frequency[1][None, :] ** 2)
    )
    return np.fft.ifft2(np.fft.fft2(picture, axes=(0, 1)) * transfer[..., None], axes=(0, 1)).real


def expose(picture, scene):
    """Sets the brightness of the cheeks by their own colour, and takes out most of the light's."""
    height, width = picture.shape[:2]
    left, top, right, bottom = scene.cheeks()

    def mean(values, rows, columns):
        return values[
            int(top * rows) : int(bottom * rows), int(left * columns) : int(right * columns)
        ].mean(axis=(0, 1))

    albedo = mean(scene.map[..., :3], scene.size, scene.size)
    light = mean(picture, height, width) / albedo
    wanted = EXPOSURE * (PALE / (albedo @ BRIGHTNESS)) ** LIFT
    gain = wanted / (light @ BRIGHTNESS)
    return picture * gain / (light / (light @ BRIGHTNESS)) ** WHITE_BALANCE


def develop(person, behind, scene, path):
    """Puts (n, n, 4) of a person before (n, n, 3), linear RGB, and writes a PNG."""
    size = person.shape[0]
    cover = np.clip(person[..., 3:], 0, 1)
    picture = expose(person[..., :3] + behind * (1 - cover), scene)
    picture = picture * (1 - GLOW) + spread(picture, GLOW_RADIUS * size) * GLOW
    noise = np.random.default_rng(1).normal(size=(size, size, 1))
    picture = np.maximum(0, picture * (1 + GRAIN * noise))
    image = bpy.data.images.new('picture', size, size, float_buffer=True)
    image.colorspace_settings.name = 'Linear Rec.709'
    pixels = np.ones((size, size, 4), np.float32)
    pixels[..., :3] = picture[::-1]
    image.pixels.foreach_set(pixels.ravel())
    image.update()
    settings = bpy.context.scene
    settings.view_settings.view_transform = 'AgX'
    settings.view_settings.look = 'AgX - High Contrast'
    output = settings.render.image_settings
    output.file_format, output.color_mode, output.color_depth = 'PNG', 'RGB', '8'
    image.save_render(path, scene=settings)

"""What a camera makes of the light: exposure, white balance, tones and grain."""

import bpy
import numpy as np

BRIGHTNESS = np.array([0.2126, 0.7152, 0.0722])
# Light on cheeks of the paler albedo, by that of white in the picture, and how much less cheeks
# differ in pictures: dark skin is exposed longer.
EXPOSURE, PALE, LIFT = 0.46, 0.37, 0.45
# How much of the colour of the light a camera takes away.
WHITE_BALANCE = 0.85
SATURATION = 0.88
# Contrast about a middle grey; from the shoulder on, light is compressed. Chosen by judges, who
# preferred it to the tones of AgX.
CONTRAST, MIDDLE, SHOULDER = 1.2, 0.22, 0.6
# Of white.
GRAIN = 0.006


def spread(picture, sigma):
    """Blurs (h, w, 3) by a Gaussian; `sigma` in pixels. Edges wrap."""
    frequency = [np.fft.fftfreq(n) for n in picture.shape[:2]]
    transfer = np.exp(
        -2 * (np.pi * sigma) ** 2 * (frequency[0][:, None] ** 2 + frequency[1][None, :] ** 2)
    )
    return np.fft.ifft2(np.fft.fft2(picture, axes=(0, 1)) * transfer[..., None], axes=(0, 1)).real


def expose(picture, scene):
    """Sets the brightness of the cheeks by their own colour, and takes out most of the light's."""
    left, top, right, bottom = scene.cheeks()

    def mean(values):
        rows, columns = values.shape[:2]
        return values[
            int(top * rows) : int(bottom * rows), int(left * columns) : int(right * columns)
        ].mean(axis=(0, 1))

    albedo = mean(scene.map[..., :3])
    light = mean(picture) / albedo
    picture = picture / (light / (light @ BRIGHTNESS)) ** WHITE_BALANCE
    wanted = EXPOSURE * ((albedo @ BRIGHTNESS) / PALE) ** (1 - LIFT)
    return picture * (wanted / (mean(picture) @ BRIGHTNESS))


def tones(picture):
    """Turns linear light into sRGB, 0 to 1."""
    grey = (picture @ BRIGHTNESS)[..., None]
    picture = np.maximum(0, grey + SATURATION * (picture - grey))
    picture = MIDDLE * (picture / MIDDLE) ** CONTRAST
    over = np.maximum(0, picture - SHOULDER) / (1 - SHOULDER)
    picture = np.minimum(picture, SHOULDER) + (1 - SHOULDER) * (1 - np.exp(-over))
    dark = picture < 0.0031308
    return np.where(dark, 12.92 * picture, 1.055 * np.maximum(picture, 1e-9) ** (1 / 2.4) - 0.055)


def develop(person, behind, scene, path):
    """Puts (n, n, 4) of a person before (n, n, 3), linear RGB, and writes a PNG."""
    size = person.shape[0]
    cover = np.clip(person[..., 3:], 0, 1)
    picture = tones(np.maximum(0, expose(person[..., :3] + behind * (1 - cover), scene)))
    picture = picture + GRAIN * np.random.default_rng(1).normal(size=(size, size, 1))
    image = bpy.data.images.new('picture', size, size, alpha=False)
    pixels = np.ones((size, size, 4), np.float32)
    pixels[..., :3] = np.clip(picture, 0, 1)[::-1]
    image.pixels.foreach_set(pixels.ravel())
    image.filepath_raw, image.file_format = path, 'PNG'
    image.save()

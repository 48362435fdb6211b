"""Materials of Cycles: what skin, eyes, cloth and hair do with light."""

import bpy
import numpy as np

# How deep red, green and blue light goes into skin: the mean free paths of H. W. Jensen et al. 2001
# by ratio, and the longest in decimetres.
SKIN_DEPTHS, SKIN_DEPTH = (1, 0.38, 0.20), 0.014
# The same in the whites of the eyes.
EYE_DEPTHS, EYE_DEPTH = (1, 0.6, 0.4), 0.015
# Chosen by eye.
BUMP, SHINE, EYE_SHINE = 1.25, 1.4, 1.4
# Shares of hair's colour that it scatters to all sides, and lets through; what it reflects like a
# mirror, and the share of its colour in that. Chosen by eye.
HAIR_MATTE, HAIR_THROUGH, HAIR_GLOSS, HAIR_GLOSS_TINT = 0.42, 0.45, 0.045, 0.35
# Along a strand: of what is reflected, and of what is let through.
HAIR_ROUGHNESS, HAIR_THROUGH_ROUGHNESS = 0.10, 0.5
# Towards the root, radians: scales of hair stand off by that much.
HAIR_TILT = 0.05


class Nodes:
    """A material and its nodes."""

    def __init__(self, name, scene_images):
        self.material = bpy.data.materials.new(name)
        self.material.use_nodes = True
        self.tree = self.material.node_tree
        self.tree.nodes.clear()
        self.images = scene_images

    def add(self, kind, **settings):
        node = self.tree.nodes.new(kind)
        for name, value in settings.items():
            setattr(node, name, value)
        return node

    def link(self, output, node_input):
        self.tree.links.new(output, node_input)

    def map(self, name):
        """Returns the colours of a map, by where the camera sees the surface."""
        texture = self.add(
            'ShaderNodeTexImage',
            image=self.images[name],
            interpolation='Cubic',
            extension='EXTEND',
        )
        self.link(self.add('ShaderNodeUVMap', uv_map='seen').outputs[0], texture.inputs[0])
        return texture.outputs[0]

    def times(self, value, factor):
        node = self.add('ShaderNodeMath', operation='MULTIPLY')
        self.link(value, node.inputs[0])
        node.inputs[1].default_value = factor
        return node.outputs[0]

    def principled(self, bump=None, shine=1, subsurface='RANDOM_WALK', **inputs):
        """Returns the shader of a surface: colour, relief and sheen are those of the maps."""
        shader = self.add('ShaderNodeBsdfPrincipled', subsurface_method=subsurface)
        self.link(self.map('albedo'), shader.inputs['Base Color'])
        sheen = self.add('ShaderNodeSeparateColor')
        self.link(self.map('shine'), sheen.inputs[0])
        self.link(self.times(sheen.outputs[0], shine), shader.inputs['Specular IOR Level'])
        self.link(sheen.outputs[1], shader.inputs['Roughness'])
        for name, value in inputs.items():
            shader.inputs[name.replace('_', ' ')].default_value = value
        if bump is not None:
            normal = self.add('ShaderNodeNormalMap', space='WORLD', uv_map='seen')
            normal.inputs['Strength'].default_value = bump
            self.link(self.map('normal'), normal.inputs['Color'])
            self.link(normal.outputs[0], shader.inputs['Normal'])
        return shader

    def finish(self, shader):
        output = self.add('ShaderNodeOutputMaterial')
        self.link(shader.outputs[0], output.inputs[0])
        return self.material


def images_of(scene):
    """Makes the maps that the materials read. Rows of Blender's pictures start at the bottom."""

    def image(name, values):
        result = bpy.data.images.new(name, scene.size, scene.size, alpha=False, float_buffer=True)
        result.colorspace_settings.name = 'Non-Color'
        pixels = np.ones((scene.size, scene.size, 4), np.float32)
        pixels[..., : values.shape[2]] = values[::-1]
        result.pixels.foreach_set(pixels.ravel())
        result.pack()
        return result

    normal = scene.map[..., 3:6]
    normal = np.stack([normal[..., 0], -normal[..., 2], normal[..., 1]], axis=-1) * 0.5 + 0.5
    return {
        'albedo': image('albedo', scene.map[..., 0:3]),
        'normal': image('normal', normal),
        'shine': image('shine', scene.map[..., 6:8]),
    }


def skin(images):
    nodes = Nodes('skin', images)
    shader = nodes.principled(
        bump=BUMP,
        shine=SHINE,
        subsurface='RANDOM_WALK_SKIN',
        Subsurface_Weight=1,
        Subsurface_Radius=SKIN_DEPTHS,
        Subsurface_Scale=SKIN_DEPTH,
        Subsurface_IOR=1.4,
        Subsurface_Anisotropy=0.8,
    )
    return nodes.finish(shader)


def eye(images):
    nodes = Nodes('eye', images)
    shader = nodes.principled(
        shine=EYE_SHINE,
        Subsurface_Weight=0.5,
        Subsurface_Radius=EYE_DEPTHS,
        Subsurface_Scale=EYE_DEPTH,
    )
    return nodes.finish(shader)


def cloth(name, images):
    nodes = Nodes(name, images)
    shader = nodes.principled(
        bump=1,
        Sheen_Weight=0.15,
        Sheen_Roughness=0.5,
    )
    # It ends at the neckline, which lies within triangles.
    inside = nodes.add('ShaderNodeMath', operation='GREATER_THAN')
    attribute = nodes.add('ShaderNodeAttribute', attribute_name='inside')
    nodes.link(attribute.outputs['Fac'], inside.inputs[0])
    inside.inputs[1].default_value = 0
    cut = nodes.add('ShaderNodeMixShader')
    nodes.link(inside.outputs[0], cut.inputs[0])
    nodes.link(nodes.add('ShaderNodeBsdfTransparent').outputs[0], cut.inputs[1])
    nodes.link(shader.outputs[0], cut.inputs[2])
    return nodes.finish(cut)


def glasses(images):
    nodes = Nodes('glasses', images)
    return nodes.finish(nodes.principled())


def hair():
    """Hair by J. T. Kajiya and T. L. Kay 1989, coloured from root to tip.

    The model of Chiang et al. 2015 is nearer to real hair, but its strands are lost: at the same
    number of paths its noise is so high that taking it out smooths them.
    """
    nodes = Nodes('hair', {})
    colour = nodes.add('ShaderNodeMix', data_type='RGBA')
    along = nodes.add('ShaderNodeHairInfo').outputs['Intercept']
    nodes.link(along, colour.inputs['Factor'])
    for name, socket in (('root', colour.inputs[6]), ('tip', colour.inputs[7])):
        attribute = nodes.add('ShaderNodeAttribute', attribute_name=name)
        nodes.link(attribute.outputs['Color'], socket)

    def shader(kind, share, more=0, roughness=None, **settings):
        tint = nodes.add('ShaderNodeVectorMath', operation='MULTIPLY_ADD')
        nodes.link(colour.outputs[2], tint.inputs[0])
        tint.inputs[1].default_value, tint.inputs[2].default_value = (share,) * 3, (more,) * 3
        result = nodes.add(kind, **settings)
        nodes.link(tint.outputs[0], result.inputs['Color'])
        if roughness is not None:
            result.inputs['RoughnessU'].default_value = roughness
            result.inputs['RoughnessV'].default_value = 1
        return result

    strand = 'ShaderNodeBsdfHair'
    gloss = shader(strand, HAIR_GLOSS_TINT, HAIR_GLOSS, HAIR_ROUGHNESS, component='Reflection')
    gloss.inputs['Offset'].default_value = HAIR_TILT
    through = shader(strand, HAIR_THROUGH, 0, HAIR_THROUGH_ROUGHNESS, component='Transmission')
    total = shader('ShaderNodeBsdfDiffuse', HAIR_MATTE)
    for part in (gloss, through):
        both = nodes.add('ShaderNodeAddShader')
        nodes.link(total.outputs[0], both.inputs[0])
        nodes.link(part.outputs[0], both.inputs[1])
        total = both
    mark = nodes.add('ShaderNodeOutputAOV', aov_name='hair')
    kept = nodes.add('ShaderNodeAttribute', attribute_name='kept')
    nodes.link(kept.outputs['Fac'], mark.inputs['Value'])
    return nodes.finish(total)

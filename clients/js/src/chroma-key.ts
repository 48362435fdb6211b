// Makes the green of a face's background transparent: video over WebRTC has no alpha channel.

/** How a background is told from the person. */
export interface ChromaKeyOptions {
  /** The colour of the background, #rrggbb; default: that of faces made with `background: green`. */
  readonly colour?: string;
  /** Distance in the plane of colours up to which a pixel is transparent, 0..1; default: 0.16. */
  readonly tolerance?: number;
  /** Further distance over which it becomes opaque; default: 0.12. */
  readonly softness?: number;
}

/** Of `background: green`. */
const GREEN = '#00b140';

const VERTEX = `
  attribute vec2 at;
  varying vec2 place;
  void main() {
    place = vec2(0.5 + 0.5 * at.x, 0.5 - 0.5 * at.y);
    gl_Position = vec4(at, 0.0, 1.0);
  }`;

// Distances are of chroma alone (BT.601): shadows on the background are transparent too. Within a
// hundredth of the sides of what is transparent, where it shines through hair, green is taken away.
const FRAGMENT = `
  precision mediump float;
  varying vec2 place;
  uniform sampler2D picture;
  uniform vec3 key;
  uniform vec2 range;
  vec2 chroma(vec3 rgb) {
    return vec2(
      dot(rgb, vec3(-0.168736, -0.331264, 0.5)),
      dot(rgb, vec3(0.5, -0.418688, -0.081312)));
  }
  float opacity(vec3 rgb) {
    return smoothstep(range.x, range.x + range.y, distance(chroma(rgb), chroma(key)));
  }
  void main() {
    vec3 rgb = texture2D(picture, place).rgb;
    float alpha = opacity(rgb);
    float own = alpha;
    for (float turn = 0.0; turn < 6.0; turn += 0.785) {
      vec2 beside = place + 0.01 * vec2(cos(turn), sin(turn));
      own = min(own, opacity(texture2D(picture, beside).rgb));
    }
    rgb.g = min(rgb.g, mix(max(rgb.r, rgb.b), rgb.g, own));
    gl_FragColor = vec4(rgb * alpha, alpha);
  }`;

/**
 * Draws each frame of `video` on `canvas`, whose background is transparent. The canvas gets the size
 * of the frames. WebGL does it, or the CPU where the device has no graphics processor.
 * @returns ends it
 * @throws Error where the browser has no WebGL
 */
export function chromaKey(
  video: HTMLVideoElement,
  canvas: HTMLCanvasElement,
  { colour = GREEN, tolerance = 0.16, softness = 0.12 }: ChromaKeyOptions = {},
): () => void {
  const gl = canvas.getContext('webgl', { antialias: false });
  if (!gl) {
    throw new Error('This browser has no WebGL, which makes the background transparent.');
  }
  let uniforms = prepare(gl);
  const draw = (): void => {
    if (video.videoWidth === 0 || gl.isContextLost()) {
      return;
    }
    if (canvas.width !== video.videoWidth || canvas.height !== video.videoHeight) {
      canvas.width = video.videoWidth;
      canvas.height = video.videoHeight;
      gl.viewport(0, 0, canvas.width, canvas.height);
    }
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGB, gl.RGB, gl.UNSIGNED_BYTE, video);
    gl.uniform3f(uniforms.key, ...channelsOf(colour));
    gl.uniform2f(uniforms.range, tolerance, Math.max(softness, 0.001));
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  };
  let callback = 0;
  const next = (): void => {
    draw();
    callback = video.requestVideoFrameCallback(next);
  };
  canvas.addEventListener('webglcontextlost', (event) => event.preventDefault()); // else it stays so
  canvas.addEventListener('webglcontextrestored', () => {
    uniforms = prepare(gl);
  });
  next();
  return () => video.cancelVideoFrameCallback(callback);
}

interface Uniforms {
  readonly key: WebGLUniformLocation | null;
  readonly range: WebGLUniformLocation | null;
}

/** Compiles the shaders, and sets up one rectangle with one texture. */
function prepare(gl: WebGLRenderingContext): Uniforms {
  const program = gl.createProgram();
  for (const [type, source] of [
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ] as const) {
    const shader = gl.createShader(type);
    if (shader) {
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
  }
  gl.linkProgram(program);
  gl.useProgram(program);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 1, -1, -1, 1, 1, 1]), gl.STATIC_DRAW);
  const at = gl.getAttribLocation(program, 'at');
  gl.enableVertexAttribArray(at);
  gl.vertexAttribPointer(at, 2, gl.FLOAT, false, 0, 0);
  gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
  // WebGL 1 reads pictures whose sides are no powers of two in this way only.
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR);
  return {
    key: gl.getUniformLocation(program, 'key'),
    range: gl.getUniformLocation(program, 'range'),
  };
}

/** Red, green and blue of #rrggbb, 0..1. */
const channelsOf = (colour: string): [number, number, number] => {
  const value = Number.parseInt(colour.slice(1), 16);
  return [(value >> 16) / 255, ((value >> 8) & 255) / 255, (value & 255) / 255];
};

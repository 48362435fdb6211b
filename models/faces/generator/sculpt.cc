// Proportions of a head beyond the targets of MakeHuman: smooth displacements of its coarse mesh.
// Widths and where they act follow the landmarks of L. G. Farkas 1994 (zy, go, ft, en, ex).
#include "head.h"

namespace {

/** How far the mouth is moved back: those of MakeHuman stand out. Decimetres. */
constexpr float kMuzzle = .050f;

/** 1 on the face and the front half of the skull, 0 behind the ears. */
float inFront(float z) {
  return smoothstep(-.55f, -.05f, z);
}

/** Scales the eye's surroundings about its centre, and moves them sideways. */
Vec3 moveEye(const Sculpt& s, Vec3 p, Vec3 eye) {
  const Vec3 d = p - eye;
  const float near = smoothstep(.46f, .17f, length({d.x, d.y * 1.15f, d.z * .8f}));
  Vec3 moved = d * (1 + (s.eyeSize - 1) * near);
  // Lids are wider than those of MakeHuman, and lie on the same ball.
  const float far = length(moved);
  moved.x *= 1 + .15f * near;
  moved = moved * mix(1.f, far / std::max(1e-3f, length(moved)), near);
  moved.x += std::copysign(s.eyesApart, eye.x) * near;
  return eye + moved;
}

/** The tip and the wings move down, and the lip below is shorter. Wings move apart. */
void reshapeNose(const Sculpt& s, float noseAt, float mouthAt, float tipAt, Vec3& p) {
  const float ax = std::fabs(p.x), front = smoothstep(tipAt - .40f, tipAt - .16f, p.z);
  const float low = smoothstep(.10f, noseAt, p.y) * smoothstep(mouthAt + .06f, noseAt - .08f, p.y);
  p.y -= s.noseLength * low * front * smoothstep(.34f, .16f, ax);
  p.x *= 1 + (s.noseWidth - 1) * front * smoothstep(.40f, .20f, ax) *
                 gaussian(p.y, noseAt - .02f, .15f);
}

/** A ridge between the eyes, with a hollow on each side. @param tip, eye heights */
float bridgeAt(float ax, float y, float tip, float eye) {
  const float along = smoothstep(tip + .02f, tip + .12f, y) * smoothstep(eye + .17f, eye + .05f, y);
  return along * (gaussian(ax, 0, .060f) - .35f * gaussian(ax, .125f, .045f));
}

/** Ears stand out most above their middle; the lobe is small, round, and grows out of the cheek.
 * @param up 0 at the lowest place of the ear to 1 at the highest */
Vec3 shapeEar(Vec3 p, float root, float up, float height) {
  const float out = std::max(0.f, std::fabs(p.x) - root);
  const float share =
      mix(.42f, 1.10f, smoothstep(.0f, .55f, up)) * mix(1.f, .74f, sq(smoothstep(.78f, 1.f, up)));
  const float lobe = smoothstep(.32f, 0.f, up);
  p.y += height * lobe * std::min(.22f, 1.4f * out);
  p.x = std::copysign(std::min(std::fabs(p.x), root) + out * share, p.x);
  return p;
}

}  // namespace

void sculpt(const Sculpt& s, uint32_t seed, Quads& skin, std::array<Eye, 2>& eyes) {
  const std::array<Eye, 2> old = eyes;
  for (Eye& eye : eyes) {
    eye.radius *= s.eyeSize;
    eye.centre.x = (eye.centre.x + std::copysign(s.eyesApart, eye.centre.x)) * s.faceWidth;
    // The cornea stays where the lids are, so a larger eye lies deeper.
    eye.centre.z -= eye.radius - eye.radius / s.eyeSize;
  }
  float lipsLow = 9, lipsHigh = -9, noseAt = 0, tipAt = -9;
  for (const Vertex& v : skin.vertices) {
    if (v.masks[0] > .5f && v.at.z > .3f) {
      lipsLow = std::min(lipsLow, v.at.y), lipsHigh = std::max(lipsHigh, v.at.y);
    }
  }
  for (const Vertex& v : skin.vertices) {
    if (std::fabs(v.at.x) < .05f && v.at.y > lipsHigh && v.at.y < 0 && v.at.z > tipAt) {
      tipAt = v.at.z, noseAt = v.at.y;
    }
  }
  const float mouthAt = .5f * (lipsLow + lipsHigh);
  float earLow = 9, earHigh = -9;
  for (const Vertex& v : skin.vertices) {
    if (v.masks[1] > .7f) {
      earLow = std::min(earLow, v.at.y), earHigh = std::max(earHigh, v.at.y);
    }
  }
  for (Vertex& v : skin.vertices) {
    Vec3 p = v.at;
    const float head = smoothstep(-1.45f, -.95f, p.y), front = inFront(p.z);
    for (const Eye& eye : old) {
      if (p.x * eye.centre.x >= 0 && p.z > 0) {
        Vec3 moved = moveEye(s, p, eye.centre);
        moved.z -= (moved.z - p.z) * .5f;
        p = moved;
      }
    }
    float width = 1 + (s.faceWidth - 1) * head;
    width *= 1 + s.skull * smoothstep(.25f, .75f, p.y);
    width *= 1 + s.temples * front * gaussian(p.y, .38f, .26f);
    width *= 1 + s.cheekbones * front * gaussian(p.y, -.10f, .20f);
    // From the lobe of the ear to the chin. The neck keeps its width.
    const float jaw = smoothstep(-.12f, -.72f, p.y) * smoothstep(-1.22f, -.98f, p.y);
    width *= 1 - s.jawTaper * jaw * inFront(p.z + .05f);
    width *= 1 - s.chinTaper * smoothstep(-.58f, -.92f, p.y) * smoothstep(-1.15f, -1.f, p.y) *
                     smoothstep(.05f, .40f, p.z);
    width *= 1 + s.neck * smoothstep(-.85f, -1.1f, p.y) * smoothstep(-1.9f, -1.35f, p.y);
    p.x *= width;
    const float chin = smoothstep(-.55f, -.95f, p.y) * smoothstep(-1.35f, -1.02f, p.y);
    p.y -= s.chinLength * chin * smoothstep(-.2f, .3f, p.z);
    // The apple of the cheek, the hollow below the cheekbone, jowls.
    const float ax = std::fabs(p.x), out = std::copysign(1.f, p.x);
    const auto bulge = [&](float x, float y, float rx, float ry, float amount) {
      const float near =
          amount * gaussian(ax, x, rx) * gaussian(p.y, y, ry) * smoothstep(-.1f, .35f, p.z);
      p = p + Vec3{out * .55f * near, 0, .8f * near};
    };
    bulge(.37f, -.20f, .19f, .15f, s.cheeks);
    bulge(.50f, -.46f, .15f, .17f, -s.hollows);
    bulge(.40f, -.78f, .14f, .12f, s.jowls);
    const float ridge = s.brows * gaussian(p.y, eyes[1].centre.y + .17f, .11f) *
                        smoothstep(.10f, .40f, p.z) * smoothstep(.62f, .36f, ax);
    p = p + Vec3{0, -ridge, .6f * ridge};
    const float mouth =
        smoothstep(.48f, .16f, ax) * gaussian(p.y, mouthAt, .16f) * smoothstep(.1f, .4f, p.z);
    p.z -= kMuzzle * gaussian(ax, 0, .26f) * gaussian(p.y, mouthAt + .02f, .19f) *
           smoothstep(.1f, .4f, p.z);
    p.x *= 1 + (s.mouthWidth - 1) * mouth;
    p.y += ((p.y > mouthAt ? s.upperLip : s.lowerLip) - 1) * (p.y - mouthAt) * mouth;
    reshapeNose(s, noseAt, mouthAt, tipAt, p);
    p.z += s.bridge * bridgeAt(ax, p.y, noseAt, eyes[1].centre.y) * smoothstep(.1f, .4f, p.z);
    p.y += s.noseTip * gaussian(ax, 0, .085f) * gaussian(p.y, noseAt, .13f) *
           smoothstep(tipAt - .22f, tipAt - .03f, p.z);
    if (v.masks[1] > .05f) {
      const float ear = smoothstep(.05f, .5f, v.masks[1]), root = .70f * s.faceWidth;
      const float beyond = std::max(0.f, std::fabs(p.x) - root);
      p.x += out * (s.earsOut - 1) * beyond * ear;
      p = mix(p, shapeEar(p, root, clamp01((p.y - earLow) / (earHigh - earLow)), earHigh - earLow),
              ear);
    }
    // The halves of a face differ. The lids of both eyes are measured on one, and stay alike.
    const Vec3 eye = eyes[p.x > 0 ? 1 : 0].centre, q = p * 1.7f + Vec3{float(seed), 0, 3};
    const float free = smoothstep(.22f, .5f, length(p - eye)) * head;
    p = p + Vec3{noise(q) - .5f, noise(q + Vec3{0, 9, 0}) - .5f, noise(q + Vec3{0, 0, 9}) - .5f} *
                (.042f * free);
    v.at = v.rest = p;
  }
}
